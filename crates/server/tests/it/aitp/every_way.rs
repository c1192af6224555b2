//! Every way in by which somebody says something, and every route that is none.

use crate::harness::{Answer, Server};
use serde_json::{Value, json};

/// A way in: how tests call it, its route, the path that is asked, and the body.
pub(super) type Way = (&'static str, &'static str, String, Value);

/// The text said by each protocol's own way, each to a thread of its own that is there.
fn own_ways(text: &str) -> Vec<Way> {
    let part = json!({"type": "text", "text": text});
    let said = json!([{"role": "user", "content": text}]);
    let message = |context: &str| {
        json!({"message": {
            "messageId": "m", "role": "ROLE_USER", "contextId": context, "parts": [{"text": text}],
        }})
    };
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("rpc")});
    let ag_ui = |thread: &str| {
        json!({
            "threadId": thread, "runId": "r1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
            "messages": [{"id": "m2", "role": "user", "content": text}],
        })
    };
    let chat = json!({"id": "chat", "trigger": "submit-message", "messages": [
        {"id": "m1", "role": "user", "parts": [part]},
    ]});
    let way = |name: &'static str, route: &'static str, path: &str, body: Value| {
        (name, route, path.to_owned(), body)
    };
    vec![
        way(
            "own",
            "/api/v1/threads/{key}/messages",
            "/api/v1/threads/own/messages",
            json!({"content": text}),
        ),
        way(
            "replace",
            "/api/v1/threads/{key}/messages/{id}/replace",
            "/api/v1/threads/replace/messages/m1/replace",
            json!({"content": text}),
        ),
        way(
            "append",
            "/api/v1/threads/{key}/import",
            "/api/v1/threads/append/import?from=ai-sdk-ui",
            json!([{"id": "m1", "role": "user", "parts": [part]}]),
        ),
        way(
            "threads",
            "/v1/threads/{thread_id}/messages",
            "/v1/threads/threads/messages",
            json!({"role": "user", "content": text}),
        ),
        way(
            "beside",
            "/v1/threads/{thread_id}/runs",
            "/v1/threads/beside/runs",
            json!({"assistant_id": "demo", "additional_messages": said}),
        ),
        way(
            "responses",
            "/v1/responses",
            "/v1/responses",
            json!({"model": "demo", "input": text, "conversation": "responses"}),
        ),
        way(
            "items",
            "/v1/conversations/{conversation_id}/items",
            "/v1/conversations/items/items",
            json!({ "items": said }),
        ),
        way(
            "chat-completions",
            "/v1/chat/completions",
            "/v1/chat/completions",
            json!({"model": "demo", "messages": said, "metadata": {"thread": "chat-completions"}}),
        ),
        way("chat", "/api/chat", "/api/chat", chat),
        way("ag-ui", "/ag-ui", "/ag-ui", ag_ui("ag-ui")),
        way(
            "ag-ui-agent",
            "/ag-ui/agents/{agent}",
            "/ag-ui/agents/demo",
            ag_ui("ag-ui-agent"),
        ),
        way(
            "a2a",
            "/a2a/v1/message:send",
            "/a2a/v1/message:send",
            message("a2a"),
        ),
        way(
            "a2a-stream",
            "/a2a/v1/message:stream",
            "/a2a/v1/message:stream",
            message("a2a-stream"),
        ),
        way("rpc", "/a2a", "/a2a", rpc),
        way("mcp-run", "/mcp", "/mcp", called("run", "mcp-run", text)),
        way(
            "mcp-post",
            "/mcp",
            "/mcp",
            called("post_message", "mcp-post", text),
        ),
    ]
}

/// The call of a tool of MCP's that says something.
fn called(tool: &str, key: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": {"key": key, "content": text},
    }})
}

/// The text said by `LangGraph`'s and the Agent Protocol's ways on threads that are there, whose ids are UUIDs.
fn langgraph_ways(text: &str) -> Vec<Way> {
    let said = json!([{"role": "user", "content": text}]);
    let run = json!({"assistant_id": "demo", "input": {"messages": said}});
    let way = |n: usize, route: &'static str, body: Value| {
        let id = UUIDS[n];
        (id, route, route.replace("{thread_id}", id), body)
    };
    let named = |n: usize, route: &'static str| {
        let body = json!({"agent_id": "demo", "thread_id": UUIDS[n], "messages": said});
        way(n, route, body)
    };
    vec![
        way(0, "/threads/{thread_id}/runs", run.clone()),
        way(1, "/threads/{thread_id}/runs/wait", run.clone()),
        way(2, "/threads/{thread_id}/runs/stream", run.clone()),
        way(
            8,
            "/threads/{thread_id}/commands",
            json!({"id": 1, "method": "run.start", "params": run}),
        ),
        way(
            3,
            "/threads/{thread_id}/state",
            json!({"values": {"messages": [text]}}),
        ),
        way(
            4,
            "/threads/{thread_id}",
            json!({"messages": [{"type": "human", "content": [{"type": "text", "text": text}]}]}),
        ),
        named(5, "/runs"),
        named(6, "/runs/wait"),
        named(7, "/runs/stream"),
    ]
}

/// The text said by all ways that make a thread.
fn new_ways(text: &str) -> Vec<Way> {
    let said = json!([{"role": "user", "content": text}]);
    let kept = json!({"agent_id": "demo", "messages": said, "on_completion": "keep"});
    let absent = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5069";
    let ways = [
        ("/v1/threads", json!({ "messages": said })),
        ("/v1/thread", json!({"messages": [text]})),
        (
            "/v1/threads/runs",
            json!({"assistant_id": "demo", "thread": {"messages": said}}),
        ),
        ("/v1/responses", json!({"model": "demo", "input": text})),
        (
            "/v1/responses",
            json!({"model": "demo", "input": text, "store": false}),
        ),
        ("/v1/conversations", json!({ "items": said })),
        ("/runs", kept),
        ("/runs/wait", json!({"agent_id": "demo", "messages": said})),
        (
            "/runs/stream",
            json!({
                "assistant_id": "demo", "input": {"messages": said}, "thread_id": absent, "if_not_exists": "create",
            }),
        ),
    ];
    let ways = ways.map(|(route, body)| ("", route, route.to_owned(), body));
    ways.into()
}

/// The ids of the threads of `LangGraph`'s ways.
const UUIDS: [&str; 9] = [
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5060",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5062",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5063",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5064",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5065",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5066",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5067",
    "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5068",
];

/// All ways in.
pub(super) fn ways(text: &str) -> Vec<Way> {
    let mut ways = own_ways(text);
    ways.extend(langgraph_ways(text));
    ways.extend(new_ways(text));
    ways
}

/// By how a way's route is called.
pub(super) fn method_of(route: &str) -> &'static str {
    match route {
        "/threads/{thread_id}" => "PATCH",
        _ => "POST",
    }
}

/// Says a text by every way in.
pub(super) async fn by_every_way(
    client: &Server,
    text: &str,
) -> Vec<(&'static str, &'static str, Answer)> {
    let mut answers = Vec::new();
    for (name, route, path, body) in ways(text) {
        let request = client
            .request(method_of(route), &path)
            .header("content-type", "application/json")
            .header("a2a-version", "1.0");
        let request = match route {
            "/mcp" => request
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2025-06-18")
                .header("mcp-session-id", session(client).await),
            _ => request,
        };
        let request = request.body(body.to_string().into()).unwrap();
        let mut answer = client.send(request).await;
        if route == "/mcp" {
            let last = answer.events().pop().unwrap().1;
            answer.text = last.to_string();
        }
        answers.push((name, route, answer));
    }
    answers
}

/// A session of MCP's.
async fn session(client: &Server) -> String {
    let begins = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let request = client
        .request("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = request.body(begins.to_string().into()).unwrap();
    let begun = client.send(request).await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap();
    session.to_owned()
}

/// The threads that [`by_every_way`] speaks on.
pub(super) fn threads() -> Vec<&'static str> {
    let ways = ways("").into_iter();
    ways.map(|way| way.0)
        .filter(|name| !name.is_empty())
        .collect()
}

/// Makes the threads that [`by_every_way`] speaks on, with a message that one way replaces.
pub(super) async fn make_threads(client: &Server) {
    for key in threads() {
        client.post("/api/v1/threads", json!({ "key": key })).await;
    }
    let part = json!({"type": "text", "text": "hello"});
    let said = json!([{"id": "m1", "role": "user", "parts": [part]}]);
    let body = json!({"id": "replace", "trigger": "submit-message", "messages": said});
    assert_eq!(client.post("/api/chat", body).await.status, 200);
}

/// What takes a body and says nothing: it answers what waits, stops, finds, notes, keeps or takes as it is.
pub(super) const SAYING_NOTHING: [(&str, &str); 55] = [
    // A worker speaks as the agent.
    ("POST", "/api/v1/steps/lease"),
    ("POST", "/api/v1/steps/{step}/complete"),
    ("POST", "/api/v1/steps/{step}/deltas"),
    ("POST", "/api/v1/steps/{step}/fail"),
    ("POST", "/api/v1/steps/{step}/heartbeat"),
    ("POST", "/api/v1/web/tokens"),
    ("POST", "/a2a/v1/tasks/{id}"),
    ("POST", "/a2a/v1/tasks/{id}/pushNotificationConfigs"),
    ("POST", "/agents/search"),
    ("POST", "/api/chat/{id}/stop"),
    // A past is taken as it is.
    ("POST", "/api/v1/import"),
    ("PUT", "/api/v1/threads/{key}/objects/{kind}/{id}"),
    ("POST", "/api/v1/threads"),
    ("PATCH", "/api/v1/threads/{key}"),
    ("POST", "/api/v1/threads/{key}/actors"),
    ("PATCH", "/api/v1/threads/{key}/actors/{actor}"),
    ("POST", "/api/v1/threads/{key}/answers"),
    ("POST", "/api/v1/threads/{key}/cancel"),
    ("POST", "/api/v1/threads/{key}/close"),
    ("POST", "/api/v1/threads/{key}/compactions"),
    ("POST", "/api/v1/threads/{key}/fork"),
    ("POST", "/api/v1/threads/{key}/messages/{id}/regenerate"),
    ("POST", "/api/v1/threads/{key}/reopen"),
    ("POST", "/api/v1/threads/{key}/requests/{request}/answer"),
    ("POST", "/api/v1/threads/{key}/requests/{request}/cancel"),
    ("POST", "/api/v1/threads/{key}/requests/{request}/decline"),
    ("POST", "/api/v1/threads/{key}/runs/{executionId}/cancel"),
    ("POST", "/assistants"),
    ("POST", "/assistants/count"),
    ("POST", "/assistants/search"),
    ("PATCH", "/assistants/{assistant_id}"),
    ("POST", "/runs/search"),
    ("POST", "/runs/{run_id}/cancel"),
    // An item of a store is no message.
    ("PUT", "/store/items"),
    ("POST", "/store/items/search"),
    ("POST", "/store/namespaces"),
    ("POST", "/threads"),
    ("POST", "/threads/count"),
    ("POST", "/threads/search"),
    ("POST", "/threads/{thread_id}/copy"),
    ("POST", "/threads/{thread_id}/history"),
    ("POST", "/threads/{thread_id}/runs/{run_id}/cancel"),
    ("POST", "/threads/{thread_id}/state/checkpoint"),
    ("POST", "/threads/{thread_id}/stream/events"),
    ("POST", "/v1/assistants"),
    ("POST", "/v1/assistants/{assistant_id}"),
    ("POST", "/v1/conversations/{conversation_id}"),
    ("POST", "/v1/files"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/responses/input_tokens"),
    ("POST", "/v1/responses/{response_id}/cancel"),
    ("POST", "/v1/threads/{thread_id}"),
    ("POST", "/v1/threads/{thread_id}/messages/{message_id}"),
    ("POST", "/v1/threads/{thread_id}/runs/{run_id}"),
    ("POST", "/v1/threads/{thread_id}/runs/{run_id}/cancel"),
];

/// What answers calls, and can't say anything beside that.
pub(super) const ANSWERING: [(&str, &str); 1] = [(
    "POST",
    "/v1/threads/{thread_id}/runs/{run_id}/submit_tool_outputs",
)];
