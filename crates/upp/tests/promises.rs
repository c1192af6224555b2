//! What the core promises to do and not to do (UPP §3, §4, §10, §11), with a model that says what
//! it is told to.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use loomline_upp::{
    AssistantMessage, BeforeCall, Capabilities, Code, Llm, LlmOptions, Messages, Model, ModelEvent,
    ModelStream, Request, Script, ScriptTurn, Scripted, StreamEvent, Tool, ToolContext,
    ToolFailure, ToolOutput, ToolUseStrategy, Turn, TurnEvent,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<String>>>;

/// A tool whose schema wants a number, that keeps what it gets.
fn strict(name: &str, log: &Log) -> Tool {
    let schema = json!({"type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {"n": {"type": "integer"}}});
    let log = Arc::clone(log);
    let run = move |arguments: Value, _: ToolContext| -> BoxFuture<'static, ToolOutput> {
        log.lock().unwrap().push(arguments.to_string());
        std::future::ready(Ok(json!("fine"))).boxed()
    };
    Tool::new(name, "Takes a number.", schema, run)
}

fn scripted(turns: Vec<ScriptTurn>) -> LlmOptions {
    let mut script = Script::new(turns);
    script.per_turn = false;
    LlmOptions::new(Arc::new(Scripted::with_script(script)))
}

async fn generate(options: LlmOptions) -> Result<Turn, loomline_upp::Error> {
    let llm = Llm::new(options)?;
    llm.generate(Messages::new(), ["go"]).await
}

#[tokio::test]
async fn arguments_are_not_checked_against_the_schema_of_the_tool() {
    let log = Log::default();
    let wrong = json!({"n": "one", "m": true});
    let mut options = scripted(vec![
        ScriptTurn::call("strict", wrong.clone()),
        ScriptTurn::text("done"),
    ]);
    options.tools = vec![strict("strict", &log)];
    let turn = generate(options).await.unwrap();
    assert_eq!(*log.lock().unwrap(), [wrong.to_string()]);
    assert!(!turn.tool_executions[0].is_error);
}

/// Gives data that no structure asked for, and counts how often it is asked.
struct Careless(Mutex<u32>);

impl Model for Careless {
    fn model_id(&self) -> &'static str {
        "careless"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: true,
            ..Capabilities::default()
        }
    }

    fn stream(&self, _: Request) -> ModelStream {
        *self.0.lock().unwrap() += 1;
        let done = ModelEvent::Done(Box::new(loomline_upp::Response {
            message: AssistantMessage::text(r#"{"n":"one"}"#),
            usage: loomline_upp::CycleUsage::default(),
            stop_reason: loomline_upp::StopReason::EndTurn,
            data: Some(json!({"n": "one"})),
            model_id: "careless".into(),
            provider: "test".into(),
            response_id: None,
            request: None,
        }));
        stream::iter([Ok(done)]).boxed()
    }
}

#[tokio::test]
async fn data_is_given_as_it_came_and_never_asked_for_again() {
    let model = Arc::new(Careless(Mutex::new(0)));
    let mut options = LlmOptions::new(Arc::clone(&model) as _);
    options.structure = Some(json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer"}}}));
    let turn = generate(options).await.unwrap();
    assert_eq!(turn.data, Some(json!({"n": "one"})));
    assert_eq!((turn.cycles, *model.0.lock().unwrap()), (1, 1));
}

#[tokio::test]
async fn a_stream_ends_with_the_turn_that_generate_gives() {
    let log = Log::default();
    let options = || {
        let mut options = scripted(vec![
            ScriptTurn::call("strict", json!({"n": 1})),
            ScriptTurn::text("done"),
        ]);
        options.tools = vec![strict("strict", &log)];
        options
    };
    let generated = generate(options()).await.unwrap();
    let llm = Llm::new(options()).unwrap();
    let mut stream = llm.stream(Messages::new(), ["go"]);
    let mut streamed = None;
    while let Some(item) = stream.next().await {
        if let TurnEvent::Done(turn) = item.unwrap() {
            streamed = Some(turn);
        }
    }
    let plain = |turn: &Turn| {
        let texts = turn.messages.iter().map(loomline_upp::Message::joined_text);
        let results = turn.tool_executions.iter().map(|it| it.result.clone());
        let parts = (texts.collect::<Vec<_>>(), results.collect::<Vec<_>>());
        (parts, turn.cycles, turn.usage.clone(), turn.data.clone())
    };
    assert_eq!(plain(&streamed.unwrap()), plain(&generated));
    assert_eq!(generated.cycles, 2);
}

#[tokio::test]
async fn ten_rounds_of_tools_run_unless_another_limit_is_set() {
    let log = Log::default();
    for (rounds, outcome) in [(10, Ok(11)), (11, Err(Code::InvalidRequest))] {
        let mut turns = vec![ScriptTurn::call("strict", json!({"n": 1})); rounds];
        turns.push(ScriptTurn::text("done"));
        let mut options = scripted(turns);
        options.tools = vec![strict("strict", &log)];
        let turn = generate(options).await;
        let found = turn.map(|turn| turn.cycles).map_err(|error| error.code);
        assert_eq!(found, outcome);
    }
    assert_eq!(log.lock().unwrap().len(), 20);
}

/// A model whose stream ends before its answer.
struct Mute;

impl Model for Mute {
    fn model_id(&self) -> &'static str {
        "mute"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            ..Capabilities::default()
        }
    }

    fn stream(&self, _: Request) -> ModelStream {
        stream::iter([Ok(ModelEvent::Event(StreamEvent::MessageStart))]).boxed()
    }
}

#[tokio::test]
async fn a_model_that_ends_without_an_answer_is_an_error_of_the_turn() {
    let options = LlmOptions::new(Arc::new(Mute));
    let error = generate(options.clone()).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
    let llm = Llm::new(options).unwrap();
    let items: Vec<_> = llm.stream(Messages::new(), ["go"]).collect().await;
    let last = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(last.code, Code::InvalidResponse);
}

#[tokio::test]
async fn the_error_hook_hears_of_failures_and_not_of_refusals() {
    let failing = |arguments: Value, _: ToolContext| -> BoxFuture<'static, ToolOutput> {
        let output = match arguments["n"].as_u64() {
            Some(0) => Err(ToolFailure::new("no zero")),
            _ => Ok(json!("fine")),
        };
        std::future::ready(output).boxed()
    };
    let log = Log::default();
    let heard = Arc::clone(&log);
    let strategy = ToolUseStrategy::default()
        .with_on_error(move |tool, arguments, failure| {
            let line = format!("{} {arguments}: {failure}", tool.name);
            heard.lock().unwrap().push(line);
        })
        .with_on_before_call(|_, arguments| {
            let decision = match arguments["n"].as_u64() {
                Some(1) => Ok(BeforeCall::Skip),
                Some(2) => Err(ToolFailure::new("the hook is broken")),
                _ => Ok(BeforeCall::Proceed),
            };
            std::future::ready(decision).boxed()
        });
    let mut turns: Vec<ScriptTurn> = (0..4)
        .map(|n| ScriptTurn::call("picky", json!({"n": n})))
        .collect();
    turns.push(ScriptTurn::call("ghost", json!({})));
    turns.push(ScriptTurn::text("done"));
    let mut options = scripted(turns);
    options.tools = vec![Tool::new("picky", "", json!({"type": "object"}), failing)];
    options.tool_strategy = strategy;
    let turn = generate(options).await.unwrap();
    let errors: Vec<bool> = turn.tool_executions.iter().map(|it| it.is_error).collect();
    assert_eq!(errors, [true, true, true, false, true]);
    assert_eq!(
        *log.lock().unwrap(),
        [
            r#"picky {"n":0}: no zero"#,
            r#"picky {"n":2}: the hook is broken"#
        ]
    );
}
