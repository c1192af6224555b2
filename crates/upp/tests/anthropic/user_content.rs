//! What users send beside text.

use crate::support::{codec, request, sent};
use loomline_upp::{
    Code, Codec, Media, MediaSource, Message, MessageOptions, UserContent, UserMessage,
};
use serde_json::{Value, json};

fn base64(data: &str, mime_type: &str) -> Media {
    Media::new(MediaSource::Base64 { data: data.into() }, mime_type)
}

fn url(mime_type: &str) -> Media {
    Media::new(
        MediaSource::Url {
            url: "https://example.org/x".into(),
        },
        mime_type,
    )
}

fn block(content: UserContent) -> Value {
    let (messages, _) = sent(&codec(), [Message::from(content)]);
    messages[0]["content"][0].clone()
}

#[test]
fn images_go_as_bytes_or_address() {
    assert_eq!(
        block(UserContent::Image(base64("QUJD", "image/webp"))),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "QUJD"}})
    );
    assert_eq!(
        block(UserContent::Image(url("image/png"))),
        json!({"type": "image", "source": {"type": "url", "url": "https://example.org/x"}})
    );
}

#[test]
fn documents_go_as_pdf_or_text_with_their_title() {
    let text = Media::new(
        MediaSource::Text {
            data: "Grüße".into(),
        },
        "text/plain",
    );
    let plain = json!({"type": "text", "media_type": "text/plain", "data": "Grüße"});
    let mut titled = text.clone();
    titled.title = Some("t".into());
    assert_eq!(
        block(UserContent::Document(titled)),
        json!({"type": "document", "source": plain, "title": "t"})
    );
    assert_eq!(block(UserContent::Document(text))["source"], plain);
    let encoded = base64("R3LDvMOfZQ==", "text/markdown");
    assert_eq!(block(UserContent::Document(encoded))["source"], plain);
    assert_eq!(
        block(UserContent::Document(url("application/pdf")))["source"],
        json!({"type": "url", "url": "https://example.org/x"})
    );
}

#[test]
fn citations_of_documents_are_turned_on_by_metadata() {
    let options = MessageOptions {
        metadata: serde_json::from_value(json!({"anthropic": {"citations": {"enabled": true}}}))
            .unwrap(),
        ..MessageOptions::default()
    };
    let content = vec![
        UserContent::Document(url("application/pdf")),
        UserContent::Text { text: "?".into() },
    ];
    let (messages, _) = sent(&codec(), [UserMessage::new(content, options).into()]);
    assert_eq!(
        messages[0]["content"][0]["citations"],
        json!({"enabled": true})
    );
    assert_eq!(
        messages[0]["content"][1],
        json!({"type": "text", "text": "?"})
    );
}

#[test]
fn what_the_format_can_not_say_is_refused() {
    let text = || Media::new(MediaSource::Text { data: "x".into() }, "image/png");
    for (block, named) in [
        (UserContent::Audio(base64("QUJD", "audio/wav")), "audio"),
        (UserContent::Video(url("video/mp4")), "video"),
        (UserContent::Binary(base64("QUJD", "x/y")), "binary"),
        (UserContent::Image(text()), "image"),
        (
            UserContent::Document(base64("//8=", "text/plain")),
            "text document",
        ),
    ] {
        let error = codec()
            .encode(&request([Message::from(block)]))
            .unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        assert!(error.message.contains(named), "{error}");
    }
}
