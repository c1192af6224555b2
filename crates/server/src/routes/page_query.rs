//! A thread read whole, or a piece of it at the cost of the piece.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use runtime::{Filter, PageRequest, Position};
use serde::Deserialize;
use timeline::Transcript;
use utoipa::IntoParams;

/// How much of a thread is read backwards where only its end is said.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// Which piece of a thread is read: all of it where nothing is said.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PieceQuery {
    /// Only the last messages said to the agents, about so many and 1,000 at most, with what
    /// answered them.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Only what goes before this place: the `before` of an earlier answer. With it `limit` is 100
    /// when absent.
    before: Option<u64>,
}

/// A piece of a thread.
pub(super) struct PageQuery {
    pub(super) transcript: Transcript,
    /// Where the piece before it ends; none where it begins with the thread.
    pub(super) before: Option<u64>,
}

impl PieceQuery {
    pub(super) fn new(limit: Option<usize>, before: Option<u64>) -> Self {
        Self { limit, before }
    }

    /// Reads the piece. Costs what it has.
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
