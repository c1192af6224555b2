//! What clients ask for, and what is refused.

mod assistants;
mod messages;
mod runs;
mod threads;

use super::schema;
use loomline_interop::threads::{
    AssistantChange, CreateAssistant, CreateMessage, CreateRun, CreateThread, CreateThreadAndRun,
    ModifyThread, RequestError, SubmitToolOutputs,
};
use proptest::prelude::*;
use serde_json::Value;

fn told<T: std::fmt::Debug>(read: Result<T, RequestError>) -> (String, Option<String>) {
    let error = read.unwrap_err();
    let body = error.body();
    schema::check("ErrorResponse", &body);
    let param = body["error"]["param"].as_str().map(str::to_owned);
    (error.to_string(), param)
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "user",
            "text",
            "function",
            "auto",
            "image_url",
            "x"
        ])
        .prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "metadata",
        "tools",
        "function",
        "name",
        "tool_choice",
        "thread",
        "messages",
        "assistant_id",
        "attachments",
        "file_id",
        "tool_outputs",
        "tool_call_id",
        "output",
        "response_format",
        "model",
        "truncation_strategy",
        "image_url",
        "url",
        "tool_resources",
        "code_interpreter",
        "file_ids",
        "actors",
        "a/b~c",
    ]);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused_at_a_place_in_it(body in json_value()) {
        let errors = [
            CreateMessage::read(&body).err(),
            CreateThread::read(Some(&body)).err(),
            CreateRun::read(&body).err(),
            CreateThreadAndRun::read(&body).err(),
            SubmitToolOutputs::read(&body).err(),
            CreateAssistant::read(&body).err(),
            AssistantChange::read(&body).err(),
            ModifyThread::read(Some(&body)).err(),
        ];
        for error in errors.into_iter().flatten() {
            let pointer = error.pointer().unwrap();
            // What is missing has a place in what is there.
            let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            prop_assert!(body.pointer(parent).is_some(), "{}: {}", pointer, error);
        }
    }
}
