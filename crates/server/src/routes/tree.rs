//! Events of sub-agents in the native streams.

mod branch_state;

use crate::error::ApiError;
use crate::event_id::{EventId, Incarnation, number};
use crate::sse::{self, FrameBuffer, View};
use branch_state::Standings;
use interop::run::RunSelector;
use runtime::{Below, CallAddress, Cursor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::ops::ControlFlow;
use timeline::{Event, Payload, ReadPosition, Seq, ThreadId};
use utoipa::IntoParams;

/// Separates the positions in an event id.
const SEPARATOR: char = '~';
/// Maximum number of descendants in an event id.
const MAX_BELOW: usize = 1_000;

/// Whether a stream includes sub-agents.
#[derive(Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TreeQuery {
    /// Whether a stream also shows the events of sub-agents, at any depth. They are events `subagent`.
    /// Their data is the event of the sub-agent's thread and `path`, the calls that lead to it.
    #[serde(default)]
    pub(crate) subagents: bool,
}

/// A position in a stream, as an event id: the [`EventId`] of the thread, then `~<thread>:<position>`
/// for each descendant that is not at its end. Behind unstored chunks of a descendant, their number
/// follows: `~<thread>:<position>.<number>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeEventId {
    pub(crate) cursor: Cursor,
    pub(crate) incarnation: Option<Incarnation>,
}

impl Display for TreeEventId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id())?;
        for (thread, ReadPosition { seq, n_ahead }) in &self.cursor.below {
            write!(f, "{SEPARATOR}{thread}:{seq}")?;
            if *n_ahead > 0 {
                write!(f, ".{n_ahead}")?;
            }
        }
        Ok(())
    }
}

impl TreeEventId {
    /// The event id of the thread itself.
    pub(crate) fn id(&self) -> EventId {
        EventId {
            position: self.cursor.own,
            incarnation: self.incarnation,
        }
    }

    /// Parses an id; none if the text is not one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut pieces = text.split(SEPARATOR);
        let EventId {
            position,
            incarnation,
        } = pieces.next()?.parse().ok()?;
        let mut below = BTreeMap::new();
        for piece in pieces {
            let (thread, text) = piece.rsplit_once(':')?;
            let (seq, n_ahead) = match text.split_once('.') {
                Some((seq, n_ahead)) => (seq, number(Some(n_ahead))?),
                None => (text, 0),
            };
            let seq = Seq(number(Some(seq))?);
            below.insert(ThreadId::from(thread), ReadPosition { seq, n_ahead });
            if below.len() > MAX_BELOW {
                return None;
            }
        }
        Some(Self {
            cursor: Cursor {
                own: position,
                below,
            },
            incarnation,
        })
    }

    /// Moves the position behind this record.
    fn see(&mut self, below: &Below) {
        let followed = &below.followed;
        if below.path.is_empty() {
            self.cursor.own = followed.position;
        } else {
            let thread = below.thread_id.clone();
            self.cursor.below.insert(thread, followed.position);
        }
        if let Some((child, after)) = &below.follows {
            self.cursor
                .below
                .entry(child.clone())
                .or_insert((*after).into());
        }
        if let Event::PartCreated { part, .. } = &followed.record.event
            && let Some(ended) = ended(part)
        {
            self.cursor.below.remove(&ended);
        }
        // An id that is too long could not be given back. Threads' ids are in the order in which they
        // were made; of what began first, who reconnects sees no more.
        while self.cursor.below.len() > MAX_BELOW {
            self.cursor.below.pop_first();
        }
    }

    /// Removes threads without further records from the position.
    fn forget(&mut self, done: &[ThreadId]) {
        for thread in done {
            self.cursor.below.remove(thread);
        }
    }
}

/// The thread that a part reports as ended.
fn ended(part: &Payload) -> Option<ThreadId> {
    let event = interop::parts::EventPart::read(part)?;
    let is_end = event.part_type == interop::parts::EventPart::THREAD_END;
    let thread = event.data.str_field("thread_id").filter(|_| is_end);
    thread.map(|thread| thread.as_str().into())
}

/// Shows the records of a thread and its descendants, all or those of one run.
pub(crate) struct TreeEvents {
    place: TreeEventId,
    standings: Standings,
    run: Option<RunSelector>,
    left: usize,
}

impl TreeEvents {
    /// Shows all records after a position, at most `limit`.
    pub(crate) fn all(place: TreeEventId, limit: usize) -> Self {
        Self {
            place,
            standings: Standings::default(),
            run: None,
            left: limit,
        }
    }

    /// Shows the records of one run.
    pub(crate) fn of(run: RunSelector, after: Seq, incarnation: Incarnation) -> Self {
        Self {
            place: TreeEventId {
                cursor: after.into(),
                incarnation: Some(incarnation),
            },
            standings: Standings::default(),
            run: Some(run),
            left: usize::MAX,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PathView<'a> {
    thread_key: &'a str,
    tool_call_id: &'a str,
}

fn path(path: &[CallAddress]) -> Vec<PathView<'_>> {
    let calls = path.iter().map(|call| PathView {
        thread_key: &call.key,
        tool_call_id: &call.tool_call_id,
    });
    calls.collect()
}

impl View<Below> for TreeEvents {
    fn write(&mut self, below: &Below, out: &mut FrameBuffer) -> ControlFlow<()> {
        // Of what was seen before, too: it says how the threads stand.
        let done = self.standings.see(below);
        if !below.is_past {
            self.place.see(below);
        }
        self.place.forget(&done);
        if below.is_past {
            return ControlFlow::Continue(());
        }
        let logged = &below.followed;
        let mut flow = ControlFlow::Continue(());
        if below.path.is_empty() {
            if let Some(run) = &mut self.run {
                let seen = run.select(&logged.record.event);
                if !seen.is_own() {
                    return seen.flow();
                }
                flow = seen.flow();
            }
            let event = logged.record.event.event_type().name();
            sse::frame(&self.place, event, "{", logged, out);
        } else {
            if self.run.as_ref().is_some_and(|run| !run.is_running()) {
                return flow;
            }
            let path = serde_json::to_string(&path(&below.path)).unwrap_or_default();
            let thread = serde_json::Value::from(below.key.as_str());
            let head = format!("{{\"path\":{path},\"threadKey\":{thread},");
            sse::frame(&self.place, "subagent", &head, logged, out);
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        flow
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        sse::failure_frame(error, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let third = ReadPosition {
            seq: Seq(9),
            n_ahead: 2,
        };
        let below = [("t-1".into(), Seq(4).into()), ("t:2".into(), third)];
        let place = TreeEventId {
            cursor: Cursor {
                own: Seq(17).into(),
                below: below.into(),
            },
            incarnation: Some(Incarnation::of(&"t".into())),
        };
        assert_eq!(place.to_string(), "17.e3b98a4d~t-1:4~t:2:9.2");
        assert_eq!(TreeEventId::read(&place.to_string()), Some(place));
        let bare = TreeEventId {
            cursor: Seq(17).into(),
            incarnation: None,
        };
        assert_eq!(TreeEventId::read("17"), Some(bare));
        for wrong in [
            "", "x", "17.~t:1", "17~", "17~t", "17~t:x", "17~t:1.", "17~t:1.x", "-1",
        ] {
            assert_eq!(TreeEventId::read(wrong), None, "{wrong}");
        }
    }
}
