//! Streams of the Responses format, written after its documentation.

use serde_json::{Value, json};

/// How a host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    OpenAi,
    Xai,
    OpenRouter,
    /// A host of Open Responses: reasoning events without `_text`, nested errors, `[DONE]`.
    Open,
}

/// A stream that is being written.
pub(crate) struct Wire {
    host: Host,
    sequence: u64,
    pub(crate) pieces: Vec<String>,
}

/// The model that answers, asked for as `gpt-5.1`.
pub(crate) const SNAPSHOT: &str = "gpt-5.1-2025-11-13";

impl Wire {
    pub(crate) fn new(host: Host) -> Self {
        let mut wire = Self {
            host,
            sequence: 0,
            pieces: vec![": keep-alive\n\n".to_owned()],
        };
        for kind in ["response.created", "response.in_progress"] {
            let response = response("in_progress", &[], &Value::Null);
            wire.event(kind, json!({"response": response}));
        }
        wire
    }

    pub(crate) fn event(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.pieces.push(format!("event: {kind}\ndata: {data}\n\n"));
    }

    /// All events of an item.
    pub(crate) fn item(&mut self, at: usize, item: &Value) {
        self.begun(at, item);
        let done = json!({"output_index": at, "item": item});
        self.event("response.output_item.done", done);
    }

    /// The events of an item up to its last piece of text.
    pub(crate) fn begun(&mut self, at: usize, item: &Value) {
        let mut begun = item.clone();
        for (key, empty) in [
            ("status", json!("in_progress")),
            ("content", json!([])),
            ("summary", json!([])),
            ("arguments", json!("")),
            ("input", json!("")),
            ("result", json!(null)),
            // What comes first may not be all of it.
            ("encrypted_content", json!("gAAA-begun")),
        ] {
            if begun.get(key).is_some_and(|value| !value.is_null()) {
                begun[key] = empty;
            }
        }
        let id = &item["id"];
        let added = json!({"output_index": at, "item": begun});
        self.event("response.output_item.added", added);
        for (section, index) in [("summary", "summary_index"), ("content", "content_index")] {
            let parts = item[section].as_array();
            for (n, part) in parts.into_iter().flatten().enumerate() {
                let place = json!({"item_id": id, "output_index": at, index: n});
                self.part(section, &place, part);
            }
        }
        let place = json!({"item_id": id, "output_index": at});
        match item["type"].as_str() {
            Some("function_call") => {
                let text = item["arguments"].as_str().unwrap();
                self.deltas("response.function_call_arguments", &place, text);
                let mut done = place;
                done["arguments"] = json!(text);
                done["name"] = item["name"].clone();
                self.event("response.function_call_arguments.done", done);
            }
            Some("custom_tool_call") => {
                let text = item["input"].as_str().unwrap();
                self.deltas("response.custom_tool_call_input", &place, text);
                let mut done = place;
                done["input"] = json!(text);
                self.event("response.custom_tool_call_input.done", done);
            }
            Some("web_search_call") => {
                self.event("response.web_search_call.searching", place.clone());
                self.event("response.web_search_call.completed", place);
            }
            Some("image_generation_call") => {
                let mut partial = place;
                partial["partial_image_b64"] = json!("AAAA");
                self.event("response.image_generation_call.partial_image", partial);
            }
            _ => {}
        }
    }

    fn part(&mut self, section: &str, place: &Value, part: &Value) {
        let reasoning = if self.host == Host::Open {
            "response.reasoning"
        } else {
            "response.reasoning_text"
        };
        let (key, base) = match part["type"].as_str().unwrap() {
            "output_text" => ("text", "response.output_text"),
            "refusal" => ("refusal", "response.refusal"),
            "summary_text" => ("text", "response.reasoning_summary_text"),
            "reasoning_text" => ("text", reasoning),
            _ => ("", ""),
        };
        let around = if section == "summary" {
            "response.reasoning_summary_part"
        } else {
            "response.content_part"
        };
        let with = |value: &Value| {
            let mut data = place.clone();
            data["part"] = value.clone();
            data
        };
        let mut empty = part.clone();
        if !key.is_empty() {
            empty[key] = json!("");
        }
        if empty.get("annotations").is_some() {
            empty["annotations"] = json!([]);
        }
        self.event(&format!("{around}.added"), with(&empty));
        if !key.is_empty() {
            let text = part[key].as_str().unwrap();
            self.deltas(base, place, text);
            self.annotations(place, part);
            let mut done = place.clone();
            done[key] = json!(text);
            if base == "response.output_text" {
                done["logprobs"] = json!([]);
            }
            self.event(&format!("{base}.done"), done);
        }
        self.event(&format!("{around}.done"), with(part));
    }

    fn annotations(&mut self, place: &Value, part: &Value) {
        let annotations = part["annotations"].as_array();
        for (n, annotation) in annotations.into_iter().flatten().enumerate() {
            let mut data = place.clone();
            data["annotation_index"] = json!(n);
            data["annotation"] = annotation.clone();
            self.event("response.output_text.annotation.added", data);
        }
    }

    fn deltas(&mut self, base: &str, place: &Value, text: &str) {
        let letters: Vec<char> = text.chars().collect();
        for delta in letters.chunks(4) {
            let mut data = place.clone();
            data["delta"] = json!(delta.iter().collect::<String>());
            data["obfuscation"] = json!("x9Kq");
            if base == "response.output_text" {
                data["logprobs"] = json!([]);
            }
            self.event(&format!("{base}.delta"), data);
        }
    }

    pub(crate) fn end(mut self, status: &str, output: &[Value], usage: &Value) -> Vec<String> {
        self.event("response.rate_limits.updated", json!({"unknown": [1]}));
        let kind = format!("response.{status}");
        let response = response(status, output, usage);
        self.event(&kind, json!({"response": response}));
        if matches!(self.host, Host::Open | Host::OpenRouter) {
            self.pieces.push("data: [DONE]\n\n".to_owned());
        }
        self.pieces
    }
}

/// A whole stream of these items.
pub(crate) fn stream(host: Host, items: &[Value]) -> Vec<String> {
    let mut wire = Wire::new(host);
    for (at, item) in items.iter().enumerate() {
        wire.item(at, item);
    }
    wire.end("completed", items, &usage(11, 0, 7, 0))
}

pub(crate) fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Value {
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    })
}

/// A response resource with all the fields that the specification requires.
pub(crate) fn response(status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": "resp_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b",
        "object": "response", "created_at": 1_756_315_696, "completed_at": null,
        "status": status, "background": false, "error": null, "incomplete_details": null,
        "instructions": null, "max_output_tokens": null, "max_tool_calls": null,
        "model": SNAPSHOT, "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": "medium", "summary": "auto"}, "safety_identifier": null,
        "service_tier": "default", "store": false, "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": usage,
        "metadata": {}, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    })
}

pub(crate) fn text(id: &str, text: &str) -> Value {
    json!({
        "id": id, "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}],
    })
}

pub(crate) fn call(id: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": "completed", "arguments": arguments,
        "call_id": call_id, "name": name,
    })
}

pub(crate) fn reasoning(id: &str, summary: &[&str], encrypted: Option<&str>) -> Value {
    let summary: Vec<Value> = summary
        .iter()
        .map(|text| json!({"type": "summary_text", "text": text}))
        .collect();
    let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
    if let Some(encrypted) = encrypted {
        item["encrypted_content"] = json!(encrypted);
    }
    item
}
