//! What clients ask for, and what is refused.

use super::logs::{THREAD, Writer, start};
use super::schema;
use loomline_interop::options::{AnswerFormat, RunOptions, ToolChoice};
use loomline_interop::threads::{
    Assistant, AssistantChange, CreateAssistant, CreateMessage, CreateRun, CreateThread,
    CreateThreadAndRun, FileQuery, FileUpload, ModifyThread, RequestError, SubmitToolOutputs,
    ThreadView, metadata_of,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use timeline::{Answer, Payload, Role, Says};

fn told<T: std::fmt::Debug>(read: Result<T, RequestError>) -> (String, Option<String>) {
    let error = read.unwrap_err();
    let body = error.body();
    schema::check("ErrorResponse", &body);
    let param = body["error"]["param"].as_str().map(str::to_owned);
    (error.to_string(), param)
}

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

#[test]
fn a_thread_may_begin_with_nothing_with_messages_or_as_aitp_has_it() {
    assert_eq!(CreateThread::read(None).unwrap(), CreateThread::default());
    let actors = json!([{"id": "a.near", "capabilities": [{"schema": "https://x"}]}, 7]);
    let many: Vec<Value> = (0..60)
        .map(|n| json!({"id": n.to_string(), "capabilities": ["https://x"]}))
        .collect();
    let read = |n: usize| json!({"id": n.to_string(), "capabilities": [{"schema": "https://x"}]});
    let structural: Vec<Value> = (0..60).map(read).collect();
    for (actors, kept_actors) in [
        (actors.clone(), actors),
        (json!(json!(many).to_string()), json!(structural)),
    ] {
        let body = json!({"messages": ["Book a flight", {"role": "assistant", "content": ["Where to?"]}],
            "metadata": {"k": "v", "actors": actors, "parent_id": null}});
        let thread = CreateThread::read(Some(&body)).unwrap();
        let roles: Vec<Role> = thread.messages.iter().map(|it| it.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant]);
        let kept = thread.kept().unwrap().value();
        let expected = json!({"k": "v", "actors": kept_actors, "parent_id": null});
        assert_eq!(kept, expected);
    }
    let body = json!({"metadata": {"actors": "me and you"}});
    let (message, param) = told(CreateThread::read(Some(&body)));
    assert_eq!(param.as_deref(), Some("metadata.actors"));
    assert!(message.contains("a list of actors"), "{message}");
    let resources = json!({"code_interpreter": {"file_ids": ["f"]}});
    let body = json!({"tool_resources": resources});
    let thread = CreateThread::read(Some(&body)).unwrap();
    assert_eq!(
        thread.kept().unwrap().value(),
        json!({"threads": {"tool_resources": resources}})
    );
    let body = json!({"tool_resources": {"code_interpreter": {"file_ids": vec!["f"; 21]}}});
    assert!(CreateThread::read(Some(&body)).is_err());
    let body = json!({"messages": [{"role": "user"}]});
    assert_eq!(
        told(CreateThread::read(Some(&body))).1.unwrap(),
        "messages[0].content"
    );
}

#[test]
fn a_client_can_not_note_what_is_the_servers_own_on_a_thread() {
    for key in ["threadprotocol", "uap", "loomline", "responses", "threads"] {
        let body = json!({"metadata": {key: "x"}});
        let expected = format!("metadata.{key}");
        let (message, param) = told(CreateThread::read(Some(&body)));
        assert_eq!(param.as_deref(), Some(expected.as_str()));
        assert!(message.contains("the server's own"), "{message}");
        assert!(ModifyThread::read(Some(&body)).is_err());
        // Notes on runs and messages are kept apart, and may be called anything.
        for of_message in [true, false] {
            let noted = metadata_of(&body, of_message).unwrap().unwrap();
            assert_eq!(json!(noted.map()), body["metadata"]);
        }
    }
}

#[test]
fn what_is_the_servers_own_on_a_thread_is_neither_shown_nor_lost() {
    let link = json!({"relation": "spawned_from", "thread_id": "t"});
    let own = json!({"threadprotocol": {"root": {"relationships": {"links": [link]}}},
        "uap": "odd", "old": "x"});
    let mut new = timeline::NewThread::new(THREAD, None);
    new.metadata = Some(own.clone().into());
    let log = crate::log::Log::new(new, start());
    let thread = log.state.thread().unwrap();
    let shown = loomline_interop::threads::thread_object(thread);
    assert_eq!(json!(shown.value.metadata.map()), json!({"old": "x"}));
    assert!(shown.losses.is_empty());
    let change = ModifyThread::read(Some(&json!({"metadata": {}}))).unwrap();
    let kept = change.kept(thread.metadata.as_ref()).value();
    let expected = json!({"threadprotocol": own["threadprotocol"], "uap": "odd"});
    assert_eq!(kept, expected);
}

#[test]
fn a_thread_is_modified_without_losing_what_others_keep() {
    let before = Payload::from(json!({"old": "x", "actors": [1], "app": {"n": 1}}));
    let none = ModifyThread::read(None).unwrap();
    assert!(none.is_empty());
    assert_eq!(none.kept(Some(&before)).value(), before.value());
    let body = json!({"metadata": {"new": "y"}, "tool_resources": {}});
    let change = ModifyThread::read(Some(&body)).unwrap();
    let kept = change.kept(Some(&before)).value();
    assert_eq!(
        kept,
        json!({"actors": [1], "app": {"n": 1}, "new": "y", "threads": {"tool_resources": {}}})
    );
    let kept = Payload::from(kept);
    let cleared = ModifyThread::read(Some(&json!({"tool_resources": null}))).unwrap();
    assert!(!cleared.is_empty());
    assert_eq!(
        cleared.kept(Some(&kept)).value(),
        json!({"actors": [1], "app": {"n": 1}, "new": "y"})
    );
    assert_eq!(metadata_of(&json!({}), true), Ok(None));
    assert!(metadata_of(&json!({"metadata": {"actor": 1}}), true).is_ok());
    assert!(metadata_of(&json!({"metadata": {"actor": 1}}), false).is_err());
}

fn agent() -> Assistant {
    Assistant::of_agent("ada", "m-1", Some("Be brief.".into()), start())
}

#[test]
fn a_run_of_an_agent_asks_only_for_what_the_request_says() {
    let run = CreateRun::read(&json!({"assistant_id": "ada"})).unwrap();
    let options = run.options(&agent());
    assert!(options.losses.is_empty());
    let echo = &options.value.echo["threads"];
    assert_eq!(echo["assistant_id"], "ada");
    assert_eq!(
        (&echo["model"], &echo["instructions"]),
        (&json!("m-1"), &json!("Be brief."))
    );
    let rest = RunOptions {
        echo: Map::new(),
        ..options.value
    };
    assert_eq!(rest, RunOptions::default());
}

#[test]
fn every_override_of_a_run_reaches_its_options() {
    let schema = json!({"type": "object"});
    let body = json!({"assistant_id": "ada", "model": "m-9", "instructions": "Shout.", "additional_instructions": "Now.",
        "tools": [{"type": "function", "function": {"name": "look", "description": "d", "parameters": schema, "strict": true}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}}, "parallel_tool_calls": false,
        "temperature": 0.5, "top_p": 1, "max_completion_tokens": 256, "max_prompt_tokens": 1000,
        "truncation_strategy": {"type": "last_messages", "last_messages": 3},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        "reasoning_effort": "low", "metadata": {"k": "v"}, "stream": true,
        "additional_messages": [{"role": "user", "content": "Hi"}]});
    schema::check("CreateRunRequest", &body);
    let run = CreateRun::read(&body).unwrap();
    assert!(run.stream);
    assert_eq!(run.additional_messages.len(), 1);
    let options = run.options(&agent());
    let lost: Vec<&str> = options
        .losses
        .iter()
        .map(|loss| loss.pointer.as_str())
        .collect();
    assert_eq!(lost, ["/max_prompt_tokens", "/truncation_strategy"]);
    let options = options.value;
    assert_eq!(options.model.as_deref(), Some("m-9"));
    assert_eq!(options.instructions.as_deref(), Some("Shout."));
    assert_eq!(options.additional_instructions.as_deref(), Some("Now."));
    assert!(options.only_these_tools);
    assert_eq!(options.tools[0].parameters, Some(schema.clone()));
    assert_eq!(
        options.tool_choice,
        Some(ToolChoice::Function {
            name: "look".into()
        })
    );
    assert_eq!(options.parallel_tool_calls, Some(false));
    assert_eq!((options.temperature, options.top_p), (Some(0.5), Some(1.0)));
    assert_eq!(options.max_run_output_tokens, Some(256));
    assert_eq!(options.reasoning_effort.as_deref(), Some("low"));
    assert_eq!(options.format, Some(AnswerFormat::JsonSchema { schema }));
    // What was asked for is said again.
    let mut writer = Writer::asked(&body);
    writer.start(None);
    let view = ThreadView::of(&writer.log.transcript());
    let object = serde_json::to_value(view.runs()[0].object(writer.log.at)).unwrap();
    schema::check("RunObject", &object);
    for member in [
        "model",
        "tool_choice",
        "parallel_tool_calls",
        "temperature",
        "max_completion_tokens",
        "max_prompt_tokens",
        "truncation_strategy",
        "response_format",
        "metadata",
        "tools",
    ] {
        assert_eq!(object[member], body[member], "{member}");
    }
    assert_eq!(object["instructions"], "Shout.\nNow.");
    assert_eq!(
        object["expires_at"],
        object["created_at"].as_i64().unwrap() + 600
    );
}

#[test]
fn a_run_out_of_bounds_is_refused() {
    for (change, param) in [
        (json!({"assistant_id": null}), "assistant_id"),
        (json!({"temperature": 2.1}), "temperature"),
        (json!({"top_p": -0.1}), "top_p"),
        (
            json!({"max_completion_tokens": 255}),
            "max_completion_tokens",
        ),
        (json!({"max_prompt_tokens": 0.5}), "max_prompt_tokens"),
        (json!({"tools": vec![json!({}); 21]}), "tools"),
        (
            json!({"tools": [{"type": "code_interpreter"}]}),
            "tools[0].type",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "a b"}}]}),
            "tools[0].function.name",
        ),
        (json!({"tool_choice": "sometimes"}), "tool_choice"),
        (
            json!({"tool_choice": {"type": "file_search"}}),
            "tool_choice.type",
        ),
        (
            json!({"response_format": {"type": "xml"}}),
            "response_format.type",
        ),
        (
            json!({"truncation_strategy": {"type": "last_messages"}}),
            "truncation_strategy.last_messages",
        ),
        (json!({"reasoning_effort": "some"}), "reasoning_effort"),
        (
            json!({"additional_messages": [{"role": "user", "content": ""}]}),
            "additional_messages[0].content",
        ),
        (json!({"stream": "yes"}), "stream"),
    ] {
        let mut body = json!({"assistant_id": "ada"});
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        assert_eq!(
            told(CreateRun::read(&body)).1.as_deref(),
            Some(param),
            "{body}"
        );
    }
}

#[test]
fn a_thread_and_its_run_come_in_one_request() {
    let body = json!({"assistant_id": "ada", "thread": {"messages": [{"role": "user", "content": "Hi"}]},
        "tool_resources": {"code_interpreter": {"file_ids": []}}, "stream": true});
    schema::check("CreateThreadAndRunRequest", &body);
    let both = CreateThreadAndRun::read(&body).unwrap();
    assert_eq!(both.thread.messages.len(), 1);
    assert!(both.thread.tool_resources.is_some() && both.run.stream);
    let wrong = json!({"assistant_id": "ada", "thread": {"messages": [{"role": "user"}]}});
    assert_eq!(
        told(CreateThreadAndRun::read(&wrong)).1.unwrap(),
        "thread.messages[0].content"
    );
    assert!(CreateThreadAndRun::read(&json!({"assistant_id": "ada"})).is_ok());
}

#[test]
fn outputs_must_be_those_of_the_calls_that_wait() {
    let mut writer = Writer::new();
    writer.asks("call_1");
    let view = ThreadView::of(&writer.log.transcript());
    let run = &view.runs()[0];
    let submit = |outputs: Value| {
        let body = json!({"tool_outputs": outputs});
        SubmitToolOutputs::read(&body)
            .unwrap()
            .item("i", run, writer.log.at)
    };
    let output = |id: &str| json!({"tool_call_id": id, "output": "18"});
    for wrong in [
        json!([]),
        json!([output("x")]),
        json!([output("call_1"), output("x")]),
        json!([output("call_1"), output("call_1")]),
    ] {
        let (text, _) = told(submit(wrong));
        assert!(
            text.starts_with("Expected tool outputs for call_ids ['call_1'], got ["),
            "{text}"
        );
    }
    let item = submit(json!([output("call_1")])).unwrap();
    let answers = Answer::read(item.content.as_ref()).unwrap();
    assert_eq!(answers[0].says, Says::Output(json!("18").into()));
    assert_eq!(writer.log.state.check_answers(&item), Ok(()));

    let mut over = Writer::new();
    over.says("Hi");
    let view = ThreadView::of(&over.log.transcript());
    let submitted = SubmitToolOutputs::read(&json!({"tool_outputs": []})).unwrap();
    let (text, _) = told(submitted.item("i", &view.runs()[0], over.log.at));
    assert_eq!(
        text,
        "Runs in status \"completed\" do not accept tool outputs."
    );
}

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
