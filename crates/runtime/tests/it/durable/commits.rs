//! How many commits a run makes.

use crate::durable::model::{Canned, call};
use crate::durable::rig::Client;
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::Loop;
use std::sync::Arc;

/// The commits of a run whose answers call these tools, one answer after another.
async fn commits(rounds: &[&[&str]]) -> usize {
    let calls = |(round, tools): (usize, &&[&str])| {
        let tools = tools.iter().enumerate();
        let calls = tools.map(|(at, tool)| call(&format!("c{round}-{at}"), tool));
        calls.collect()
    };
    let model = Canned::rounds(rounds.iter().enumerate().map(calls).collect());
    let agent = options(model, Arc::new(Loop::default()), all(&World::default()));
    let mut client = Client::calm(agent);
    client.say("go").await;
    client.rest().await;
    client.writes()
}

#[tokio::test]
async fn a_run_without_tools_makes_two_commits() {
    assert_eq!(commits(&[]).await, 2);
}

#[tokio::test]
async fn three_rounds_of_pure_tools_make_five_commits() {
    for round in [&["pure"][..], &["pure", "pure", "broken"]] {
        assert_eq!(commits(&[round; 3]).await, 5, "{round:?}");
    }
}

#[tokio::test]
async fn three_rounds_of_tools_with_effects_make_eight_commits() {
    for round in [
        &["effect"][..],
        &["idempotent"],
        &["effect", "idempotent", "reconcilable", "effect", "pure"],
    ] {
        assert_eq!(commits(&[round; 3]).await, 8, "{round:?}");
    }
}
