//! Answers, and tools that run here.

use super::rig::{Rig, pass};
use super::scenes;
use crate::children::rig::{agent, call, parameters, text, tool};
use agents::Agent;
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Filter, Policy, ReactRequest, Rewind};
use serde_json::{Value, json};
use timeline::{Entry, ItemType, NewItem, Removed, Role};
use upp::{Effect, ScriptTurn, Tool, ToolContext, ToolFailure};

scenes![
    text_at_once,
    text_word_by_word,
    reasoning_and_text,
    tool_called,
    tools_in_parallel,
    tools_in_two_rounds,
    tool_calls_gone_wrong,
    two_messages,
    message_that_waits,
    message_that_interrupts,
    earlier_messages,
    files_and_images,
    rewound,
    removed_and_renamed,
];

/// A turn with a pause after each piece, so that each piece is one record.
pub(super) fn slowly(turn: ScriptTurn) -> ScriptTurn {
    ScriptTurn {
        delay_ms: Some(40),
        ..turn
    }
}

/// A tool that returns `output` after `ms` milliseconds.
pub(super) fn gives(name: &str, ms: u64, output: Value) -> Tool {
    let run = move |_: Value, _: ToolContext| {
        let output = output.clone();
        async move {
            pass(ms).await;
            Ok(output)
        }
        .boxed()
    };
    Tool::new(name, "Does it.", parameters(), run)
}

pub(super) fn fails(name: &str, ms: u64) -> Tool {
    tool(name, move |_| {
        async move {
            pass(ms).await;
            Err(ToolFailure::new("It is \"broken\"."))
        }
        .boxed()
    })
}

/// Calls of these tools with these arguments in one turn.
pub(super) fn called(calls: &[(&str, Value)]) -> ScriptTurn {
    let calls = calls
        .iter()
        .map(|(name, arguments)| ScriptTurn::call(*name, arguments.clone()).tool_calls);
    ScriptTurn {
        tool_calls: calls.flatten().collect(),
        ..ScriptTurn::default()
    }
}

fn talker() -> Vec<Agent> {
    vec![agent("talker", vec![slowly(text("Hello to you."))], vec![])]
}

async fn text_at_once() -> Rig {
    let rig = Rig::new(vec![agent("talker", vec![text("Hello to you.")], vec![])]);
    rig.say("Hello").await;
    rig
}

async fn text_word_by_word() -> Rig {
    let said = "One \"two\" thr\u{e9}e\nfour \u{1f600} <five> &six; \\seven.";
    let rig = Rig::new(vec![agent("talker", vec![slowly(text(said))], vec![])]);
    rig.say("Count").await;
    rig
}

async fn reasoning_and_text() -> Rig {
    let turn = ScriptTurn {
        reasoning: Some("I think of it. It is easy.".into()),
        usage: Some(serde_json::from_value(json!({"inputTokens": 7, "outputTokens": 9, "reasoningTokens": 4, "cacheReadTokens": 3, "cacheWriteTokens": 2})).unwrap()),
        ..text("It is four.")
    };
    let rig = Rig::new(vec![agent("thinker", vec![slowly(turn)], vec![])]);
    rig.say("Two and two?").await;
    rig
}

async fn tool_called() -> Rig {
    let turns = vec![slowly(call("weather")), slowly(text("It is warm."))];
    let tools = vec![gives(
        "weather",
        50,
        json!({"degrees": 21.0, "sky": ["blue"]}),
    )];
    let rig = Rig::new(vec![agent("caller", turns, tools)]);
    rig.say("Is it warm?").await;
    rig
}

async fn tools_in_parallel() -> Rig {
    let both = ScriptTurn {
        text: Some("I look.".into()),
        ..called(&[
            ("slow", json!({"task": "one"})),
            ("quick", json!({})),
            ("broken", json!({"task": "three"})),
        ])
    };
    let tools = vec![
        gives("slow", 200, json!("slow is done")),
        gives("quick", 20, Value::Null),
        fails("broken", 80),
    ];
    let turns = vec![slowly(both), slowly(text("All looked at."))];
    let rig = Rig::new(vec![agent("caller", turns, tools)]);
    rig.say("Look everywhere").await;
    rig
}

async fn tools_in_two_rounds() -> Rig {
    let first = ScriptTurn {
        reasoning: Some("First one.".into()),
        ..called(&[("one", json!({"task": "a"})), ("one", json!({"task": "b"}))])
    };
    let second = ScriptTurn {
        text: Some("Then the other.".into()),
        ..call("two")
    };
    let turns = vec![slowly(first), slowly(second), slowly(text("Both done."))];
    let two = gives("two", 10, json!([1, 2])).with_effect(Effect::Pure);
    let tools = vec![gives("one", 30, json!("a result")), two];
    let rig = Rig::new(vec![agent("caller", turns, tools)]);
    rig.say("Do both").await;
    rig
}

async fn tool_calls_gone_wrong() -> Rig {
    let wrong = called(&[
        ("known", json!("{\"task\": ")),
        ("unknown", json!({"task": "x"})),
        ("known", json!("[1]")),
        ("known", json!("")),
    ]);
    let turns = vec![wrong, text("That went wrong.")];
    let tools = vec![gives("known", 10, json!("fine"))];
    let rig = Rig::new(vec![agent("caller", turns, tools)]);
    rig.say("Go").await;
    rig
}

async fn two_messages() -> Rig {
    let rig = Rig::new(talker());
    rig.say("Hello").await;
    rig.say("Hello again").await;
    rig
}

async fn message_that_waits() -> Rig {
    let rig = Rig::new(talker());
    rig.begin("First").await;
    rig.until_chunk(2, "text-delta").await;
    rig.begin("Second").await;
    rig.begin("Third").await;
    rig.rest().await;
    rig
}

async fn message_that_interrupts() -> Rig {
    let rig = Rig::new(talker());
    rig.begin("First").await;
    rig.until_chunk(2, "text-delta").await;
    let policy = Policy::Interrupt;
    let message = rig.message("Second");
    rig.react(ReactRequest { policy, ..message }).await;
    rig.rest().await;
    rig
}

async fn earlier_messages() -> Rig {
    let rig = Rig::new(talker());
    let said = |role: Role, text: &str| {
        NewItem {
        role: Some(role),
        ..NewItem::user(
            rig.runtime.mint(),
            json!([{"type": if role == Role::Assistant { "output_text" } else { "input_text" }, "text": text}]).into(),
        )
    }
    };
    let before = vec![
        said(Role::System, "Be brief."),
        said(Role::User, "An earlier question"),
        said(Role::Assistant, "An earlier answer"),
        said(Role::Developer, "Be kind."),
    ];
    let message = rig.message("And now?");
    rig.react(ReactRequest { before, ..message }).await;
    rig.rest().await;
    let noted = said(Role::User, "Nobody answers this");
    let key = crate::children::rig::KEY;
    rig.runtime
        .record(&crate::children::rig::tenant(), key, noted)
        .await
        .unwrap();
    rig
}

async fn files_and_images() -> Rig {
    let rig = Rig::new(talker());
    let content = json!([
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,SGk="},
    ]);
    let message = rig.content(content);
    rig.react(message).await;
    rig.rest().await;
    rig
}

async fn rewound() -> Rig {
    let rig = Rig::new(talker());
    rig.say("First").await;
    let second = rig.say("Second").await;
    let rewind = Some(Rewind::From(second.item_id));
    let message = rig.message("Instead of the second");
    rig.react(ReactRequest { rewind, ..message }).await;
    rig.until_chunk(7, "text-delta").await;
    let transcript = crate::children::rig::transcript(&rig.runtime, "k").await;
    let first = transcript.entries.iter().find_map(|entry| match entry {
        Entry::Item(item) if item.item_type == ItemType::Message => Some(item.id.clone()),
        Entry::Item(_) | Entry::Reaction(_) => None,
    });
    let rewind = Some(Rewind::After(first.unwrap()));
    let message = rig.message("Right after the first");
    rig.react(ReactRequest { rewind, ..message }).await;
    rig.rest().await;
    rig
}

async fn removed_and_renamed() -> Rig {
    let rig = Rig::new(talker());
    let (tenant, key) = (crate::children::rig::tenant(), "k");
    let first = rig.say("A secret").await;
    rig.begin("Second").await;
    rig.until_chunk(2, "text-delta").await;
    let update = serde_json::from_value(json!({"title": "A talk", "metadata": {"a": "b"}}));
    let update = rig.runtime.update_thread(&tenant, key, update.unwrap());
    update.await.unwrap();
    rig.runtime
        .remove(&tenant, key, Removed::Item(first.item_id))
        .await
        .unwrap();
    rig.rest().await;
    let transcript = rig.runtime.transcript(&tenant, key, Filter::Facts).await;
    let step = transcript
        .unwrap()
        .entries
        .iter()
        .find_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction.steps[0].step.id.clone()),
            Entry::Item(_) => None,
        });
    let step = Removed::Step(step.unwrap());
    rig.runtime.remove(&tenant, key, step).await.unwrap();
    rig
}
