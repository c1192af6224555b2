//! Summaries that replace older runs when a model reads a thread.

use crate::durable::model::{Canned, Dice, call, said, seeded};
use crate::durable::rig::{Client, KEY, approve, bring, deny, records, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::middleware::{SlidingWindow, Summarise};
use agents::{AgentOptions, Loop, Plan};
use futures_util::future::BoxFuture;
use interop::document::to_document;
use interop::model::{history, marked_history};
use loomline_runtime as runtime;
use runtime::{
    CompactionPolicy, Cut, CutRefusal, IllegalCut, NewCompaction, ReactRequest, Reacted, Reactor,
    ReactorError, Rewind, Runtime, RuntimeError, RuntimeOptions, StepRun, ThreadCompaction,
};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use store::{EventLog as _, Filter, LogIndex as _, ThreadTable as _};
use timeline::{
    Entry, ExecutionId, NewItem, OpenKind, Payload, Rejected, Removed, Seq, StepOutcome,
    SummaryAuthor, Transcript,
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
    let list = client.runtime.compactions(&tenant(), KEY).await.unwrap();
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
    let listed = client.runtime.compactions(&tenant, "late").await.unwrap();
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

fn json_of(messages: &[Message]) -> String {
    let texts = messages.iter().map(|it| Payload::write(it).unwrap());
    let texts: Vec<String> = texts.map(|it| it.text().to_owned()).collect();
    texts.join("\n")
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
            let list = client.runtime.compactions(&tenant(), KEY).await.unwrap();
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
        let list = client.runtime.compactions(&tenant(), KEY).await.unwrap();
        n_compactions += list.len();
        n_withdrawn += list.iter().filter(|it| it.is_withdrawn).count();
    }
    assert!(
        n_compactions > 40 && n_withdrawn > 12,
        "{n_compactions} {n_withdrawn}"
    );
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
    let list = client.runtime.compactions(&tenant(), KEY).await.unwrap();
    assert!(!list.is_empty());
    let author = &list[0].compaction.author;
    assert_eq!(author.agent.as_deref(), Some("demo"));
    assert_eq!(author.model.as_deref(), Some("canned-1"));
    assert_eq!(author.tokens.map(|it| (it.input, it.output)), Some((3, 2)));
    assert_eq!(list.len(), by.asked.lock().unwrap().len());
    // A second summary is made of the first.
    if list.len() > 1 {
        let request = json_of(by.asked.lock().unwrap().last().unwrap());
        assert!(request.contains("short"), "{request}");
    }
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
    let list = client.runtime.compactions(&tenant(), KEY).await.unwrap();
    assert_eq!(list, []);
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
    let list = runtime.compactions(&tenant(), KEY).await.unwrap();
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
        let list = client.runtime.compactions(&tenant(), KEY).await.unwrap();
        assert_eq!(list.len(), usize::from(is_kept));
        client.say("three").await;
        client.rest().await;
        let first = if is_kept { "s" } else { "one" };
        assert_eq!(asked(&model)[0], first);
    }
}
