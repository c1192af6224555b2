//! Threads and messages as objects, and what holds of every object.

use super::logs::{THREAD, Writer, start, thread};
use super::schema;
use jiff::SignedDuration;
use loomline_interop::threads::{
    CreateMessage, CreateThread, RunStatus, ThreadView, message_of_item, thread_object,
};
use proptest::prelude::*;
use serde_json::json;
use timeline::{Command, NewThread};

pub(super) fn view(writer: &Writer) -> ThreadView {
    ThreadView::of(&writer.log.transcript())
}

#[test]
fn a_thread_is_shown_with_what_its_client_noted_and_with_aitps_members() {
    let body = json!({"metadata": {"k": "v"}, "tool_resources": {"code_interpreter": {"file_ids": ["f"]}}});
    let mut new = NewThread::new(THREAD, Some("k"));
    new.metadata = CreateThread::read(Some(&body)).unwrap().stored();
    let log = crate::log::Log::new(new, start());
    let shown = thread_object(log.state.thread().unwrap());
    assert!(shown.losses.is_empty());
    let object = serde_json::to_value(&shown.value).unwrap();
    schema::check("ThreadObject", &object);
    assert_eq!(object["id"], "thread_0197b2c4000070008000000000000001");
    assert_eq!(
        (&object["metadata"], &object["tool_resources"]),
        (&body["metadata"], &body["tool_resources"])
    );

    let mut new = NewThread::new(THREAD, Some("k"));
    new.metadata = Some(json!({"actors": [{"id": "a"}], "parent_id": null, "depth": 3}).into());
    let log = crate::log::Log::new(new, start());
    let shown = thread_object(log.state.thread().unwrap());
    let object = serde_json::to_value(&shown.value).unwrap();
    assert_eq!(
        object["metadata"],
        json!({"actors": [{"id": "a"}], "parent_id": null})
    );
    assert_eq!(shown.losses[0].pointer, "/metadata/depth");
}

#[test]
fn a_message_comes_back_as_it_was_made() {
    let body = json!({"role": "user", "content": [{"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "image_file", "image_file": {"file_id": "file-1", "detail": "auto"}}],
        "attachments": [
            {"file_id": "file-2", "tools": [{"type": "file_search"}]},
            {"file_id": "file-3", "tools": []},
            {"file_id": "file-2", "tools": [{"type": "code_interpreter"}]},
            {"file_id": "file-2", "tools": []},
        ], "metadata": {"k": "v"}});
    schema::check("CreateMessageRequest", &body);
    let mut writer = Writer::new();
    let id = writer.id();
    let item = CreateMessage::read(&body).unwrap().item(&id);
    writer.log.run(Command::Record { item });
    let view = view(&writer);
    let object = view.messages().next().unwrap().object().unwrap();
    let object = serde_json::to_value(object).unwrap();
    schema::check("MessageObject", &object);
    assert_eq!(
        object["content"][0],
        json!({"type": "text", "text": {"value": "See", "annotations": []}})
    );
    assert_eq!(object["content"][1], body["content"][1]);
    assert_eq!(object["content"][2], body["content"][2]);
    assert_eq!(
        (&object["attachments"], &object["metadata"]),
        (&body["attachments"], &body["metadata"])
    );
    assert_eq!(
        (&object["role"], &object["run_id"], &object["status"]),
        (&json!("user"), &json!(null), &json!("completed"))
    );
    let found = view.message(object["id"].as_str().unwrap()).unwrap();
    assert_eq!(serde_json::to_value(found).unwrap(), object);
    assert_eq!(view.message("msg_unknown"), None);
}

#[test]
fn what_a_message_has_no_place_for_is_said() {
    let mut writer = Writer::new();
    let mut item = writer.user("x");
    let citation = json!({"type": "file_citation", "text": "[1]", "file_citation": {"file_id": "f"}, "start_index": 0, "end_index": 3});
    item.content = Some(json!([
        {"type": "output_text", "text": "[1]", "annotations": [{"type": "url_citation", "url": "https://x"}, citation]},
        {"type": "input_file", "file_url": "https://x/y.pdf"},
        {"type": "data-app", "data": 1}]).into());
    writer.log.run(Command::Record { item: item.clone() });
    let kept = super::logs::item(&writer.log, &item.id);
    let shown = message_of_item(THREAD, kept).unwrap();
    let object = serde_json::to_value(shown.value).unwrap();
    schema::check("MessageObject", &object);
    assert_eq!(
        object["content"],
        json!([{"type": "text", "text": {"value": "[1]", "annotations": [citation]}}])
    );
    let lost: Vec<&str> = shown
        .losses
        .iter()
        .map(|loss| loss.pointer.as_str())
        .collect();
    assert_eq!(
        lost,
        ["/content/0/annotations/0", "/content/1", "/content/2"]
    );
}

proptest! {
    #[test]
    fn every_object_of_any_thread_is_what_the_schemas_say(bytes in prop::collection::vec(any::<u8>(), 0..160), later in 0i64..900) {
        let log = thread(&bytes);
        let now = log.at + SignedDuration::from_secs(later);
        let view = ThreadView::of(&log.transcript());
        let mut ids = std::collections::BTreeSet::new();
        for run in view.runs() {
            let object = serde_json::to_value(run.object(now)).unwrap();
            schema::check("RunObject", &object);
            prop_assert_eq!(object["required_action"].is_object(), run.status(now) == RunStatus::RequiresAction);
            prop_assert_eq!(object["usage"].is_null() || !run.status(now).is_active(), true);
            for step in run.steps(now) {
                schema::check("RunStepObject", &serde_json::to_value(&step).unwrap());
                prop_assert!(run.status(now).is_active() || step.status.name() != "in_progress");
                prop_assert!(ids.insert(step.id));
            }
        }
        for message in view.messages().filter_map(|it| it.object()) {
            schema::check("MessageObject", &serde_json::to_value(&message).unwrap());
            prop_assert!(ids.insert(message.id));
        }
        // At most the last run is active.
        let active = view.runs().iter().filter(|run| run.status(now).is_active());
        prop_assert!(active.count() <= 1);
    }
}
