use super::*;
use crate::content::{Media, MediaSource};
use serde_json::{Value, json};

const AT: &str = "2026-01-02T03:04:05.678Z";

fn read(json: &Value) -> Result<Message, String> {
    serde_json::from_str(&json.to_string()).map_err(|error| error.to_string())
}

#[test]
fn the_three_messages_have_the_json_of_the_specification() {
    let messages = [
        json!({"type": "user", "id": "u", "content": [{"type": "text", "text": "hi"}], "timestamp": AT}),
        json!({"type": "assistant", "id": "a", "content": [], "toolCalls":
            [{"toolCallId": "c", "toolName": "t", "arguments": {"x": 1}}], "timestamp": AT}),
        json!({"type": "tool_result", "id": "r", "content": [], "results":
            [{"toolCallId": "c", "result": {"y": [null]}}, {"toolCallId": "d", "result": "no", "isError": true}], "timestamp": AT}),
    ];
    for json in &messages {
        let message = read(json).unwrap();
        assert_eq!(&serde_json::to_value(&message).unwrap(), json);
        assert_eq!(serde_json::to_value(message.role()).unwrap(), json["type"]);
    }
}

#[test]
fn the_content_of_a_tool_result_may_be_absent_and_is_written_empty() {
    let json = json!({"type": "tool_result", "id": "r", "results": [], "timestamp": AT});
    let message = read(&json).unwrap();
    assert_eq!(serde_json::to_value(message).unwrap()["content"], json!([]));
}

#[test]
fn unknown_metadata_comes_back_unchanged() {
    let metadata =
        json!({"openai": {"id": "x", "new": [1, {"deep": null}]}, "nobody-knows": {"k": 1.5}});
    let json =
        json!({"type": "user", "id": "u", "content": [], "metadata": metadata, "timestamp": AT});
    assert_eq!(serde_json::to_value(read(&json).unwrap()).unwrap(), json);
}

#[test]
fn optional_fields_of_a_message_may_be_null() {
    let json = json!({"type": "assistant", "id": "a", "content": [], "toolCalls": null, "metadata": null, "results": null, "timestamp": AT});
    let message = read(&json).unwrap();
    assert!(message.metadata().is_empty());
    assert!(!message.as_assistant().unwrap().has_tool_calls());
}

#[test]
fn a_message_that_lacks_something_is_refused_with_its_place() {
    for (json, word) in [
        (json!({"id": "u", "content": [], "timestamp": AT}), "type"),
        (
            json!({"type": "system", "id": "u", "content": [], "timestamp": AT}),
            "system",
        ),
        (
            json!({"type": "user", "content": [], "timestamp": AT}),
            "id",
        ),
        (
            json!({"type": "user", "id": "u", "content": []}),
            "timestamp",
        ),
        (
            json!({"type": "user", "id": "u", "timestamp": AT}),
            "content",
        ),
        (
            json!({"type": "user", "id": "u", "content": [], "timestamp": "today"}),
            "timestamp is not an ISO 8601 instant",
        ),
        (
            json!({"type": "tool_result", "id": "r", "timestamp": AT}),
            "results",
        ),
        (
            json!({"type": "user", "id": "u", "timestamp": AT, "content": [{"type": "text", "text": ""},
                {"type": "image", "source": {"type": "base64", "data": "%"}, "mimeType": "a/b"}]}),
            "content[1]: source.data is not base64",
        ),
    ] {
        let error = read(&json).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn options_set_what_would_be_made_otherwise() {
    let at: jiff::Timestamp = AT.parse().unwrap();
    let metadata = Metadata::from_iter([("p".to_owned(), json!({"k": 1}))]);
    let options = MessageOptions {
        id: Some("mine".into()),
        timestamp: Some(at),
        metadata: Some(metadata.clone()),
    };
    let message = Message::from(UserMessage::new(Vec::new(), options));
    assert_eq!(message.id().as_str(), "mine");
    assert_eq!(message.timestamp(), at);
    assert_eq!(message.metadata(), &metadata);
    let (one, other) = (Message::from("a"), Message::from("a"));
    assert_ne!(one.id(), other.id());
    assert!(uuid::Uuid::parse_str(one.id().as_str()).is_ok());
}

#[test]
fn texts_are_joined_by_a_blank_line() {
    let text = |text: &str| UserContent::Text { text: text.into() };
    let media = || Media::new(MediaSource::Url { url: "u".into() }, "a/b");
    let user = UserMessage::from(vec![text("a"), UserContent::Image(media()), text("b")]);
    assert_eq!(Message::from(user).joined_text(), "a\n\nb");
    let assistant = AssistantMessage::from(vec![
        AssistantContent::Reasoning {
            text: "so".into(),
            signature: None,
        },
        AssistantContent::Text { text: "c".into() },
        AssistantContent::Text { text: "d".into() },
    ]);
    assert_eq!(Message::from(assistant).joined_text(), "c\n\nd");
    let result = |result: Value| ToolResult {
        tool_call_id: "c".into(),
        result: result.into(),
        is_error: false,
    };
    let results = vec![result(json!("as it is")), result(json!({"n": [1]}))];
    let results = ToolResultMessage::new(results, MessageOptions::default());
    assert_eq!(
        Message::from(results).joined_text(),
        "as it is\n\n{\"n\":[1]}"
    );
}

#[test]
fn accessors_give_the_blocks_of_their_kind() {
    let media = |url: &str| Media::new(MediaSource::Url { url: url.into() }, "a/b");
    let user = Message::from(UserMessage::from(vec![
        UserContent::Image(media("i")),
        UserContent::Document(media("d")),
        UserContent::Audio(media("a")),
        UserContent::Video(media("v")),
        UserContent::Binary(media("b")),
        UserContent::Image(media("j")),
    ]));
    let urls = |found: Vec<&Media>| -> Vec<String> {
        found
            .iter()
            .filter_map(|it| it.url())
            .map(Into::into)
            .collect()
    };
    assert_eq!(urls(user.images()), ["i", "j"]);
    assert_eq!(urls(user.documents()), ["d"]);
    assert_eq!(urls(user.audio()), ["a"]);
    assert_eq!(urls(user.video()), ["v"]);
    assert_eq!(urls(user.as_user().unwrap().binary().collect()), ["b"]);
    let assistant = Message::from(AssistantMessage::from(vec![
        AssistantContent::Reasoning {
            text: "so".into(),
            signature: None,
        },
        AssistantContent::Image(media("i")),
        AssistantContent::Audio(media("a")),
        AssistantContent::Video(media("v")),
    ]));
    assert_eq!(assistant.reasoning(), ["so"]);
    assert_eq!(urls(assistant.images()), ["i"]);
    assert_eq!(urls(assistant.audio()), ["a"]);
    assert_eq!(urls(assistant.video()), ["v"]);
    assert!(assistant.documents().is_empty());
}

#[test]
fn guards_tell_the_three_kinds_apart() {
    let all = [
        Message::from("hi"),
        AssistantMessage::text("hi").into(),
        ToolResultMessage::new(Vec::new(), MessageOptions::default()).into(),
    ];
    let kinds = all.each_ref().map(|message| {
        (
            message.as_user().is_some(),
            message.as_assistant().is_some(),
            message.as_tool_result().is_some(),
        )
    });
    assert_eq!(
        kinds,
        [
            (true, false, false),
            (false, true, false),
            (false, false, true)
        ]
    );
    assert_eq!(all[2].role(), MessageRole::ToolResult);
    assert!(all[2].images().is_empty() && all[2].reasoning().is_empty());
}

/// The roles of the messages that a provider's request has.
fn roles(codec: &dyn crate::codec::Codec, said: UserMessage) -> Vec<String> {
    let messages: Messages = [Message::from("hi"), said.into()].into_iter().collect();
    let request = crate::model::Request {
        messages,
        ..crate::model::Request::default()
    };
    let body: Value = serde_json::from_str(&codec.encode(&request).unwrap().body).unwrap();
    let mut lists = ["messages", "input", "contents"].iter();
    let list = lists.find_map(|key| body[key].as_array()).unwrap();
    let roles = list
        .iter()
        .map(|it| it["role"].as_str().unwrap().to_owned());
    roles.collect()
}

#[test]
fn instructions_have_a_role_of_their_own_where_the_provider_has_one() {
    let (system, developer) = (Speaker::System, Speaker::Developer);
    let chat = crate::ChatCompletions::openai("m");
    let responses = crate::Responses::openai("m");
    let ollama = crate::Ollama::new("m");
    let with_image = |speaker| {
        let image = Media::new(
            MediaSource::Base64 {
                data: "AAAA".into(),
            },
            "image/png",
        );
        let message = UserMessage::from(vec![UserContent::Image(image)]);
        message.with_speaker(speaker)
    };
    for (speaker, own) in [
        (system, ["system"; 3]),
        (developer, ["system", "developer", "system"]),
        (Speaker::User, ["user"; 3]),
    ] {
        let codecs: [&dyn crate::codec::Codec; 3] = [&chat, &responses, &ollama];
        for (codec, own) in codecs.into_iter().zip(own) {
            let said = UserMessage::text("be brief").with_speaker(speaker);
            assert_eq!(said.speaker(), speaker);
            assert_eq!(roles(codec, said), ["user", own]);
            // Nobody takes images as instructions.
            assert_eq!(roles(codec, with_image(speaker)), ["user", "user"]);
        }
        let said = || UserMessage::text("be brief").with_speaker(speaker);
        let (anthropic, gemini) = (
            crate::Anthropic::new("m").with_default_max_tokens(16),
            crate::Gemini::new("m"),
        );
        for codec in [&anthropic as &dyn crate::codec::Codec, &gemini] {
            assert!(roles(codec, said()).iter().all(|role| role == "user"));
        }
    }
}

#[test]
fn who_speaks_is_kept_with_the_message() {
    let said = UserMessage::text("be brief").with_speaker(Speaker::Developer);
    let json = serde_json::to_value(Message::from(said.clone())).unwrap();
    assert_eq!(json["metadata"], json!({"upp": {"speaker": "developer"}}));
    assert_eq!(read(&json).unwrap(), said.into());
    let odd = json!({"type": "user", "id": "u", "content": [], "timestamp": AT, "metadata": {"upp": {"speaker": 1}}});
    let Message::User(odd) = read(&odd).unwrap() else {
        unreachable!()
    };
    assert_eq!(odd.speaker(), Speaker::User);
}
