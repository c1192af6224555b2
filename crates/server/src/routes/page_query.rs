//! Reading a whole thread, or a page of it at the page's cost.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use runtime::{Filter, PageRequest, Position, RuntimeError};
use serde::Deserialize;
use timeline::{Seq, Transcript};
use utoipa::IntoParams;

/// Default of `limit` if `before` is set.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// The page to read; without parameters the whole thread.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PieceQuery {
    /// Only about this many of the latest messages to agents, with their answers. At most 1,000.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Only the page before this cursor, which is the `before` of an earlier response. `limit` is then
    /// 100 by default.
    before: Option<u64>,
    /// The thread as it was after this event of its own log. Default: as it is.
    at: Option<u64>,
}

/// An event of a thread.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AtQuery {
    /// The thread as it was after this event of its own log. Default: as it is.
    pub(super) at: Option<u64>,
}

/// A page of a thread.
pub(super) struct PageQuery {
    pub(super) transcript: Transcript,
    /// The cursor of the previous page; none if this page begins with the thread.
    pub(super) before: Option<u64>,
}

impl PieceQuery {
    pub(super) fn new(limit: Option<usize>, before: Option<u64>) -> Self {
        let at = None;
        Self { limit, before, at }
    }

    /// Reads the page. Costs time proportional to it.
    pub(super) async fn read(
        self,
        thread: &ThreadKey,
        filter: Filter,
    ) -> Result<PageQuery, ApiError> {
        let is_page = self.limit.is_some() || self.before.is_some();
        let page = is_page.then(|| PageRequest::Before {
            before: self.before.map_or(Position::END, Position),
            n: self.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
        });
        let read = match (page, self.at) {
            (page, Some(at)) => {
                let read = thread.page_at((page, Seq(at)), filter).await;
                read.map_err(of_past)?
            }
            (Some(page), None) => thread.page(page, filter).await?,
            (None, None) => {
                let transcript = thread.transcript(filter).await?;
                let before = None;
                return Ok(PageQuery { transcript, before });
            }
        };
        Ok(PageQuery {
            transcript: read.transcript,
            before: Some(read.first.0).filter(|_| read.more),
        })
    }

    /// Whether it reads to the end of the thread.
    pub(super) fn is_tail(self) -> bool {
        self.before.is_none()
    }

    /// The event after which the thread is read.
    pub(super) fn at(self) -> Option<Seq> {
        self.at.map(Seq)
    }
}

/// The error of a request for an event that the thread does not have.
pub(in crate::routes) fn of_past(error: RuntimeError) -> ApiError {
    if let RuntimeError::BeyondEnd { at, tail } = error {
        return ApiError::InvalidQuery {
            what: format!("at is {at}, and the last event of the thread is {tail}"),
        };
    }
    error.into()
}
