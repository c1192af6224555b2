//! Converts messages to the commands that write them. Users' messages become items; a model's
//! messages with their tool results become steps of finished executions.

use interop::model;
use interop::parts::{StepResponse, ToolPart, ToolState};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use timeline::{Command, Ending, ItemId, NewItem, Payload, StepOutcome, Trigger};
use upp::{
    AssistantMessage, CycleUsage, Message, Response, StopReason, ToolCall, ToolResult,
    ToolResultMessage, UserMessage,
};

/// The commands for a list of messages.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The commands with their times.
    pub(super) commands: Vec<(Timestamp, Command)>,
    /// The range of messages of each log entry, in the order of the entries. Results without an
    /// earlier call are in no range.
    pub(super) entries: Vec<Range<usize>>,
}

/// The thread to which messages are written.
pub(super) struct WriteTarget<'a> {
    /// The calls that earlier messages leave open.
    pub(super) open: Vec<ToolCall>,
    /// The items that the thread has.
    pub(super) used: BTreeSet<ItemId>,
    /// The log's last time: times in a log never decrease.
    pub(super) at: Timestamp,
    /// Makes ids.
    pub(super) mint: &'a dyn Fn() -> String,
}

/// Writes messages one after the other.
pub(super) fn written(
    messages: &[Message],
    place: WriteTarget<'_>,
) -> Result<Written, serde_json::Error> {
    let mut writer = Writer {
        messages,
        next: 0,
        place,
        written: Written::default(),
    };
    while writer.next < messages.len() {
        writer.entry()?;
    }
    Ok(writer.written)
}

struct Writer<'a> {
    messages: &'a [Message],
    next: usize,
    place: WriteTarget<'a>,
    written: Written,
}

/// One step of an execution.
struct Step {
    at: Timestamp,
    parts: Vec<Payload>,
    response: Payload,
    /// The parts that have results, with these.
    results: Vec<(u32, ToolPart)>,
    ended_at: Timestamp,
    is_open: bool,
}

impl Writer<'_> {
    fn entry(&mut self) -> Result<(), serde_json::Error> {
        let first = self.next;
        let Some(message) = self.messages.get(first) else {
            return Ok(());
        };
        match message {
            Message::User(said) if !self.begins_step(first) => {
                let item = self.item(said);
                self.next += 1;
                self.place.open.clear();
                self.written.entries.push(first..self.next);
                if self.begins_step(self.next) {
                    return self.turn(item, said.timestamp);
                }
                self.push(said.timestamp, Command::Record { item });
                Ok(())
            }
            Message::ToolResult(results) if !self.is_answer(results) => {
                self.next += 1;
                Ok(())
            }
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => {
                let at = message.timestamp();
                let nobody = reference((self.place.mint)());
                self.turn(nobody, at)
            }
        }
    }

    /// Whether a model's message comes here, possibly after a strategy's prompts.
    fn begins_step(&self, place: usize) -> bool {
        let mut rest = self.messages.iter().skip(place);
        let after = rest.find(|message| prompt(message).is_none());
        matches!(after, Some(Message::Assistant(_)))
    }

    /// Whether some of these are results of waiting calls.
    fn is_answer(&self, message: &ToolResultMessage) -> bool {
        let is_its = |result: &ToolResult| self.place.open.iter().any(|call| answers(result, call));
        message.results.iter().any(is_its)
    }

    fn turn(&mut self, trigger: NewItem, at: Timestamp) -> Result<(), serde_json::Error> {
        let first = self.next;
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
        self.written.entries.push(first..self.next);
        let mint = self.place.mint;
        let mut ids = steps.iter().map(|_| mint()).collect::<Vec<_>>().into_iter();
        let start = Command::Start {
            trigger: Trigger::New(trigger),
            run: None,
            execution_id: mint().into(),
            reaction_item_id: mint().into(),
            step_id: ids.next().unwrap_or_default().into(),
            workflow_run_id: None,
        };
        self.push(at, start);
        for step in steps {
            let outcome = outcome(&step);
            let next = ids.next().map(Into::into);
            let (parts, response) = (step.parts, step.response);
            self.push(step.at, Command::Respond { parts, response });
            for (idx, tool) in step.results {
                let part = tool.write()?;
                self.push(step.ended_at, Command::PutPart { idx, part });
            }
            self.push(step.ended_at, Command::ImportStep { outcome, next });
        }
        let ending = Ending::Completed;
        self.push(self.place.at, Command::End { ending });
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Step>, serde_json::Error> {
        match self.messages.get(self.next) {
            Some(Message::ToolResult(results)) if self.is_answer(results) => {
                self.next += 1;
                self.answers(results).map(Some)
            }
            Some(_) if self.begins_step(self.next) => self.response(),
            Some(_) | None => Ok(None),
        }
    }

    /// Converts a model's message and the results of its tools.
    fn response(&mut self) -> Result<Option<Step>, serde_json::Error> {
        let rest = self.messages.get(self.next..).unwrap_or_default();
        let mut parts: Vec<Payload> = rest.iter().map_while(prompt).collect();
        self.next += parts.len();
        let Some(Message::Assistant(said)) = self.messages.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        let (own, response) = model::answer(&response(said))?;
        parts.extend(own);
        let mut step = Step {
            at: said.timestamp,
            response: about(&response)?,
            results: Vec::new(),
            ended_at: said.timestamp,
            is_open: false,
            parts,
        };
        self.place.open.clone_from(&said.tool_calls);
        if let Some(Message::ToolResult(results)) = self.messages.get(self.next)
            && self.is_answer(results)
        {
            self.next += 1;
            let n_before = step.parts.len() - said.tool_calls.len();
            self.take(results, n_before, &said.tool_calls, &mut step)?;
        }
        step.is_open = !self.place.open.is_empty();
        Ok(Some(step))
    }

    /// Converts the results of calls that waited.
    fn answers(&mut self, results: &ToolResultMessage) -> Result<Step, serde_json::Error> {
        let is_its = |call: &&ToolCall| results.results.iter().any(|it| answers(it, call));
        let calls: Vec<ToolCall> = self.place.open.iter().filter(is_its).cloned().collect();
        let parts = calls.iter().map(|call| part(call).write());
        let mut step = Step {
            at: results.timestamp,
            parts: parts.collect::<Result<_, _>>()?,
            response: json!({ "answers": true }).into(),
            results: Vec::new(),
            ended_at: results.timestamp,
            is_open: false,
        };
        self.take(results, 0, &calls, &mut step)?;
        Ok(step)
    }

    /// Assigns each result to its call; the calls' parts start at `n_before`.
    fn take(
        &mut self,
        results: &ToolResultMessage,
        n_before: usize,
        calls: &[ToolCall],
        step: &mut Step,
    ) -> Result<(), serde_json::Error> {
        let mut left: Vec<(usize, &ToolCall)> = calls.iter().enumerate().collect();
        for result in &results.results {
            let Some(place) = left.iter().position(|(_, call)| answers(result, call)) else {
                continue;
            };
            let (nth, call) = left.remove(place);
            let idx = u32::try_from(n_before + nth).unwrap_or(u32::MAX);
            step.results.push((idx, with_result(part(call), result)?));
            let open = &mut self.place.open;
            if let Some(place) = open.iter().position(|open| answers(result, open)) {
                open.remove(place);
            }
        }
        step.ended_at = results.timestamp;
        Ok(())
    }

    /// A user's message under its own id, unless another item has that id.
    fn item(&mut self, said: &UserMessage) -> NewItem {
        let mut id = ItemId::from(said.id.as_str());
        if !self.place.used.insert(id.clone()) {
            id = (self.place.mint)().into();
        }
        NewItem::user(id, model::item_content(said))
    }

    fn push(&mut self, at: Timestamp, command: Command) {
        if is_observed(at) {
            self.place.at = self.place.at.max(at);
        }
        self.written.commands.push((self.place.at, command));
    }
}

/// Whether a log can have this time: stores count nanoseconds from 1970, which end in 2262.
pub(super) fn is_observed(at: Timestamp) -> bool {
    (0..9_000_000_000).contains(&at.as_second())
}

/// The item that an agent answers if no user message precedes it.
fn reference(id: String) -> NewItem {
    NewItem::reference(id, None)
}

fn prompt(message: &Message) -> Option<Payload> {
    message.as_user().and_then(model::prompt_part)
}

fn answers(result: &ToolResult, call: &ToolCall) -> bool {
    result.tool_call_id == call.tool_call_id
}

fn part(call: &ToolCall) -> ToolPart {
    let id = call.tool_call_id.as_str();
    let mut part = ToolPart::call(&call.tool_name, id, call.arguments.text());
    part.after = call.after.iter().map(ToString::to_string).collect();
    part
}

fn with_result(mut part: ToolPart, result: &ToolResult) -> Result<ToolPart, serde_json::Error> {
    part.state = ToolState::OutputAvailable;
    if result.is_error {
        part.state = ToolState::OutputError;
        part.error_text = result.result.as_str().map(str::to_owned);
    }
    if part.error_text.is_none() {
        part.output = Some(Payload::write(&result.result)?);
    }
    Ok(part)
}

/// The response that a message came from, as far as the message's data allow.
fn response(said: &Arc<AssistantMessage>) -> Response {
    let mut namespaces = said.metadata.keys();
    let provider = namespaces.find(|namespace| *namespace != "uap");
    Response {
        stop_reason: if said.tool_calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolUse
        },
        usage: CycleUsage::default(),
        data: None,
        model_id: "".into(),
        provider: provider.map(String::as_str).unwrap_or_default().into(),
        response_id: None,
        request: None,
        message: AssistantMessage::clone(said),
    }
}

/// The model's metadata of its response, without the fields that a message does not have.
fn about(response: &Payload) -> Result<Payload, serde_json::Error> {
    let said: StepResponse = response.read()?;
    Payload::write(&StepResponse {
        provider: said.provider.filter(|provider| !provider.is_empty()),
        model: None,
        usage: None,
        ..said
    })
}

/// The calls and results of a step, in the runtime's form.
fn outcome(step: &Step) -> StepOutcome {
    let calls = step.parts.iter().filter_map(ToolPart::read);
    let calls =
        calls.map(|tool| json!({"toolCallId": tool.tool_call_id, "toolName": tool.tool_name()}));
    let results = step.results.iter().map(|(_, tool)| {
        let success = tool.state == ToolState::OutputAvailable;
        json!({"toolCallId": tool.tool_call_id, "success": success})
    });
    let some = |list: Vec<Value>| (!list.is_empty()).then(|| Value::Array(list).into());
    StepOutcome {
        tool_calls: some(calls.collect()),
        tool_execution_results: some(results.collect()),
        // Calls may be open, but there is nobody who waits for their answers.
        open_calls: step.is_open.then(|| Value::Array(Vec::new()).into()),
        ..StepOutcome::default()
    }
}
