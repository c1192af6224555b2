use super::*;
use crate::content::{AssistantContent, Media, MediaSource};
use serde_json::json;

#[test]
fn the_twelve_events_have_the_json_of_the_specification() {
    let events = [
        json!({"type": "message_start", "index": 0, "delta": {}}),
        json!({"type": "message_stop", "index": 0, "delta": {}}),
        json!({"type": "content_block_start", "index": 1, "delta": {}}),
        json!({"type": "content_block_stop", "index": 1, "delta": {}}),
        json!({"type": "text_delta", "index": 1, "delta": {"text": "hi"}}),
        json!({"type": "reasoning_delta", "index": 0, "delta": {"text": "so"}}),
        json!({"type": "tool_call_delta", "index": 2, "delta": {"toolCallId": "c", "toolName": "t", "argumentsJson": "{\"a"}}),
        json!({"type": "image_delta", "index": 0, "delta": {"data": "AP8=", "mimeType": "image/png"}}),
        json!({"type": "audio_delta", "index": 0, "delta": {"data": "AP8="}}),
        json!({"type": "video_delta", "index": 0, "delta": {"data": ""}}),
        json!({"type": "tool_execution_start", "index": 1, "delta": {"toolCallId": "c", "toolName": "t", "timestamp": 5}}),
        json!({"type": "tool_execution_end", "index": 1, "delta": {"toolCallId": "c", "toolName": "t", "result": null, "isError": false, "timestamp": 6}}),
    ];
    let mut types = Vec::new();
    for json in &events {
        let event: StreamEvent = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&event).unwrap(), json);
        assert_eq!(
            json["type"],
            serde_json::to_value(event.event_type()).unwrap()
        );
        types.push(event.event_type());
    }
    types.dedup();
    assert_eq!(types.len(), 12);
}

#[test]
fn an_id_and_a_name_that_are_not_repeated_are_absent() {
    let json = json!({"type": "tool_call_delta", "index": 0, "delta": {"argumentsJson": "}"}});
    let event: StreamEvent = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap(), json);
}

#[test]
fn absent_and_additional_fields_are_no_error_where_they_mean_nothing() {
    let event: StreamEvent = serde_json::from_value(
        json!({"type": "text_delta", "delta": {"text": "x", "more": 1}, "id": "e"}),
    )
    .unwrap();
    assert_eq!(
        event,
        StreamEvent::TextDelta {
            index: 0,
            text: "x".into()
        }
    );
    let start: StreamEvent = serde_json::from_value(json!({"type": "message_start"})).unwrap();
    assert_eq!(start, StreamEvent::MessageStart);
}

#[test]
fn an_event_that_lacks_its_content_is_refused_with_the_field() {
    for (json, field) in [
        (
            json!({"type": "text_delta", "index": 0, "delta": {}}),
            "delta.text",
        ),
        (json!({"type": "image_delta", "index": 0}), "delta.data"),
        (
            json!({"type": "image_delta", "index": 0, "delta": {"data": "%"}}),
            "base64",
        ),
        (
            json!({"type": "tool_execution_end", "index": 0, "delta": {}}),
            "delta.toolCallId",
        ),
        (
            json!({"type": "object_delta", "index": 0, "delta": {"text": ""}}),
            "object_delta",
        ),
        (
            json!({"type": "text_delta", "index": -1, "delta": {"text": ""}}),
            "-1",
        ),
    ] {
        let error = serde_json::from_value::<StreamEvent>(json).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[test]
fn media_deltas_are_folded_into_blocks() {
    let mut aggregate = Aggregate::default();
    let piece = |data: &'static [u8], mime_type: Option<&str>| StreamEvent::ImageDelta {
        index: 0,
        data: Bytes::from_static(data),
        mime_type: mime_type.map(Into::into),
    };
    aggregate.push(&StreamEvent::TextDelta {
        index: 0,
        text: "see".into(),
    });
    aggregate.push(&piece(&[0], None));
    aggregate.push(&piece(&[255], Some("image/png")));
    aggregate.push(&StreamEvent::AudioDelta {
        index: 1,
        data: Bytes::from_static(b"a"),
        mime_type: None,
    });
    aggregate.push(&StreamEvent::VideoDelta {
        index: 2,
        data: Bytes::from_static(b"v"),
        mime_type: Some("video/mp4".into()),
    });
    let media =
        |data: &str, mime: &str| Media::new(MediaSource::Base64 { data: data.into() }, mime);
    let (content, calls) = aggregate.finish();
    assert_eq!(
        content,
        [
            AssistantContent::Text { text: "see".into() },
            AssistantContent::Image(media("AP8=", "image/png")),
            AssistantContent::Audio(media("YQ==", "application/octet-stream")),
            AssistantContent::Video(media("dg==", "video/mp4")),
        ]
    );
    assert!(calls.is_empty());
}

#[test]
fn a_call_is_named_by_whichever_delta_names_it() {
    let mut aggregate = Aggregate::default();
    for (id, name, json) in [("", "", "{"), ("c", "", "\"a\""), ("", "t", ":1}")] {
        aggregate.push(&StreamEvent::ToolCallDelta {
            index: 3,
            tool_call_id: id.into(),
            tool_name: name.into(),
            arguments_json: json.into(),
        });
    }
    let (_, calls) = aggregate.finish();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (
            calls[0].tool_call_id.as_str(),
            &*calls[0].tool_name,
            calls[0].arguments.text()
        ),
        ("c", "t", "{\"a\":1}")
    );
}
