//! Converts the events of one run to updates of its messages. Both of `LangGraph`'s streams are built
//! from these.

mod draft;

use draft::Draft;
pub(super) use draft::{Piece, block};

use super::message::{agent_of, result, step_messages};
use super::run::error_name;
use crate::parts::{StepResponse, ToolPart};
use crate::run::{RunEvent, RunFold, RunPart, RunSelector};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use timeline::{Chunk, ExecutionStatus, ItemId, Payload, StepStatus};

/// An update of a run for its readers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Update<'e> {
    /// The message that is being written grows.
    Piece(Piece<'e>),
    /// The message of the result of a call.
    Result(Value),
    /// The message with this id, which was streamed, is void.
    Removed(String),
    /// A step is complete.
    Completed {
        /// The message of its model.
        message: Option<Value>,
        /// Whether readers have to take that message whole: what was streamed of it is void.
        is_replaced: bool,
        /// The messages of the results of its calls.
        results: Vec<Value>,
    },
    /// Custom data of agents and tools, which is not part of a message.
    Custom {
        /// Its type.
        name: &'e str,
        /// The data.
        data: Value,
    },
}

/// Makes the updates of one run, and keeps the step at work for them.
#[derive(Clone, Debug)]
pub(super) struct RunUpdates {
    /// Converts records to the events that [`RunUpdates::updates`] takes.
    pub(super) fold: RunFold,
    /// The id of the thread that clients use.
    pub(super) thread_id: String,
    /// The id of the run that clients use.
    pub(super) run_id: String,
    /// The agent that runs, or ran last.
    pub(super) agent: Option<String>,
    /// How many steps the execution completed before the one at work.
    pub(super) iteration: u32,
    /// The message that is being written.
    pub(super) draft: Draft,
    parts: BTreeMap<u32, Payload>,
    response: Option<StepResponse>,
    /// The parts of the step whose results were streamed.
    results: Vec<u32>,
    /// Why the run failed: the name of the error, and a message.
    pub(super) failure: Option<(String, String)>,
}

impl RunUpdates {
    /// The updates of the run that answers this item.
    pub(super) fn new(thread_id: &str, run_id: &str, trigger: ItemId) -> Self {
        Self {
            fold: RunFold::new(RunSelector::answering(trigger)).with_blocks(),
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_owned(),
            agent: None,
            iteration: 0,
            draft: Draft::default(),
            parts: BTreeMap::new(),
            response: None,
            results: Vec::new(),
            failure: None,
        }
    }

    /// The graph node that the agent's messages belong to.
    pub(super) fn node(&self) -> &str {
        self.agent.as_deref().unwrap_or("agent")
    }

    /// The id of the message in progress, which is that of its step.
    pub(super) fn message_id(&self) -> String {
        let step = self.fold.step();
        step.map(ToString::to_string).unwrap_or_default()
    }

    /// Notes that the reader has chunks of the step's message that the log lacks. A reset then
    /// removes the message.
    pub(super) fn note_lost(&mut self) {
        self.draft.has_lost = true;
    }

    /// The updates that an event of the run is.
    pub(super) fn updates<'e>(&mut self, event: &'e RunEvent<'_>) -> Vec<Update<'e>> {
        let mut out = Vec::new();
        match event {
            RunEvent::Started { execution } | RunEvent::Continued { execution, .. } => {
                self.agent = agent_of(execution.run.as_ref());
            }
            RunEvent::StepStarted { step } => {
                self.iteration = step.iteration;
                self.clear_step();
            }
            RunEvent::Chunk(chunk) => out.extend(self.chunk(chunk)),
            RunEvent::StepReset { .. } => self.remove_step(&mut out),
            RunEvent::Responded { response } => {
                self.response.clone_from(response);
                if let Some(response) = response.as_ref().filter(|response| !response.answers) {
                    self.draft.n_pieces += 1;
                    out.push(Update::Piece(Piece::Response(response)));
                }
            }
            RunEvent::Part {
                idx,
                part,
                payload,
                is_new,
                is_known,
            } => {
                self.parts.insert(*idx, (*payload).clone());
                self.part(*idx, part, (*is_new, *is_known), &mut out);
            }
            RunEvent::StepEnded {
                status: StepStatus::Completed,
                ..
            } => self.complete_step(&mut out),
            RunEvent::ExecutionEnded {
                status: ExecutionStatus::Failed,
                interruption,
                is_last,
                ..
            } => {
                let reason = interruption.map_or("error", |why| why.reason.as_str());
                let detail = interruption.and_then(|why| why.detail.as_deref());
                let message = detail.unwrap_or(reason).to_owned();
                self.failure = Some((error_name(reason).to_owned(), message));
                if *is_last {
                    self.remove_step(&mut out);
                }
            }
            RunEvent::StepEnded { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
        out
    }

    fn chunk<'e>(&mut self, chunk: &'e Chunk<'_>) -> Option<Update<'e>> {
        let draft = &mut self.draft;
        match chunk {
            Chunk::BlockDelta {
                kind, block, text, ..
            } => draft.grow(*kind, &block.id, text).map(Update::Piece),
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                ..
            } => draft.start_call(tool_call_id, tool_name).map(Update::Piece),
            Chunk::ToolInputDelta {
                tool_call_id, text, ..
            } => draft.grow_call(tool_call_id, text).map(Update::Piece),
            Chunk::Source { data, .. } => {
                let name = chunk.chunk_type();
                let mut source = Map::from_iter([("type".to_owned(), name.into())]);
                if let Value::Object(members) = data.value() {
                    source.extend(members.into_iter().filter(|(key, _)| key != "type"));
                }
                Some(custom(name, source.into()))
            }
            Chunk::Data { chunk_type, data } => {
                let data = data.map(Payload::value).unwrap_or_default();
                Some(custom(chunk_type, data))
            }
            Chunk::BlockStart { .. }
            | Chunk::BlockEnd { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Other { .. } => None,
        }
    }

    fn part<'e>(
        &mut self,
        idx: u32,
        part: &'e RunPart,
        (is_new, is_known): (bool, bool),
        out: &mut Vec<Update<'e>>,
    ) {
        match part {
            RunPart::Tool(tool) => {
                if is_new && !is_known {
                    out.extend(self.call(tool).map(Update::Piece));
                }
                if let Some(message) = result(tool, &self.message_id(), idx) {
                    self.results.push(idx);
                    out.push(Update::Result(message));
                }
            }
            RunPart::Event(event) if is_new => out.push(Update::Custom {
                name: &event.part_type,
                data: event.data.value(),
            }),
            RunPart::File { url, media_type } if is_new => {
                out.push(Update::Piece(self.draft.file(url, media_type)));
            }
            RunPart::Event(_) | RunPart::File { .. } | RunPart::Content => {}
        }
    }

    /// A call is stored: what was not streamed of it follows.
    fn call<'e>(&mut self, tool: &'e ToolPart) -> impl Iterator<Item = Piece<'e>> + use<'e> {
        let draft = &mut self.draft;
        let call = tool.tool_call_id.as_str();
        let start = draft.start_call(call, tool.tool_name());
        let arguments = match tool.arguments() {
            blank if blank.trim().is_empty() => "{}",
            arguments => arguments,
        };
        start.into_iter().chain(draft.end_call(call, arguments))
    }

    fn complete_step(&mut self, out: &mut Vec<Update<'_>>) {
        let (id, agent, response) = (self.message_id(), self.agent.as_deref(), &self.response);
        let (message, results) = step_messages(&id, agent, response.as_ref(), self.parts.values());
        let is_replaced = self.draft.is_wrong && message.is_some();
        if is_replaced {
            out.push(Update::Removed(id));
        }
        out.push(Update::Completed {
            message,
            is_replaced,
            results,
        });
        self.clear_step();
    }

    /// Voids the step, because its attempt failed or the run ended in it.
    fn remove_step(&mut self, out: &mut Vec<Update<'_>>) {
        let id = self.message_id();
        let is_shown = self.draft.n_pieces > 0 || self.draft.has_lost;
        let message = is_shown.then(|| id.clone());
        let results = self.results.iter().map(|idx| format!("{id}:{idx}"));
        let ids = message.into_iter().chain(results);
        out.extend(ids.map(Update::Removed));
        self.clear_step();
    }

    fn clear_step(&mut self) {
        self.draft = Draft::default();
        self.parts.clear();
        self.response = None;
        self.results.clear();
    }
}

/// Data are shown without the object that holds them.
fn custom(name: &str, mut data: Value) -> Update<'_> {
    let data = data.get_mut("data").map(Value::take).unwrap_or(data);
    Update::Custom { name, data }
}
