//! Which answer belongs to which call.

use super::text;
use crate::Losses;
use crate::runs::ModelRun;
use std::collections::BTreeMap;
use thread::Json;

/// The address of a part: its run, message and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartAddress {
    pub(super) run: usize,
    pub(super) message: usize,
    pub(super) part: usize,
}

/// The answers to calls, by the place of the call.
pub(super) struct Answers<'a> {
    by_call: BTreeMap<PartAddress, &'a Json>,
}

impl<'a> Answers<'a> {
    /// Assigns each answer to the last earlier call with its id that has no answer.
    pub(super) fn of(runs: &'a [(usize, ModelRun)], losses: &mut Losses) -> Self {
        let mut by_call = BTreeMap::new();
        let mut open: BTreeMap<(&str, bool), Vec<PartAddress>> = BTreeMap::new();
        for (run, (_, read)) in runs.iter().enumerate() {
            for (message, json) in read.messages.iter().enumerate() {
                let parts = json.json.get("parts").and_then(Json::as_array);
                for (part, json_part) in parts.unwrap_or_default().iter().enumerate() {
                    let place = PartAddress { run, message, part };
                    let id = text(json_part, "tool_call_id");
                    let kind = text(json_part, "part_kind");
                    let builtin = kind.starts_with("builtin-");
                    match kind {
                        "tool-call" | "builtin-tool-call" => {
                            open.entry((id, builtin)).or_default().push(place);
                        }
                        "tool-return" | "builtin-tool-return" | "retry-prompt" => {
                            match open.get_mut(&(id, builtin)).and_then(Vec::pop) {
                                Some(call) => {
                                    by_call.insert(call, json_part);
                                }
                                None => losses.push(
                                    format!("{}/parts/{part}", json.pointer),
                                    "an answer to no call",
                                ),
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        Self { by_call }
    }

    pub(super) fn to(&self, call: PartAddress) -> Option<&'a Json> {
        self.by_call.get(&call).copied()
    }
}
