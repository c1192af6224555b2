//! Tool calls: their streaming input and their results.

use super::Reducer;
use super::error::ChunkError;
use super::parts::{CallKind, Parts};
use super::update::{Change, Update, put, tool_name};
use crate::ai_sdk::chunk::{Major, is_set, some, text};
use crate::ai_sdk::partial_json::PartialJson;
use thread::{Json, Object};

/// A call whose input streams, or did.
#[derive(Clone, Debug)]
pub(super) struct Call {
    name: String,
    dynamic: bool,
    encoding: Option<Json>,
    title: Option<Json>,
    tool_metadata: Option<Json>,
    input: PartialJson,
    live: Option<Live>,
}

/// The part that shows the input of a call. It is written into the part only when someone looks,
/// for each delta changes all of it.
#[derive(Clone, Copy, Debug)]
struct Live {
    place: usize,
    /// Whether the part also shows the input's text.
    raw: bool,
}

impl Call {
    /// Writes the input into the part that shows it.
    pub(super) fn show_in(&self, parts: &mut [Json]) {
        let Some(live) = self.live else {
            return;
        };
        let Some(Json::Object(part)) = parts.get_mut(live.place) else {
            return;
        };
        let raw = || Json::from(self.input.text());
        let is_text = self.encoding.as_ref().and_then(Json::as_str) == Some("text");
        let value = if is_text {
            Some(raw())
        } else {
            self.input.value().0
        };
        put(part, "input", value);
        if live.raw {
            part.insert("rawInput", raw());
        }
    }
}

impl Reducer {
    /// Continues a message of the assistant.
    pub(super) fn continue_from(&mut self, mut message: Object) {
        let parts = message.remove("parts").and_then(Json::into_array);
        self.parts = Parts::default();
        for part in parts.unwrap_or_default() {
            self.parts.push_any(part);
        }
        self.shown = self.parts.len();
        self.head = message;
        let step = self.parts.items().get(self.parts.step_start()..);
        for part in step.unwrap_or_default() {
            let kind = text(part, "type");
            let is_call = kind == "dynamic-tool" || kind.starts_with("tool-");
            if is_call && text(part, "state") == "input-streaming" {
                let mut input = PartialJson::new(self.major);
                input.push(text(part, "rawInput"));
                let from_6 = |key| some(part, key).filter(|_| self.major > Major::V5).cloned();
                let call = Call {
                    name: tool_name(part).to_owned(),
                    dynamic: kind == "dynamic-tool",
                    encoding: from_6("inputEncoding"),
                    title: from_6("title"),
                    tool_metadata: from_6("toolMetadata"),
                    input,
                    live: None,
                };
                self.calls.insert(text(part, "toolCallId").to_owned(), call);
            }
        }
    }

    pub(super) fn start_input(&mut self, chunk: &Json) {
        let id = text(chunk, "toolCallId");
        let dynamic = is_set(chunk, "dynamic");
        let encoding = some(chunk, "inputEncoding").filter(|_| self.major > Major::V5);
        let mut update = Update::to("input-streaming", chunk, self.major);
        update.encoding = encoding.cloned();
        if self.major == Major::V5 {
            update.metadata = None;
        }
        let call = Call {
            name: text(chunk, "toolName").to_owned(),
            dynamic,
            encoding: update.encoding.clone(),
            title: update.title.clone(),
            tool_metadata: update.tool_metadata.clone(),
            input: PartialJson::new(self.major),
            live: None,
        };
        if let Some(before) = self.calls.insert(id.to_owned(), call) {
            before.show_in(self.parts.items_mut());
        }
        update.apply_in_step(&mut self.parts, id, dynamic, self.major);
    }

    pub(super) fn grow_input(&mut self, chunk: &Json) -> Result<(), ChunkError> {
        let id = text(chunk, "toolCallId");
        let Some(call) = self.calls.get_mut(id) else {
            return Err(ChunkError::NotStarted(id.to_owned()));
        };
        let delta = text(chunk, "inputTextDelta");
        let start = self.parts.step_start();
        if let Some(live) = call.live.filter(|live| live.raw && live.place >= start)
            && let Some(part) = self.parts.get(live.place)
            && part.get_str("state") == Some("input-streaming")
        {
            call.input.push(delta);
            return Ok(());
        }
        let kind = if call.dynamic {
            CallKind::Dynamic
        } else {
            CallKind::Static
        };
        let known = self.parts.call_in_step(id, kind);
        if call.live.is_some_and(|live| Some(live.place) != known) {
            call.show_in(self.parts.items_mut());
        }
        call.input.push(delta);
        let update = Update {
            state: "input-streaming",
            name: Some(call.name.clone()),
            input: Change::To(None),
            raw_input: Change::To(None),
            encoding: call.encoding.clone(),
            output: None,
            error: None,
            preliminary: None,
            executed: None,
            title: call.title.clone(),
            tool_metadata: call.tool_metadata.clone(),
            metadata: None,
        };
        let place = update.apply_in_step(&mut self.parts, id, call.dynamic, self.major);
        let raw = known.is_some() || !call.dynamic;
        call.live = Some(Live { place, raw });
        Ok(())
    }

    pub(super) fn give_input(&mut self, chunk: &Json) {
        let mut update = Update::to("input-available", chunk, self.major);
        update.input = Change::To(chunk.get("input").cloned());
        self.update_in_step(chunk, is_set(chunk, "dynamic"), update);
    }

    pub(super) fn refuse_input(&mut self, chunk: &Json) {
        let id = text(chunk, "toolCallId");
        let known = self.parts.call_in_step(id, CallKind::Any);
        let known = known.filter(|_| self.major > Major::V5);
        let dynamic = match known {
            Some(place) => self.is_dynamic(place),
            None => is_set(chunk, "dynamic"),
        };
        let mut update = Update::to("output-error", chunk, self.major);
        let input = Change::To(chunk.get("input").cloned());
        if dynamic || self.major >= Major::V7 {
            update.input = input;
        } else {
            update.raw_input = input;
        }
        update.error = chunk.get("errorText").cloned();
        update.title = None;
        self.update_in_step(chunk, dynamic, update);
    }

    fn update_in_step(&mut self, chunk: &Json, dynamic: bool, update: Update) {
        let id = text(chunk, "toolCallId");
        let place = update.apply_in_step(&mut self.parts, id, dynamic, self.major);
        // The part has an input of its own now.
        if let Some(call) = self.calls.get_mut(id)
            && call.live.is_some_and(|live| live.place == place)
        {
            call.live = None;
        }
    }

    pub(super) fn give_output(&mut self, chunk: &Json) -> Result<(), ChunkError> {
        let place = self.answered(chunk)?;
        let mut update = Update::to("output-available", chunk, self.major);
        update.output = chunk.get("output").cloned();
        update.preliminary = some(chunk, "preliminary").cloned();
        if self.major == Major::V5 && is_set(chunk, "dynamic") {
            update.executed = None;
        }
        self.answer(chunk, place, update);
        Ok(())
    }

    pub(super) fn give_error(&mut self, chunk: &Json) -> Result<(), ChunkError> {
        let place = self.answered(chunk)?;
        let mut update = Update::to("output-error", chunk, self.major);
        update.error = chunk.get("errorText").cloned();
        if !self.is_dynamic(place) {
            update.raw_input = Change::Keep;
        }
        self.answer(chunk, place, update);
        Ok(())
    }

    /// Adds the result to a call; its input stays.
    fn answer(&mut self, chunk: &Json, place: usize, mut update: Update) {
        let keeps_raw = matches!(update.raw_input, Change::Keep);
        update.input = Change::Keep;
        update.name = None;
        update.title = None;
        update.apply(&mut self.parts, place, self.major);
        let live = self.calls.get_mut(text(chunk, "toolCallId"));
        if let Some(live) = live.and_then(|call| call.live.as_mut())
            && live.place == place
        {
            live.raw &= keeps_raw;
        }
    }

    /// The part that a result belongs to. `ai` 5 finds it by the kind of call that the chunk names.
    fn answered(&self, chunk: &Json) -> Result<usize, ChunkError> {
        let kind = match self.major {
            Major::V5 if is_set(chunk, "dynamic") => CallKind::Dynamic,
            Major::V5 => CallKind::Static,
            Major::V6 | Major::V7 => CallKind::Any,
        };
        self.called(chunk, kind)
    }

    fn is_dynamic(&self, place: usize) -> bool {
        let part = self.parts.get(place);
        part.is_some_and(|part| part.get_str("type") == Some("dynamic-tool"))
    }
}
