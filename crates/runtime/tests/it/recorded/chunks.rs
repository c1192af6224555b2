//! What other reactors than agents write: chunks and parts of every kind.

use super::rig::{Rig, pass};
use super::scenes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use interop::parts::ToolPart;
use loomline_runtime as runtime;
use runtime::{BlockDelta, Reacted, Reactor, ReactorError, StepRun};
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::{NewChunk, Payload, StepOutcome};

scenes![
    chunks_of_every_kind,
    parts_of_every_kind,
    parts_without_chunks,
    text_that_differs_from_its_chunks,
    cut_off_by_tokens,
    refusal,
    nothing_at_all,
    asks_by_message,
    prompts_between_answers,
    step_fails_beside_its_text,
    interleaved_blocks,
    cited_in_metadata,
];

/// One thing that is done in a step.
#[derive(Clone)]
enum Does {
    Text(&'static str, &'static str),
    Thought(&'static str, &'static str),
    Input(&'static str, &'static str),
    Emits(&'static str, Value),
    /// The chunks that end the answer, its parts, and what the model says of itself.
    Answers(Vec<(&'static str, Value)>, Vec<Value>, Value),
    /// One more part.
    Adds(Value),
    /// A part again.
    Puts(u32, Value),
    Waits(u64),
    Fails(&'static str, &'static str),
}

/// Does the same in every run: the n-th list in its n-th step.
struct Spoken(Vec<Vec<Does>>);

impl Reactor for Spoken {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        async move {
            let n = usize::try_from(step.step.iteration).unwrap();
            for does in &self.0[n] {
                run(step, does.clone()).await?;
                // Each is written by itself.
                step.writer.flush().await?;
            }
            Ok(Reacted {
                outcome: StepOutcome::default(),
                wants_more: n + 1 < self.0.len(),
                messages_for_model: None,
                memory: None,
                handoff: None,
            })
        }
        .boxed()
    }
}

async fn run(step: &StepRun, does: Does) -> Result<(), ReactorError> {
    let writer = &step.writer;
    match does {
        Does::Text(id, text) => writer.delta(BlockDelta::Text, id, text).await?,
        Does::Thought(id, text) => writer.delta(BlockDelta::Reasoning, id, text).await?,
        Does::Input(id, text) => writer.delta(BlockDelta::ToolInput, id, text).await?,
        Does::Emits(kind, data) => writer.emit(kind, data.into()).await?,
        Does::Answers(last, parts, response) => {
            let chunk = |(kind, data): (&str, Value)| NewChunk {
                chunk_type: kind.to_owned(),
                data: Some(data.into()),
            };
            let last = last.into_iter().map(chunk).collect();
            let parts = parts.into_iter().map(Payload::from).collect();
            writer.respond(last, parts, response.into());
        }
        Does::Adds(part) => {
            writer.add_part(part.into());
        }
        Does::Puts(idx, part) => writer.put_part(idx, part.into()),
        Does::Waits(ms) => pass(ms).await,
        Does::Fails(reason, detail) => {
            return Err(ReactorError::Failed {
                reason: reason.to_owned(),
                detail: detail.to_owned(),
            });
        }
    }
    Ok(())
}

async fn spoken(steps: Vec<Vec<Does>>) -> Rig {
    let rig = Rig::over(Arc::new(Arc::new(Spoken(steps))));
    rig.say("Speak").await;
    rig
}

fn id(id: &str) -> Value {
    json!({ "id": id })
}

fn text(text: &str) -> Value {
    json!({"type": "output_text", "text": text})
}

fn response(stop_reason: &str) -> Value {
    json!({"provider": "p", "model": "m-1", "responseId": "resp_9", "messageId": "msg_9",
        "stopReason": stop_reason, "usage": {"inputTokens": 5, "outputTokens": 6}})
}

async fn chunks_of_every_kind() -> Rig {
    use Does::{Adds, Answers, Emits, Text, Thought, Waits};
    let first = vec![
        Emits("data-context-id", json!({"contextId": "c"})),
        Emits("data-thread-ping", json!({"n": 1})),
        Emits("data-weather", json!({"id": "w", "data": {"degrees": 20}})),
        Emits(
            "data-weather",
            json!({"id": "w", "data": {"degrees": 21}, "transient": true}),
        ),
        Emits("data-bare", json!([1, 2])),
        Emits(
            "source-url",
            json!({"sourceId": "s1", "url": "https://example.com", "title": "An \"example\""}),
        ),
        Emits(
            "source-document",
            json!({"sourceId": "s2", "mediaType": "text/plain", "title": "T"}),
        ),
        Emits("reasoning-start", id("r0-0")),
        Thought("r0-0", "I "),
        Thought("r0-0", "think."),
        Emits("reasoning-end", id("r0-0")),
        Waits(50),
        Emits("text-start", id("t0-1")),
        Text("t0-1", "One"),
        Emits("data-between", json!({"data": "in a text"})),
        Text("t0-1", " two"),
        Emits(
            "tool-output-available",
            json!({"toolCallId": "x", "output": 1}),
        ),
        Emits("unheard-of", json!({"a": 1})),
        Emits("finish", json!({})),
        Answers(
            vec![("text-end", id("t0-1"))],
            vec![
                json!({"type": "reasoning", "text": "I think.", "signature": "sealed", "provider": "p"}),
                json!({"type": "output_text", "text": "One two", "annotations": [
                    {"type": "url_citation", "url": "https://example.com", "title": "T", "start_index": 0, "end_index": 3}]}),
            ],
            response("end_turn"),
        ),
        Emits("data-late", json!({"data": 1})),
        Adds(
            json!({"type": "data-tp-thread_spawn", "id": "e1", "data": {"spawned_thread_id": "x", "subagent_type": "y"}}),
        ),
    ];
    let second = vec![
        Text("t1-0", "Without a start."),
        Answers(
            vec![],
            vec![text("Without a start.")],
            response("stop_sequence"),
        ),
    ];
    spoken(vec![first, second]).await
}

async fn parts_of_every_kind() -> Rig {
    let parts = vec![
        json!({"type": "reasoning", "text": "", "signature": "hidden", "provider": "p"}),
        json!({"type": "output_text", "text": "A picture:", "phase": "commentary"}),
        json!({"type": "loomline-output-file", "file_data": "data:image/png;base64,AAAA", "media_type": "image/png"}),
        json!({"type": "loomline-output-file", "file_url": "https://example.com/a.wav", "media_type": "audio/wav"}),
        json!({"type": "refusal", "refusal": "No more."}),
        json!({"type": "output_text", "text": ""}),
        json!({"type": "app-own", "x": 1}),
    ];
    let answer = Does::Answers(vec![], parts, response("end_turn"));
    spoken(vec![vec![Does::Text("t0-1", "A picture:"), answer]]).await
}

fn tool(call: &str, state: &str, more: &Value) -> Value {
    let mut part = json!(ToolPart::call("look", call, "{\"a\":1}"));
    part["state"] = state.into();
    for (key, value) in more.as_object().into_iter().flatten() {
        part[key] = value.clone();
    }
    part
}

async fn parts_without_chunks() -> Rig {
    use Does::{Adds, Answers, Puts};
    let first = vec![
        Answers(
            vec![],
            vec![
                text("I look."),
                tool("c1", "input-available", &json!({})),
                tool("c2", "output-available", &json!({"output": {"a": [1.0]}})),
            ],
            response("tool_use"),
        ),
        Puts(
            1,
            tool(
                "c1",
                "output-error",
                &json!({"errorText": "off", "outcome": "interrupted"}),
            ),
        ),
        Adds(tool("c3", "output-error", &json!({"output": "odd"}))),
    ];
    let second = vec![Does::Adds(text("Nobody answered, and yet this is said."))];
    spoken(vec![first, second]).await
}

async fn text_that_differs_from_its_chunks() -> Rig {
    use Does::{Answers, Emits, Text};
    let steps = vec![
        Emits("text-start", id("t0-0")),
        Text("t0-0", "Once I said"),
        Emits("text-start", id("t0-1")),
        Text("t0-1", "and more"),
        Answers(
            vec![("text-end", id("t0-0")), ("text-end", id("t0-1"))],
            vec![text("Another text"), text("and more"), text("and a third")],
            response("end_turn"),
        ),
    ];
    spoken(vec![steps]).await
}

async fn cut_off_by_tokens() -> Rig {
    use Does::{Answers, Emits, Text};
    let steps = vec![
        Emits("text-start", id("t0-0")),
        Text("t0-0", "This is cut"),
        Answers(
            vec![("text-end", id("t0-0"))],
            vec![text("This is cut")],
            response("max_tokens"),
        ),
    ];
    spoken(vec![steps]).await
}

async fn refusal() -> Rig {
    use Does::{Answers, Text};
    let parts = vec![json!({"type": "refusal", "refusal": "I won't."})];
    let steps = vec![
        Text("t0-0", "I won't."),
        Answers(vec![], parts, response("content_filter")),
    ];
    spoken(vec![steps]).await
}

async fn nothing_at_all() -> Rig {
    let nothing = Does::Answers(vec![], vec![], response("end_turn"));
    spoken(vec![vec![nothing], vec![]]).await
}

async fn asks_by_message() -> Rig {
    let asked = r#"{"type":"request","id":"q1","kind":"confirm"}"#;
    let steps = vec![
        Does::Text("t0-0", asked),
        Does::Answers(vec![], vec![text(asked)], response("end_turn")),
    ];
    spoken(vec![steps]).await
}

async fn prompts_between_answers() -> Rig {
    let prompt = json!({"type": "loomline-prompt", "text": "Go on."});
    let first = Does::Answers(vec![], vec![text("First.")], response("end_turn"));
    let second = Does::Answers(vec![], vec![prompt, text("Second.")], response("end_turn"));
    spoken(vec![
        vec![first],
        vec![Does::Text("t1-1", "Second."), second],
    ])
    .await
}

async fn step_fails_beside_its_text() -> Rig {
    use Does::{Emits, Fails, Text, Thought};
    let steps = vec![
        Thought("r0-0", "I think"),
        Emits("text-start", id("t0-1")),
        Text("t0-1", "It is"),
        Emits(
            "tool-input-start",
            json!({"toolCallId": "c1", "toolName": "look"}),
        ),
        Does::Input("c1", "{\"a\":"),
        Fails("safety_halt", "Not this."),
    ];
    spoken(vec![steps]).await
}

async fn interleaved_blocks() -> Rig {
    use Does::{Answers, Emits, Input, Text, Thought};
    let call = |id: &str| json!({"toolCallId": id, "toolName": "look"});
    let steps = vec![
        Emits("text-start", id("t0-0")),
        Text("t0-0", "One"),
        Thought("r0-1", "Hm"),
        Emits("tool-input-start", call("c1")),
        Input("c1", "{\"a\""),
        Text("t0-0", " two"),
        Emits("tool-input-start", call("c2")),
        Input("c2", "{\"b\""),
        Input("c1", ":1}"),
        Thought("r0-1", "m."),
        Input("c2", ":2}"),
        Text("t0-3", "Three"),
        Answers(
            vec![],
            vec![
                text("One two"),
                json!({"type": "reasoning", "text": "Hmm."}),
                tool("c1", "input-available", &json!({})),
                tool("c2", "input-available", &json!({})),
                text("Three"),
            ],
            response("tool_use"),
        ),
        Does::Puts(3, tool("c2", "output-available", &json!({"output": "b"}))),
        Does::Puts(2, tool("c1", "output-available", &json!({"output": "a"}))),
    ];
    spoken(vec![steps]).await
}

async fn cited_in_metadata() -> Rig {
    let cited = json!({"type": "url_citation", "url": "https://example.com", "title": "T", "start_index": 0, "end_index": 2});
    let content = json!([{"type": "output_text", "text": "It is so.", "annotations": [cited]}]);
    let items = json!([{"content": 0, "with": {"item": {"content": content}}}]);
    let mut said = response("end_turn");
    said["metadata"] = json!({"openai": { "items": items }});
    let part = json!({"type": "output_text", "text": "It is so.", "phase": "final_answer"});
    let steps = vec![
        Does::Text("t0-0", "It is so."),
        Does::Answers(vec![], vec![part], said),
    ];
    spoken(vec![steps]).await
}
