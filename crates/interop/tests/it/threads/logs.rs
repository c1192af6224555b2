//! Logs as the runtime writes them: runs that wait for clients, are answered, hand over, break off.

use crate::dice::Dice;
use crate::log::Log;
use jiff::Timestamp;
use loomline_interop::parts::{EventPart, TextPart, ToolPart, ToolState};
use loomline_interop::threads::{Assistant, CreateRun, cancels};
use serde_json::{Value, json};
use timeline::{
    ANSWER, Command, Ending, Interruption, Item, ItemId, ItemType, NewChunk, NewItem, NewThread,
    OpenCall, OpenKind, Payload, StepOutcome, Trigger,
};
use uuid::Uuid;

pub(crate) const THREAD: &str = "0197b2c4-0000-7000-8000-000000000001";

pub(crate) fn start() -> Timestamp {
    "2026-01-05T08:00:00Z".parse().unwrap()
}

/// A thread, and ids for what is written into it.
pub(crate) struct Writer {
    pub(crate) log: Log,
    n: u128,
    /// What runs are begun with.
    pub(crate) run: Value,
}

pub(crate) fn interruption(reason: &str) -> Interruption {
    Interruption {
        reason: reason.into(),
        detail: (reason != "user_cancelled").then(|| format!("{reason} it was")),
    }
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {
            log: Log::new(NewThread::new(THREAD, Some("k")), start()),
            n: 1,
            run: json!({"agent": "ada"}),
        }
    }

    /// A thread whose runs were asked for through the API.
    pub(crate) fn asked(body: &Value) -> Self {
        let assistant = Assistant::of_agent("ada", "m-1", Some("Be brief.".into()), start());
        let options = CreateRun::read(body).unwrap().options(&assistant).value;
        Self {
            run: json!({"agent": "ada", "params": options}),
            ..Self::new()
        }
    }

    pub(crate) fn id(&mut self) -> String {
        self.n += 1;
        Uuid::from_u128(self.n << 64 | 0x7000_8000).to_string()
    }

    pub(crate) fn emit(&mut self, kind: &str, data: Value) {
        let chunk = NewChunk {
            chunk_type: kind.to_owned(),
            data: Some(data.into()),
        };
        self.log.run(Command::Emit {
            chunks: vec![chunk],
        });
    }

    pub(crate) fn user(&mut self, text: &str) -> NewItem {
        let content = json!([{"type": "input_text", "text": text}]);
        NewItem::user(self.id(), content.into())
    }

    /// Begins an execution; gives the item it answers.
    pub(crate) fn start(&mut self, item: Option<NewItem>) -> ItemId {
        let waits = self.log.state.waiting().len() > 0;
        let trigger = match item {
            Some(item) => Trigger::New(item),
            None if waits => Trigger::Waiting,
            None => Trigger::New(self.user("hi")),
        };
        let (execution, item, step) = (self.id(), self.id(), self.id());
        self.log.run(Command::Start {
            trigger,
            run: Some(self.run.clone().into()),
            execution_id: execution.into(),
            reaction_item_id: item.into(),
            step_id: step.into(),
            workflow_run_id: None,
        });
        let active = self.log.state.active().unwrap();
        active.execution.trigger_item_id.clone()
    }

    pub(crate) fn stream_text(&mut self, id: &str, pieces: &[&str]) {
        self.emit("text-start", json!({"id": id}));
        for delta in pieces {
            self.emit("text-delta", json!({"id": id, "delta": delta}));
        }
    }

    pub(crate) fn stream_call(&mut self, id: &str, name: &str, pieces: &[&str]) {
        self.emit(
            "tool-input-start",
            json!({"toolCallId": id, "toolName": name}),
        );
        for delta in pieces {
            self.emit(
                "tool-input-delta",
                json!({"toolCallId": id, "inputTextDelta": delta}),
            );
        }
    }

    pub(crate) fn respond(&mut self, parts: Vec<Payload>, stop: &str) {
        let response = json!({"provider": "p", "model": "m-2", "stopReason": stop,
            "usage": {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 1}});
        self.log.run(Command::Respond {
            parts,
            response: response.into(),
        });
    }

    pub(crate) fn put(&mut self, idx: u32, call: &ToolPart, output: &Value) {
        let mut call = call.clone();
        call.state = ToolState::OutputAvailable;
        call.output = Some(output.clone().into());
        self.log.run(Command::PutPart {
            idx,
            part: call.write().unwrap(),
        });
    }

    /// Ends the step; gives the next one's id if there is one.
    pub(crate) fn complete(&mut self, open: &[OpenCall], goes_on: bool) {
        let open_calls = (!open.is_empty()).then(|| Payload::write(open).unwrap());
        let outcome = StepOutcome {
            open_calls,
            ..StepOutcome::default()
        };
        let next = goes_on.then(|| self.id().into());
        self.log.run(Command::ImportStep { outcome, next });
    }

    pub(crate) fn end(&mut self) {
        self.log.run(Command::End {
            ending: Ending::Completed,
        });
    }

    /// An execution that says one thing, and ends.
    pub(crate) fn says(&mut self, text: &str) -> ItemId {
        let trigger = self.start(None);
        self.stream_text("t0-0", &[text]);
        self.respond(vec![text_part(text)], "end_turn");
        self.complete(&[], false);
        self.end();
        trigger
    }

    /// An execution that says something and leaves this call to its client.
    pub(crate) fn asks(&mut self, call: &str) -> ItemId {
        let trigger = self.start(None);
        self.leave(call);
        trigger
    }

    pub(crate) fn leave(&mut self, call: &str) {
        self.stream_call(call, "weather", &[r#"{"city":"#, r#""Kyiv"}"#]);
        let part = ToolPart::call("weather", call, r#"{"city":"Kyiv"}"#);
        self.respond(vec![part.write().unwrap()], "tool_use");
        self.complete(&[open(&part, OpenKind::External)], false);
        self.end();
    }

    /// Begins the execution that acts on an answer to this call, and takes the answer's step.
    pub(crate) fn answer(&mut self, item: NewItem, calls: &[ToolPart], left: &[OpenCall]) {
        self.start(Some(item));
        self.answers(calls, left);
    }

    fn answers(&mut self, calls: &[ToolPart], left: &[OpenCall]) {
        let parts = calls.iter().map(|call| call.write().unwrap()).collect();
        let response = json!({"answers": true});
        self.log.run(Command::Respond {
            parts,
            response: response.into(),
        });
        for (idx, call) in (0..).zip(calls) {
            self.put(idx, call, &json!("18 degrees"));
        }
        self.complete(left, left.is_empty());
        if !left.is_empty() {
            self.end();
        }
    }

    pub(crate) fn answer_item(&mut self, calls: &[(&str, OpenKind)]) -> NewItem {
        let parts = calls.iter().map(|(call, kind)| match kind {
            OpenKind::External => {
                json!({"type": ANSWER, "toolCallId": call, "output": "18 degrees"})
            }
            OpenKind::Approval | OpenKind::Others | OpenKind::Child => {
                json!({"type": ANSWER, "toolCallId": call, "approved": true})
            }
        });
        NewItem {
            id: self.id().into(),
            item_type: ItemType::ActionResult,
            role: None,
            channel: None,
            content: Some(Value::Array(parts.collect()).into()),
            metadata: None,
        }
    }
}

pub(crate) fn text_part(text: &str) -> Payload {
    Payload::write(&TextPart {
        part_type: "output_text".into(),
        text: text.to_owned(),
        extra: None,
    })
    .unwrap()
}

pub(crate) fn open(call: &ToolPart, kind: OpenKind) -> OpenCall {
    OpenCall {
        tool_call_id: call.tool_call_id.clone(),
        kind,
        part: call.write().unwrap(),
        origin: None,
        children: Vec::new(),
    }
}

/// A thread as the runtime might write it.
struct Thread<'a> {
    dice: Dice<'a>,
    writer: Writer,
    n_calls: usize,
}

impl Thread<'_> {
    /// Streams an answer and gives its parts.
    fn speak(&mut self) -> (Vec<Payload>, Vec<ToolPart>) {
        let streams = !self.dice.one_in(4);
        let (mut parts, mut calls) = (Vec::new(), Vec::new());
        for index in 0..self.dice.roll(3) {
            let text = self
                .dice
                .pick(&["Hello", "a\"\n\\b", "☀ \u{2028}", "😀 ok", ""]);
            let id = format!("t0-{index}");
            if streams && !text.is_empty() {
                let middle = text.char_indices().nth(2).map_or(text.len(), |(at, _)| at);
                // A stream may end before the text does.
                let rest = if self.dice.one_in(4) {
                    ""
                } else {
                    &text[middle..]
                };
                self.writer.stream_text(&id, &[&text[..middle], rest]);
            }
            parts.push(text_part(text));
            if self.dice.one_in(4) {
                parts.push(json!({"type": "reasoning", "text": "hm"}).into());
            }
        }
        for _ in 0..self.dice.roll(3) {
            self.n_calls += 1;
            let id = format!("call_{}", self.n_calls);
            let arguments = self.dice.pick(&[r#"{"a":1}"#, "{\"cut", ""]);
            if streams {
                let (head, tail) = arguments.split_at(arguments.len() / 2);
                self.writer.stream_call(&id, "look", &[head, tail]);
            }
            calls.push(ToolPart::call("look", &id, arguments));
        }
        parts.extend(calls.iter().map(|call| call.write().unwrap()));
        (parts, calls)
    }

    fn breaks_off(&mut self, sides: usize) -> bool {
        if !self.dice.one_in(sides) {
            return false;
        }
        let reason = self.dice.pick(&[
            "user_cancelled",
            "timeout",
            "error",
            "safety_halt",
            "max_steps",
        ]);
        let why = interruption(reason);
        let ending = match reason {
            "error" | "safety_halt" => Ending::Failed(why),
            _ => Ending::Stopped(why),
        };
        self.writer.log.run(Command::End { ending });
        true
    }

    /// Steps until the execution is over.
    fn steps(&mut self) {
        for n in 0..4 {
            let (mut parts, mut calls) = self.speak();
            if self.breaks_off(8) {
                return;
            }
            if self.dice.one_in(4) {
                self.writer.log.run(Command::ResetStep);
                (parts, calls) = self.speak();
            }
            if self.dice.one_in(8) {
                let item = self.writer.user("wait");
                let mut run = self.writer.run.clone();
                run["handoffs"] = json!(0);
                let run = run.into();
                self.writer.log.run(Command::Enqueue { item, run });
            }
            let n_before = u32::try_from(parts.len() - calls.len()).unwrap();
            let stop = self
                .dice
                .pick(&["end_turn", "end_turn", "max_tokens", "content_filter"]);
            self.writer
                .respond(parts, if calls.is_empty() { stop } else { "tool_use" });
            let mut left = Vec::new();
            for (idx, call) in (n_before..).zip(&calls) {
                match self.dice.roll(4) {
                    0 | 1 => self.writer.put(idx, call, &json!({"ok": [1, null]})),
                    2 => left.push(open(call, OpenKind::External)),
                    _ => left.push(open(call, OpenKind::Approval)),
                }
            }
            if self.breaks_off(8) {
                return;
            }
            if !left.is_empty() {
                self.writer.complete(&left, false);
                self.writer.end();
                return;
            }
            if !calls.is_empty() && self.dice.one_in(4) {
                return self.hands_over();
            }
            if n == 3 || calls.is_empty() {
                self.writer.complete(&[], false);
                self.writer.end();
                return;
            }
            self.writer.complete(&[], true);
        }
    }

    fn hands_over(&mut self) {
        let event = EventPart {
            part_type: EventPart::AGENT_HANDOFF.into(),
            id: "x".into(),
            data: json!({"from": "ada", "to": "bo"}).into(),
        };
        let part = event.write().unwrap();
        self.writer.log.run(Command::AddPart { part });
        self.writer.complete(&[], false);
        self.writer.end();
        let mut run = self.writer.run.clone();
        run["handoffs"] = json!(run["handoffs"].as_u64().unwrap_or_default() + 1);
        let before = std::mem::replace(&mut self.writer.run, run);
        let reference = NewItem {
            item_type: ItemType::ItemReference,
            role: None,
            content: Some(json!({"itemId": "i"}).into()),
            ..self.writer.user("")
        };
        self.writer.start(Some(reference));
        self.steps();
        self.writer.run = before;
    }

    /// Somebody answers what waits, or goes on without, or stops it.
    fn after(&mut self) {
        while let Some(open) = self.writer.log.state.open().cloned() {
            if self.writer.log.state.waiting().len() > 0 {
                // What waits is what comes next.
                return;
            }
            match self.dice.roll(8) {
                6 => {
                    let id = self.writer.id();
                    let item = cancels(&id, &open.execution.id);
                    self.writer.log.run(Command::Record { item });
                    return;
                }
                7 => return,
                0..=2 => self.answer(&open.calls, open.calls.len()),
                n => self.answer(&open.calls, n - 2),
            }
        }
    }

    fn answer(&mut self, waiting: &[OpenCall], n: usize) {
        let (now, later) = waiting.split_at(n.min(waiting.len()));
        let ids: Vec<_> = now
            .iter()
            .map(|call| (call.tool_call_id.as_str(), call.kind))
            .collect();
        let item = self.writer.answer_item(&ids);
        let run = self.writer.log.state.open().unwrap().execution.run.clone();
        let run = std::mem::replace(&mut self.writer.run, run.unwrap().value());
        let calls: Vec<ToolPart> = now
            .iter()
            .filter_map(|call| ToolPart::read(&call.part))
            .collect();
        self.writer.answer(item, &calls, later);
        if later.is_empty() {
            self.steps();
        }
        self.writer.run = run;
    }
}

/// The log of a thread as the runtime might write it.
pub(crate) fn thread(bytes: &[u8]) -> Log {
    let dice = Dice::new(bytes);
    let writer = match bytes.len() % 2 {
        0 => Writer::new(),
        _ => Writer::asked(
            &json!({"assistant_id": "ada", "metadata": {"k": "v"}, "tools": [
            {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]}),
        ),
    };
    let mut thread = Thread {
        dice,
        writer,
        n_calls: 0,
    };
    for _ in 0..thread.dice.roll(4) {
        // The runtime begins what waits as soon as it can.
        if thread.dice.one_in(4) && thread.writer.log.state.waiting().len() == 0 {
            let item = thread.writer.user("by the way");
            thread.writer.log.run(Command::Record { item });
        }
        thread.writer.start(None);
        thread.steps();
        thread.after();
    }
    thread.writer.log
}

/// The item of a log with this id.
pub(crate) fn item<'a>(log: &'a Log, id: &ItemId) -> &'a Item {
    let mut items = log.records.iter().filter_map(|record| {
        let timeline::Event::ItemCreated { item } = &record.event else {
            return None;
        };
        Some(item)
    });
    items.find(|item| item.id == *id).unwrap()
}
