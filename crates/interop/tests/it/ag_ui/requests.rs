//! Requests: what is read of them, and what is refused.

use crate::log::Log;
use crate::native::thread;
use loomline_interop::ag_ui::{RunInputError, from_run_input, to_messages};
use loomline_interop::parts::{ToolApproval, ToolPart};
use serde_json::{Value, json};
use timeline::{Command, NewItem, OpenCall, OpenKind};

#[test]
fn only_what_the_client_adds_is_read() {
    let input = from_run_input(&json!({
        "threadId": "t", "runId": "r1", "state": {"n": 1}, "forwardedProps": {},
        "messages": [
            {"id": "1", "role": "user", "content": "hi"},
            {"id": "2", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"id": "3", "role": "tool", "toolCallId": "c", "content": "{\"ok\":true}"},
            {"id": "4", "role": "tool", "toolCallId": "d", "content": "broken", "error": "it broke"},
        ],
        "tools": [{"name": "f", "description": "F.", "parameters": {"type": "object"}}],
        "context": [{"description": "Where", "value": "Bonn"}],
    }))
    .unwrap();
    assert_eq!(input.messages, []);
    let open = [
        waits("c", OpenKind::External),
        waits("d", OpenKind::External),
    ];
    let results = input.results_for(&open);
    let parts: Vec<&Value> = results.iter().map(|result| &result.part).collect();
    assert_eq!(
        parts,
        [
            &json!({"type": "loomline-answer", "toolCallId": "c", "output": "{\"ok\":true}", "loomline.message_id": "3"}),
            &json!({"type": "loomline-answer", "toolCallId": "d", "errorText": "it broke", "loomline.message_id": "4"}),
        ]
    );
    assert_eq!(input.options.tools[0].name, "f");
    assert_eq!(
        input.options.additional_instructions.as_deref(),
        Some("Where: Bonn")
    );
    assert_eq!(input.options.echo["ag-ui"]["state"], json!({"n": 1}));
}

pub(super) fn waits(call: &str, kind: OpenKind) -> OpenCall {
    let approval = (kind == OpenKind::Approval).then(|| ToolApproval {
        id: format!("q-{call}"),
        approved: None,
        reason: None,
    });
    let tool = ToolPart {
        approval,
        ..ToolPart::call("pay", call, r#"{"eur":5}"#)
    };
    OpenCall {
        tool_call_id: call.into(),
        kind,
        part: tool.write().unwrap(),
        origin: None,
        children: Vec::new(),
    }
}

#[test]
fn tool_messages_of_calls_that_wait_for_no_client_are_no_results() {
    let input = from_run_input(&json!({
        "threadId": "t", "runId": "r1",
        "messages": [
            {"id": "1", "role": "tool", "toolCallId": "servers-own", "content": "3"},
            {"id": "2", "role": "tool", "toolCallId": "asked", "content": "yes"},
            {"id": "3", "role": "tool", "toolCallId": "clients", "content": "4"},
        ],
    }))
    .unwrap();
    let open = [
        waits("asked", OpenKind::Approval),
        waits("clients", OpenKind::External),
    ];
    let results = input.results_for(&open);
    let calls: Vec<&str> = results.iter().map(|it| it.tool_call_id.as_str()).collect();
    assert_eq!(calls, ["clients"]);
    assert!(input.results_for(&[]).is_empty());
}

#[test]
fn what_a_client_has_sent_comes_back_as_it_was() {
    let content = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "url", "value": "https://a.b/c"}},
        {"type": "image", "source": {"type": "url", "value": "https://a.b/c.png", "mimeType": "image/png"}},
        {"type": "audio", "source": {"type": "url", "value": "https://a.b/c.wav"}},
        {"type": "video", "source": {"type": "url", "value": "https://a.b/c.mp4", "mimeType": "video/mp4"}},
        {"type": "video", "source": {"type": "url", "value": "https://a.b/c"}},
        {"type": "document", "source": {"type": "data", "value": "AAAA", "mimeType": "application/pdf"}},
    ]);
    let message = json!({"id": "1", "role": "user", "content": content});
    let body = json!({"threadId": "t", "runId": "r", "messages": [message]});
    let said = from_run_input(&body).unwrap().messages.remove(0);
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    let item = NewItem::user(said.id.as_str(), said.content);
    log.run(Command::Record { item });
    assert_eq!(to_messages(&log.transcript()).value, [message]);
}

#[test]
fn what_a_user_says_may_have_files() {
    let input = from_run_input(&json!({
        "threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
            {"type": "document", "source": {"type": "url", "value": "https://example.org/a.pdf", "mimeType": "application/pdf"}},
        ]}],
    }))
    .unwrap();
    assert_eq!(
        input.messages[0].content.value(),
        json!([
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "media_type": "image/png"},
            {"type": "input_file", "file_url": "https://example.org/a.pdf", "media_type": "application/pdf"},
        ])
    );
}

#[test]
fn an_answer_to_an_interrupt_becomes_an_answer_to_the_call() {
    let resume = |entry: Value| {
        let body = json!({"threadId": "t", "runId": "r", "resume": [entry]});
        from_run_input(&body).map(|mut input| input.resume.remove(0))
    };
    let approval = |entry: Value| resume(entry).unwrap().approval("c", "/resume/0");
    let resolved = |payload: Value| {
        approval(json!({"interruptId": "q", "status": "resolved", "payload": payload}))
    };
    assert_eq!(
        resolved(json!({"approved": true, "editedArgs": {"eur": 4}})).unwrap(),
        json!({"type": "loomline-answer", "toolCallId": "c", "approved": true, "arguments": {"eur": 4}})
    );
    assert_eq!(
        resolved(json!({"approved": false, "reason": "no"})).unwrap(),
        json!({"type": "loomline-answer", "toolCallId": "c", "approved": false, "message": "no"})
    );
    let gone = approval(json!({"interruptId": "q", "status": "cancelled"})).unwrap();
    assert_eq!(gone["approved"], false);
    assert_eq!(
        resolved(json!({"yes": 1})).unwrap_err().pointer(),
        "/resume/0/payload/approved"
    );
    let wrong = resume(json!({"interruptId": "q", "status": "perhaps"}));
    assert_eq!(wrong.unwrap_err().pointer(), "/resume/0/status");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let long = "x".repeat(2_000_000);
    let with = |message: Value| json!({"threadId": "t", "runId": "r", "messages": [message]});
    for (body, pointer) in [
        (json!([]), ""),
        (json!({"runId": "r", "messages": []}), "/threadId"),
        (
            json!({"threadId": "t", "runId": "", "messages": []}),
            "/runId",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": {}}),
            "/messages",
        ),
        (
            with(json!({"role": "user", "content": "x"})),
            "/messages/0/id",
        ),
        (
            with(json!({"id": "1", "role": "user", "content": []})),
            "/messages/0/content",
        ),
        (
            with(json!({"id": "1", "role": "user", "content": long})),
            "/messages/0/content",
        ),
        (
            with(json!({"id": "1", "role": "user", "content": [{"type": "x"}]})),
            "/messages/0/content/0/type",
        ),
        (
            with(
                json!({"id": "1", "role": "user", "content": [{"type": "image", "source": {"type": "url", "value": "file:///etc/passwd"}}]}),
            ),
            "/messages/0/content/0/source/value",
        ),
        (
            with(json!({"id": "1", "role": "tool", "content": "x"})),
            "/messages/0/toolCallId",
        ),
        (
            json!({"threadId": "t", "runId": "r", "tools": [{"name": "f", "parameters": 1}]}),
            "/tools/0/parameters",
        ),
        (
            json!({"threadId": "t", "runId": "r", "tools": [{"name": "two words"}]}),
            "/tools/0/name",
        ),
        (
            json!({"threadId": "t", "runId": "r", "tools": [{"name": "f"}, {"name": "f"}]}),
            "/tools/1/name",
        ),
        (
            with(
                json!({"id": "1", "role": "user", "content": [{"type": "image", "source": {"type": "data", "value": "<>", "mimeType": "image/png"}}]}),
            ),
            "/messages/0/content/0/source/value",
        ),
        (
            json!({"threadId": "t", "runId": "r", "context": [{"description": "d"}]}),
            "/context/0/value",
        ),
    ] {
        let error: RunInputError = from_run_input(&body).unwrap_err();
        assert_eq!(error.pointer(), pointer, "{error}");
    }
}
