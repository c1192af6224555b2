//! The JSON Schemas (2020-12) of the tools' inputs and outputs.

use super::tools::Tool;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The input schema of a tool.
pub(super) fn input(tool: Tool, agents: &[&str]) -> JsonObject {
    match tool {
        Tool::CreateThread => object(
            &json!({
                "key": {"type": "string", "description": "The name of the thread; a new one when absent."},
                "title": {"type": "string", "description": "For people."},
                "metadata": {"description": "The application's own."},
            }),
            &[],
        ),
        Tool::ListThreads => object(
            &json!({
                "prefix": {"type": "string", "description": "Only threads whose keys begin so."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "Maximum number of results. Default 50."},
                "cursor": {"type": "string", "description": "The `next` of the page before."},
            }),
            &[],
        ),
        Tool::ReadThread => object(
            &json!({
                "key": key(),
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "About so many messages to agents, each with its answer; 20 when absent."},
                "before": {"type": "string", "description": "The `older` of the page that comes after."},
            }),
            &["key"],
        ),
        Tool::PostMessage | Tool::Run => object(&agent_schema(agents), &["key", "content"]),
        Tool::Answer => object(
            &json!({
                "key": key(),
                "answers": {"type": "array", "minItems": 1, "maxItems": 256, "items": answer()},
                "actor": {"type": "string", "maxLength": 255, "description": "The actor that answers, which is stored with the answer."},
                "idempotencyKey": token(),
            }),
            &["key", "answers"],
        ),
    }
}

/// The output schema of a tool.
pub(super) fn output(tool: Tool) -> JsonObject {
    match tool {
        Tool::CreateThread => object(
            &json!({"thread": thread(), "created": {"type": "boolean", "description": "Whether it is new."}}),
            &["thread", "created"],
        ),
        Tool::ListThreads => object(
            &json!({
                "threads": {"type": "array", "items": thread()},
                "next": {"type": "string", "description": "The cursor of the next page; absent at the end."},
            }),
            &["threads"],
        ),
        Tool::ReadThread => object(
            &json!({
                "thread": thread(), "messages": messages(),
                "older": {"type": "string", "description": "Reads what came before as `before`; absent at the beginning."},
            }),
            &["thread", "messages"],
        ),
        Tool::PostMessage => object(
            &json!({
                "key": key(), "threadId": text(""), "itemId": text("The message."),
                "executionId": text("The execution that answers; absent while the message waits."),
                "after": {"type": "integer", "description": "The last event before the message."},
                "queued": {"type": "boolean", "description": "Whether it waits."},
            }),
            &["key", "threadId", "itemId", "after", "queued"],
        ),
        Tool::Run | Tool::Answer => object(
            &json!({
                "key": key(),
                "executionId": text("The execution that ended."),
                "status": {"enum": ["completed", "waiting", "failed", "executing"], "description": "`waiting`: calls wait for an answer. `executing`: its sub-agents are at work."},
                "text": text("What the agent said."),
                "messages": messages(),
                "pending": {"type": "array", "items": pending(), "description": "Calls that wait for an answer."},
                "interruption": {"type": "object", "description": "Why it ended early.", "required": ["reason"],
                    "properties": {"reason": {"type": "string"}, "detail": {"type": "string"}}},
            }),
            &["key", "status", "text", "messages", "pending"],
        ),
    }
}

fn object(properties: &Value, required: &[&str]) -> JsonObject {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    match schema {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn key() -> Value {
    text("The key of the thread.")
}

fn token() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 255,
        "description": "A name of this call: the same call made again under it is not done twice.",
    })
}

fn agent_schema(agents: &[&str]) -> Value {
    json!({
        "key": {"type": "string", "minLength": 1, "description": "The key of the thread, which is made if there is none."},
        "content": {"description": "A text, or parts such as {\"type\": \"input_text\", \"text\": \"…\"}.",
            "anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["type"]}}]},
        "agent": {"enum": agents, "description": "The agent that answers. Default: the default agent."},
        "policy": {"enum": ["queue", "reject", "interrupt"], "description": "What happens if the thread is busy; `queue` when absent."},
        "maxSteps": {"type": "integer", "minimum": 1, "description": "Maximum number of steps."},
        "timeoutMs": {"type": "integer", "minimum": 1, "description": "The run is stopped after so many milliseconds."},
        "metadata": {"description": "The client's own."},
        "idempotencyKey": token(),
    })
}

fn answer() -> Value {
    json!({
        "type": "object", "required": ["toolCallId"], "additionalProperties": false,
        "description": "For an approval: `approved`, with `arguments` to change them or a `message` why not. For a result: `output` or `errorText`.",
        "properties": {
            "toolCallId": {"type": "string"},
            "threadKey": {"type": "string", "description": "The thread that has the call, where a sub-agent's does."},
            "approved": {"type": "boolean"},
            "arguments": {"type": "object"},
            "message": {"type": "string"},
            "output": {},
            "errorText": {"type": "string"},
        },
    })
}

fn thread() -> Value {
    json!({
        "type": "object", "required": ["key", "id", "status", "createdAt", "seq", "bytes"],
        "properties": {
            "key": {"type": ["string", "null"]}, "id": {"type": "string"},
            "status": {"enum": ["open", "streaming", "closed", "failed"]},
            "createdAt": {"type": "string"}, "updatedAt": {"type": "string"}, "title": {"type": "string"},
            "metadata": {}, "fork": {"type": "object"},
            "seq": {"type": "integer", "description": "The last event."}, "bytes": {"type": "integer"},
        },
    })
}

fn messages() -> Value {
    json!({"type": "array", "items": {
        "type": "object", "required": ["id", "type", "createdAt", "status", "content"],
        "properties": {
            "id": {"type": "string"}, "type": {"type": "string"}, "role": {"type": "string"},
            "createdAt": {"type": "string"}, "status": {"type": "string"}, "waiting": {"type": "boolean"},
            "channel": {"type": "string"}, "content": {"type": "array"}, "executionId": {"type": "string"},
            "interruption": {"type": "object"}, "metadata": {},
        },
    }})
}

fn pending() -> Value {
    json!({
        "type": "object", "required": ["toolCallId", "toolName", "kind", "executionId", "threadKey", "path"],
        "properties": {
            "toolCallId": {"type": "string"}, "toolName": {"type": "string"},
            "kind": {"enum": ["approval", "external"], "description": "`approval`: may the tool run? `external`: what is the result?"},
            "input": {}, "executionId": {"type": "string"}, "threadKey": {"type": "string"}, "path": {"type": "array"},
        },
    })
}
