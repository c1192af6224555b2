//! Calls that wait for somebody.

use super::plain::{called, gives, slowly};
use super::rig::{Rig, said_of};
use super::scenes;
use crate::children::rig::{KEY, agent, call, parameters, tenant, text};
use agents::Agent;
use serde_json::{Value, json};
use timeline::ATTACHED_MESSAGE;
use upp::{ScriptTurn, Tool};

scenes![
    approval_waits,
    approval_given,
    approval_given_with_other_arguments,
    approval_denied,
    approval_left_for_a_message,
    approval_in_the_second_round,
    approvals_one_by_one,
    approval_withdrawn,
    approval_when_the_thread_closes,
    client_tool_waits,
    client_tool_answered,
    client_tool_failed,
    client_tools_one_by_one,
    client_tool_beside_own_and_approval,
    message_beside_an_answer,
    answered_twice,
];

fn guarded(name: &str) -> Tool {
    gives(name, 30, json!("done")).with_requires_approval()
}

fn client(name: &str) -> Tool {
    Tool::external(name, "Runs elsewhere.", parameters())
}

fn asker(tools: Vec<Tool>, calls: ScriptTurn) -> Rig {
    let turns = vec![slowly(calls), slowly(text("It is done."))];
    Rig::new(vec![agent("asker", turns, tools)])
}

async fn asked(tools: Vec<Tool>, calls: ScriptTurn) -> Rig {
    let rig = asker(tools, calls);
    rig.say("Do it").await;
    rig
}

fn with_text(turn: ScriptTurn) -> ScriptTurn {
    ScriptTurn {
        text: Some("May I?".into()),
        ..turn
    }
}

async fn one_approval() -> Rig {
    asked(vec![guarded("touch")], with_text(call("touch"))).await
}

async fn approval_waits() -> Rig {
    one_approval().await
}

async fn approval_given() -> Rig {
    let rig = one_approval().await;
    rig.answer_nth(KEY, 0, json!({"approved": true})).await;
    rig
}

async fn approval_given_with_other_arguments() -> Rig {
    let rig = one_approval().await;
    let says = json!({"approved": true, "arguments": {"task": "another"}});
    rig.answer_nth(KEY, 0, says).await;
    rig
}

async fn approval_denied() -> Rig {
    let rig = one_approval().await;
    let says = json!({"approved": false, "message": "Not \"today\"."});
    rig.answer_nth(KEY, 0, says).await;
    rig
}

async fn approval_left_for_a_message() -> Rig {
    let rig = one_approval().await;
    rig.say("Something else").await;
    rig
}

async fn approval_in_the_second_round() -> Rig {
    let turns = vec![
        slowly(call("free")),
        slowly(call("touch")),
        slowly(text("It is done.")),
    ];
    let tools = vec![gives("free", 10, json!("free")), guarded("touch")];
    let rig = Rig::new(vec![agent("asker", turns, tools)]);
    rig.say("Do both").await;
    rig.answer_nth(KEY, 0, json!({"approved": true})).await;
    rig
}

async fn approvals_one_by_one() -> Rig {
    let calls = called(&[
        ("touch", json!({"task": "a"})),
        ("touch", json!({"task": "b"})),
        ("free", json!({"task": "c"})),
    ]);
    let tools = vec![guarded("touch"), gives("free", 10, json!("free"))];
    let rig = asked(tools, calls).await;
    rig.answer_nth(KEY, 1, json!({"approved": true})).await;
    rig.answer_nth(KEY, 0, json!({"approved": false})).await;
    rig
}

async fn approval_withdrawn() -> Rig {
    let rig = one_approval().await;
    rig.cancel().await;
    rig
}

async fn approval_when_the_thread_closes() -> Rig {
    let rig = one_approval().await;
    rig.runtime.close(&tenant(), KEY).await.unwrap();
    rig
}

async fn client_tool_waits() -> Rig {
    asked(vec![client("locate")], call("locate")).await
}

async fn client_tool_answered() -> Rig {
    let rig = client_tool_waits().await;
    let says = json!({"output": {"at": [1, 2.50]}});
    rig.answer_nth(KEY, 0, says).await;
    rig
}

async fn client_tool_failed() -> Rig {
    let rig = client_tool_waits().await;
    rig.answer_nth(KEY, 0, json!({"errorText": "No signal."}))
        .await;
    rig
}

async fn client_tools_one_by_one() -> Rig {
    let calls = called(&[
        ("locate", json!({"task": "a"})),
        ("locate", json!({"task": "b"})),
    ]);
    let rig = asked(vec![client("locate")], calls).await;
    rig.answer_nth(KEY, 0, json!({"output": "there"})).await;
    rig.answer_nth(KEY, 0, json!({"output": "here"})).await;
    rig
}

async fn client_tool_beside_own_and_approval() -> Rig {
    let calls = called(&[
        ("locate", json!({})),
        ("free", json!({})),
        ("touch", json!({})),
    ]);
    let free = gives("free", 10, json!("free"));
    let rig = asked(vec![client("locate"), free, guarded("touch")], calls).await;
    let open = rig.open(KEY).await;
    let says = |n: usize, says: Value| said_of(&open[n], says);
    let (first, second) = (json!({"output": "there"}), json!({"approved": true}));
    let at = |kind| open.iter().position(|call| call.kind == kind).unwrap();
    let external = says(at(timeline::OpenKind::External), first);
    let approved = says(at(timeline::OpenKind::Approval), second);
    rig.answer(KEY, vec![external, approved]).await;
    rig
}

async fn message_beside_an_answer() -> Rig {
    let rig = client_tool_waits().await;
    let open = rig.open(KEY).await;
    let more = json!([{"type": "input_text", "text": "By the way"}]);
    let more =
        json!({"type": ATTACHED_MESSAGE, "role": "user", "content": more, "metadata": {"a": "b"}});
    let output = said_of(&open[0], json!({"output": "there"}));
    rig.answer(KEY, vec![output, more]).await;
    rig
}

async fn answered_twice() -> Rig {
    let twice = vec![
        slowly(call("locate")),
        slowly(with_text(call("locate"))),
        slowly(text("It is done.")),
    ];
    let agents: Vec<Agent> = vec![agent("asker", twice, vec![client("locate")])];
    let rig = Rig::new(agents);
    rig.say("Look twice").await;
    rig.answer_nth(KEY, 0, json!({"output": "first"})).await;
    rig.answer_nth(KEY, 0, json!({"output": "second"})).await;
    rig.say("Again").await;
    rig
}
