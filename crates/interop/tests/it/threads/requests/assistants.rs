//! Assistants and files.

use super::runs::agent;
use super::told;
use crate::threads::logs::start;
use crate::threads::schema;
use loomline_interop::options::AnswerFormat;
use loomline_interop::threads::{
    Assistant, AssistantChange, CreateAssistant, CreateRun, FileQuery, FileUpload,
};
use serde_json::json;

#[test]
fn an_assistant_is_kept_shown_and_changed() {
    let body = json!({"model": "m-1", "name": "Ada", "instructions": "Be brief.", "temperature": 1.5,
        "tools": [{"type": "function", "function": {"name": "look"}}], "response_format": {"type": "json_object"},
        "metadata": {"k": "v"}, "reasoning_effort": "high"});
    schema::check("CreateAssistantRequest", &body);
    let create = CreateAssistant::read(&body).unwrap();
    let mut assistant = create.assistant("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061", start());
    assert_eq!(assistant.id, "asst_0190a3c45b6d7e8f9a0b1c2d3e4f5061");
    schema::check("AssistantObject", &assistant.object());
    let stored = serde_json::to_string(&assistant).unwrap();
    assert_eq!(
        serde_json::from_str::<Assistant>(&stored).unwrap(),
        assistant
    );
    // A run of it asks for all that it was made with.
    let run = CreateRun::read(&json!({"assistant_id": assistant.id})).unwrap();
    let options = run.options(&assistant).value;
    assert_eq!(options.model.as_deref(), Some("m-1"));
    assert_eq!(options.instructions.as_deref(), Some("Be brief."));
    assert_eq!((options.tools.len(), options.only_these_tools), (1, true));
    assert_eq!(options.format, Some(AnswerFormat::JsonObject));
    assert_eq!(options.temperature, Some(1.5));
    let change = json!({"name": null, "instructions": "Be long.", "tools": [], "metadata": {}});
    AssistantChange::read(&change)
        .unwrap()
        .apply(&mut assistant);
    assert_eq!(
        (assistant.name.as_deref(), assistant.instructions.as_deref()),
        (None, Some("Be long."))
    );
    assert!(assistant.tools.is_empty() && assistant.metadata.is_empty());
    assert_eq!(assistant.temperature, Some(1.5));
    schema::check("AssistantObject", &agent().object());
}

#[test]
fn an_assistant_that_can_not_be_is_refused() {
    for (body, param) in [
        (json!({}), "model"),
        (json!({"model": "m", "name": "x".repeat(257)}), "name"),
        (
            json!({"model": "m", "description": "x".repeat(513)}),
            "description",
        ),
        (
            json!({"model": "m", "tools": vec![json!({}); 129]}),
            "tools",
        ),
        (
            json!({"model": "m", "tools": [{"type": "file_search"}]}),
            "tools[0].type",
        ),
        (
            json!({"model": "m", "tool_resources": {"file_search": {"vector_store_ids": ["a", "b"]}}}),
            "tool_resources.file_search.vector_store_ids",
        ),
    ] {
        assert_eq!(told(CreateAssistant::read(&body)).1.as_deref(), Some(param));
    }
}

#[test]
fn an_upload_says_what_it_is_for_and_how_long() {
    let fields = [
        ("purpose", "assistants"),
        ("expires_after[anchor]", "created_at"),
        ("expires_after[seconds]", "3600"),
    ];
    let upload = FileUpload::read(fields).unwrap();
    let file = upload
        .file("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061", "a.txt", 7, start())
        .unwrap();
    assert_eq!(file.expires_at, Some(file.created_at + 3600));
    schema::check("OpenAIFile", &serde_json::to_value(&file).unwrap());
    assert_eq!(told(FileUpload::read([])).1.unwrap(), "purpose");
    assert_eq!(
        told(FileUpload::read([("purpose", "fun")])).1.unwrap(),
        "purpose"
    );
    let half = [("purpose", "vision"), ("expires_after[seconds]", "3600")];
    assert_eq!(
        told(FileUpload::read(half)).1.unwrap(),
        "expires_after.anchor"
    );
    let query = FileQuery::read([("purpose", "vision"), ("limit", "10000")]).unwrap();
    assert_eq!(
        (query.list.limit, query.purpose.as_deref()),
        (10_000, Some("vision"))
    );
    assert!(FileQuery::read([("limit", "10001")]).is_err());
}
