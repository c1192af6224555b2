//! What happens beneath a thread, in the native streams.

mod branch_state;

use crate::error::ApiError;
use crate::event_id::{EventId, Incarnation};
use crate::sse::{self, FrameBuffer, View};
use branch_state::Standings;
use interop::run::RunSelector;
use runtime::{Below, CallAddress, Cursor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::ops::ControlFlow;
use timeline::{Event, Payload, Seq, ThreadId};
use utoipa::IntoParams;

/// Parts the places in the id of an event.
const SEPARATOR: char = '~';
/// The most threads beneath one that an id names.
const MAX_BELOW: usize = 1_000;

/// What of sub-agents is streamed.
#[derive(Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TreeQuery {
    /// Whether a stream also shows what sub-agents do, at any depth: as events `subagent`, whose
    /// data is the event of the sub-agent's thread with `path`, the calls that led there.
    #[serde(default)]
    pub(crate) subagents: bool,
}

/// How far a stream was read, as the id of an event: the [`EventId`] of the thread, then for each
/// thread beneath it that is not at its end `~<thread>:<place>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeEventId {
    pub(crate) cursor: Cursor,
    pub(crate) incarnation: Option<Incarnation>,
}

impl Display for TreeEventId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id())?;
        for (thread, seq) in &self.cursor.below {
            write!(f, "{SEPARATOR}{thread}:{seq}")?;
        }
        Ok(())
    }
}

impl TreeEventId {
    /// Where the thread itself was read up to.
    pub(crate) fn id(&self) -> EventId {
        EventId {
            seq: self.cursor.seq,
            incarnation: self.incarnation,
        }
    }

    /// Reads an id; none where it is not one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut pieces = text.split(SEPARATOR);
        let EventId { seq, incarnation } = pieces.next()?.parse().ok()?;
        let mut below = BTreeMap::new();
        for piece in pieces {
            let (thread, seq) = piece.rsplit_once(':')?;
            below.insert(ThreadId::from(thread), Seq(seq.parse().ok()?));
            if below.len() > MAX_BELOW {
                return None;
            }
        }
        Some(Self {
            cursor: Cursor { seq, below },
            incarnation,
        })
    }

    /// What is read is read up to here.
    fn see(&mut self, below: &Below) {
        let record = &below.logged.record;
        if below.path.is_empty() {
            self.cursor.seq = record.seq;
        } else {
            self.cursor
                .below
                .insert(below.thread_id.clone(), record.seq);
        }
        if let Some((child, after)) = &below.follows {
            self.cursor.below.entry(child.clone()).or_insert(*after);
        }
        if let Event::PartCreated { part, .. } = &record.event
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

    /// Nothing of these threads will follow, whoever reads on from here.
    fn forget(&mut self, done: &[ThreadId]) {
        for thread in done {
            self.cursor.below.remove(thread);
        }
    }
}

/// The thread that a part says has ended.
fn ended(part: &Payload) -> Option<ThreadId> {
    let event = interop::parts::EventPart::read(part)?;
    let is_end = event.part_type == interop::parts::EventPart::THREAD_END;
    let thread = event.data.str_field("thread_id").filter(|_| is_end);
    thread.map(|thread| thread.as_str().into())
}

/// Shows every record of a thread and of those beneath it, or of one run.
pub(crate) struct TreeEvents {
    place: TreeEventId,
    standings: Standings,
    run: Option<RunSelector>,
    left: usize,
}

impl TreeEvents {
    /// All after a place, so many at most.
    pub(crate) fn all(place: TreeEventId, limit: usize) -> Self {
        Self {
            place,
            standings: Standings::default(),
            run: None,
            left: limit,
        }
    }

    /// Those of one run.
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
        let logged = &below.logged;
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
        let below = [("t-1".into(), Seq(4)), ("t:2".into(), Seq(9))];
        let place = TreeEventId {
            cursor: Cursor {
                seq: Seq(17),
                below: below.into(),
            },
            incarnation: Some(Incarnation::of(&"t".into())),
        };
        assert_eq!(place.to_string(), "17.e3b98a4d~t-1:4~t:2:9");
        assert_eq!(TreeEventId::read(&place.to_string()), Some(place));
        let bare = TreeEventId {
            cursor: Seq(17).into(),
            incarnation: None,
        };
        assert_eq!(TreeEventId::read("17"), Some(bare));
        for wrong in ["", "x", "17.~t:1", "17~", "17~t", "17~t:x", "-1"] {
            assert_eq!(TreeEventId::read(wrong), None, "{wrong}");
        }
    }
}
