use super::*;
use serde_json::json;

fn user(json: &Value) -> UserContent {
    serde_json::from_value(json.clone()).unwrap()
}

fn refused(json: Value) -> String {
    serde_json::from_value::<UserContent>(json)
        .unwrap_err()
        .to_string()
}

#[test]
fn user_blocks_have_the_json_of_the_specification() {
    let blocks = [
        json!({"type": "text", "text": "hi"}),
        json!({"type": "image", "source": {"type": "base64", "data": "AP8="}, "mimeType": "image/png"}),
        json!({"type": "image", "source": {"type": "bytes", "data": "AP8="}, "mimeType": "image/png", "width": 2, "height": 3}),
        json!({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "mimeType": "image/png"}),
        json!({"type": "document", "source": {"type": "base64", "data": "AP8="}, "mimeType": "application/pdf", "title": "T"}),
        json!({"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}, "mimeType": "application/pdf"}),
        json!({"type": "document", "source": {"type": "text", "data": "plain"}, "mimeType": "text/plain"}),
        json!({"type": "audio", "data": "AP8=", "mimeType": "audio/wav", "duration": 1.5}),
        json!({"type": "video", "data": "AP8=", "mimeType": "video/mp4", "duration": 2.0, "width": 4, "height": 5}),
        json!({"type": "binary", "data": "AP8=", "mimeType": "application/zip", "metadata": {"name": "a.zip"}}),
    ];
    for json in &blocks {
        assert_eq!(&serde_json::to_value(user(json)).unwrap(), json);
    }
}

#[test]
fn assistant_blocks_have_the_json_of_the_specification() {
    let blocks = [
        json!({"type": "text", "text": "hi"}),
        json!({"type": "reasoning", "text": "so"}),
        json!({"type": "reasoning", "text": "", "signature": "s"}),
        json!({"type": "image", "source": {"type": "base64", "data": ""}, "mimeType": "image/png"}),
        json!({"type": "audio", "data": "AP8=", "mimeType": "audio/wav"}),
        json!({"type": "video", "data": "AP8=", "mimeType": "video/mp4"}),
    ];
    for json in &blocks {
        let read: AssistantContent = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(&serde_json::to_value(read).unwrap(), json);
    }
}

#[test]
fn audio_video_and_binary_may_have_an_address_instead_of_bytes() {
    for kind in ["audio", "video", "binary"] {
        let json = json!({"type": kind, "url": "https://x/y", "mimeType": "a/b"});
        assert_eq!(serde_json::to_value(user(&json)).unwrap(), json);
    }
    let both = json!({"type": "audio", "url": "https://x/y", "data": "AP8=", "mimeType": "a/b"});
    let UserContent::Audio(media) = user(&both) else {
        panic!()
    };
    assert_eq!(media.base64().as_deref(), Some("AP8="));
}

#[test]
fn a_block_holds_only_the_fields_of_its_kind() {
    let mut media = Media::new(
        MediaSource::Base64 {
            data: "AP8=".into(),
        },
        "a/b",
    )
    .with_title(Some("t".into()));
    (media.width, media.height, media.duration) = (Some(1), Some(2), Some(3.0));
    media.metadata = Map::from_iter([("k".to_owned(), json!(1))]);
    let keys = |block: UserContent| -> Vec<String> {
        let json = serde_json::to_value(block).unwrap();
        json.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(
        keys(UserContent::Image(media.clone())),
        ["type", "source", "mimeType", "width", "height"]
    );
    assert_eq!(
        keys(UserContent::Document(media.clone())),
        ["type", "source", "mimeType", "title"]
    );
    assert_eq!(
        keys(UserContent::Audio(media.clone())),
        ["type", "data", "mimeType", "duration"]
    );
    assert_eq!(
        keys(UserContent::Video(media.clone())),
        ["type", "data", "mimeType", "duration", "width", "height"]
    );
    assert_eq!(
        keys(UserContent::Binary(media)),
        ["type", "data", "mimeType", "metadata"]
    );
}

#[test]
fn what_a_kind_has_no_form_for_is_written_as_base64() {
    let text = || Media::new(MediaSource::Text { data: "hi".into() }, "image/svg+xml");
    let image = serde_json::to_value(UserContent::Image(text())).unwrap();
    assert_eq!(image["source"], json!({"type": "base64", "data": "aGk="}));
    let audio = serde_json::to_value(UserContent::Audio(text())).unwrap();
    assert_eq!(audio["data"], "aGk=");
    let data = Bytes::from_static(b"hi");
    let bytes = Media::new(MediaSource::Bytes { data }, "text/plain");
    let document = serde_json::to_value(UserContent::Document(bytes)).unwrap();
    assert_eq!(
        document["source"],
        json!({"type": "base64", "data": "aGk="})
    );
}

#[test]
fn text_that_is_not_base64_is_refused_with_its_place() {
    let image = |source: Value| json!({"type": "image", "source": source, "mimeType": "a/b"});
    for source in ["base64", "bytes"] {
        let error = refused(image(json!({"type": source, "data": "%%"})));
        assert!(error.contains("data is not base64"), "{error}");
    }
    let error = refused(json!({"type": "audio", "data": "A", "mimeType": "a/b"}));
    assert!(error.contains("data is not base64"), "{error}");
}

#[test]
fn base64_without_padding_is_read_and_kept_as_it_is() {
    let json = json!({"type": "audio", "data": "AP8", "mimeType": "a/b"});
    let UserContent::Audio(media) = user(&json) else {
        panic!()
    };
    assert_eq!(media.base64().as_deref(), Some("AP8"));
    assert_eq!(media.to_bytes().unwrap().as_ref(), [0, 255]);
}

#[test]
fn blocks_and_sources_of_a_wrong_kind_are_refused() {
    for (json, word) in [
        (json!({"type": "reasoning", "text": "x"}), "reasoning"),
        (json!({"type": "hologram"}), "hologram"),
        (json!({"type": "audio", "mimeType": "a/b"}), "data"),
        (json!({"type": "image", "mimeType": "a/b"}), "source"),
        (json!({"text": "x"}), "type"),
        (
            json!({"type": "image", "source": {"type": "text", "data": "x"}, "mimeType": "a/b"}),
            "not text",
        ),
        (
            json!({"type": "document", "source": {"type": "bytes", "data": ""}, "mimeType": "a/b"}),
            "not bytes",
        ),
    ] {
        let error = refused(json);
        assert!(error.contains(word), "{error}");
    }
    let binary = json!({"type": "binary", "data": "", "mimeType": "a/b"});
    assert!(serde_json::from_value::<AssistantContent>(binary).is_err());
}

#[test]
fn optional_fields_may_be_null() {
    let json = json!({"type": "video", "data": "AP8=", "mimeType": "a/b", "duration": null, "url": null, "width": null});
    assert_eq!(
        serde_json::to_value(user(&json)).unwrap(),
        json!({"type": "video", "data": "AP8=", "mimeType": "a/b"})
    );
}

#[test]
fn accessors_give_what_the_source_is() {
    let of = |source| Media::new(source, "a/b");
    let bytes = of(MediaSource::Bytes {
        data: Bytes::from_static(&[0, 255]),
    });
    assert_eq!(bytes.base64().as_deref(), Some("AP8="));
    assert_eq!(bytes.data_url().as_deref(), Some("data:a/b;base64,AP8="));
    let url = of(MediaSource::Url { url: "u".into() });
    assert_eq!(
        (url.url(), url.base64(), url.text(), url.data_url()),
        (Some("u"), None, None, None)
    );
    let text = of(MediaSource::Text { data: "t".into() });
    assert_eq!(
        (text.url(), text.base64(), text.text()),
        (None, None, Some("t"))
    );
}

#[test]
fn a_reasoning_block_is_refused_as_input() {
    let reasoning = AssistantContent::Reasoning {
        text: "so".into(),
        signature: None,
    };
    assert_eq!(UserContent::try_from(reasoning), Err(ReasoningAsInput));
    let text = AssistantContent::Text { text: "hi".into() };
    assert_eq!(
        UserContent::try_from(text),
        Ok(UserContent::Text { text: "hi".into() })
    );
}
