//! What a turn must and must not do (UPP §2–§4, §10), with a model that answers from a list.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use loomline_upp::{
    Arguments, AssistantMessage, BeforeCall, Capabilities, Code, CycleUsage, Error, Llm,
    LlmOptions, Media, MediaSource, Message, MessageOptions, Messages, Model, ModelEvent,
    ModelStream, Request, Response, StopReason, StreamEvent, Thread, Tool, ToolCall, ToolContext,
    ToolFailure, ToolOutput, ToolUseStrategy, TurnEvent, UserContent, UserMessage,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const ALL: Capabilities = Capabilities {
    streaming: true,
    tools: true,
    structured_output: true,
    image_input: true,
    document_input: true,
    video_input: true,
    audio_input: true,
};

/// Answers from a list and keeps the requests. Without an answer, it never ends.
struct Listed {
    can: Capabilities,
    answers: Mutex<VecDeque<Response>>,
    requests: Mutex<Vec<Request>>,
}

impl Listed {
    fn new(can: Capabilities, answers: impl IntoIterator<Item = Response>) -> Arc<Self> {
        Arc::new(Self {
            can,
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::new(Vec::new()),
        })
    }

    fn request(&self, at: usize) -> Request {
        self.requests.lock().expect("unpoisoned")[at].clone()
    }
}

impl Model for Listed {
    fn model_id(&self) -> &'static str {
        "listed"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.requests.lock().expect("unpoisoned").push(request);
        let Some(answer) = self.answers.lock().expect("unpoisoned").pop_front() else {
            let start = ModelEvent::Event(StreamEvent::MessageStart);
            return stream::iter([Ok(start)]).chain(stream::pending()).boxed();
        };
        let events = [StreamEvent::MessageStart, StreamEvent::MessageStop].map(ModelEvent::Event);
        let done = ModelEvent::Done(Box::new(answer));
        stream::iter(events.into_iter().chain([done]))
            .map(Ok)
            .boxed()
    }
}

fn answer(text: &str, calls: &[(&str, &str)]) -> Response {
    let calls = calls.iter().map(|(id, name)| ToolCall {
        tool_call_id: (*id).into(),
        tool_name: (*name).to_owned(),
        arguments: Arguments::from_text("{}"),
        after: Vec::new(),
    });
    let mut message = AssistantMessage::text(text);
    message.tool_calls = calls.collect();
    Response {
        message,
        usage: CycleUsage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: 3,
            cache_write_tokens: 4,
            ..CycleUsage::default()
        },
        stop_reason: StopReason::EndTurn,
        data: None,
        model_id: "listed".into(),
        provider: "test".into(),
        response_id: None,
        request: None,
    }
}

fn options(model: &Arc<Listed>) -> LlmOptions {
    LlmOptions::new(Arc::clone(model) as _)
}

fn tool<F>(name: &str, run: impl Fn(ToolContext) -> F + Send + Sync + 'static) -> Tool
where
    F: Future<Output = ToolOutput> + Send + 'static,
{
    let schema = json!({"type": "object"});
    Tool::new(
        name,
        "",
        schema,
        move |_: Value, context: ToolContext| -> BoxFuture<'static, ToolOutput> {
            run(context).boxed()
        },
    )
}

fn none() -> Messages {
    Messages::new_sync()
}

#[tokio::test]
async fn a_thread_or_a_list_is_the_history_and_each_input_its_own_message() {
    let model = Listed::new(ALL, (0..4).map(|_| answer("ok", &[])));
    let llm = Llm::new(options(&model)).unwrap();
    let mut thread = Thread::new();
    thread.user("one").assistant("two");
    let turn = llm.generate(&thread, ["three", "four"]).await.unwrap();
    assert_eq!(turn.messages.len(), 3);
    let sent = |at: usize| -> Vec<String> {
        let request = model.request(at);
        request.messages.iter().map(Message::joined_text).collect()
    };
    assert_eq!(sent(0), ["one", "two", "three", "four"]);
    thread.append(&turn);
    // No input at all sends the history as it is; the turn holds what came after it.
    let turn = llm.generate(&thread, Vec::<Message>::new()).await.unwrap();
    assert_eq!(sent(1), ["one", "two", "three", "four", "ok"]);
    assert_eq!(turn.messages.len(), 1);
    let message = UserMessage::new(
        Vec::new(),
        MessageOptions {
            id: Some("mine".into()),
            ..MessageOptions::default()
        },
    );
    llm.generate(thread.to_messages(), [message]).await.unwrap();
    assert_eq!(
        model.request(2).messages.last().unwrap().id().as_str(),
        "mine"
    );
    let block = UserContent::Text { text: "b".into() };
    llm.generate(none(), [block]).await.unwrap();
    assert_eq!(sent(3), ["b"]);
}

#[tokio::test]
async fn what_is_told_to_the_model_is_passed_unchanged() {
    let model = Listed::new(ALL, [answer("ok", &[])]);
    let mut options = options(&model);
    options.system = Some("be brief".into());
    options.params = json!({"temperature": 0.5, "unheard_of": [1]})
        .as_object()
        .cloned()
        .unwrap();
    let llm = Llm::new(options).unwrap();
    llm.generate(none(), ["hi"]).await.unwrap();
    let request = model.request(0);
    assert_eq!(request.system.as_deref(), Some("be brief"));
    assert_eq!(
        Value::Object((*request.params).clone()),
        json!({"temperature": 0.5, "unheard_of": [1]})
    );
    assert!(request.structure.is_none() && request.tools.is_empty());
}

#[test]
fn structure_and_tools_need_a_model_that_can() {
    let model = Listed::new(Capabilities::default(), []);
    let mut structured = options(&model);
    structured.structure = Some(json!({"type": "object"}));
    let mut with_tools = options(&model);
    with_tools.tools = vec![tool("t", async |_| Ok(Value::Null))];
    for refused in [structured, with_tools] {
        let error = Llm::new(refused).unwrap_err();
        assert_eq!(
            (error.code, &*error.provider),
            (Code::InvalidRequest, "test")
        );
    }
}

#[tokio::test]
async fn a_model_that_can_not_stream_still_generates() {
    let can = Capabilities {
        streaming: false,
        ..ALL
    };
    let model = Listed::new(can, [answer("ok", &[])]);
    let llm = Llm::new(options(&model)).unwrap();
    let error = llm.stream(none(), ["hi"]).next().await.unwrap();
    assert_eq!(error.unwrap_err().code, Code::InvalidRequest);
    assert!(model.requests.lock().unwrap().is_empty());
    assert!(llm.generate(none(), ["hi"]).await.is_ok());
}

#[tokio::test]
async fn media_the_model_can_not_take_are_refused_wherever_they_are() {
    let media = || Media::new(MediaSource::Url { url: "u".into() }, "a/b");
    let blocks = [
        UserContent::Image(media()),
        UserContent::Document(media()),
        UserContent::Audio(media()),
        UserContent::Video(media()),
    ];
    let none_of_it = Capabilities {
        streaming: true,
        ..Capabilities::default()
    };
    for block in blocks {
        let model = Listed::new(none_of_it, []);
        let llm = Llm::new(options(&model)).unwrap();
        let error = llm.generate(none(), [block.clone()]).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        // In the history too, for all of it is sent.
        let error = llm.generate([block.into()], ["hi"]).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        assert!(model.requests.lock().unwrap().is_empty());
    }
    let model = Listed::new(none_of_it, [answer("ok", &[])]);
    let llm = Llm::new(options(&model)).unwrap();
    let binary = UserContent::Binary(media());
    assert!(llm.generate(none(), [binary]).await.is_ok());
}

#[tokio::test]
async fn data_counts_only_when_a_structure_was_given() {
    let sniffed = || {
        let mut response = answer("42", &[("c", "t")]);
        response.data = Some(json!(42));
        response
    };
    let model = Listed::new(ALL, [sniffed(), answer("done", &[])]);
    let mut with_tool = options(&model);
    with_tool.tools = vec![tool("t", async |_| Ok(json!("ran")))];
    let turn = Llm::new(with_tool.clone()).unwrap();
    let turn = turn.generate(none(), ["hi"]).await.unwrap();
    assert_eq!((turn.cycles, turn.tool_executions.len()), (2, 1));
    assert_eq!(turn.data, None);
    // With one, the answer is there, whatever tool the model names beside it.
    let model = Listed::new(ALL, [sniffed()]);
    with_tool.model = model;
    with_tool.structure = Some(json!({"type": "object"}));
    let turn = Llm::new(with_tool).unwrap();
    let turn = turn.generate(none(), ["hi"]).await.unwrap();
    assert_eq!((turn.cycles, turn.data), (1, Some(json!(42))));
}

#[tokio::test]
async fn a_turn_sums_the_usage_of_its_cycles_and_tells_why_it_stopped() {
    let mut last = answer("cut", &[]);
    last.stop_reason = StopReason::MaxTokens;
    let model = Listed::new(ALL, [answer("", &[("c", "t")]), last]);
    let mut options = options(&model);
    options.tools = vec![tool("t", async |_| Ok(Value::Null))];
    let llm = Llm::new(options).unwrap();
    let turn = llm.generate(none(), ["hi"]).await.unwrap();
    assert_eq!(turn.stop_reason, StopReason::MaxTokens);
    let usage = &turn.usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.total_tokens),
        (2, 4, 6)
    );
    assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (6, 8));
    assert_eq!(usage.cycles.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_message_holds_all_results_in_call_order_and_executions_are_in_completion_order() {
    let calls = [("a", "slow"), ("b", "fast"), ("c", "ghost")];
    let model = Listed::new(ALL, [answer("", &calls), answer("done", &[])]);
    let mut options = options(&model);
    options.tools = vec![
        tool("slow", async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(json!("slow"))
        }),
        tool("fast", async |_| Ok(json!("fast"))),
    ];
    let llm = Llm::new(options).unwrap();
    let turn = llm.generate(none(), ["hi"]).await.unwrap();
    let results = turn.messages[2].as_tool_result().unwrap();
    let ids: Vec<&str> = results
        .results
        .iter()
        .map(|it| it.tool_call_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(results.results[2].result, json!("Tool 'ghost' not found"));
    assert!(results.results[2].is_error);
    let ids: Vec<&str> = turn
        .tool_executions
        .iter()
        .map(|it| it.tool_call_id.as_str())
        .collect();
    assert_eq!(ids.last(), Some(&"a"));
    assert_eq!(ids.len(), 3);
    // Without an approval handler nothing is said of approval.
    assert!(turn.tool_executions.iter().all(|it| it.approved.is_none()));
    // The model sees the results before it goes on.
    let seen: Vec<String> = model
        .request(1)
        .messages
        .iter()
        .map(Message::joined_text)
        .collect();
    assert_eq!(
        seen.last().unwrap(),
        "slow\n\nfast\n\nTool 'ghost' not found"
    );
}

#[tokio::test]
async fn the_events_of_each_cycle_come_in_order_and_the_turn_last() {
    let model = Listed::new(ALL, [answer("", &[("c", "t")]), answer("done", &[])]);
    let mut options = options(&model);
    options.tools = vec![tool("t", async |_| Ok(Value::Null))];
    let llm = Llm::new(options).unwrap();
    let items: Vec<TurnEvent> = llm
        .stream(none(), ["hi"])
        .map(Result::unwrap)
        .collect()
        .await;
    let types: Vec<Value> = items
        .iter()
        .filter_map(|item| match item {
            TurnEvent::Event(event) => Some(serde_json::to_value(event.event_type()).unwrap()),
            TurnEvent::Done(_) => None,
        })
        .collect();
    assert_eq!(
        types,
        [
            "message_start",
            "message_stop",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_stop"
        ]
    );
    assert!(matches!(items.last(), Some(TurnEvent::Done(_))));
}

#[tokio::test]
async fn a_failing_approval_ends_the_generation() {
    let model = Listed::new(ALL, [answer("", &[("c", "t")])]);
    let mut options = options(&model);
    let never = tool("t", async |_| panic!("it ran"));
    options.tools =
        vec![never.with_approval(|_| async { Err(ToolFailure::new("nobody answers")) }.boxed())];
    let error = Llm::new(options).unwrap().generate(none(), ["hi"]).await;
    let error = error.unwrap_err();
    let cause = error.cause.as_ref().unwrap();
    assert_eq!(cause.source().unwrap().to_string(), "nobody answers");
}

#[tokio::test]
async fn a_denied_call_is_told_to_the_model_and_recorded() {
    let model = Listed::new(ALL, [answer("", &[("c", "t")]), answer("fine", &[])]);
    let mut options = options(&model);
    let never = tool("t", async |_| panic!("it ran"));
    options.tools = vec![never.with_approval(|_| async { Ok(false) }.boxed())];
    let turn = Llm::new(options)
        .unwrap()
        .generate(none(), ["hi"])
        .await
        .unwrap();
    assert_eq!(turn.tool_executions[0].approved, Some(false));
    assert!(turn.tool_executions[0].is_error);
    assert_eq!(turn.cycles, 2);
}

#[test]
fn a_before_hook_that_says_nothing_lets_the_call_proceed() {
    assert_eq!(BeforeCall::default(), BeforeCall::Proceed);
}

#[tokio::test(start_paused = true)]
async fn cancelling_reaches_running_tools_and_starts_no_other() {
    let model = Listed::new(ALL, [answer("", &[("a", "waits"), ("b", "asks")])]);
    let heard: Arc<Mutex<Option<CancellationToken>>> = Arc::default();
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
    let model = Listed::new(ALL, [answer("", &[("a", "t"), ("b", "t")])]);
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
    let model = Listed::new(ALL, []);
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
    let model = Listed::new(ALL, []);
    let llm = Llm::new(options(&model)).unwrap();
    let mut stream = llm.stream(none(), ["hi"]);
    assert!(stream.next().await.unwrap().is_ok());
    let signal = model.request(0).signal;
    assert!(!signal.is_cancelled());
    drop(stream);
    assert!(signal.is_cancelled());

    let heard: Arc<Mutex<Option<CancellationToken>>> = Arc::default();
    let keeps = Arc::clone(&heard);
    let model = Listed::new(ALL, [answer("", &[("a", "t")])]);
    let mut options = options(&model);
    options.tools = vec![tool("t", move |context| {
        *keeps.lock().unwrap() = Some(context.signal);
        std::future::pending()
    })];
    let llm = Llm::new(options).unwrap();
    assert!(llm.generate(none(), ["hi"]).now_or_never().is_none());
    assert!(heard.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test]
async fn the_error_of_a_provider_is_given_back_as_it_is() {
    struct Fails;
    impl Model for Fails {
        fn model_id(&self) -> &'static str {
            "fails"
        }
        fn provider(&self) -> &'static str {
            "test"
        }
        fn capabilities(&self) -> Capabilities {
            ALL
        }
        fn stream(&self, _: Request) -> ModelStream {
            let mut error = Error::new(Code::ContentFiltered, "test", "no");
            error.status = Some(451);
            stream::iter([Err(error)]).boxed()
        }
    }
    let llm = Llm::new(LlmOptions::new(Arc::new(Fails))).unwrap();
    let streamed = llm.stream(none(), ["hi"]).next().await.unwrap();
    let generated = llm.generate(none(), ["hi"]).await;
    for error in [streamed.unwrap_err(), generated.unwrap_err()] {
        assert_eq!(
            (error.code, error.status),
            (Code::ContentFiltered, Some(451))
        );
    }
}

#[tokio::test]
async fn the_model_is_asked_again_after_each_round_up_to_the_limit() {
    for (limit, outcome) in [(2, Ok(3)), (1, Err(Code::InvalidRequest)), (0, Ok(1))] {
        let round = || answer("", &[("c", "t")]);
        let model = Listed::new(ALL, [round(), round(), answer("done", &[])]);
        let mut options = options(&model);
        options.tools = vec![tool("t", async |_| Ok(Value::Null))];
        options.tool_strategy = ToolUseStrategy::default().with_max_iterations(Some(limit));
        let turn = Llm::new(options).unwrap().generate(none(), ["hi"]).await;
        let found = turn.map(|turn| {
            assert_eq!(turn.has_tool_calls(), limit == 0);
            turn.cycles
        });
        assert_eq!(found.map_err(|error| error.code), outcome, "{limit}");
    }
}
