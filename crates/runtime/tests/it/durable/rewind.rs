//! Threads that are taken back: whoever goes on does so as if what went had never been.

use crate::durable::model::{Canned, call};
use crate::durable::rig::{Client, KEY, document, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::AgentOptions;
use agents::Loop;
use agents::middleware::SlidingWindow;
use loomline_runtime as runtime;
use runtime::{Rewind, RuntimeError};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use timeline::{Rejected, Removed};

/// What is done in a conversation.
#[derive(Clone, Copy)]
enum Do {
    Say(&'static str),
    /// Says the second in the place of the first.
    Instead(&'static str, &'static str),
    /// Says the second after the first, in the place of its answer.
    After(&'static str, &'static str),
    Restart,
}

fn agent(model: Arc<Canned>) -> AgentOptions {
    let window = SlidingWindow::new(NonZeroUsize::new(6).unwrap());
    AgentOptions {
        middleware: vec![Arc::new(window)],
        ..options(model, Arc::new(Loop::default()), all(&World::default()))
    }
}

/// What the model was asked last, and the document.
async fn done(script: &[Do], deaths: Vec<(usize, bool)>) -> (Value, Value) {
    let (asked, document, _) = counted(script, deaths).await;
    (asked, document)
}

/// Runs a script with deaths. Returns the model's last request, the document and the number of writes.
async fn counted(script: &[Do], deaths: Vec<(usize, bool)>) -> (Value, Value, usize) {
    let model = Canned::rounds(vec![vec![call("c", "pure")]]);
    let mut client = Client::new(agent(model.clone()), deaths);
    let item = |text: &str| format!("item-{text}").as_str().into();
    for what in script {
        match what {
            Do::Say(text) => client.say(text).await,
            Do::Instead(old, new) => client.say_instead(new, Rewind::From(item(old))).await,
            Do::After(old, new) => client.say_instead(new, Rewind::After(item(old))).await,
            Do::Restart => client.restart().await,
        }
        client.rest().await;
    }
    let asked = model.asked.lock().unwrap().last().unwrap().clone();
    let plain = asked.iter().map(|message| {
        let mut value = serde_json::to_value(message).unwrap();
        value["id"].take();
        value["timestamp"].take();
        value
    });
    let document = document(&client.transcript().await);
    (plain.collect(), document, client.writes())
}

const SAID: [Do; 5] = [
    Do::Say("one"),
    Do::Say("two"),
    Do::Say("three"),
    Do::Say("four"),
    Do::Say("five"),
];

fn after_five(more: &[Do]) -> Vec<Do> {
    SAID.iter().chain(more).copied().collect()
}

#[tokio::test]
async fn a_thread_that_was_taken_back_goes_on_as_if_nothing_had_been_there() {
    let cases: [(&[Do], &[Do]); 3] = [
        (
            &[
                Do::Instead("three", "other"),
                Do::Say("six"),
                Do::Say("seven"),
            ],
            &[
                Do::Say("one"),
                Do::Say("two"),
                Do::Say("other"),
                Do::Say("six"),
                Do::Say("seven"),
            ],
        ),
        // The whole of it.
        (&[Do::Instead("one", "other")], &[Do::Say("other")]),
        // More than once, also what was put there.
        (
            &[
                Do::Instead("five", "a"),
                Do::Say("b"),
                Do::Instead("a", "c"),
                Do::Instead("two", "d"),
                Do::Say("e"),
            ],
            &[Do::Say("one"), Do::Say("d"), Do::Say("e")],
        ),
    ];
    for (case, (more, plain)) in cases.into_iter().enumerate() {
        let expected = done(plain, Vec::new()).await;
        let calm = done(&after_five(more), Vec::new()).await;
        assert_eq!(calm, expected, "{case}");
        let mut restarted = SAID.to_vec();
        for what in more {
            restarted.extend([Do::Restart, *what]);
        }
        assert_eq!(
            done(&restarted, Vec::new()).await,
            expected,
            "{case} restarted"
        );
    }
    // A message that stays, and is followed by another one.
    let more = [Do::After("two", "other"), Do::Say("six")];
    let (asked, _) = done(&after_five(&more), Vec::new()).await;
    let asked = asked.to_string();
    assert!(
        asked.contains("other") && !asked.contains("three") && !asked.contains("five"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_thread_is_taken_back_with_what_is_said_or_not_at_all_wherever_a_crash_comes() {
    let script = after_five(&[Do::Instead("three", "other"), Do::Say("six")]);
    let (_, _, first) = counted(&SAID, Vec::new()).await;
    let (calm, _, end) = counted(&script, Vec::new()).await;
    assert!(first < end);
    for at in first..end {
        for keeps_last in [false, true] {
            let (crashed, _) = done(&script, vec![(at, keeps_last)]).await;
            assert_eq!(crashed, calm, "{at} {keeps_last}");
        }
    }
}

#[tokio::test]
async fn a_thread_is_not_taken_back_to_what_is_not_there_or_went_before() {
    let mut client = Client::calm(agent(Canned::rounds(Vec::new())));
    for text in ["one", "two"] {
        client.say(text).await;
        client.rest().await;
    }
    client
        .say_instead("other", Rewind::From("item-two".into()))
        .await;
    client.rest().await;
    let before = client.writes();
    for (id, expected) in [
        ("none", Rejected::NotThere(Removed::Item("none".into()))),
        (
            "item-two",
            Rejected::RemovedAlready(Removed::Item("item-two".into())),
        ),
    ] {
        let content = json!([{"type": "input_text", "text": "more"}]).into();
        let request = runtime::ReactRequest {
            rewind: Some(Rewind::From(id.into())),
            ..runtime::ReactRequest::new(
                tenant(),
                KEY,
                timeline::NewItem::user("item-more", content),
            )
        };
        match client.runtime.react(request).await {
            Err(RuntimeError::Rejected(refused)) => assert_eq!(refused, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(client.writes(), before);
}
