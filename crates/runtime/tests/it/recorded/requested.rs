//! Runs that clients of the protocols have asked for, with what their views keep of the request.

use super::plain::{gives, slowly};
use super::rig::Rig;
use super::scenes;
use crate::children::rig::{KEY, agent, call, text};
use serde_json::{Value, json};
use upp::ScriptTurn;

scenes![
    responses_request,
    responses_in_background,
    threads_request,
    threads_request_that_ends_incomplete,
    langgraph_request,
    answer_of_a_form,
    without_a_model,
];

fn rig() -> Rig {
    let first = ScriptTurn {
        reasoning: Some("I need the place.".into()),
        ..call("locate")
    };
    let turns = vec![slowly(first), slowly(text("You are there."))];
    Rig::new(vec![agent(
        "guide",
        turns,
        vec![gives("own", 10, json!("own"))],
    )])
}

fn client_tools() -> Value {
    json!([{"name": "locate", "description": "Finds.", "parameters": {"type": "object"}, "strict": false}])
}

async fn answered(params: Value) -> Rig {
    let rig = rig();
    rig.ask("Where am I?", params).await;
    rig.answer_nth(KEY, 0, json!({"output": "there"})).await;
    rig
}

async fn responses_request() -> Rig {
    let tool = json!({"type": "function", "name": "locate", "description": "Finds.", "parameters": {"type": "object"}, "strict": false});
    let said = json!({
        "instructions": "Be brief.", "temperature": 0.5, "tools": [tool], "tool_choice": "required",
        "metadata": {"a": "b"}, "max_output_tokens": 200, "user": "ada", "reasoning": {"effort": "low", "summary": "auto"},
    });
    let echo = json!({"model": "small", "said": said, "conversation": true, "summary": true, "encryptedReasoning": true, "extensions": true});
    answered(json!({"instructions": "Be brief.", "tools": client_tools(), "maxOutputTokens": 200, "echo": {"responses": echo}})).await
}

async fn responses_in_background() -> Rig {
    let echo = json!({"model": "small", "said": {"background": true}, "conversationId": "conv_x"});
    let rig = Rig::new(vec![agent(
        "guide",
        vec![slowly(text("You are there."))],
        vec![],
    )]);
    rig.ask("Where am I?", json!({"echo": {"responses": echo}}))
        .await;
    rig
}

fn threads_echo() -> Value {
    let tool = json!({"type": "function", "function": {"name": "locate", "description": "Finds.", "parameters": {"type": "object"}}});
    json!({
        "assistant_id": "asst_1", "model": "small", "instructions": "Be brief.", "tools": [tool], "metadata": {"a": "b"},
        "temperature": 0.5, "top_p": 0.9, "max_prompt_tokens": 900, "max_completion_tokens": 300,
        "truncation_strategy": {"type": "auto", "last_messages": null}, "tool_choice": "auto", "parallel_tool_calls": false,
        "response_format": "auto", "expires_after": 600,
    })
}

async fn threads_request() -> Rig {
    answered(json!({"tools": client_tools(), "parallelToolCalls": false, "echo": {"threads": threads_echo()}})).await
}

async fn threads_request_that_ends_incomplete() -> Rig {
    let long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen";
    let rig = Rig::new(vec![agent("guide", vec![text(long)], vec![])]);
    let params = json!({"maxRunOutputTokens": 16, "echo": {"threads": threads_echo()}});
    rig.ask("Count", params).await;
    rig
}

async fn langgraph_request() -> Rig {
    let echo = json!({"assistant_id": "guide", "metadata": {"a": "b"}, "config": {"configurable": {"user": "ada"}}, "stream_mode": ["values", "messages"]});
    answered(json!({"tools": client_tools(), "echo": {"langgraph": echo}})).await
}

async fn answer_of_a_form() -> Rig {
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let rig = Rig::new(vec![agent(
        "guide",
        vec![text("{\"city\":\"Oslo\"}")],
        vec![],
    )]);
    let format = json!({"type": "json_schema", "name": "place", "schema": schema, "strict": true});
    rig.ask("Where am I?", json!({ "format": format })).await;
    rig
}

async fn without_a_model() -> Rig {
    let rig = rig();
    rig.ask("Keep this", json!({"withoutModel": true})).await;
    rig
}
