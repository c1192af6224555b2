//! A process here that dies while an agent elsewhere answers.

#![expect(
    clippy::disallowed_methods,
    reason = "what was written before, or by another process, passed no gate"
)]

use super::{FAR, PROTOCOLS, near, texts, threads};
use crate::harness::{Served, Server};
use crate::mortal::Mortal;
use loomline_server::outbound::Outbound;
use loomline_server::{Config, remote};
use runtime::{
    AgentReactors, AnswerRequest, Filter, MemoryStore, ReactRequest, Run, Runtime, RuntimeOptions,
    Store, TenantId,
};
use serde_json::{Map, json};
use std::sync::Arc;
use std::time::Duration;
use timeline::{Entry, ExecutionStatus, ItemType, NewItem};

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
    // Processes die here as often as it takes.
    let options = RuntimeOptions {
        max_starts: u32::MAX,
        restart_pause: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    Runtime::new(store, Arc::new(reactors), options)
}

/// Goes on with what was left, has an agent answer, and answers what it asks; each once, however often it is said.
async fn live(process: &Runtime, mortal: Option<&Mortal>, (agent, said): (&str, &str)) {
    if process.recover().await.is_err() {
        return;
    }
    let content = json!([{"type": "input_text", "text": said}]);
    let request = ReactRequest {
        run: Run {
            agent: Some(agent.into()),
            ..Run::default()
        },
        token: Some("once".into()),
        ..ReactRequest::new(tenant(), "t", NewItem::user(process.mint(), content.into()))
    };
    let _ = process.react(request).await;
    rests(process, mortal).await;
    let Ok((Some(open), _)) = process.open_calls(&tenant(), "t").await else {
        return;
    };
    let call = &open.calls[0].tool_call_id;
    let content = json!([{"type": "loomline-answer", "toolCallId": call, "output": "rain"}]);
    let request = AnswerRequest {
        tenant: tenant(),
        key: "t".into(),
        item: NewItem {
            item_type: ItemType::ActionResult,
            role: None,
            ..NewItem::user(process.mint(), content.into())
        },
        run: None,
        token: Some("answered".into()),
    };
    let _ = process.answer(request).await;
    rests(process, mortal).await;
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

/// What an agent said in processes that die after so many writes, and whether any died.
async fn survived(
    config: &Config,
    lives: &[(usize, bool)],
    asked: (&str, &str),
) -> (Vec<String>, bool) {
    let store = Arc::new(MemoryStore::new());
    let mut died = false;
    for (writes, keeps_last) in lives {
        let mortal = Mortal::new(&store, *writes, *keeps_last, false);
        let one = process(Arc::clone(&mortal) as Arc<dyn Store>, config);
        live(&one, Some(&mortal), asked).await;
        died |= mortal.is_dead();
    }
    let last = process(store, config);
    live(&last, None, asked).await;
    let transcript = last
        .transcript(&tenant(), "t", Filter::Facts)
        .await
        .unwrap();
    let mut said = Vec::new();
    for entry in &transcript.entries {
        let Entry::Reaction(reaction) = entry else {
            continue;
        };
        let execution = &reaction.execution;
        let why = &execution.interruption;
        assert_eq!(execution.status, ExecutionStatus::Completed, "{why:?}");
        let parts = reaction.steps.iter().flat_map(|step| &step.parts);
        said.extend(parts.filter_map(|part| part.part.str_field("text")));
    }
    (said, died)
}

/// Has processes die after every write of a conversation, and looks at what was said there.
async fn crashes(protocol: &str, asked: (&str, &str), answer: &str) {
    let far = Server::new(FAR).await;
    let served = Served::new(far.app.clone()).await;
    let config = Config::parse(&near(protocol, &served), &|_| None).unwrap();
    let mut n_conversations = 0;
    for writes in 0.. {
        let mut any = false;
        for keeps_last in [false, true] {
            // The second process dies soon after the first, wherever that was.
            let lives = [(writes, keeps_last), (1 + writes * 7 % 3, !keeps_last)];
            let (said, died) = survived(&config, &lives, asked).await;
            assert_eq!(said, [answer], "{protocol} after {writes} writes");
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
        let path = format!("/api/v1/threads/{key}/messages");
        let messages = far.get(&path).await.json()["messages"].clone();
        assert_eq!(texts(&messages), [asked.1, answer], "{protocol}");
    }
}

#[tokio::test]
async fn a_crash_after_any_write_has_an_agent_elsewhere_run_once() {
    for protocol in PROTOCOLS {
        crashes(protocol, ("helper", "compute 6 * 7"), "compute gave 42.").await;
    }
}

#[tokio::test]
async fn a_crash_after_any_write_answers_an_agent_elsewhere_once() {
    for protocol in PROTOCOLS {
        let asked = ("asker", "lookup {\"what\": \"it\"}");
        crashes(protocol, asked, "lookup gave rain.").await;
    }
}

#[tokio::test]
async fn who_can_not_tell_what_it_began_is_not_asked_again() {
    for protocol in ["responses", "a2a"] {
        let far = Server::new(FAR).await;
        let served = Served::new(far.app.clone()).await;
        let text = near(protocol, &served).replace("remote = {", "remote = { repeatable = false,");
        let config = Config::parse(&text, &|_| None).unwrap();
        let mut n_told = 0;
        for writes in 0..6 {
            let store = Arc::new(MemoryStore::new());
            let mortal = Mortal::new(&store, writes, true, false);
            let one = process(Arc::clone(&mortal) as Arc<dyn Store>, &config);
            let asked = ("helper", "hello");
            live(&one, Some(&mortal), asked).await;
            let last = process(store, &config);
            live(&last, None, asked).await;
            let transcript = last.transcript(&tenant(), "t", Filter::Facts).await;
            let transcript = transcript.unwrap();
            let whys = transcript.entries.iter().filter_map(|entry| match entry {
                Entry::Reaction(reaction) => reaction.execution.interruption.as_ref(),
                Entry::Item(_) => None,
            });
            let details: Vec<&str> = whys.filter_map(|why| why.detail.as_deref()).collect();
            assert!(
                details.iter().all(|it| it.contains("it may have run")),
                "{details:?}"
            );
            n_told += details.len();
        }
        assert!(n_told > 0, "{protocol}");
        // None was asked twice.
        for key in threads(&far).await {
            let path = format!("/api/v1/threads/{key}/messages");
            let messages = far.get(&path).await.json()["messages"].clone();
            assert_eq!(
                messages.as_array().unwrap().len(),
                2,
                "{protocol}: {messages}"
            );
        }
    }
}
