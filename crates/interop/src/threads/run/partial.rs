//! What a step has streamed, before it is a fact.

use super::Run;
use crate::threads::object::{Function, StepCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use timeline::Payload;

/// What a chunk adds. `delta` is the inside of a JSON string, as it stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::threads) enum Grown<'a> {
    /// Nothing that is shown.
    Nothing,
    /// More of a text.
    Text {
        /// Its place among the step's texts.
        index: usize,
        is_first: bool,
        delta: &'a str,
    },
    /// More of a call's arguments.
    Call {
        /// Its place among the step's calls.
        index: usize,
        is_first: bool,
        delta: &'a str,
    },
}

#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    delta: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallDelta<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow)]
    input_text_delta: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallStart {
    tool_call_id: String,
    #[serde(default)]
    tool_name: String,
}

#[derive(Clone, Debug)]
struct PartialCall {
    id: String,
    name: String,
    /// The inside of a JSON string.
    arguments: String,
}

/// What a step has streamed. Texts are kept as the insides of JSON strings: pieces of such can be
/// put together, and are written again as they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    texts: Vec<String>,
    text_places: BTreeMap<String, usize>,
    calls: Vec<PartialCall>,
    call_places: BTreeMap<String, usize>,
}

/// The inside of a JSON string.
fn inside(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// The text of which this is the inside.
fn decoded(inside: &str) -> String {
    serde_json::from_str(&format!("\"{inside}\"")).unwrap_or_default()
}

impl Partial {
    pub(super) fn take<'d>(&mut self, kind: &str, data: Option<&'d Payload>) -> Grown<'d> {
        let grown = match (kind, data) {
            ("text-delta", Some(data)) => self.text(data),
            ("tool-input-start", Some(data)) => self.start(data),
            ("tool-input-delta", Some(data)) => self.arguments(data),
            _ => None,
        };
        grown.unwrap_or(Grown::Nothing)
    }

    fn text<'d>(&mut self, data: &'d Payload) -> Option<Grown<'d>> {
        let chunk: TextDelta<'d> = data.read().ok()?;
        let delta = inside(chunk.delta).filter(|delta| !delta.is_empty())?;
        let known = self.text_places.get(chunk.id.as_ref()).copied();
        let index = known.unwrap_or_else(|| {
            self.texts.push(String::new());
            let index = self.texts.len() - 1;
            self.text_places.insert(chunk.id.into_owned(), index);
            index
        });
        self.texts.get_mut(index)?.push_str(delta);
        Some(Grown::Text {
            index,
            is_first: known.is_none(),
            delta,
        })
    }

    fn start<'d>(&mut self, data: &'d Payload) -> Option<Grown<'d>> {
        let start: CallStart = data.read().ok()?;
        if self.call_places.contains_key(&start.tool_call_id) {
            return None;
        }
        let index = self.calls.len();
        self.call_places.insert(start.tool_call_id.clone(), index);
        self.calls.push(PartialCall {
            id: start.tool_call_id,
            name: start.tool_name,
            arguments: String::new(),
        });
        Some(Grown::Call {
            index,
            is_first: true,
            delta: "",
        })
    }

    fn arguments<'d>(&mut self, data: &'d Payload) -> Option<Grown<'d>> {
        let chunk: CallDelta<'d> = data.read().ok()?;
        let delta = inside(chunk.input_text_delta).filter(|delta| !delta.is_empty())?;
        let index = *self.call_places.get(chunk.tool_call_id.as_ref())?;
        self.calls.get_mut(index)?.arguments.push_str(delta);
        Some(Grown::Call {
            index,
            is_first: false,
            delta,
        })
    }

    /// The texts so far.
    pub(super) fn texts(&self) -> Vec<String> {
        self.texts.iter().map(|text| decoded(text)).collect()
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Vec<StepCall> {
        let calls = self.calls.iter().map(|call| StepCall {
            id: call.id.clone(),
            kind: "function",
            function: Function {
                name: call.name.clone(),
                arguments: decoded(&call.arguments),
                output: None,
            },
        });
        calls.collect()
    }
}

/// What the running step has streamed.
impl Run {
    pub(in crate::threads) fn n_streamed_texts(&self) -> usize {
        self.partial.texts.len()
    }

    pub(in crate::threads) fn n_streamed_calls(&self) -> usize {
        self.partial.calls.len()
    }

    /// A text so far.
    pub(in crate::threads) fn streamed_text(&self, index: usize) -> Option<String> {
        self.partial.texts.get(index).map(|text| decoded(text))
    }

    /// The id and name of a call.
    pub(in crate::threads) fn streamed_call(&self, index: usize) -> Option<(&str, &str)> {
        let call = self.partial.calls.get(index)?;
        Some((&call.id, &call.name))
    }

    /// Where the call of this id is among the streamed ones, and its arguments so far.
    pub(in crate::threads) fn streamed_arguments(&self, id: &str) -> Option<(usize, String)> {
        let index = *self.partial.call_places.get(id)?;
        let call = self.partial.calls.get(index)?;
        Some((index, decoded(&call.arguments)))
    }
}
