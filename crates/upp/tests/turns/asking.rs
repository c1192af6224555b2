//! What the model is asked, and what it can't be.

use crate::support::{Listed, answer, none, options, tool};
use futures_util::{StreamExt, stream};
use loomline_upp::{
    Capabilities, Code, Error, Llm, LlmOptions, Media, MediaSource, Message, MessageOptions, Model,
    ModelStream, Request, Thread, UserContent, UserMessage,
};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn a_thread_or_a_list_is_the_history_and_each_input_its_own_message() {
    let model = Listed::new(Capabilities::ALL, (0..4).map(|_| answer("ok", &[])));
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
    let model = Listed::new(Capabilities::ALL, [answer("ok", &[])]);
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
        ..Capabilities::ALL
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
            Capabilities::ALL
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
