//! What is sent.

use crate::support::{
    answered, body, call, calling, chunk, decode, end, omitted, request, said, stored, with_params,
};
use futures_util::future::BoxFuture;
use loomline_upp::{
    Anthropic, AssistantContent, AssistantMessage, ChatCompletions, Codec as _, Dialect, Document,
    Gemini, Image, Message, MessageOptions, Metadata, Ollama, Request, Responses, Tool, ToolChoice,
    ToolOutput, UserContent, UserMessage,
};
use serde_json::{Value, json};
use std::sync::Arc;

const PNG: &str = "QUJD";

fn openrouter(model: &str) -> ChatCompletions {
    ChatCompletions::new(Dialect::openrouter(), model)
}

fn moonshot() -> ChatCompletions {
    ChatCompletions::new(Dialect::moonshot(), "kimi-k2.5")
}

fn structured(schema: Value) -> Request {
    let mut asked = request(["hi".into()]);
    asked.structure = Some(Arc::new(schema));
    asked
}

#[test]
fn a_schema_that_a_vendor_can_not_enforce_is_not_asked_for_strictly() {
    let strict = |schema: Value| {
        let body = body(&ChatCompletions::openai("gpt-5"), &structured(schema));
        body["response_format"]["json_schema"]["strict"].clone()
    };
    let text = json!({"type": "string"});
    let closed = json!({"type": "object", "properties": {"a": text}, "required": ["a"],
        "additionalProperties": false});
    assert_eq!(strict(closed), true);
    let optional = json!({"type": "object", "properties": {"a": text}});
    assert_eq!(strict(optional), Value::Null);
}

#[test]
fn an_id_of_a_call_is_not_longer_than_chat_completions_takes() {
    let id = "x".repeat(41);
    let asked = request([
        "hi".into(),
        calling(&id, "{}"),
        answered(&id, json!(1), false),
    ]);
    let body = body(&ChatCompletions::openai("gpt-5"), &asked);
    let sent = body["messages"][1]["tool_calls"][0]["id"]
        .as_str()
        .expect("as the test has it");
    assert!(sent.len() <= 40, "{sent}");
    assert_eq!(body["messages"][2]["tool_call_id"], sent);
}

#[test]
fn a_models_own_ids_of_calls_go_back_to_it_as_they_are_and_to_others_as_they_take_them() {
    let id = "functions.f:0";
    let answer = decode(
        &moonshot(),
        &[
            chunk(
                &json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "f", "arguments": "{}"}}]}),
            ),
            end("tool_calls", &Value::Null),
        ],
    );
    let asked = request([
        "hi".into(),
        stored(answer.expect("as the test has it").message),
        answered(id, json!(1), false),
    ]);
    let own = body(&moonshot(), &asked);
    assert_eq!(own["messages"][1]["tool_calls"][0]["id"], id);
    assert_eq!(own["messages"][2]["tool_call_id"], id);
    let other = body(&ChatCompletions::openai("gpt-5"), &asked);
    let sent = &other["messages"][1]["tool_calls"][0]["id"];
    assert_ne!(sent, id);
    assert_eq!(other["messages"][2]["tool_call_id"], *sent);
}

#[test]
fn stream_options_that_are_null_are_not_sent() {
    let asked = with_params(request(["hi".into()]), &json!({"stream_options": null}));
    let body = body(&ChatCompletions::openai("m"), &asked);
    assert_eq!(body.get("stream_options"), None);
    assert_eq!(body["stream"], true);
}

#[test]
fn a_cache_mark_stands_on_the_last_text_even_where_it_is_alone() {
    let metadata = json!({"openrouter": {"cache_control": {"type": "ephemeral"}}});
    let marked = |content: Vec<UserContent>| {
        let options = MessageOptions {
            metadata: Some(
                metadata
                    .as_object()
                    .expect("as the test has it")
                    .clone()
                    .into(),
            ),
            ..MessageOptions::default()
        };
        let asked = request([UserMessage::new(content, options).into()]);
        body(&openrouter("m"), &asked)["messages"][0]["content"].clone()
    };
    let text = || UserContent::Text {
        text: "long".into(),
    };
    let part = json!({"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}});
    assert_eq!(marked(vec![text()]), json!([part]));
    let image = Image::from_base64(PNG, "image/png")
        .expect("as the test has it")
        .to_block();
    let both = marked(vec![text(), image]);
    assert_eq!(both[0], part);
    assert_eq!(both[1].get("cache_control"), None);
}

#[test]
fn what_a_model_made_and_can_not_go_back_is_listed() {
    let image = Image::from_base64(PNG, "image/png").expect("as the test has it");
    let searched = json!([{"content": 0}, {"native": {"type": "server_tool_use"}}]);
    let options = MessageOptions {
        metadata: Some(Metadata::from_iter([(
            "anthropic".to_owned(),
            json!({"items": searched, "model": "claude"}),
        )])),
        ..MessageOptions::default()
    };
    let text = AssistantContent::Text { text: "so".into() };
    let foreign = AssistantMessage::new(vec![text], Vec::new(), options);
    let asked = request(["hi".into(), foreign.into()]);
    assert_eq!(
        omitted(&ChatCompletions::openai("m"), &asked),
        ["provider_item"]
    );
    assert_eq!(omitted(&Gemini::new("m"), &asked), ["provider_item"]);
    assert_eq!(omitted(&Ollama::new("m"), &asked), ["provider_item"]);
    let shown = vec![
        AssistantContent::Text { text: "see".into() },
        image.to_assistant_block(),
    ];
    let asked = request(["hi".into(), said(shown)]);
    assert_eq!(omitted(&ChatCompletions::openai("m"), &asked), ["image"]);
}

#[test]
fn arguments_are_sent_the_same_before_and_after_the_store() {
    let text = "\n{\n  \"a\": 1\n}\n";
    let message = calling("c1", text);
    let again = stored(message.clone());
    let of = |message: Message, codec: &dyn Fn(&Request) -> String| {
        codec(&request([
            "hi".into(),
            message,
            answered("c1", json!(1), false),
        ]))
    };
    let chat = |asked: &Request| {
        ChatCompletions::openai("m")
            .encode(asked)
            .expect("as the test has it")
            .body
    };
    assert_eq!(of(message.clone(), &chat), of(again.clone(), &chat));
    let responses = |asked: &Request| {
        Responses::openai("m")
            .encode(asked)
            .expect("as the test has it")
            .body
    };
    assert_eq!(of(message, &responses), of(again, &responses));
}

#[test]
fn the_responses_formats_own_arguments_survive_the_store_at_their_ends_too() {
    let codec = Responses::openai("gpt-5");
    let text = "{\n\"a\":1}\n";
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
        "arguments": text, "status": "completed"});
    let done = json!({"type": "response.completed", "response": {"id": "resp_0123456789",
        "model": "gpt-5", "status": "completed", "output": [item]}});
    let message = decode(&codec, &[done]).expect("as the test has it").message;
    let sent =
        |message: Message| body(&codec, &request([message]))["input"][0]["arguments"].clone();
    assert_eq!(sent(message.clone().into()), text);
    assert_eq!(sent(stored(message)), text);
}

#[test]
fn a_message_that_says_nothing_is_not_sent() {
    let asked = request(["hi".into(), said(Vec::new()), "and?".into()]);
    let body = body(&moonshot(), &asked);
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "hi"}, {"role": "user", "content": "and?"}])
    );
}

#[test]
fn a_call_without_reasoning_has_some_where_the_provider_refuses_it_without() {
    let asked = request([
        "hi".into(),
        calling("c1", "{}"),
        answered("c1", json!(1), false),
    ]);
    assert_eq!(
        body(&moonshot(), &asked)["messages"][1]["reasoning_content"],
        " "
    );
    let other = body(&ChatCompletions::openai("m"), &asked);
    assert_eq!(other["messages"][1].get("reasoning_content"), None);
}

#[test]
fn a_text_document_goes_as_text_however_its_bytes_are_held() {
    let note = Document::from_text("note", Some("n.txt".into()));
    let bytes = note.to_bytes().expect("as the test has it");
    let held = Image::from_bytes(bytes, "text/plain").into_media();
    let held = UserContent::Document(held.with_title(Some("n.txt".into())));
    let content =
        |codec: &dyn Fn(&Request) -> Value, block: UserContent| codec(&request([block.into()]));
    let chat = |asked: &Request| body(&ChatCompletions::openai("m"), asked);
    let responses = |asked: &Request| body(&Responses::openai("m"), asked);
    let ollama = |asked: &Request| body(&Ollama::new("m"), asked);
    assert_eq!(
        content(&chat, held.clone()),
        content(&chat, note.to_block())
    );
    assert_eq!(
        content(&responses, held.clone()),
        content(&responses, note.to_block())
    );
    assert_eq!(content(&ollama, held), content(&ollama, note.to_block()));
}

#[test]
fn a_document_without_a_title_is_named_after_its_kind() {
    let word = Document::from_base64(PNG, "application/msword").expect("as the test has it");
    let asked = request([word.to_block().into()]);
    let routed = body(&openrouter("m"), &asked);
    let file = &routed["messages"][0]["content"][0]["file"];
    assert_eq!(file["filename"], "document.msword");
}

fn pictured(mime_type: &str, data: &str) -> Value {
    json!({"content": [{"type": "text", "text": "see"},
        {"type": "image", "mimeType": mime_type, "data": data}]})
}

fn tool_result(result: Value, is_error: bool) -> Value {
    let codec = Anthropic::new("claude").with_default_max_tokens(9);
    let asked = request([
        "hi".into(),
        calling("c1", "{}"),
        answered("c1", result, is_error),
    ]);
    body(&codec, &asked)["messages"][2]["content"][0].clone()
}

#[test]
fn a_failure_with_a_picture_is_text_as_the_messages_format_wants() {
    let failed = tool_result(pictured("image/png", PNG), true);
    assert_eq!(failed["is_error"], true);
    let kinds = failed["content"].as_array().into_iter().flatten();
    assert!(
        kinds.clone().all(|block| block["type"] == "text"),
        "{failed}"
    );
    assert_eq!(
        tool_result(pictured("image/png", PNG), false)["content"][1]["type"],
        "image"
    );
}

#[test]
fn a_picture_of_a_tool_that_the_messages_format_refuses_is_text() {
    for result in [
        pictured("image/svg+xml", PNG),
        pictured("image/png", "no base64!"),
        pictured("image/png", ""),
    ] {
        let sent = tool_result(result, false);
        let blocks = sent["content"].as_array().into_iter().flatten();
        assert!(
            blocks.clone().all(|block| block["type"] == "text"),
            "{sent}"
        );
    }
}

#[test]
fn a_call_of_another_model_has_the_signature_that_gemini_3_wants() {
    let asked = request([
        "hi".into(),
        AssistantMessage::new(
            Vec::new(),
            vec![call("a", "{}"), call("b", "{}")],
            MessageOptions::default(),
        )
        .into(),
        answered("a", json!(1), false),
        answered("b", json!(1), false),
    ]);
    let signatures = |model: &str| {
        let body = body(&Gemini::new(model), &asked);
        let parts = body["contents"][1]["parts"]
            .as_array()
            .expect("as the test has it")
            .clone();
        let of = |part: &Value| part["thoughtSignature"].as_str().map(str::to_owned);
        parts.iter().map(of).collect::<Vec<_>>()
    };
    let skip = Some("skip_thought_signature_validator".to_owned());
    assert_eq!(signatures("gemini-3-pro-preview"), [skip.clone(), None]);
    assert_eq!(signatures("gemini-3.1-pro"), [skip, None]);
    assert_eq!(signatures("gemini-2.5-pro"), [None, None]);
}

#[test]
fn empty_text_of_another_model_is_no_part_for_gemini() {
    let empty = AssistantContent::Text {
        text: String::new(),
    };
    let asked = request(["hi".into(), said(vec![empty]), "and?".into()]);
    let body = body(&Gemini::new("gemini-3-pro"), &asked);
    assert_eq!(
        body["contents"]
            .as_array()
            .expect("as the test has it")
            .len(),
        2
    );
}

#[test]
fn the_choice_of_tools_does_not_move_the_prefix() {
    let tool = Tool::new(
        "f",
        "does",
        json!({"type": "object"}),
        |_: Value, _| -> BoxFuture<'static, ToolOutput> { Box::pin(async { Ok(Value::Null) }) },
    );
    let of = |tool_choice: ToolChoice| {
        let mut asked = request(["hi".into()]);
        asked.tools = [tool.clone()].into();
        asked.tool_choice = tool_choice;
        let responses = Responses::openai("m")
            .encode(&asked)
            .expect("as the test has it");
        let chat = ChatCompletions::openai("m")
            .encode(&asked)
            .expect("as the test has it");
        (
            responses.conversation().to_owned(),
            chat.conversation().to_owned(),
        )
    };
    assert_eq!(of(ToolChoice::Required), of(ToolChoice::Auto));
}
