//! Runs that break off, and runs that others go on with.

use super::plain::{called, gives, slowly};
use super::rig::{Rig, pass};
use super::scenes;
use crate::children::rig::{KEY, agent, call, stalls, tenant, text};
use loomline_runtime as runtime;
use runtime::{ReactRequest, Run};
use serde_json::{Value, json};
use timeline::Event;
use upp::{Effect, ScriptTurn, Tool};

scenes![
    model_fails_at_once,
    model_fails_for_its_limit,
    model_fails_in_its_text,
    model_fails_after_a_tool,
    model_fails_in_a_call,
    cancelled_in_its_text,
    cancelled_in_its_reasoning,
    cancelled_while_a_tool_runs,
    cancelled_while_one_waits,
    timed_out,
    too_many_steps,
    crashed_in_its_text,
    crashed_in_its_call,
    crashed_while_tools_run,
    crashed_again_and_again,
    parked_and_taken_up,
    closed,
];

fn turn(value: Value) -> ScriptTurn {
    slowly(serde_json::from_value(value).unwrap())
}

fn said(said: &str) -> Vec<ScriptTurn> {
    vec![slowly(text(said))]
}

async fn fails(turns: Vec<ScriptTurn>) -> Rig {
    let tools = vec![gives("look", 10, json!("seen"))];
    let rig = Rig::new(vec![agent("fragile", turns, tools)]);
    rig.say("Go").await;
    rig
}

async fn model_fails_at_once() -> Rig {
    let error = json!({"code": "AUTHENTICATION_FAILED", "message": "The key is wrong."});
    let rig = fails(vec![turn(json!({ "error": error }))]).await;
    rig.say("Go on").await;
    rig
}

async fn model_fails_for_its_limit() -> Rig {
    let error = json!({"code": "RATE_LIMITED", "message": "Too many.", "retry_after_ms": 500});
    fails(vec![turn(json!({ "error": error }))]).await
}

async fn model_fails_in_its_text() -> Rig {
    let error = json!({"code": "NETWORK_ERROR", "message": "The line is dead."});
    fails(vec![turn(
        json!({"reasoning": "I think.", "text": "It is so that", "error": error}),
    )])
    .await
}

async fn model_fails_after_a_tool() -> Rig {
    let error = json!({"code": "CONTENT_FILTERED", "message": "Not that."});
    fails(vec![slowly(call("look")), turn(json!({ "error": error }))]).await
}

async fn model_fails_in_a_call() -> Rig {
    let calls = json!([{"name": "look", "arguments": {"task": "a"}}]);
    let error = json!({"message": "It broke."});
    fails(vec![turn(
        json!({"text": "I look.", "tool_calls": calls, "error": error}),
    )])
    .await
}

async fn cancelled_in_its_text() -> Rig {
    let rig = Rig::new(vec![agent(
        "talker",
        said("One two three four five"),
        vec![],
    )]);
    rig.begin("Count").await;
    rig.until_chunk(3, "text-delta").await;
    rig.cancel().await;
    rig.say("Count again").await;
    rig
}

async fn cancelled_in_its_reasoning() -> Rig {
    let turn = turn(json!({"reasoning": "One two three four", "text": "five"}));
    let rig = Rig::new(vec![agent("thinker", vec![turn], vec![])]);
    rig.begin("Think").await;
    rig.until_chunk(2, "reasoning-delta").await;
    rig.cancel().await;
    rig
}

fn two_tools(second: Tool) -> Rig {
    let calls = ScriptTurn {
        text: Some("I look.".into()),
        ..called(&[("look", json!({})), ("stall", json!({}))])
    };
    let tools = vec![gives("look", 10, json!("seen")), second];
    let turns = vec![slowly(calls), slowly(text("I have looked."))];
    Rig::new(vec![agent("caller", turns, tools)])
}

async fn until_seen(rig: &Rig) {
    let wanted = |event: &Event| matches!(event, Event::PartUpdated { .. });
    rig.until(1, wanted).await;
    pass(5).await;
}

async fn cancelled_while_a_tool_runs() -> Rig {
    let rig = two_tools(stalls("stall"));
    rig.begin("Look").await;
    until_seen(&rig).await;
    rig.cancel().await;
    rig
}

async fn cancelled_while_one_waits() -> Rig {
    let rig = Rig::new(vec![agent(
        "talker",
        said("One two three four five"),
        vec![],
    )]);
    rig.begin("First").await;
    rig.until_chunk(2, "text-delta").await;
    rig.begin("Second").await;
    rig.cancel().await;
    rig
}

async fn limited(rig: &Rig, run: Run) {
    let message = rig.message("Go");
    rig.react(ReactRequest { run, ..message }).await;
    rig.rest().await;
}

async fn timed_out() -> Rig {
    let rig = Rig::new(vec![agent(
        "talker",
        said("One two three four five"),
        vec![],
    )]);
    let run = Run {
        timeout_ms: Some(130),
        ..Run::default()
    };
    limited(&rig, run).await;
    rig
}

async fn too_many_steps() -> Rig {
    let tools = vec![gives("look", 10, json!("seen"))];
    let rig = Rig::new(vec![agent("caller", vec![slowly(call("look"))], tools)]);
    let run = Run {
        max_steps: Some(2),
        ..Run::default()
    };
    limited(&rig, run).await;
    rig
}

async fn crashed_in_its_text() -> Rig {
    let turn = turn(json!({"reasoning": "I think.", "text": "One two three four"}));
    let mut rig = Rig::new(vec![agent("talker", vec![turn], vec![])]);
    rig.begin("Count").await;
    rig.until_chunk(2, "text-delta").await;
    rig.crash().await;
    rig.rest().await;
    rig
}

async fn crashed_in_its_call() -> Rig {
    let calls = ScriptTurn {
        text: Some("I look.".into()),
        ..call("look")
    };
    let tools = vec![gives("look", 10, json!("seen"))];
    let turns = vec![slowly(calls), slowly(text("I have looked."))];
    let mut rig = Rig::new(vec![agent("caller", turns, tools)]);
    rig.begin("Look").await;
    rig.until_chunk(1, "tool-input-delta").await;
    rig.crash().await;
    rig.rest().await;
    rig
}

async fn crashed_while_tools_run() -> Rig {
    let calls = called(&[
        ("look", json!({})),
        ("effect", json!({})),
        ("pure", json!({})),
    ]);
    let tools = vec![
        gives("look", 10, json!("seen")),
        gives("effect", 500, json!("changed")),
        gives("pure", 500, json!("same")).with_effect(Effect::Pure),
    ];
    let turns = vec![slowly(calls), slowly(text("I have looked."))];
    let mut rig = Rig::new(vec![agent("caller", turns, tools)]);
    rig.begin("Look").await;
    until_seen(&rig).await;
    rig.crash().await;
    rig.rest().await;
    rig
}

async fn crashed_again_and_again() -> Rig {
    let mut rig = Rig::new(vec![agent(
        "talker",
        said("One two three four five"),
        vec![],
    )]);
    rig.begin("Count").await;
    rig.until_chunk(2, "text-delta").await;
    rig.crash().await;
    rig.until_chunk(5, "text-delta").await;
    rig.crash().await;
    rig.rest().await;
    rig
}

async fn parked_and_taken_up() -> Rig {
    let mut rig = Rig::new(vec![agent(
        "talker",
        said("One two three four five"),
        vec![],
    )]);
    rig.begin("Count").await;
    rig.until_chunk(2, "text-delta").await;
    rig.restart().await;
    rig.rest().await;
    rig
}

async fn closed() -> Rig {
    let rig = Rig::new(vec![agent("talker", said("One two three"), vec![])]);
    rig.say("Count").await;
    rig.runtime.close(&tenant(), KEY).await.unwrap();
    rig
}
