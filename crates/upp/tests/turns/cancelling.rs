//! Turns that are cancelled.

use crate::support::{Listed, answer, none, options, tool};
use futures_util::{FutureExt, StreamExt};
use loomline_upp::Signal;
use loomline_upp::{Capabilities, Code, Llm, StreamEvent, TurnEvent};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn cancelling_reaches_running_tools_and_starts_no_other() {
    let model = Listed::new(
        Capabilities::ALL,
        [answer("", &[("a", "waits"), ("b", "asks")])],
    );
    let heard: Arc<Mutex<Option<Signal>>> = Arc::default();
    let keeps = Arc::clone(&heard);
    let mut options = options(&model);
    let asks = tool("asks", async |_| {
        panic!("a call that waits for approval has started")
    });
    options.tools = vec![
        tool("waits", move |context| {
            *keeps.lock().unwrap() = Some(context.signal);
            std::future::pending()
        }),
        asks.with_approval(|_| std::future::pending().boxed()),
    ];
    let signal = CancellationToken::new();
    let llm = Llm::new(options).unwrap();
    let run = llm.generate_until(none(), ["hi"], signal.clone());
    let (outcome, ()) = tokio::join!(run, async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        signal.cancel();
    });
    assert_eq!(outcome.unwrap_err().code, Code::Cancelled);
    assert!(heard.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test]
async fn a_call_that_has_not_started_when_the_turn_is_cancelled_never_does() {
    let model = Listed::new(Capabilities::ALL, [answer("", &[("a", "t"), ("b", "t")])]);
    let mut options = options(&model);
    options.tools = vec![tool("t", async |_| panic!("it ran"))];
    let signal = CancellationToken::new();
    let llm = Llm::new(options).unwrap();
    let mut stream = llm.stream_until(none(), ["hi"], signal.clone());
    let mut starts = 0;
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(TurnEvent::Event(StreamEvent::ToolExecutionStart { .. })) => {
                starts += 1;
                signal.cancel();
            }
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!((error.code, starts), (Code::Cancelled, 1));
}

#[tokio::test]
async fn cancelling_ends_a_model_call_that_does_not_listen() {
    let model = Listed::new(Capabilities::ALL, []);
    let llm = Llm::new(options(&model)).unwrap();
    let signal = CancellationToken::new();
    let (outcome, ()) = tokio::join!(llm.generate_until(none(), ["hi"], signal.clone()), async {
        signal.cancel();
    });
    assert_eq!(outcome.unwrap_err().code, Code::Cancelled);
    assert!(model.request(0).signal.is_cancelled());
    // What is cancelled before it begins sends nothing.
    let error = llm
        .generate_until(none(), ["hi"], signal)
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    assert_eq!(model.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn dropping_a_stream_cancels_the_model_call_and_the_tools() {
    let model = Listed::new(Capabilities::ALL, []);
    let llm = Llm::new(options(&model)).unwrap();
    let mut stream = llm.stream(none(), ["hi"]);
    assert!(stream.next().await.unwrap().is_ok());
    let signal = model.request(0).signal;
    assert!(!signal.is_cancelled());
    drop(stream);
    assert!(signal.is_cancelled());

    let heard: Arc<Mutex<Option<Signal>>> = Arc::default();
    let keeps = Arc::clone(&heard);
    let model = Listed::new(Capabilities::ALL, [answer("", &[("a", "t")])]);
    let mut options = options(&model);
    options.tools = vec![tool("t", move |context| {
        *keeps.lock().unwrap() = Some(context.signal);
        std::future::pending()
    })];
    let llm = Llm::new(options).unwrap();
    assert!(llm.generate(none(), ["hi"]).now_or_never().is_none());
    assert!(heard.lock().unwrap().as_ref().unwrap().is_cancelled());
}
