//! Messages that are to be made.

use super::told;
use loomline_interop::threads::CreateMessage;
use serde_json::{Map, Value, json};
use timeline::Role;

#[test]
fn a_message_of_any_shape_is_parts_of_the_log() {
    let body = json!({"role": "user", "content": [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "image_file", "image_file": {"file_id": "file-1"}}, "and this"],
        "attachments": [{"file_id": "file-2", "tools": [{"type": "file_search"}]}],
        "metadata": {"k": "v", "actor": {"id": "me"}}});
    let message = CreateMessage::read(&body).unwrap();
    let ids: Vec<&str> = message.file_ids().into_iter().collect();
    assert_eq!(ids, ["file-1", "file-2"]);
    let item = message.item("i");
    let expected = json!([
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        {"type": "input_image", "file_id": "file-1", "detail": "auto"},
        {"type": "input_text", "text": "and this"},
        {"type": "input_file", "file_id": "file-2"}]);
    assert_eq!(item.content.unwrap().value(), expected);
    let said = CreateMessage::read(&json!({"role": "assistant", "content": "Hm"})).unwrap();
    assert_eq!(said.role, Role::Assistant);
    assert_eq!(said.content, [json!({"type": "output_text", "text": "Hm"})]);
}

#[test]
fn a_message_that_says_nothing_is_refused() {
    for content in [
        json!(""),
        json!([]),
        json!([""]),
        json!([{"type": "text", "text": ""}]),
    ] {
        let read = CreateMessage::read(&json!({"role": "user", "content": content}));
        assert_eq!(told(read).0, "Message content must be non-empty.");
    }
}

#[test]
fn a_wrong_message_is_refused_with_its_place() {
    let message = |change: Value| {
        let mut body = json!({"role": "user", "content": "x"});
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        told(CreateMessage::read(&body))
    };
    let pairs: Map<String, Value> = (0..17).map(|n| (n.to_string(), "v".into())).collect();
    let long = "x".repeat(513);
    for (change, text, param) in [
        (
            json!({"role": "system"}),
            "Invalid value: 'system'. Supported values are: 'user' and 'assistant'.",
            "role",
        ),
        (
            json!({"role": null}),
            "Missing required parameter: 'role'.",
            "role",
        ),
        (
            json!({"content": null}),
            "Missing required parameter: 'content'.",
            "content",
        ),
        (
            json!({"content": 7}),
            "Invalid type for 'content': expected a string or an array, but got an integer instead.",
            "content",
        ),
        (
            json!({"content": [{"type": "text"}]}),
            "Missing required parameter: 'content[0].text'.",
            "content[0].text",
        ),
        (
            json!({"content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}),
            "Invalid 'content[0].image_url.url': expected an https: or http: URL, or a data: URL in base64.",
            "content[0].image_url.url",
        ),
        (
            json!({"content": [{"type": "image_url", "image_url": {"url": "data:image/png,<>"}}]}),
            "Invalid 'content[0].image_url.url': expected an https: or http: URL, or a data: URL in base64.",
            "content[0].image_url.url",
        ),
        (
            json!({"content": "x".repeat(256_001)}),
            "Invalid 'content': string too long. Expected a string with maximum length 256000, but got a string with length 256001 instead.",
            "content",
        ),
        (
            json!({"metadata": pairs}),
            "Invalid 'metadata': expected at most 16 entries, but got 17.",
            "metadata",
        ),
        (
            json!({"metadata": {"k": 1}}),
            "Invalid type for 'metadata.k': expected a string, but got an integer instead.",
            "metadata.k",
        ),
        (
            json!({"metadata": {"k": long}}),
            "Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but got a string with length 513 instead.",
            "metadata.k",
        ),
        (
            json!({"attachments": [{}]}),
            "Missing required parameter: 'attachments[0].file_id'.",
            "attachments[0].file_id",
        ),
    ] {
        assert_eq!(message(change), (text.to_owned(), Some(param.to_owned())));
    }
    let fits =
        json!({"role": "user", "content": "é".repeat(256_000), "metadata": {"k": "é".repeat(512)}});
    assert!(CreateMessage::read(&fits).is_ok());
}
