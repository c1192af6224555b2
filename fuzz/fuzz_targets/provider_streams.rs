//! Any frames, one a line, are refused by each provider's codec, or give events that fold to what
//! the response says, and a message that comes back from a store and can be sent again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_upp::{
    Aggregate, Anthropic, AssistantContent, ChatCompletions, Codec, Dialect, Gemini, Message,
    Ollama, Request, Responses, StreamEvent,
};
use std::sync::Arc;

fuzz_target!(|text: &str| {
    let model = "model";
    let codecs: [&dyn Codec; 6] = [
        &ChatCompletions::openai(model),
        &ChatCompletions::new(Dialect::openrouter(), model),
        &Anthropic::new(model).with_default_max_tokens(1),
        &Responses::openai(model),
        &Gemini::new(model),
        &Ollama::new(model),
    ];
    for codec in codecs {
        for structured in [false, true] {
            decode(codec, text, structured);
        }
    }
});

fn decode(codec: &dyn Codec, text: &str, structured: bool) {
    let mut request = Request {
        structure: structured.then(|| Arc::new(serde_json::json!({"type": "object"}))),
        ..Request::default()
    };
    let mut decoder = codec.decoder(&request);
    let mut events = Vec::new();
    for line in text.lines() {
        let Ok(pushed) = decoder.push(line) else {
            return;
        };
        events.extend(pushed);
    }
    let Ok((last, response)) = decoder.finish() else {
        return;
    };
    events.extend(last);
    let mut starts = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::MessageStart));
    assert!(starts.next().is_some() && starts.next().is_none());
    assert!(matches!(events.last(), Some(StreamEvent::MessageStop)));
    let mut aggregate = Aggregate::default();
    for event in &events {
        aggregate.push(event);
    }
    let (content, calls) = aggregate.finish();
    assert_eq!(calls, response.message.tool_calls);
    assert_eq!(texts(&content), texts(&response.message.content));

    let message = Message::from(response.message);
    let stored = serde_json::to_string(&message).expect("a message has a JSON form");
    let read: Message = serde_json::from_str(&stored).expect("what was written can be read");
    assert_eq!(read.role(), message.role());
    request.messages.push_back_mut("go on".into());
    request.messages.push_back_mut(read);
    request.messages.push_back_mut("go on".into());
    if let Ok(encoded) = codec.encode(&request) {
        let body: Result<serde_json::Value, _> = serde_json::from_str(&encoded.body);
        assert!(body.is_ok());
    }
}

fn texts(content: &[AssistantContent]) -> Vec<&str> {
    let text = |block: &'_ AssistantContent| match block {
        AssistantContent::Text { text } | AssistantContent::Reasoning { text, .. } => {
            !text.is_empty()
        }
        AssistantContent::Image(_) | AssistantContent::Audio(_) | AssistantContent::Video(_) => {
            false
        }
    };
    let blocks = content.iter().filter(|block| text(block));
    blocks
        .map(|block| match block {
            AssistantContent::Text { text } | AssistantContent::Reasoning { text, .. } => {
                text.as_str()
            }
            AssistantContent::Image(_)
            | AssistantContent::Audio(_)
            | AssistantContent::Video(_) => "",
        })
        .collect()
}
