//! What becomes of calls that had started when the process died.

use crate::durable::model::{Canned, call};
use crate::durable::rig::{Client, messages};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all, reconcilable};
use agents::Loop;
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::Entry;

/// A run that dies once at each append, with one call of this tool.
async fn dying(tool: &'static str, blind: bool) -> Vec<(Value, usize)> {
    let mut found = Vec::new();
    let rounds = || Canned::rounds(vec![vec![call("c", tool), call("d", "pure")]]);
    for at in 0..13 {
        let world = World::default();
        if blind {
            world.blind();
        }
        let agent = options(rounds(), Arc::new(Loop::default()), all(&world));
        let mut client = Client::new(agent, vec![(at, false)]);
        client.say("go").await;
        client.rest().await;
        world.check(&format!("{tool}, death at {at}"));
        found.push((part(&client, 0).await, world.n_runs(tool, "c")));
        assert_eq!(messages(&client.transcript().await).len(), 4);
    }
    found
}

/// The nth part of the first step.
async fn part(client: &Client, nth: usize) -> Value {
    let transcript = client.transcript().await;
    let reaction = transcript.entries.iter().find_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    reaction.unwrap().steps[0].parts[nth].part.value()
}

fn outcomes(found: &[(Value, usize)]) -> Vec<&str> {
    let words = found
        .iter()
        .map(|(part, _)| match part["outcome"].as_str() {
            Some(outcome) => outcome,
            None => part["state"].as_str().unwrap(),
        });
    words.collect()
}

#[tokio::test]
async fn a_tool_that_can_be_asked_says_whether_its_call_happened() {
    let found = dying("reconcilable", false).await;
    // Whether it had happened or not, the call has its result, and it happened once.
    assert!(outcomes(&found).iter().all(|it| *it == "output-available"));
    assert!(found.iter().all(|(_, n_runs)| *n_runs == 1));
}

#[tokio::test]
async fn a_call_of_which_its_tool_knows_nothing_is_interrupted() {
    let found = dying("reconcilable", true).await;
    assert!(outcomes(&found).contains(&"interrupted"));
    assert!(outcomes(&found).contains(&"output-available"));
    assert!(found.iter().all(|(_, n_runs)| *n_runs <= 1));
}

#[tokio::test]
async fn an_effect_is_interrupted_and_never_runs_twice() {
    let found = dying("effect", false).await;
    assert!(outcomes(&found).contains(&"interrupted"));
    assert!(found.iter().all(|(_, n_runs)| *n_runs <= 1));
}

#[tokio::test]
async fn what_may_run_twice_runs_again_with_the_same_key() {
    for tool in ["pure", "idempotent"] {
        let found = dying(tool, false).await;
        assert!(outcomes(&found).iter().all(|it| *it == "output-available"));
        assert!(found.iter().any(|(_, n_runs)| *n_runs == 2), "{tool}");
    }
}

#[tokio::test]
async fn a_tool_that_is_gone_leaves_no_run_stuck() {
    for at in 0..13 {
        let world = World::default();
        let rounds = Canned::rounds(vec![vec![call("c", "reconcilable")]]);
        let agent = options(
            rounds,
            Arc::new(Loop::default()),
            vec![reconcilable(&world)],
        );
        let mut client = Client::new(agent, vec![(at, false)]);
        client.say("go").await;
        client.keep_tools(|_| false);
        client.rest().await;
        let part = part(&client, 0).await;
        assert_ne!(part["state"], json!("input-available"), "death at {at}");
        world.check(&format!("death at {at}"));
    }
}
