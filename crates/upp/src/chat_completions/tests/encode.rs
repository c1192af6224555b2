//! Requests.

use super::*;

fn media(source: MediaSource, mime_type: &str) -> Media {
    Media::new(source, mime_type)
}

fn request() -> Request {
    let call = ToolCall {
        tool_call_id: "c1".into(),
        tool_name: "f".into(),
        arguments: Arguments::from_text("{ \"x\": 1.0 }"),
        after: Vec::new(),
    };
    let result = |id: &str, result: Value| ToolResult {
        tool_call_id: id.into(),
        result: result.into(),
        is_error: false,
    };
    let user = UserMessage::new(
        vec![
            UserContent::Text { text: "see".into() },
            UserContent::Image(media(
                MediaSource::Base64 {
                    data: "QUJD".into(),
                },
                "image/png",
            )),
            UserContent::Document(media(
                MediaSource::Base64 {
                    data: "QUJD".into(),
                },
                "application/pdf",
            )),
        ],
        MessageOptions::default(),
    );
    let text = vec![AssistantContent::Reasoning {
        text: "hm".into(),
        signature: None,
    }];
    Request {
        messages: [
            Message::from("hi"),
            user.into(),
            AssistantMessage::new(text, vec![call], MessageOptions::default()).into(),
            ToolResultMessage::new(
                vec![result("c1", json!("text")), result("c2", json!({"a": 1}))],
                MessageOptions::default(),
            )
            .into(),
        ]
        .into_iter()
        .collect(),
        system: Some("be kind".into()),
        ..Request::default()
    }
}

fn encoded(request: &Request) -> Value {
    encoded_as(&ChatCompletions::openai("gpt"), request)
}

fn encoded_as(codec: &ChatCompletions, request: &Request) -> Value {
    serde_json::from_str(&codec.encode(request).unwrap().body).unwrap()
}

#[test]
fn messages_are_written_as_the_format_wants() {
    let body = encoded(&request());
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{ \"x\": 1.0 }"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
            {"role": "tool", "tool_call_id": "c2", "content": "{\"a\":1}"},
        ])
    );
}

#[test]
fn params_come_first_and_never_win() {
    let mut asked = request();
    let params =
        json!({"temperature": 0.5, "model": "other", "stream": false, "stream_options": {"x": 1}});
    asked.params = Arc::new(params.as_object().unwrap().clone());
    asked.tool_choice = ToolChoice::Tool("f".into());
    let mut tool = Tool::new(
        "f",
        "does",
        json!({"type": "object"}),
        |_: Value, _| -> BoxFuture<'static, ToolOutput> { Box::pin(async { Ok(Value::Null) }) },
    );
    tool.metadata
        .insert("openai".into(), json!({"strict": true}));
    asked.tools = [tool].into();
    asked.structure = Some(Arc::new(json!({"type": "object", "description": "d"})));
    let mut body = encoded(&asked);
    body.as_object_mut().unwrap().shift_remove("messages");
    assert_eq!(
        body,
        json!({
            "temperature": 0.5, "model": "gpt", "stream": true,
            "stream_options": {"x": 1, "include_usage": true},
            "tools": [{"type": "function", "function": {
                "name": "f", "description": "does", "parameters": {"type": "object"}, "strict": true}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "json_response", "description": "d",
                "schema": {"type": "object", "description": "d"}}},
        })
    );
}

#[test]
fn nothing_is_said_about_calls_where_there_are_no_tools() {
    let mut asked = request();
    let params = json!({"parallel_tool_calls": false, "tool_choice": "auto"});
    asked.params = Arc::new(params.as_object().unwrap().clone());
    let body = encoded(&asked);
    assert_eq!(body.get("parallel_tool_calls"), None);
    assert_eq!(body.get("tool_choice"), None);
    let native = json!({"parallel_tool_calls": false, "tools": [{"type": "web_search"}]});
    asked.params = Arc::new(native.as_object().unwrap().clone());
    assert_eq!(encoded(&asked)["parallel_tool_calls"], json!(false));
}

#[test]
fn an_answer_has_one_limit_and_settings_have_the_last_word() {
    let settings = Settings {
        max_output_tokens: Some(7),
        ..Settings::default()
    };
    let (older, newer) = ("max_tokens", "max_completion_tokens");
    for (dialect, name) in [(Dialect::openai(), newer), (Dialect::groq(), older)] {
        let codec = ChatCompletions::new(dialect, "m");
        for own in [older, newer] {
            let mut params = Map::from_iter([(own.to_owned(), json!(9))]);
            let mut asked = request();
            asked.params = Arc::new(params.clone());
            assert_eq!(encoded_as(&codec, &asked)[own], json!(9));
            crate::settings::merge(&mut params, &codec.settings(&settings).params);
            asked.params = Arc::new(params);
            let body = encoded_as(&codec, &asked);
            let limits: Vec<_> = [older, newer].map(|it| body.get(it)).into();
            let expected = [older, newer].map(|it| (it == name).then_some(json!(7)));
            assert_eq!(limits, expected.each_ref().map(Option::as_ref));
        }
    }
}

#[test]
fn what_the_format_can_not_say_is_refused() {
    for block in [
        UserContent::Document(media(
            MediaSource::Url {
                url: "https://x".into(),
            },
            "application/pdf",
        )),
        UserContent::Video(media(
            MediaSource::Url {
                url: "https://x".into(),
            },
            "video/mp4",
        )),
        UserContent::Binary(media(
            MediaSource::Base64 {
                data: String::new(),
            },
            "x/y",
        )),
    ] {
        let asked = Request {
            messages: [Message::from(block)].into_iter().collect(),
            ..Request::default()
        };
        assert_eq!(
            ChatCompletions::openai("gpt")
                .encode(&asked)
                .unwrap_err()
                .code,
            Code::InvalidRequest
        );
    }
}
