//! Runs that are to begin, and outputs of tools.

use super::told;
use crate::threads::logs::{Writer, start};
use crate::threads::schema;
use loomline_interop::options::{AnswerFormat, RunOptions, RunToolChoice};
use loomline_interop::threads::{
    Assistant, CreateRun, CreateThreadAndRun, SubmitToolOutputs, ThreadView,
};
use serde_json::{Map, Value, json};
use timeline::{Answer, AnswerContent};

pub(super) fn agent() -> Assistant {
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
        Some(RunToolChoice::Function {
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
    assert_eq!(
        answers[0].content,
        AnswerContent::Output(json!("18").into())
    );
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
