//! Streams as Anthropic documents them, with all their noise.

use serde_json::{Value, json};

/// A block as it is streamed: what it begins with, and its deltas.
pub(crate) struct Block {
    start: Value,
    deltas: Vec<Value>,
}

pub(crate) fn text(pieces: &[&str]) -> Block {
    let delta = |text: &&str| json!({"type": "text_delta", "text": text});
    Block {
        start: json!({"type": "text", "text": ""}),
        deltas: pieces.iter().map(delta).collect(),
    }
}

pub(crate) fn thinking(pieces: &[&str], signature: &str) -> Block {
    let delta =
        |text: &&str| json!({"type": "thinking_delta", "thinking": text, "estimated_tokens": null});
    let signed = json!({"type": "signature_delta", "signature": signature});
    Block {
        start: json!({"type": "thinking", "thinking": "", "signature": ""}),
        deltas: pieces.iter().map(delta).chain([signed]).collect(),
    }
}

pub(crate) fn call(id: &str, name: &str, pieces: &[&str]) -> Block {
    let delta = |text: &&str| json!({"type": "input_json_delta", "partial_json": text});
    Block {
        start: json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        deltas: pieces.iter().map(delta).collect(),
    }
}

pub(crate) fn whole(start: Value) -> Block {
    Block {
        start,
        deltas: Vec::new(),
    }
}

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

pub(crate) fn refusal(kind: &str, message: &str) -> Value {
    json!({
        "type": "error", "error": {"type": kind, "message": message, "details": null},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    })
}

pub(crate) fn error(kind: &str, message: &str) -> String {
    event(&refusal(kind, message))
}

/// A stream in the making.
pub(crate) struct Stream {
    model: String,
    usage: Value,
    output_tokens: u64,
    blocks: Vec<Block>,
    indexed: bool,
}

impl Stream {
    pub(crate) fn new(model: &str) -> Self {
        Self {
            model: format!("{model}-20250929"),
            usage: json!({
                "input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "service_tier": "standard", "inference_geo": "not_available",
            }),
            output_tokens: 15,
            blocks: Vec::new(),
            indexed: true,
        }
    }

    pub(crate) fn without_index(mut self) -> Self {
        self.indexed = false;
        self
    }

    pub(crate) fn usage(mut self, usage: &Value) -> Self {
        self.usage = usage.clone();
        self
    }

    pub(crate) fn output_tokens(mut self, n: u64) -> Self {
        self.output_tokens = n;
        self
    }

    pub(crate) fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// The stream so far, ending within this block.
    pub(crate) fn unfinished(self, block: Block) -> Vec<String> {
        let mut pieces = self.block(block).pieces();
        pieces.pop();
        pieces
    }

    /// The whole stream.
    pub(crate) fn end(self, stop_reason: &str) -> Vec<String> {
        let mut usage = self.usage.clone();
        let fields = usage.as_object_mut().unwrap();
        fields.retain(|key, _| key.ends_with("input_tokens"));
        fields.insert("output_tokens".into(), json!(self.output_tokens));
        let mut pieces = self.pieces();
        pieces.push(event(&json!({
            "type": "message_delta", "usage": usage,
            "delta": {"stop_reason": stop_reason, "stop_sequence": null, "container": null},
        })));
        pieces.push(event(&json!({"type": "message_stop"})));
        pieces
    }

    fn pieces(self) -> Vec<String> {
        let mut usage = self.usage;
        usage["output_tokens"] = json!(1);
        let mut pieces = vec![event(&json!({"type": "message_start", "message": {
            "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF", "type": "message", "role": "assistant",
            "model": self.model, "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": usage,
        }}))];
        for (index, block) in self.blocks.iter().enumerate() {
            let mut push = |kind: &str, key: &str, value: Option<&Value>| {
                let mut data = json!({"type": kind});
                if self.indexed {
                    data["index"] = json!(index);
                }
                if let Some(value) = value {
                    data[key] = value.clone();
                }
                pieces.push(event(&data));
            };
            push("content_block_start", "content_block", Some(&block.start));
            for delta in &block.deltas {
                push("content_block_delta", "delta", Some(delta));
            }
            push("content_block_stop", "", None);
            if index == 0 {
                // The end of the block stays last.
                let at = pieces.len() - 1;
                pieces.insert(at, event(&json!({"type": "ping"})));
                pieces.insert(at, event(&json!({"type": "progress_report", "percent": 5})));
            }
        }
        pieces
    }
}
