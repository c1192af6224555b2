//! Summaries that replace older runs when a model reads a thread.

mod laws;

use crate::durable::model::{Canned, Dice, call, said, seeded};
use crate::durable::rig::{Client, KEY, approve, records, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::middleware::{SlidingWindow, Summarise};
use agents::{AgentOptions, Loop, Plan};
use futures_util::future::BoxFuture;
use interop::document::to_document;
use loomline_runtime as runtime;
use runtime::{
    CompactionPolicy, Cut, CutRefusal, IllegalCut, NewCompaction, Position, Rewind, Runtime,
    RuntimeError, ThreadCompaction,
};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::Arc;
use store::{LogIndex as _, ThreadTable as _};
use timeline::{
    Entry, ExecutionId, ItemType, NewItem, Payload, Rejected, Removed, Seq, SummaryAuthor,
    Transcript,
};
use upp::Message;

fn cut(cut: Cut, summary: &str) -> NewCompaction {
    NewCompaction {
        cut,
        summary: summary.into(),
        author: SummaryAuthor::default(),
    }
}

async fn compact(
    client: &Client,
    at: Cut,
    summary: &str,
) -> Result<ThreadCompaction, RuntimeError> {
    let tenant = tenant();
    let made = client.runtime.compact(&tenant, KEY, cut(at, summary));
    made.await
}

async fn withdraw(client: &Client, made: &ThreadCompaction) {
    let id = made.compaction.id.clone();
    let tenant = tenant();
    let withdrawn = client.runtime.withdraw_compaction(&tenant, KEY, id);
    withdrawn.await.unwrap();
}

async fn compactions(runtime: &Runtime, key: &str) -> Vec<ThreadCompaction> {
    let tenant = tenant();
    let all = runtime.compactions(&tenant, key, Position::END, usize::MAX);
    let (all, next) = all.await.unwrap();
    assert_eq!(next, None);
    all
}

fn executions(transcript: &Transcript) -> Vec<ExecutionId> {
    let reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction.execution.id.clone()),
        Entry::Item(_) => None,
    });
    reactions.collect()
}

/// The texts of messages, a summary's without its heading.
fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(message) => message.joined_text(),
        Message::Assistant(message) => message.joined_text(),
        Message::ToolResult(_) => "results".to_owned(),
    };
    let texts = messages.iter().map(text);
    texts
        .map(|text| text.lines().last().unwrap_or_default().to_owned())
        .collect()
}

/// A model that says `re: ` and what was said, and the texts that it was asked with last.
fn echo() -> Arc<Canned> {
    Canned::new(|request| {
        let messages: Vec<Message> = request.messages.iter().cloned().collect();
        let last = texts(&messages).pop().unwrap_or_default();
        said(&format!("re: {last}"))
    })
}

fn asked(model: &Canned) -> Vec<String> {
    texts(model.asked.lock().unwrap().last().unwrap())
}

async fn saying(model: &Arc<Canned>, said: &[&str]) -> Client {
    let agent = options(Arc::clone(model), Arc::new(Loop::default()), Vec::new());
    let mut client = Client::calm(agent);
    for text in said {
        client.say(text).await;
        client.rest().await;
    }
    client
}

#[tokio::test]
async fn models_read_the_summary_and_the_runs_after_it() {
    let model = echo();
    let mut client = saying(&model, &["one", "two", "three"]).await;
    let made = compact(&client, Cut::KeepRuns(1), "They count.")
        .await
        .unwrap();
    let replaced = made.compaction.replaced;
    assert_eq!((replaced.executions, replaced.messages), (2, 4));
    for text in ["four", "five"] {
        client.say(text).await;
        client.rest().await;
        let all = asked(&model);
        assert_eq!(all[..3], ["They count.", "three", "re: three"]);
        assert_eq!(all.last().unwrap(), text);
        client.restart().await;
    }
    withdraw(&client, &made).await;
    client.say("six").await;
    client.rest().await;
    assert_eq!(asked(&model)[..3], ["one", "re: one", "two"]);
    assert_eq!(asked(&model).len(), 11);
}

#[tokio::test]
async fn a_later_compaction_extends_the_earlier_one_until_it_is_withdrawn() {
    let model = echo();
    let mut client = saying(&model, &["one", "two", "three"]).await;
    let first = compact(&client, Cut::KeepRuns(2), "first").await.unwrap();
    let second = compact(&client, Cut::KeepRuns(1), "second").await.unwrap();
    assert_eq!(second.compaction.replaced.messages, 4);
    let tokens = |made: &ThreadCompaction| made.compaction.replaced;
    assert!(tokens(&second).bytes > tokens(&first).bytes);
    // The same again writes nothing.
    let again = Cut::Through(second.compaction.execution_id.clone());
    let again = compact(&client, again, "second").await.unwrap();
    assert_eq!(again.compaction.id, second.compaction.id);
    client.say("four").await;
    client.rest().await;
    assert_eq!(asked(&model), ["second", "three", "re: three", "four"]);
    withdraw(&client, &second).await;
    client.say("five").await;
    client.rest().await;
    assert_eq!(asked(&model)[..2], ["first", "two"]);
    let list = compactions(&client.runtime, KEY).await;
    let states: Vec<_> = list.iter().map(|it| (it.is_withdrawn, it.counts)).collect();
    assert_eq!(states, [(true, false), (false, true)]);
    let id = second.compaction.id.clone();
    let twice = client.runtime.withdraw_compaction(&tenant(), KEY, id).await;
    assert!(matches!(
        twice,
        Err(RuntimeError::Rejected(Rejected::RemovedAlready(_)))
    ));
    let tenant = tenant();
    let none = client
        .runtime
        .withdraw_compaction(&tenant, KEY, "no".into());
    assert!(matches!(
        none.await,
        Err(RuntimeError::Rejected(Rejected::NotThere(_)))
    ));
}

fn refusal(made: Result<ThreadCompaction, RuntimeError>) -> IllegalCut {
    match made {
        Err(RuntimeError::Cut(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_cut_within_a_run_or_before_a_waiting_call_is_refused() {
    let model = Canned::rounds(vec![vec![call("a", "approved"), call("p", "pure")]]);
    let tools = all(&World::default());
    let mut client = Client::calm(options(model, Arc::new(Loop::default()), tools));
    client.say("pay").await;
    client.rest().await;
    let first = executions(&client.transcript().await).remove(0);
    let through = || Cut::Through(first.clone());
    let refused = refusal(compact(&client, through(), "s").await);
    let unanswered = CutRefusal::Unanswered("a".into());
    assert_eq!((refused.why, refused.next), (unanswered, None));
    let none = refusal(compact(&client, Cut::KeepRuns(0), "s").await);
    assert_eq!(none.why, CutRefusal::NothingOlder);

    client.answer(approve("a")).await;
    client.rest().await;
    let second = executions(&client.transcript().await).remove(1);
    let refused = refusal(compact(&client, through(), "s").await);
    let next = refused.next.unwrap();
    assert_eq!(next.execution_id, second);
    assert!(matches!(refused.why, CutRefusal::Continued { by, .. } if by == second));
    let within = Cut::At(Seq(next.seq.unwrap().0 - 1));
    let refused = refusal(compact(&client, within, "s").await);
    assert!(matches!(refused.why, CutRefusal::NoBorder(_)));
    assert_eq!(refused.next.as_ref(), Some(&next));
    assert!(refused.to_string().contains(next.execution_id.as_str()));
    let unknown = compact(&client, Cut::Through("no".into()), "s").await;
    assert!(matches!(unknown, Err(RuntimeError::UnknownExecution(_))));
    let made = compact(&client, Cut::At(next.seq.unwrap()), "s")
        .await
        .unwrap();
    assert_eq!((made.through, made.counts), (next.seq, true));
}

#[tokio::test]
async fn a_running_execution_can_not_be_compacted_and_those_before_it_can() {
    let model = Canned::rounds(vec![vec![call("one", "stuck")]]);
    let stuck = upp::Tool::new(
        "stuck",
        "Hangs once.",
        json!({"type": "object"}),
        |_: serde_json::Value, _: upp::ToolContext| -> BoxFuture<'static, upp::ToolOutput> {
            Box::pin(std::future::pending())
        },
    );
    let mut client = Client::calm(options(model.clone(), Arc::new(Loop::default()), vec![]));
    client.say("one").await;
    client.rest().await;
    client.agent = {
        let mut options = client.agent.options().clone();
        options.tools = vec![stuck.with_effect(upp::Effect::Pure)];
        agents::Agent::new(options).unwrap()
    };
    client.restart().await;
    client.say("two").await;
    while client
        .state()
        .await
        .active()
        .is_none_or(|it| it.n_steps == 0)
    {
        tokio::task::yield_now().await;
    }
    let running = executions(&client.transcript().await).pop().unwrap();
    let refused = refusal(compact(&client, Cut::Through(running.clone()), "s").await);
    assert_eq!(refused.why, CutRefusal::Running(running));
    compact(&client, Cut::KeepRuns(0), "s").await.unwrap();
}

#[tokio::test]
async fn a_rewind_into_compacted_runs_withdraws_their_summary() {
    let model = echo();
    let mut client = saying(&model, &["one", "two", "three", "four"]).await;
    let first = compact(&client, Cut::KeepRuns(3), "first").await.unwrap();
    compact(&client, Cut::KeepRuns(1), "second").await.unwrap();
    client
        .say_instead("TWO", Rewind::From("item-two".into()))
        .await;
    client.rest().await;
    assert_eq!(asked(&model), ["first", "TWO"]);
    let counts = client.runtime.current_compaction(&tenant(), KEY).await;
    assert_eq!(counts.unwrap().unwrap().compaction.id, first.compaction.id);
    client
        .say_instead("ONE", Rewind::From("item-one".into()))
        .await;
    client.rest().await;
    assert_eq!(asked(&model), ["ONE"]);
    // One after the compacted runs leaves them.
    client.say("next").await;
    client.rest().await;
    compact(&client, Cut::KeepRuns(1), "third").await.unwrap();
    client
        .say_instead("NEXT", Rewind::From("item-next".into()))
        .await;
    client.rest().await;
    assert_eq!(asked(&model), ["third", "NEXT"]);
}

#[tokio::test]
async fn a_message_removed_among_compacted_runs_does_not_come_back() {
    let model = echo();
    let mut client = saying(&model, &["one", "two", "three"]).await;
    let made = compact(&client, Cut::KeepRuns(1), "s").await.unwrap();
    let what = Removed::Item("item-one".into());
    client.runtime.remove(&tenant(), KEY, what).await.unwrap();
    client.say("four").await;
    client.rest().await;
    assert_eq!(asked(&model), ["s", "three", "re: three", "four"]);
    withdraw(&client, &made).await;
    client.say("five").await;
    client.rest().await;
    assert_eq!(asked(&model)[..3], ["re: one", "two", "re: two"]);
}

#[tokio::test]
async fn a_fork_has_the_compactions_that_its_parent_had_then() {
    let model = echo();
    let client = saying(&model, &["one", "two"]).await;
    let before = client.store.find(&tenant(), KEY).await.unwrap().tail;
    let made = compact(&client, Cut::KeepRuns(1), "s").await.unwrap();
    let tenant = tenant();
    let ask = async |key: &str| {
        client.runtime.ask_agent(&tenant, key, "hi").await.unwrap();
        asked(&model)
    };
    for (key, at) in [("early", Some(before)), ("late", None), ("own", None)] {
        let forked = client.runtime.fork(&tenant, KEY, Some(key.into()), at);
        forked.await.unwrap();
    }
    assert_eq!(ask("early").await[..2], ["one", "re: one"]);
    assert_eq!(ask("late").await, ["s", "two", "re: two", "hi"]);
    // Withdrawn in the fork alone.
    let id = made.compaction.id.clone();
    let withdrawn = client
        .runtime
        .withdraw_compaction(&tenant, "own", id.clone());
    withdrawn.await.unwrap();
    assert_eq!(ask("own").await[..2], ["one", "re: one"]);
    assert_eq!(ask(KEY).await[..2], ["s", "two"]);
    let withdrawn = client.runtime.withdraw_compaction(&tenant, KEY, id);
    withdrawn.await.unwrap();
    assert_eq!(ask("late").await[..2], ["s", "two"]);
    let listed = compactions(&client.runtime, "late").await;
    assert_eq!((listed[0].seq, listed[0].through), (None, None));
    assert!(listed[0].counts);
    // A fork's own compaction replaces what it has inherited.
    let new = cut(Cut::KeepRuns(0), "all");
    let own = client.runtime.compact(&tenant, "late", new).await.unwrap();
    assert!(own.seq.is_some() && own.through.is_some());
    assert_eq!(ask("late").await, ["all", "hi"]);
}

#[tokio::test]
async fn an_agent_goes_on_with_its_plan_and_its_numbers_after_compacted_runs() {
    let steps = async |compacts: bool| {
        let model = seeded(4, &["pure"]);
        let agent = options(model, Arc::new(Plan::default()), all(&World::default()));
        let mut client = Client::calm(agent);
        for text in ["one", "two"] {
            client.say(text).await;
            client.rest().await;
        }
        let n = records(&client.transcript().await).len();
        if compacts {
            compact(&client, Cut::KeepRuns(0), "s").await.unwrap();
        }
        client.restart().await;
        client.say("three").await;
        client.rest().await;
        let all = records(&client.transcript().await);
        all[n]["step"].clone()
    };
    assert_eq!(steps(true).await, steps(false).await);
}

#[tokio::test]
async fn a_cold_step_reads_only_what_follows_the_summary() {
    let model = echo();
    let said: Vec<String> = (0..60).map(|n| format!("m{n}")).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let mut client = saying(&model, &said).await;
    client.restart().await;
    client.say("all").await;
    client.rest().await;
    let before = client.records_read();
    compact(&client, Cut::KeepRuns(1), "s").await.unwrap();
    client.restart().await;
    client.say("few").await;
    client.rest().await;
    let after = client.records_read();
    assert!(before > 600 && after < 60, "{before} {after}");
}

fn json_of(messages: &[Message]) -> String {
    let texts = messages.iter().map(|it| Payload::write(it).unwrap());
    let texts: Vec<String> = texts.map(|it| it.text().to_owned()).collect();
    texts.join("\n")
}

/// The conversation as readers have it.
async fn read_by_others(client: &Client) -> (String, String, usize) {
    let mut transcript = client.transcript().await;
    let document = to_document(&transcript).value.encode();
    transcript.seq = Seq::ZERO;
    if let Some(thread) = &mut transcript.thread {
        thread.updated_at = None;
    }
    let found = client
        .store
        .nearest_triggers(
            &client.store.find(&tenant(), KEY).await.unwrap().thread.id,
            store::Side::Before(Seq(u64::MAX)),
            usize::MAX,
        )
        .await
        .unwrap();
    (format!("{transcript:?}"), document, found.len())
}

fn windowed(model: &Arc<Canned>) -> AgentOptions {
    let window = SlidingWindow::new(NonZeroUsize::new(4).unwrap());
    AgentOptions {
        middleware: vec![Arc::new(window)],
        ..options(
            Arc::clone(model),
            Arc::new(Loop::default()),
            all(&World::default()),
        )
    }
}

/// What the model is asked with in a conversation with a sliding window.
async fn windowed_requests(seed: u64, restarts: bool) -> Vec<Vec<String>> {
    let model = echo();
    let mut client = Client::calm(windowed(&model));
    let mut dice = Dice(seed);
    for n in 0..12 {
        client.say(&format!("m{n}")).await;
        client.rest().await;
        if dice.roll(3) == 0 {
            let _ = compact(&client, Cut::KeepRuns(dice.roll(3)), &format!("s{n}")).await;
        } else if dice.roll(5) == 0
            && let Some(counts) = client
                .runtime
                .current_compaction(&tenant(), KEY)
                .await
                .unwrap()
        {
            withdraw(&client, &counts).await;
        }
        if restarts {
            client.restart().await;
        }
    }
    let asked = model.asked.lock().unwrap();
    asked.iter().map(|messages| texts(messages)).collect()
}

#[tokio::test]
async fn a_restart_changes_nothing_for_a_window_over_compacted_runs() {
    for seed in 0..30 {
        let calm = windowed_requests(seed, false).await;
        assert_eq!(calm, windowed_requests(seed, true).await, "seed {seed}");
    }
}

fn policy(model: &Arc<Canned>, at_tokens: u64, keep_runs: usize) -> CompactionPolicy {
    let summarise = Summarise::with_model(Arc::clone(model) as Arc<dyn upp::Model>);
    CompactionPolicy {
        summarise: Summarise {
            threshold: at_tokens,
            ..summarise
        },
        keep_runs,
    }
}

fn summariser() -> Arc<Canned> {
    Canned::new(|_| said("short"))
}

const SAID: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

#[tokio::test]
async fn an_agent_compacts_before_a_step_that_exceeds_its_limit() {
    let (model, by) = (echo(), summariser());
    let client = saying(&model, &[]).await;
    let mut client = Client::compacting(client, policy(&by, 150, 1), Vec::new());
    for text in SAID {
        client.say(text).await;
        client.rest().await;
    }
    assert_eq!(asked(&model), ["short", "five", "re: five", "six"]);
    let list = compactions(&client.runtime, KEY).await;
    assert!(!list.is_empty());
    let author = &list[0].compaction.author;
    assert_eq!(author.agent.as_deref(), Some("demo"));
    assert_eq!(author.model.as_deref(), Some("canned-1"));
    assert_eq!(author.tokens.map(|it| (it.input, it.output)), Some((3, 2)));
    assert_eq!(list.len(), by.asked.lock().unwrap().len());
    // A second summary is made of the first.
    assert!(list.len() > 1, "{list:?}");
    let request = json_of(by.asked.lock().unwrap().last().unwrap());
    assert!(request.contains("short"), "{request}");
}

#[tokio::test]
async fn a_summariser_that_fails_changes_nothing() {
    let model = echo();
    let silent = Canned::new(|_| said(""));
    let client = saying(&model, &[]).await;
    let mut client = Client::compacting(client, policy(&silent, 10, 0), Vec::new());
    for text in &SAID[..3] {
        client.say(text).await;
        client.rest().await;
    }
    assert_eq!(asked(&model), ["one", "re: one", "two", "re: two", "three"]);
    assert!(!silent.asked.lock().unwrap().is_empty());
    let list = compactions(&client.runtime, KEY).await;
    assert_eq!(list, []);
}

#[tokio::test]
async fn a_run_asks_a_summariser_that_fails_once() {
    let mut client = saying(&echo(), &["one"]).await;
    let rounds = (0..4).map(|n| vec![call(&format!("c{n}"), "pure")]);
    let model = Canned::rounds(rounds.collect());
    let agent = options(
        Arc::clone(&model),
        Arc::new(Loop::default()),
        all(&World::default()),
    );
    client.agent = agents::Agent::new(agent).unwrap();
    let silent = Canned::new(|_| said(""));
    let mut client = Client::compacting(client, policy(&silent, 10, 0), Vec::new());
    client.say("go").await;
    client.rest().await;
    assert_eq!(model.asked.lock().unwrap().len(), 5);
    assert_eq!(silent.asked.lock().unwrap().len(), 1);
}

/// Stores a call of an application that never gets a result.
async fn store_a_call(client: &Client, id: &str) {
    let content =
        json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
    let call = NewItem {
        id: id.into(),
        item_type: ItemType::ActionExecute,
        role: None,
        channel: None,
        content: Some(content.into()),
        metadata: None,
    };
    let tenant = tenant();
    let stored = client.runtime.record_all(&tenant, KEY, vec![call]);
    stored.await.unwrap();
}

#[tokio::test]
async fn a_call_without_a_result_costs_each_run_one_reading_of_the_thread() {
    let (model, by) = (echo(), summariser());
    let mut client = saying(&model, &["one", "two"]).await;
    store_a_call(&client, "never").await;
    for n in 0..60 {
        client.say(&format!("m{n}")).await;
        client.rest().await;
    }
    let mut client = Client::compacting(client, policy(&by, 10, 1), Vec::new());
    let tail = client.store.find(&tenant(), KEY).await.unwrap().tail.0;
    let tail = usize::try_from(tail).unwrap();
    for _ in 0..2 {
        let before = client.records_read();
        client.say("more").await;
        client.rest().await;
        let n_read = client.records_read() - before;
        assert!(n_read < 4 * tail, "{n_read} {tail}");
    }
    let list = compactions(&client.runtime, KEY).await;
    let replaced: Vec<_> = list
        .iter()
        .map(|it| it.compaction.replaced.messages)
        .collect();
    assert_eq!(replaced, [4], "the runs before the call are compacted");
}

/// Says all with these deaths; what the model was asked last, the number of compactions and of writes.
async fn compacted(deaths: Vec<(usize, bool)>) -> (Vec<String>, usize, usize) {
    let (model, by) = (echo(), summariser());
    let client = saying(&model, &[]).await;
    let mut client = Client::compacting(client, policy(&by, 150, 1), deaths);
    for text in SAID {
        client.say(text).await;
        client.rest().await;
    }
    let runtime = crate::durable::rig::runtime_over(client.store.clone(), &client.agent);
    let list = compactions(&runtime, KEY).await;
    let ids: std::collections::BTreeSet<_> = list.iter().map(|it| &it.compaction.id).collect();
    assert_eq!(ids.len(), list.len());
    (asked(&model), list.len(), client.writes())
}

#[tokio::test]
async fn a_crash_at_any_write_leaves_each_step_at_most_one_compaction() {
    let (calm, n, writes) = compacted(Vec::new()).await;
    assert!(n > 0 && writes > 10, "{n} {writes}");
    for at in 0..=writes {
        for is_kept in [false, true] {
            let (asked, n_compactions, _) = compacted(vec![(at, is_kept)]).await;
            assert_eq!((asked, n_compactions), (calm.clone(), n), "{at} {is_kept}");
        }
    }
}

#[tokio::test]
async fn a_crash_at_the_append_of_a_compaction_leaves_one_of_two_states() {
    for is_kept in [false, true] {
        let model = echo();
        let client = saying(&model, &["one", "two"]).await;
        let before = read_by_others(&client).await;
        let mut client = Client::over(client, vec![(0, is_kept)]);
        let failed = compact(&client, Cut::KeepRuns(1), "s").await;
        assert!(failed.is_err() && client.is_dead());
        client.restart().await;
        assert!(read_by_others(&client).await == before);
        let list = compactions(&client.runtime, KEY).await;
        assert_eq!(list.len(), usize::from(is_kept));
        client.say("three").await;
        client.rest().await;
        let first = if is_kept { "s" } else { "one" };
        assert_eq!(asked(&model)[0], first);
    }
}
