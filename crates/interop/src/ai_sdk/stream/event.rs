//! The chunks of one event of a run.

use super::StreamView;
use crate::metadata::is_own;
use crate::parts::ThreadEvent;
use crate::run::RunEvent;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use timeline::{
    BlockKind, Chunk, ExecutionStatus, Extra, Interruption, Item, Marker, StepStatus, chunk_type,
};

impl StreamView {
    /// Writes the chunks of an event that happened at this time.
    pub(in crate::ai_sdk) fn event_at(&mut self, event: RunEvent<'_>, at: Timestamp) {
        match event {
            RunEvent::Started { execution } => {
                self.metadata.execution(execution);
                let own = execution.reaction_item_id.to_string();
                let id = self.message_id.get_or_insert(own).clone();
                let metadata = self.metadata.begin(execution.created_at);
                self.push(json!({"type": "start", "messageId": id, "messageMetadata": metadata}));
                if self.shows_ek {
                    let context = json!({"contextId": execution.context_id});
                    self.transient(chunk_type::CONTEXT_ID, &context);
                    self.transient(chunk_type::THREAD_PING, &json!({"label": "thread-start"}));
                }
            }
            RunEvent::Continued { execution, .. } => self.metadata.execution(execution),
            RunEvent::StepStarted { .. } => {
                self.step_open = true;
                self.push(json!({"type": "start-step"}));
            }
            RunEvent::Chunk(chunk) => self.chunk(chunk),
            RunEvent::StepReset { open } if self.major < super::RESETS_STEPS => {
                for (kind, block) in open {
                    self.push(json!({"type": end(kind), "id": block.id}));
                }
            }
            RunEvent::StepReset { .. } => self.push(json!({"type": "reset-step"})),
            RunEvent::Responded { response } => {
                if let Some(response) = response {
                    self.metadata.response(&response);
                }
            }
            RunEvent::Part {
                part,
                is_new,
                is_known,
                ..
            } => self.part(part, is_new, is_known),
            RunEvent::StepEnded { status, .. } => {
                if status == StepStatus::Completed {
                    self.finish_step();
                }
            }
            RunEvent::ExecutionEnded {
                status,
                interruption,
                is_last,
                ..
            } => {
                if status == ExecutionStatus::Completed {
                    self.finish_step();
                }
                if is_last {
                    self.end(status, interruption, at);
                }
            }
            RunEvent::ItemAdded(item) if self.shows_thread => {
                self.item(item);
            }
            RunEvent::ThreadChanged(chunk) if self.shows_thread => {
                self.thread(&chunk);
            }
            RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_)
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned => {}
        }
    }

    fn finish_step(&mut self) {
        if std::mem::take(&mut self.step_open) {
            self.push(json!({"type": "finish-step"}));
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>) {
        match chunk {
            Chunk::BlockStart { kind, block, extra } => {
                self.with_extra(json!({"type": start(kind), "id": block.id}), extra);
            }
            Chunk::BlockDelta {
                kind,
                block,
                text,
                extra,
            } => {
                let delta = json!({"type": delta(kind), "id": block.id, "delta": text});
                self.with_extra(delta, extra);
            }
            Chunk::BlockEnd { kind, block, extra } => {
                self.with_extra(json!({"type": end(kind), "id": block.id}), extra);
            }
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                extra,
            } => {
                let start = json!({
                    "type": "tool-input-start", "toolCallId": tool_call_id, "toolName": tool_name,
                });
                self.with_extra(start, extra);
            }
            Chunk::ToolInputDelta {
                tool_call_id,
                text,
                extra,
            } => {
                let delta = json!({
                    "type": "tool-input-delta", "toolCallId": tool_call_id, "inputTextDelta": text,
                });
                self.with_extra(delta, extra);
            }
            Chunk::Source { data, .. } => self.typed(chunk.chunk_type(), data.value()),
            Chunk::Data { chunk_type, data } => {
                let data = data.map(timeline::Payload::value).unwrap_or_default();
                let has_data = data.get("data").is_some();
                let data = if has_data {
                    data
                } else {
                    json!({ "data": data })
                };
                self.typed(chunk_type, data);
            }
            Chunk::Runtime { chunk_type, data } => {
                if self.shows_ek {
                    let data = data.map(timeline::Payload::value).unwrap_or_default();
                    self.transient(chunk_type, &data);
                }
            }
            Chunk::Marker(_) | Chunk::Other { .. } => {}
        }
    }

    fn transient(&mut self, chunk_type: &str, data: &Value) {
        self.push(json!({"type": chunk_type, "data": data, "transient": true}));
    }

    fn with_extra(&mut self, mut chunk: Value, extra: Extra) {
        if let (Value::Object(chunk), Some(extra)) = (&mut chunk, extra) {
            chunk.extend(extra.into_iter().filter(|(key, _)| key != "type"));
        }
        self.push(chunk);
    }

    /// A chunk of this type with these fields.
    fn typed(&mut self, chunk_type: &str, fields: Value) {
        let mut chunk = Map::from_iter([("type".to_owned(), chunk_type.into())]);
        if let Value::Object(fields) = fields {
            chunk.extend(fields.into_iter().filter(|(key, _)| key != "type"));
        }
        self.push(Value::Object(chunk));
    }

    fn end(&mut self, status: ExecutionStatus, why: Option<&Interruption>, at: Timestamp) {
        let metadata = self.metadata.end(status, why, at);
        if status == ExecutionStatus::Completed {
            let reason = self.metadata.finish_reason();
            self.push(
                json!({"type": "finish", "finishReason": reason, "messageMetadata": metadata}),
            );
            return;
        }
        let reason = why.map_or("error", |why| why.reason.as_str());
        let detail = why.and_then(|why| why.detail.as_deref());
        if reason == Interruption::USER_CANCELLED {
            self.push(json!({"type": "message-metadata", "messageMetadata": metadata}));
            self.push(json!({"type": "abort", "reason": detail.unwrap_or(reason)}));
            return;
        }
        self.push(json!({"type": "error", "errorText": detail.unwrap_or(reason)}));
        self.finish_step();
        self.push(json!({"type": "finish", "finishReason": "error", "messageMetadata": metadata}));
    }

    /// A change of the thread outside of its runs. It is transient, because it belongs to no answer.
    /// Clients that load the messages see its result there.
    fn thread(&mut self, chunk: &Chunk<'_>) {
        let Chunk::Marker(Marker::ThreadUpdated(data) | Marker::ItemRemoved(data)) = chunk else {
            return;
        };
        let mut data = data.map(timeline::Payload::value).unwrap_or_default();
        if data.get("compactionId").is_some() {
            // The messages of the chat stay as they are.
            return;
        }
        if let Some(Value::Object(metadata)) = data.get_mut("metadata") {
            metadata.retain(|key, _| !is_own(key));
        }
        self.transient(chunk.chunk_type(), &data);
    }

    /// A thread event outside of its runs, such as an actor that joins.
    fn item(&mut self, item: &Item) {
        if let Some(event) = ThreadEvent::of_item(item) {
            self.push(json!({
                "type": event.part_type, "id": event.id, "data": event.data.value(), "transient": true,
            }));
        }
    }
}

fn start(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Text => "text-start",
        BlockKind::Reasoning => "reasoning-start",
    }
}

fn delta(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Text => "text-delta",
        BlockKind::Reasoning => "reasoning-delta",
    }
}

fn end(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Text => "text-end",
        BlockKind::Reasoning => "reasoning-end",
    }
}
