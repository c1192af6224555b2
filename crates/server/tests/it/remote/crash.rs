//! A process here that dies while an agent elsewhere answers.

use super::{FAR, PROTOCOLS, near, texts, threads};
use crate::harness::{Served, Server};
use crate::mortal::Mortal;
use loomline_server::outbound::Outbound;
use loomline_server::{Config, remote};
use runtime::{
    AgentReactors, Filter, MemoryStore, Policy, React, Run, Runtime, RuntimeOptions, Store,
    TenantId,
};
use serde_json::{Map, json};
use std::sync::Arc;
use std::time::Duration;
use timeline::{ExecutionStatus, NewItem};

fn tenant() -> TenantId {
    TenantId::from("dev")
}

/// A process of the server here over a store that outlives it.
fn process(store: Arc<dyn Store>, config: &Config) -> Runtime {
    let outbound = Outbound::new(config.outbound.clone()).unwrap();
    let agents = config.agents.iter().filter_map(|(name, agent)| {
        let elsewhere = agent.remote.clone()?;
        Some(remote::agent(name, elsewhere, Map::new(), outbound.clone()).unwrap())
    });
    let reactors = AgentReactors::new(agents, "helper").unwrap();
    Runtime::new(store, Arc::new(reactors), RuntimeOptions::default())
}

async fn live(process: &Runtime, agent: &str, said: &str) {
    if process.recover().await.is_err() {
        return;
    }
    let request = React {
        tenant: tenant(),
        key: "t".into(),
        before: Vec::new(),
        item: NewItem::user(
            process.mint(),
            json!([{"type": "input_text", "text": said}]).into(),
        ),
        run: Run {
            agent: Some(agent.into()),
            ..Run::default()
        },
        policy: Policy::Queue,
        token: Some("once".into()),
    };
    let _ = process.react(request).await;
}

async fn rests(process: &Runtime, mortal: Option<&Mortal>) {
    loop {
        let state = process.state(&tenant(), "t").await;
        let rests =
            state.is_ok_and(|(state, _)| state.thread().is_some() && state.active().is_none());
        if rests || mortal.is_some_and(Mortal::is_dead) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// One conversation, in processes that die after so many writes.
async fn survived(config: &Config, lives: &[(usize, bool)], said: &str) -> (Vec<String>, bool) {
    let store = Arc::new(MemoryStore::new());
    let mut died = false;
    for (writes, keeps_last) in lives {
        let mortal = Mortal::new(&store, *writes, *keeps_last, false);
        let one = process(Arc::clone(&mortal) as Arc<dyn Store>, config);
        live(&one, "helper", said).await;
        rests(&one, Some(&mortal)).await;
        died |= mortal.is_dead();
    }
    let last = process(store, config);
    live(&last, "helper", said).await;
    rests(&last, None).await;
    let transcript = last
        .transcript(&tenant(), "t", Filter::Facts)
        .await
        .unwrap();
    let mut said = Vec::new();
    for entry in &transcript.entries {
        if let timeline::Entry::Reaction(reaction) = entry {
            assert_eq!(
                reaction.execution.status,
                ExecutionStatus::Completed,
                "{:?}",
                reaction.execution.interruption
            );
            let parts = reaction.steps.iter().flat_map(|step| &step.parts);
            said.extend(parts.filter_map(|part| part.part.str_field("text")));
        }
    }
    (said, died)
}

#[tokio::test]
async fn a_crash_after_any_write_has_an_agent_elsewhere_run_once() {
    for protocol in PROTOCOLS {
        let far = Server::new(FAR).await;
        let served = Served::new(far.app.clone()).await;
        let config = Config::parse(&near(protocol, &served), &|_| None).unwrap();
        let mut n_conversations = 0;
        for writes in 0.. {
            let mut any = false;
            for keeps_last in [false, true] {
                let second = (1 + writes * 7 % 3, !keeps_last);
                let lives = [(writes, keeps_last), second];
                let (said, died) = survived(&config, &lives, "compute 6 * 7").await;
                assert_eq!(
                    said,
                    ["compute gave 42."],
                    "{protocol} after {writes} writes"
                );
                any |= died;
                n_conversations += 1;
            }
            if !any {
                break;
            }
        }
        // So many that every write was the last one once.
        assert!(n_conversations > 8, "{protocol}: {n_conversations}");
        let there = threads(&far).await;
        assert_eq!(there.len(), n_conversations, "{protocol}");
        for key in there {
            let said = far
                .get(&format!("/api/v1/threads/{key}/messages"))
                .await
                .json();
            assert_eq!(
                texts(&said["messages"]),
                ["compute 6 * 7", "compute gave 42."],
                "{protocol}"
            );
        }
    }
}
