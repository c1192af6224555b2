//! What any sequence of compactions leaves to models and to other readers.

use super::{compact, compactions, executions, json_of, read_by_others, texts, withdraw};
use crate::durable::model::{Dice, seeded};
use crate::durable::rig::{Client, KEY, approve, bring, deny, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::Loop;
use futures_util::future::BoxFuture;
use interop::model::{history, marked_history};
use loomline_runtime as runtime;
use runtime::{
    Cut, ReactRequest, Reacted, Reactor, ReactorError, Runtime, RuntimeError, RuntimeOptions,
    StepRun,
};
use serde_json::json;
use std::sync::{Arc, Mutex};
use store::{EventLog as _, Filter, ThreadTable as _};
use timeline::{Entry, NewItem, OpenKind, Removed, Seq, StepOutcome, Transcript};
use upp::Message;

/// Notes what a model would read, and answers nothing.
#[derive(Default)]
struct Probe(Mutex<Vec<Message>>);

impl Reactor for Probe {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            *self.0.lock().unwrap() = step.messages().await?;
            step.writer.respond(vec![], vec![], json!({}).into());
            Ok(Reacted {
                outcome: StepOutcome::default(),
                wants_more: false,
                messages_for_model: None,
                memory: None,
                handoff: None,
            })
        })
    }
}

/// What a model would read of the thread now: of a fork of it, without the fork's message.
async fn probed(client: &Client) -> Vec<Message> {
    let probe = Arc::new(Probe::default());
    let reactors = Arc::new(Arc::clone(&probe));
    let store = client.store.clone();
    let runtime = Runtime::new(store, reactors, RuntimeOptions::default());
    let key = runtime.mint();
    let tenant = tenant();
    let forked = runtime.fork(&tenant, KEY, Some(key.clone()), None);
    forked.await.unwrap();
    let item = NewItem::user(runtime.mint(), json!([]).into());
    let request = ReactRequest::new(tenant.clone(), &key, item.clone());
    runtime.react(request).await.unwrap();
    while runtime
        .state(&tenant, &key)
        .await
        .unwrap()
        .0
        .active()
        .is_some()
    {
        tokio::task::yield_now().await;
    }
    let mut read = probe.0.lock().unwrap().clone();
    let own = read.pop().unwrap();
    assert_eq!(own.id().as_str(), item.id.as_str());
    // What the fork's message supersedes.
    if let Some(Message::ToolResult(last)) = read.last()
        && last.id.as_str().ends_with(":superseded")
        && last.id.as_str().starts_with(item.id.as_str())
    {
        read.pop();
    }
    read
}

/// The messages that the first events of the log are, as the whole log has them.
async fn prefix(client: &Client, through: Seq) -> Vec<Message> {
    let row = client.store.find(&tenant(), KEY).await.unwrap();
    let read = client
        .store
        .read(&row.thread.id, Seq::ZERO, usize::MAX, Filter::Facts);
    let (mut start, mut whole) = (Transcript::default(), Transcript::default());
    for logged in read.await.unwrap() {
        if logged.record.seq <= through {
            start.apply(&logged.record);
        }
        whole.apply(&logged.record);
    }
    start.note_removed(whole.removed().keys().cloned());
    let start = start.continued();
    let marked = marked_history(&start, None);
    assert_eq!(marked.unanswered, None);
    marked.removed.left_out(marked.messages)
}

/// Every result follows its call.
fn check_pairs(messages: &[Message], about: &str) {
    let mut calls: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(message) => {
                calls = message
                    .tool_calls
                    .iter()
                    .map(|it| it.tool_call_id.to_string())
                    .collect();
            }
            Message::ToolResult(message) => {
                for result in &message.results {
                    let id = result.tool_call_id.as_str();
                    assert!(calls.iter().any(|call| call == id), "{about}: {id}");
                }
            }
            Message::User(_) => {}
        }
    }
}

/// What a model reads is the summary that counts and what follows it.
async fn check_model(client: &Client, about: &str) {
    let transcript = client.transcript().await;
    let whole = history(&transcript, None);
    let read = probed(client).await;
    check_pairs(&read, about);
    let counts = client.runtime.current_compaction(&tenant(), KEY).await;
    let Some(counts) = counts.unwrap() else {
        assert_eq!(json_of(&read), json_of(&whole), "{about}");
        return;
    };
    let before = prefix(client, counts.through.unwrap()).await;
    assert_eq!(json_of(&whole[..before.len()]), json_of(&before), "{about}");
    assert_eq!(
        texts(&read[..1]),
        std::slice::from_ref(&counts.compaction.summary),
        "{about}"
    );
    assert_eq!(
        json_of(&read[1..]),
        json_of(&whole[before.len()..]),
        "{about}"
    );
}

async fn any_cut(client: &Client, dice: &mut Dice) -> Cut {
    let all = executions(&client.transcript().await);
    match dice.roll(3) {
        0 => Cut::KeepRuns(dice.roll(3)),
        1 => {
            let tail = client.store.find(&tenant(), KEY).await.unwrap().tail.0;
            Cut::At(Seq(dice.roll(usize::try_from(tail).unwrap()) as u64 + 1))
        }
        _ => Cut::Through(all[dice.roll(all.len())].clone()),
    }
}

/// Does something at random in a conversation.
async fn act(client: &mut Client, dice: &mut Dice, n: usize, about: &str) {
    let open = client.open().await;
    let answerable = open
        .iter()
        .find(|it| matches!(it.kind, OpenKind::Approval | OpenKind::External));
    match (answerable, dice.roll(10)) {
        (Some(call), 0..=5) => {
            let id = call.tool_call_id.as_str();
            let parts = match (call.kind, dice.roll(2)) {
                (OpenKind::External, _) => bring(id, &json!(n)),
                (_, 0) => deny(id),
                (_, _) => approve(id),
            };
            client.answer(parts).await;
        }
        (_, 6) => {
            let transcript = client.transcript().await;
            let entry = &transcript.entries[dice.roll(transcript.entries.len())];
            let what = match entry {
                Entry::Item(item) => Removed::Item(item.id.clone()),
                Entry::Reaction(reaction) => match reaction.steps.last() {
                    Some(step) => Removed::Step(step.step.id.clone()),
                    None => return,
                },
            };
            // What answers depend on is refused.
            let _ = client.runtime.remove(&tenant(), KEY, what).await;
        }
        (_, 7) => {
            let list = compactions(&client.runtime, KEY).await;
            if let Some(counts) = list.iter().find(|it| it.counts) {
                withdraw(client, counts).await;
            }
        }
        (_, 8 | 9) => {
            let before = read_by_others(client).await;
            let at = any_cut(client, dice).await;
            match compact(client, at, &format!("summary {n}")).await {
                Ok(_) => {}
                Err(RuntimeError::Cut(refused)) => {
                    if let Some(next) = refused.next {
                        let next = Cut::Through(next.execution_id);
                        compact(client, next, &format!("summary {n}"))
                            .await
                            .unwrap();
                    }
                }
                Err(error) => panic!("{about}: {error}"),
            }
            assert!(read_by_others(client).await == before, "{about}");
        }
        (_, _) => client.say(&format!("m{n}")).await,
    }
    client.rest().await;
}

#[tokio::test]
async fn a_compacted_thread_is_the_summary_and_what_follows() {
    let (mut n_compactions, mut n_withdrawn) = (0, 0);
    for seed in 0..24 {
        let model = seeded(seed, &["pure", "effect", "approved", "external", "broken"]);
        let agent = options(model, Arc::new(Loop::default()), all(&World::default()));
        let mut client = Client::calm(agent);
        let mut dice = Dice(seed);
        client.say("first").await;
        client.rest().await;
        for n in 0..25 {
            let about = format!("seed {seed}, act {n}");
            act(&mut client, &mut dice, n, &about).await;
            check_model(&client, &about).await;
        }
        let list = compactions(&client.runtime, KEY).await;
        n_compactions += list.len();
        n_withdrawn += list.iter().filter(|it| it.is_withdrawn).count();
    }
    assert!(
        n_compactions > 40 && n_withdrawn > 12,
        "{n_compactions} {n_withdrawn}"
    );
}
