use super::*;
use crate::event::Aggregate;
use crate::message::{Message, Messages, ToolResultMessage};
use crate::model::ToolChoice;
use crate::tool::{Tool, ToolResult};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

fn tool(name: &str, property: &str) -> Tool {
    let parameters = json!({"type": "object", "required": [property], "properties": {property: {"type": "string"}}});
    Tool::new(
        name,
        "",
        parameters,
        |_: Value, _| -> BoxFuture<'static, crate::ToolOutput> {
            Box::pin(async { Ok(json!(14)) })
        },
    )
}

fn request(text: &str) -> Request {
    Request {
        messages: [Message::from(text)].into_iter().collect(),
        tools: [tool("compute", "expression"), tool("read_file", "path")].into(),
        ..Request::default()
    }
}

async fn run(request: Request) -> Result<Response, Error> {
    Scripted::new().complete(request).await
}

fn answer(request: &Request, response: &Response, result: &Value) -> Messages {
    let results = response
        .message
        .tool_calls
        .iter()
        .map(|call| ToolResult {
            tool_call_id: call.tool_call_id.clone(),
            result: result.clone().into(),
            is_error: false,
        })
        .collect();
    request
        .messages
        .push_back(response.message.clone().into())
        .push_back(ToolResultMessage::new(results, MessageOptions::default()).into())
}

fn calls(response: &Response) -> Vec<(&str, &str)> {
    response
        .message
        .tool_calls
        .iter()
        .map(|call| (&*call.tool_name, call.arguments.text()))
        .collect()
}

#[tokio::test]
async fn plain_text_is_echoed_word_by_word() {
    let mut stream = Scripted::new().stream(request("hello big world"));
    let mut whole = Aggregate::default();
    let mut deltas = 0;
    while let Some(item) = stream.next().await {
        match item.unwrap() {
            ModelEvent::Event(event) => {
                deltas += usize::from(is_delta(&event));
                whole.push(&event);
            }
            ModelEvent::Done(response) => {
                assert_eq!(response.message.joined_text(), "You said: hello big world");
                assert_eq!(whole.clone().finish().0, response.message.content);
                assert_eq!(response.usage.input_tokens, 3);
                assert_eq!(response.usage.output_tokens, 5);
                assert_eq!(response.stop_reason, StopReason::EndTurn);
            }
        }
    }
    assert_eq!(deltas, 5);
}

#[tokio::test]
async fn a_named_tool_is_called_and_its_result_told() {
    let mut asked = request("Please use compute 2+3*4.");
    let response = run(asked.clone()).await.unwrap();
    assert_eq!(calls(&response), [("compute", r#"{"expression":"2+3*4"}"#)]);
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    asked.messages = answer(&asked, &response, &json!(14));
    let response = run(asked).await.unwrap();
    assert_eq!(response.message.joined_text(), "compute gave 14.");
}

#[tokio::test]
async fn several_names_are_called_at_once_with_ids_of_their_own() {
    let response = run(request("compute 1+1 and read_file notes.txt"))
        .await
        .unwrap();
    assert_eq!(
        calls(&response),
        [
            ("compute", r#"{"expression":"1+1"}"#),
            ("read_file", r#"{"path":"notes.txt"}"#)
        ]
    );
    let [first, second] = response.message.tool_calls.as_slice() else {
        panic!()
    };
    assert_ne!(first.tool_call_id, second.tool_call_id);
    assert_eq!(first.tool_call_id.as_str().len(), "call_".len() + 16);
}

#[tokio::test]
async fn a_chain_makes_one_round_a_part() {
    let mut asked = request("compute 1+1 then compute 2+2 then say 3 words");
    let mut seen = Vec::new();
    for expression in ["1+1", "2+2"] {
        let response = run(asked.clone()).await.unwrap();
        assert_eq!(
            calls(&response),
            [(
                "compute",
                json!({"expression": expression}).to_string().as_str()
            )]
        );
        seen.extend(
            response
                .message
                .tool_calls
                .iter()
                .map(|call| call.tool_call_id.clone()),
        );
        asked.messages = answer(&asked, &response, &json!(2));
    }
    assert_ne!(seen.first(), seen.last());
    assert_eq!(
        run(asked).await.unwrap().message.joined_text(),
        "the loom weaves"
    );
}

#[tokio::test]
async fn a_forced_choice_calls_once() {
    for choice in [ToolChoice::Required, ToolChoice::Tool("compute".into())] {
        let mut asked = request("6*7");
        asked.tool_choice = choice;
        let response = run(asked.clone()).await.unwrap();
        assert_eq!(calls(&response), [("compute", r#"{"expression":"6*7"}"#)]);
        asked.messages = answer(&asked, &response, &json!({"value": 42}));
        assert_eq!(
            run(asked).await.unwrap().message.joined_text(),
            r#"compute gave {"value":42}."#
        );
    }
    let mut none = request("compute 1");
    none.tool_choice = ToolChoice::None;
    assert!(run(none).await.unwrap().message.tool_calls.is_empty());
    let mut unknown = request("x");
    unknown.tool_choice = ToolChoice::Tool("nope".into());
    assert_eq!(run(unknown).await.unwrap_err().code, Code::InvalidRequest);
}

#[tokio::test]
async fn a_structure_is_met_as_text_and_data() {
    let mut asked = request("fill it in: city: Paris, days=3");
    asked.structure = Some(Arc::new(
        json!({"type": "object", "required": ["city", "days", "unit"],
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["c", "f"]}}}),
    ));
    let response = run(asked).await.unwrap();
    let expected = json!({"city": "Paris", "days": 3, "unit": "c"});
    assert_eq!(response.message.joined_text(), expected.to_string());
    assert_eq!(response.data, Some(expected));
}

#[tokio::test]
async fn thinking_comes_first_and_is_signed() {
    let response = run(request("think about looms")).await.unwrap();
    let again = run(request("think about looms")).await.unwrap();
    assert_eq!(response.message.content, again.message.content);
    assert!(matches!(
        response.message.content.as_slice(),
        [
            AssistantContent::Reasoning {
                signature: Some(_),
                ..
            },
            AssistantContent::Text { .. }
        ]
    ));
}

#[tokio::test]
async fn failures_are_made_on_request() {
    assert_eq!(
        run(request("fail")).await.unwrap_err().code,
        Code::ProviderError
    );
    let limited = run(request("fail rate_limited")).await.unwrap_err();
    assert_eq!(
        (limited.code, limited.retry_after),
        (Code::RateLimited, Some(Duration::from_secs(1)))
    );
    let mut stream = Scripted::new().stream(request("fail after 2"));
    let mut deltas = 0;
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(ModelEvent::Event(event)) => deltas += usize::from(is_delta(&event)),
            Ok(ModelEvent::Done(_)) => panic!("it must fail"),
            Err(error) => break error,
        }
    };
    assert_eq!((deltas, error.code), (2, Code::ProviderError));
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn slow_waits_and_stops_at_once_when_cancelled() {
    let start = tokio::time::Instant::now();
    run(request("slow 20ms hi there")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(20 * 6));
    let asked = request("slow 100s hi");
    let signal = asked.signal.clone();
    let (outcome, ()) = tokio::join!(run(asked), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        signal.cancel();
    });
    assert_eq!(outcome.unwrap_err().code, Code::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_script_answers_call_by_call() {
    let script = Script::from_json(
        r#"{"turns":[{"tool_calls":[{"name":"compute","arguments":"{oops"}]},{"text":"done","stop_reason":"max_tokens"}]}"#,
    )
    .unwrap();
    let model = Scripted::with_script(script);
    let mut asked = request("anything");
    let response = model.complete(asked.clone()).await.unwrap();
    assert_eq!(calls(&response), [("compute", "{oops")]);
    asked.messages = answer(&asked, &response, &json!("no"));
    let response = model.complete(asked.clone()).await.unwrap();
    assert_eq!(response.stop_reason, StopReason::MaxTokens);
    asked.messages = answer(&asked, &response, &json!("no"));
    let error = model.complete(asked.clone()).await.unwrap_err();
    assert_eq!(
        error.message,
        "no scripted turn at index 2; the script has 2"
    );
    // The next user message starts again.
    asked.messages = asked.messages.push_back("more".into());
    assert_eq!(calls(&model.complete(asked).await.unwrap()).len(), 1);
}

#[tokio::test]
async fn a_script_may_run_on_through_the_thread() {
    let mut script = Script::new(vec![ScriptTurn::text("one"), ScriptTurn::text("two")]);
    script.per_turn = false;
    let model = Scripted::with_script(script);
    let mut asked = request("a");
    let response = model.complete(asked.clone()).await.unwrap();
    asked.messages = asked
        .messages
        .push_back(response.message.into())
        .push_back("b".into());
    assert_eq!(
        model.complete(asked).await.unwrap().message.joined_text(),
        "two"
    );
}

fn with_params(text: &str, params: Value) -> Request {
    let Value::Object(params) = params else {
        panic!("{params} is no object");
    };
    Request {
        params: Arc::new(params),
        ..request(text)
    }
}

#[tokio::test]
async fn an_answer_stops_after_as_many_words_as_it_may_have() {
    for (text, max, said, reason) in [
        ("say 7 words", 3, "the loom weaves", StopReason::MaxTokens),
        ("say 3 words", 3, "the loom weaves", StopReason::EndTurn),
        ("think", 2, "", StopReason::MaxTokens),
    ] {
        let response = run(with_params(text, json!({"max_output_tokens": max}))).await;
        let response = response.unwrap();
        assert_eq!(response.message.joined_text(), said, "{text}");
        assert_eq!(response.stop_reason, reason, "{text}");
        assert_eq!(response.usage.output_tokens, max, "{text}");
    }
    let asked = "use read_file on a and compute 1";
    let response = run(with_params(asked, json!({"max_output_tokens": 3})));
    let response = response.await.unwrap();
    assert_eq!(calls(&response).len(), 1, "the second does not fit");
    assert_eq!(response.stop_reason, StopReason::MaxTokens);
}

#[tokio::test]
async fn one_call_is_made_where_several_at_once_are_not_wanted() {
    let asked = "use read_file on a and compute 1";
    for (parallel, n_calls) in [(true, 2), (false, 1)] {
        let asked = with_params(asked, json!({"parallel_tool_calls": parallel}));
        let response = run(asked).await.unwrap();
        assert_eq!(calls(&response).len(), n_calls);
        assert_eq!(response.stop_reason, StopReason::ToolUse);
    }
}

#[tokio::test]
async fn limits_are_settings_it_knows() {
    let settings = Settings {
        temperature: Some(0.5),
        max_output_tokens: Some(16),
        parallel_tool_calls: Some(false),
        ..Settings::default()
    };
    let native = Scripted::new().settings(&settings);
    let known = json!({"max_output_tokens": 16, "parallel_tool_calls": false});
    assert_eq!(Value::Object(native.params), known);
    assert_eq!(native.left_out, ["temperature"]);
}

#[tokio::test]
async fn a_tool_executed_elsewhere_is_called_where_it_is_meant() {
    let schema = json!({"type": "object", "required": ["location"], "properties": {"location": {"type": "string"}}});
    let ask = |text: &str| Request {
        messages: [Message::from(text)].into_iter().collect(),
        tools: [
            tool("compute", "expression"),
            Tool::external("get_weather", "", schema.clone()),
        ]
        .into(),
        ..Request::default()
    };
    let asked = ask("What's the weather like in San Francisco?");
    let response = run(asked.clone()).await.unwrap();
    let expected = [("get_weather", r#"{"location":"San Francisco"}"#)];
    assert_eq!(calls(&response), expected);
    // Once its result is there, that is what is told.
    let told = Request {
        messages: answer(&asked, &response, &json!("fog")),
        ..asked
    };
    let said = run(told).await.unwrap().message.joined_text();
    assert_eq!(said, "get_weather gave fog.");
    // A tool that is named goes before.
    let response = run(ask("compute 1 for the weather")).await.unwrap();
    assert_eq!(calls(&response)[0].0, "compute");
}
