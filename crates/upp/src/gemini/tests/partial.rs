//! Calls whose arguments come in pieces, as Vertex AI streams them.

use super::*;

fn call(call: &Value) -> Value {
    said(&json!([{ "functionCall": call }]))
}

fn text(path: &str, text: &str, goes_on: bool) -> Value {
    let mut piece = json!({"jsonPath": path, "stringValue": text});
    if goes_on {
        piece["willContinue"] = json!(true);
    }
    json!({"partialArgs": [piece], "willContinue": true})
}

fn read(chunks: &[Value]) -> Result<Response, crate::error::Error> {
    let mut decoder = Box::new(decode::Decoder::new("m", false));
    let mut aggregate = crate::event::Aggregate::default();
    for chunk in chunks {
        for event in decoder.push(&chunk.to_string())? {
            aggregate.push(&event);
        }
    }
    let (events, response) = decoder.finish()?;
    for event in &events {
        aggregate.push(event);
    }
    assert_eq!(aggregate.finish().1, response.message.tool_calls);
    Ok(response)
}

fn calls(response: &Response) -> Vec<(&str, Value)> {
    let calls = response.message.tool_calls.iter();
    calls
        .map(|call| (&*call.tool_name, call.arguments.parse().unwrap()))
        .collect()
}

#[test]
fn pieces_of_arguments_are_put_together_and_go_back_whole() {
    let mut first = call(&json!({"name": "weather", "willContinue": true}));
    first["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = json!("c2ln");
    let response = read(&[
        first,
        call(&text("$.place.town", "Bos", true)),
        call(&text("$.place.town", "ton", true)),
        call(&text("$.place.town", "", false)),
        call(&json!({"willContinue": true})),
        call(
            &json!({"partialArgs": [{"jsonPath": "$.days[0]", "numberValue": 5},
            {"jsonPath": "$.days[1]", "nullValue": "NULL_VALUE"}], "willContinue": true}),
        ),
        call(&json!({})),
        // A call without arguments, and one that ends with its last piece.
        call(&json!({"name": "now"})),
        call(&json!({"name": "weather", "id": "fc_2", "willContinue": true})),
        call(&json!({"partialArgs": [{"jsonPath": "$.short", "boolValue": true}]})),
        call(&json!({})),
        said(&json!([{"text": "So:"}])),
        end(),
    ])
    .unwrap();
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    assert_eq!(
        calls(&response),
        [
            (
                "weather",
                json!({"place": {"town": "Boston"}, "days": [5, null]})
            ),
            ("now", json!({})),
            ("weather", json!({"short": true})),
        ]
    );
    assert_eq!(response.message.tool_calls[2].tool_call_id.as_str(), "fc_2");
    let body = body(&Gemini::new("m"), &asked(response.message));
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"functionCall": {"name": "weather",
                "args": {"place": {"town": "Boston"}, "days": [5, null]}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "now", "args": {}}},
            {"functionCall": {"id": "fc_2", "name": "weather", "args": {"short": true}}},
            {"text": "So:"},
        ])
    );
}

#[test]
fn a_call_that_was_to_go_on_is_whole_only_if_the_model_ended_the_answer() {
    let ended = |reason: &str| {
        let end = json!({"candidates": [{"content": {"parts": []}, "finishReason": reason}]});
        read(&[
            call(&json!({"name": "f", "willContinue": true})),
            call(&text("$.path", "/tmp", true)),
            end,
        ])
        .unwrap()
    };
    assert_eq!(calls(&ended("STOP")), [("f", json!({"path": "/tmp"}))]);
    let cut = ended("MAX_TOKENS");
    assert_eq!(cut.stop_reason, StopReason::MaxTokens);
    let [call] = cut.message.tool_calls.as_slice() else {
        panic!("one call")
    };
    assert!(call.arguments.parse().is_err());
    assert_eq!(call.arguments.sent(), r#"{"path":"/tmp"}"#);
}

#[test]
fn pieces_that_can_not_be_put_together_are_an_error() {
    let error = read(&[
        call(&json!({"name": "f", "willContinue": true})),
        call(&text("path", "x", false)),
    ])
    .unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(why, "'path' is no JSON path to an argument");
}

#[test]
fn what_the_caller_configures_of_calls_stays_beside_the_choice() {
    let mut request = asked("hi");
    let config = json!({"functionCallingConfig": {"streamFunctionCallArguments": true}});
    request.params = Arc::new(serde_json::Map::from_iter([(
        "toolConfig".to_owned(),
        config,
    )]));
    request.tools = Arc::new([Tool::external("f", "Does.", json!({"type": "object"}))]);
    request.tool_choice = ToolChoice::Required;
    assert_eq!(
        body(&Gemini::new("m"), &request)["toolConfig"],
        json!({"functionCallingConfig": {"streamFunctionCallArguments": true, "mode": "ANY"}})
    );
}

/// The leaves of a value, in order, with their paths.
fn leaves(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = Value::from(name.as_str());
                leaves(&format!("{path}[{name}]"), value, found);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                leaves(&format!("{path}[{at}]"), value, found);
            }
        }
        leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            found.push((path.to_owned(), leaf.clone()));
        }
    }
}

fn pieces(path: &str, leaf: &Value, every: usize) -> Vec<Value> {
    let field = match leaf {
        Value::String(text) => {
            let letters: Vec<char> = text.chars().collect();
            let more = letters.chunks(every).map(|piece| {
                let piece: String = piece.iter().collect();
                json!({"jsonPath": path, "stringValue": piece, "willContinue": true})
            });
            let end = json!({"jsonPath": path, "stringValue": ""});
            return more.chain([end]).collect();
        }
        Value::Number(_) => "numberValue",
        Value::Bool(_) => "boolValue",
        Value::Null | Value::Array(_) | Value::Object(_) => "nullValue",
    };
    vec![json!({"jsonPath": path, field: leaf})]
}

fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    // Pieces say nothing of objects and lists without leaves.
    let inner = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 1..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::vec((".{0,4}", inner), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arguments_are_the_same_however_they_are_cut_into_pieces_and_chunks(
        arguments in arguments(),
        every in 1..6_usize,
        in_chunk in 1..4_usize,
    ) {
        let whole = read(&[call(&json!({"name": "f", "args": arguments})), end()]).unwrap();
        let mut found = Vec::new();
        leaves("$", &arguments, &mut found);
        let all: Vec<Value> = found
            .iter()
            .flat_map(|(path, leaf)| pieces(path, leaf, every))
            .collect();
        let mut chunks = vec![call(&json!({"name": "f", "willContinue": true}))];
        for pieces in all.chunks(in_chunk) {
            chunks.push(call(&json!({"partialArgs": pieces, "willContinue": true})));
        }
        chunks.extend([call(&json!({})), end()]);
        let streamed = read(&chunks).unwrap();
        let text = |response: &Response| response.message.tool_calls[0].arguments.clone();
        prop_assert_eq!(text(&streamed), text(&whole));
    }
}
