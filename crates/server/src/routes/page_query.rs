//! Reading a whole thread, or a page of it at the page's cost.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use runtime::{Filter, PageRequest, Position};
use serde::Deserialize;
use timeline::Transcript;
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
}

/// A page of a thread.
pub(super) struct PageQuery {
    pub(super) transcript: Transcript,
    /// The cursor of the previous page; none if this page begins with the thread.
    pub(super) before: Option<u64>,
}

impl PieceQuery {
    pub(super) fn new(limit: Option<usize>, before: Option<u64>) -> Self {
        Self { limit, before }
    }

    /// Reads the page. Costs time proportional to it.
    pub(super) async fn read(
        self,
        thread: &ThreadKey,
        filter: Filter,
    ) -> Result<PageQuery, ApiError> {
        if self.limit.is_none() && self.before.is_none() {
            let transcript = thread.transcript(filter).await?;
            let before = None;
            return Ok(PageQuery { transcript, before });
        }
        let page = PageRequest::Before {
            before: self.before.map_or(Position::END, Position),
            n: self.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
        };
        let read = thread.page(page, filter).await?;
        Ok(PageQuery {
            transcript: read.transcript,
            before: Some(read.first.0).filter(|_| read.more),
        })
    }

    /// Whether it reads to the end of the thread.
    pub(super) fn is_tail(self) -> bool {
        self.before.is_none()
    }
}
