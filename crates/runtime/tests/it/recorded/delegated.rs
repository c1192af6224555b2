//! Agents that hand over, and agents that call others.

use super::plain::{fails, gives, slowly};
use super::rig::{Rig, pass};
use super::scenes;
use crate::children::rig::{KEY, agent, call, calls, children, sub, text};
use agents::Agent;
use loomline_runtime as runtime;
use runtime::handoff;
use serde_json::json;
use upp::{ScriptTurn, Tool};

scenes![
    handoff,
    handoff_then_tool,
    handoff_twice,
    handoff_too_often,
    handoff_after_an_approval,
    handoff_then_approval,
    subagent,
    subagent_beside_a_tool,
    subagent_waits,
    subagent_answered,
    subagent_denied,
    subagent_fails,
    subagent_of_a_subagent,
    subagent_cancelled,
];

fn transfers(to: &str) -> ScriptTurn {
    ScriptTurn {
        text: Some("I ask another.".into()),
        ..ScriptTurn::call(handoff::tool_name(to), json!({"reason": "it is a bill"}))
    }
}

fn transfer(to: &str) -> Tool {
    handoff::tool(to, "Pays bills.")
}

fn billing() -> Agent {
    agent("billing", vec![slowly(text("It is paid."))], vec![])
}

/// The turns of one who pays, behind that of one who has handed over.
fn paying() -> Vec<ScriptTurn> {
    vec![
        text("Never said."),
        slowly(call("pay")),
        slowly(text("It is paid.")),
    ]
}

async fn handoff() -> Rig {
    let desk = agent(
        "desk",
        vec![slowly(transfers("billing"))],
        vec![transfer("billing")],
    );
    let rig = Rig::new(vec![desk, billing()]);
    rig.say("Pay").await;
    rig.say("Pay again").await;
    rig
}

async fn handoff_then_tool() -> Rig {
    let desk = agent(
        "desk",
        vec![slowly(transfers("billing"))],
        vec![transfer("billing")],
    );
    let turns = paying();
    let billing = agent("billing", turns, vec![gives("pay", 50, json!("paid"))]);
    let rig = Rig::new(vec![desk, billing]);
    rig.say("Pay").await;
    rig
}

async fn handoff_twice() -> Rig {
    let desk = agent("desk", vec![transfers("clerk")], vec![transfer("clerk")]);
    let clerk = agent(
        "clerk",
        vec![slowly(transfers("billing"))],
        vec![transfer("billing")],
    );
    let rig = Rig::new(vec![desk, clerk, billing()]);
    rig.say("Pay").await;
    rig
}

async fn handoff_too_often() -> Rig {
    let desk = agent("desk", vec![transfers("clerk")], vec![transfer("clerk")]);
    let clerk = agent("clerk", vec![transfers("desk")], vec![transfer("desk")]);
    let rig = Rig::new(vec![desk, clerk]);
    rig.say("Pay").await;
    rig
}

async fn handoff_after_an_approval() -> Rig {
    let turns = vec![slowly(call("touch")), slowly(transfers("billing"))];
    let touch = gives("touch", 20, json!("done")).with_requires_approval();
    let desk = agent("desk", turns, vec![touch, transfer("billing")]);
    let rig = Rig::new(vec![desk, billing()]);
    rig.say("Pay").await;
    rig.answer_nth(KEY, 0, json!({"approved": true})).await;
    rig
}

async fn handoff_then_approval() -> Rig {
    let desk = agent(
        "desk",
        vec![transfers("billing")],
        vec![transfer("billing")],
    );
    let turns = paying();
    let pay = gives("pay", 50, json!("paid")).with_requires_approval();
    let rig = Rig::new(vec![desk, agent("billing", turns, vec![pay])]);
    rig.say("Pay").await;
    rig.answer_nth(KEY, 0, json!({"approved": true})).await;
    rig
}

/// An agent whose tool is this agent.
fn lead(tools: Vec<Tool>, first: ScriptTurn) -> Agent {
    agent(
        "lead",
        vec![slowly(first), slowly(text("All is done."))],
        tools,
    )
}

fn finder(turns: Vec<ScriptTurn>, tools: Vec<Tool>) -> Agent {
    agent("finder", turns, tools)
}

async fn led(finder: Agent) -> Rig {
    let lead = lead(vec![sub(finder.clone())], call("finder"));
    let rig = Rig::new(vec![lead, finder]);
    rig.say("Find it").await;
    rig
}

async fn subagent() -> Rig {
    led(finder(vec![slowly(text("It is there."))], vec![])).await
}

async fn subagent_beside_a_tool() -> Rig {
    let turns = vec![slowly(call("look")), slowly(text("It is there."))];
    let finder = finder(turns, vec![gives("look", 70, json!("seen"))]);
    let free = gives("free", 10, json!("free"));
    let tools = vec![sub(finder.clone()), free];
    let lead = lead(tools, calls(&["finder", "free", "finder"]));
    let rig = Rig::new(vec![lead, finder]);
    rig.say("Find both").await;
    rig
}

async fn waiting() -> Rig {
    let look = gives("look", 20, json!("seen")).with_requires_approval();
    let turns = vec![slowly(call("look")), slowly(text("It is there."))];
    led(finder(turns, vec![look])).await
}

async fn subagent_waits() -> Rig {
    waiting().await
}

async fn answered(approved: bool) -> Rig {
    let rig = waiting().await;
    let child = children(&rig.runtime).await.swap_remove(0);
    rig.answer_nth(&child, 0, json!({"approved": approved}))
        .await;
    pass(1_000).await;
    rig.rest().await;
    rig
}

async fn subagent_answered() -> Rig {
    answered(true).await
}

async fn subagent_denied() -> Rig {
    answered(false).await
}

async fn subagent_fails() -> Rig {
    let failing =
        serde_json::from_value(json!({"text": "I try.", "error": {"message": "It is off."}}));
    led(finder(vec![failing.unwrap()], vec![fails("look", 5)])).await
}

async fn subagent_of_a_subagent() -> Rig {
    let inner = agent("leaf", vec![slowly(text("Leaf."))], vec![]);
    let turns = vec![slowly(call("leaf")), slowly(text("Middle."))];
    let middle = agent("middle", turns, vec![sub(inner.clone())]);
    let lead = lead(vec![sub(middle.clone())], call("middle"));
    let rig = Rig::new(vec![lead, middle, inner]);
    rig.say("Find it").await;
    rig
}

async fn subagent_cancelled() -> Rig {
    let finder = finder(
        vec![slowly(text("It is there, or it is not there."))],
        vec![],
    );
    let lead = lead(vec![sub(finder.clone())], call("finder"));
    let rig = Rig::new(vec![lead, finder]);
    rig.begin("Find it").await;
    rig.until_chunk(1, "data-context-substate").await;
    pass(150).await;
    rig.cancel().await;
    pass(1_000).await;
    rig.rest().await;
    rig
}
