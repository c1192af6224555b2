//! The boundaries between runs, and the agent of each.

use super::note::Note;
use crate::convert::AttributedFields;
use crate::document::{UNNAMED, agent_id};
use std::collections::BTreeMap;
use std::ops::Range;

/// The agent of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) agent_id: String,
    /// Without a name, the agent is registered already.
    pub(super) name: Option<String>,
}

impl Who {
    fn named(entry: &AttributedFields) -> Self {
        let id = entry.agent_id.clone();
        Self {
            agent_id: id.unwrap_or_else(|| agent_id(&entry.agent)),
            name: Some(entry.agent.clone()),
        }
    }
}

/// One run: which messages, by whom.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) who: Who,
    pub(super) run_id: Option<String>,
    pub(super) messages: Range<usize>,
    /// Whether the messages belong to the open run passed to [`truncate`].
    pub(super) goes_on: bool,
}

/// The agents of the runs, as far as the caller states them.
pub(super) struct Roles<'a> {
    by_id: BTreeMap<&'a str, Who>,
    by_count: std::vec::IntoIter<(Who, usize)>,
    default: Who,
}

impl<'a> Roles<'a> {
    /// `fallback` is the agent of runs that no entry covers.
    pub(super) fn new(entries: &'a [AttributedFields], fallback: Option<Who>) -> Self {
        let by_id = entries
            .iter()
            .filter_map(|entry| Some((entry.run_id.as_deref()?, Who::named(entry))));
        let by_count = entries.iter().filter(|entry| entry.run_id.is_none());
        let by_count = by_count.filter_map(|entry| Some((Who::named(entry), entry.n_messages?)));
        let all = |entry: &&AttributedFields| entry.run_id.is_none() && entry.n_messages.is_none();
        let default = entries.iter().find(all).map(Who::named).or(fallback);
        Self {
            by_id: by_id.collect(),
            by_count: by_count.collect::<Vec<_>>().into_iter(),
            default: default.unwrap_or_else(|| Who {
                agent_id: agent_id(UNNAMED),
                name: Some(UNNAMED.to_owned()),
            }),
        }
    }
}

/// The last run of an archive, which the history may continue.
#[derive(Clone, Debug)]
pub(super) struct Open<'t> {
    pub(super) who: Who,
    pub(super) run_id: Option<&'t str>,
    /// Whether it has only requests so far.
    pub(super) asks: bool,
}

/// Splits messages into runs.
///
/// If the caller states the number of messages, that number decides. If not, a run begins where the
/// `run_id` changes. Without `run_id`, it begins at a prompt that answers no call. Requests that
/// the library merged have no `run_id` and stay with the run before them. A request with system
/// prompts only joins the run after it. A prompt without `run_id` joins the run of its answer if
/// that has one.
pub(super) fn truncate<'t>(
    notes: &'t [Note<'_>],
    open: Option<Open<'t>>,
    roles: &mut Roles<'_>,
) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let mut state = State {
        run_id: open.as_ref().and_then(|open| open.run_id),
        asks: open.as_ref().is_some_and(|open| open.asks),
        is_void: false,
        left: None,
    };
    if let Some(open) = open {
        cuts.push(Cut {
            who: open.who,
            run_id: open.run_id.map(str::to_owned),
            messages: 0..0,
            goes_on: true,
        });
    }
    for (place, note) in notes.iter().enumerate() {
        let id = note.run_id.as_deref();
        match cuts.last_mut() {
            Some(cut) if !state.ends_before(note, roles) => {
                if let Some(id) = id.filter(|_| cut.run_id.is_none()) {
                    cut.run_id = Some(id.to_owned());
                    if state.left.is_none()
                        && let Some(who) = roles.by_id.get(id)
                    {
                        cut.who = who.clone();
                    }
                }
                cut.messages.end = place + 1;
                state.is_void &= note.is_void;
                state.asks &= !note.is_response;
                state.run_id = id.or(state.run_id);
                state.left = state.left.map(|left| left.saturating_sub(1));
            }
            _ => {
                let known = id.and_then(|id| roles.by_id.get(id)).cloned();
                let counted = known.is_none().then(|| roles.by_count.next()).flatten();
                state = State {
                    run_id: id,
                    asks: !note.is_response,
                    is_void: note.is_void,
                    left: counted.as_ref().map(|(_, n)| n.saturating_sub(1)),
                };
                let who = known.or(counted.map(|(who, _)| who));
                cuts.push(Cut {
                    who: who.unwrap_or_else(|| roles.default.clone()),
                    run_id: id.map(str::to_owned),
                    messages: place..place + 1,
                    goes_on: false,
                });
            }
        }
    }
    cuts.retain(|cut| !cut.messages.is_empty());
    cuts
}

struct State<'t> {
    run_id: Option<&'t str>,
    /// Whether the run has only requests so far.
    asks: bool,
    /// Whether it has only system prompts so far.
    is_void: bool,
    /// The number of messages that the run still has, if the caller stated one.
    left: Option<usize>,
}

impl State<'_> {
    fn ends_before(&self, note: &Note<'_>, roles: &Roles<'_>) -> bool {
        let id = note.run_id.as_deref();
        let other = id.is_some() && id != self.run_id;
        if let Some(left) = self.left {
            let named = other && id.is_some_and(|id| roles.by_id.contains_key(id));
            return left == 0 || named;
        }
        let unnamed = self.run_id.is_none();
        if self.is_void && (unnamed || !other) {
            return false;
        }
        if other {
            return !(unnamed && self.asks && !note.prompts);
        }
        note.prompts && (id.is_none() || unnamed) && !note.answers
    }
}
