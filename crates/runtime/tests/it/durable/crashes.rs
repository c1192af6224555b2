//! Runs that die at any append, again and again, come to what an undisturbed run comes to.

use crate::durable::model::{Dice, seeded};
use crate::durable::rig::{Client, approve, bring, deny, document, messages, records};
use crate::durable::strategies::{Twice, options};
use crate::durable::tools::{World, all};
use agents::{AgentOptions, ExecutionStrategy, Loop, Plan, React};
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::{OpenCall, OpenKind};

/// How many seeds are tried.
const N_SEEDS: u64 = 200;

/// An agent of this seed, over a world of its own.
fn agent(seed: u64, world: &World) -> AgentOptions {
    // A plan's step fails with its tools, so what a crash hides would change a plan.
    let (tools, strategy): (&'static [&'static str], Arc<dyn ExecutionStrategy>) = match seed % 4 {
        0 => (
            &["pure", "effect", "reconcilable", "approved"],
            Arc::new(Loop::default()),
        ),
        1 => (
            &["pure", "effect", "idempotent", "approved", "external"],
            Arc::new(React::default()),
        ),
        2 => (
            &["pure", "idempotent", "reconcilable"],
            Arc::new(Plan::default()),
        ),
        _ => (
            &["effect", "approved", "external", "idempotent"],
            Arc::new(Twice),
        ),
    };
    options(seeded(seed, tools), strategy, all(world))
}

/// Answers what waits, in an order and a way that follow from the seed; the last thread is left
/// with what waits, so that the next message goes on without an answer.
async fn converse(client: &mut Client, seed: u64) {
    let mut dice = Dice(seed);
    let leaves_open = seed.is_multiple_of(3);
    for text in ["one", "two"] {
        client.say(text).await;
        let mut n_answers = 0;
        loop {
            let open = client.open().await;
            let can: Vec<&OpenCall> = open
                .iter()
                .filter(|it| it.kind != OpenKind::Others)
                .collect();
            if can.is_empty() || (leaves_open && text == "one" && n_answers > 0) {
                break;
            }
            let call = can[dice.roll(can.len())];
            let mut answer = said(call, &mut dice);
            // Only with the last answer can more be said.
            if can.len() == 1 && dice.roll(2) == 0 {
                let more = json!([{"type": "input_text", "text": format!("more {n_answers}")}]);
                let more =
                    json!({"type": timeline::ATTACHED_MESSAGE, "role": "user", "content": more});
                answer.as_array_mut().unwrap().push(more);
            }
            client.answer(answer).await;
            n_answers += 1;
        }
    }
    client.rest().await;
}

fn said(call: &OpenCall, dice: &mut Dice) -> Value {
    let id = call.tool_call_id.as_str();
    match (call.kind, dice.roll(3)) {
        (OpenKind::External, 0) => {
            json!([{"type": "loomline-answer", "toolCallId": id, "errorText": "off"}])
        }
        (OpenKind::External, _) => bring(id, &json!({"from": "elsewhere"})),
        (_, 0) => deny(id),
        (_, 1) => {
            json!([{"type": "loomline-answer", "toolCallId": id, "approved": true, "arguments": {"edited": "yes"}}])
        }
        (_, _) => approve(id),
    }
}

struct Left {
    messages: Vec<Value>,
    records: Vec<Value>,
    document: Value,
}

async fn left(client: &Client) -> Left {
    let transcript = client.transcript().await;
    Left {
        messages: messages(&transcript),
        records: records(&transcript),
        document: document(&transcript),
    }
}

fn same(found: &[Value], expected: &[Value], about: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{about}");
    }
    assert_eq!(found.len(), expected.len(), "{about}");
}

#[tokio::test]
async fn a_run_that_dies_at_any_append_comes_to_what_an_undisturbed_one_does() {
    let mut n_deaths = 0;
    for seed in 0..N_SEEDS {
        let world = World::default();
        let mut calm = Client::calm(agent(seed, &world));
        converse(&mut calm, seed).await;
        world.check(&format!("seed {seed}, undisturbed"));
        let (expected, n_writes) = (left(&calm).await, calm.writes());
        let mut dice = Dice(seed.wrapping_mul(77));
        for n in 0..3 {
            let mut deaths = vec![(dice.roll(n_writes), dice.roll(2) == 0)];
            // It may die again, while it recovers or later.
            while dice.roll(2) == 0 {
                deaths.push((dice.roll(5), dice.roll(2) == 0));
            }
            n_deaths += deaths.len();
            comes_to(&expected, (seed, n), deaths).await;
        }
    }
    assert!(n_deaths > 1_000);
}

/// Has the conversation of a seed over processes that die, and compares what is left.
async fn comes_to(expected: &Left, (seed, n): (u64, usize), deaths: Vec<(usize, bool)>) {
    let about = format!("seed {seed}, try {n}, deaths {deaths:?}");
    let world = World::default();
    let mut client = Client::new(agent(seed, &world), deaths);
    converse(&mut client, seed).await;
    world.check(&about);
    let found = left(&client).await;
    same(&found.messages, &expected.messages, &about);
    same(&found.records, &expected.records, &about);
    let turns = |left: &Left| left.document.as_array().unwrap().clone();
    same(&turns(&found), &turns(expected), &about);
}

#[tokio::test]
async fn a_run_that_dies_as_its_thread_is_made_comes_to_what_an_undisturbed_one_does() {
    for seed in 0..4 {
        let mut calm = Client::calm(agent(seed, &World::default()));
        converse(&mut calm, seed).await;
        let expected = left(&calm).await;
        // The first write makes the thread, and is kept or not; so are those of the next processes.
        for n in 0..4 {
            let deaths = vec![(0, n % 2 == 0), (0, n / 2 == 0)];
            comes_to(&expected, (seed, n), deaths).await;
        }
    }
}
