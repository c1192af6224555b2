//! What the user shows.

use super::codec;
use super::wire::Host;
use loomline_upp::{
    Code, Codec, Error, Media, MediaSource, Message, MessageOptions, Request, UserContent,
    UserMessage,
};
use serde_json::{Value, json};

fn media(source: MediaSource, mime_type: &str) -> Media {
    Media::new(source, mime_type)
}

fn bytes() -> MediaSource {
    MediaSource::Base64 {
        data: "QUJD".into(),
    }
}

fn url() -> MediaSource {
    MediaSource::Url {
        url: "https://x.example/y".into(),
    }
}

fn parts(host: Host, content: Vec<UserContent>) -> Result<Value, Error> {
    let metadata = json!({"openai": {"detail": "high"}});
    let options = MessageOptions {
        metadata: metadata.as_object().cloned().map(Into::into),
        ..MessageOptions::default()
    };
    let message = UserMessage::new(content, options);
    let request = Request {
        messages: [Message::from(message)].into_iter().collect(),
        ..Request::default()
    };
    let encoded = codec(host).encode(&request)?;
    let body: Value = serde_json::from_str(&encoded.body).unwrap();
    Ok(body["input"][0]["content"].clone())
}

#[test]
fn media_become_parts() {
    let mut notes = media(
        MediaSource::Text {
            data: "a\nb".into(),
        },
        "text/plain",
    );
    notes.title = Some("notes".into());
    let content = vec![
        UserContent::Image(media(url(), "image/png")),
        UserContent::Document(media(url(), "application/pdf")),
        UserContent::Document(media(bytes(), "application/pdf")),
        UserContent::Document(media(bytes(), "application/vnd.ms-excel")),
        UserContent::Document(notes),
    ];
    let written = parts(Host::OpenAi, content).unwrap();
    assert_eq!(
        written,
        json!([
            {"type": "input_image", "image_url": "https://x.example/y", "detail": "high"},
            {"type": "input_file", "file_url": "https://x.example/y"},
            {"type": "input_file", "filename": "document.pdf",
                "file_data": "data:application/pdf;base64,QUJD"},
            {"type": "input_file", "filename": "document",
                "file_data": "data:application/vnd.ms-excel;base64,QUJD"},
            {"type": "input_text", "text": "[Document: notes]\na\nb"},
        ])
    );
    let shown = || {
        vec![
            UserContent::Video(media(bytes(), "video/mp4")),
            UserContent::Audio(media(bytes(), "audio/wav")),
        ]
    };
    let video = json!({"type": "input_video", "video_url": "data:video/mp4;base64,QUJD"});
    let file = json!({"type": "input_file", "filename": "audio.wav", "file_data": "data:audio/wav;base64,QUJD"});
    assert_eq!(parts(Host::Open, shown()).unwrap(), json!([video, file]));
    let audio = json!({"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}});
    assert_eq!(
        parts(Host::OpenRouter, shown()).unwrap(),
        json!([video, audio])
    );
}

#[test]
fn what_a_provider_can_not_take_is_refused() {
    for (host, block) in [
        (
            Host::OpenAi,
            UserContent::Audio(media(bytes(), "audio/wav")),
        ),
        (
            Host::OpenAi,
            UserContent::Video(media(bytes(), "video/mp4")),
        ),
        (
            Host::Xai,
            UserContent::Document(media(bytes(), "application/pdf")),
        ),
        (Host::Open, UserContent::Binary(media(bytes(), "x/y"))),
        (
            Host::OpenRouter,
            UserContent::Audio(media(url(), "audio/wav")),
        ),
        (
            Host::Open,
            UserContent::Image(media(
                MediaSource::Text {
                    data: String::new(),
                },
                "image/png",
            )),
        ),
    ] {
        let error = parts(host, vec![block]).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest, "{error}");
        assert!(error.message.contains("can't take"), "{error}");
    }
}
