//! The options of a request's run. An option that no run can meet is refused, never left out.

use super::VIEW;
use crate::options::{AnswerFormat, ClientTool, MIN_ANSWER_TOKENS, RunOptions, RunToolChoice};
use crate::responses::RequestError;
use crate::responses::fields::{Fields, invalid, metadata, unsupported, wrong};
use crate::responses::item::name;
use crate::responses::tools::{MAX_TOOLS, check_names, function, named_schema};
use serde_json::{Map, Value, json};

/// The members that are read here or by the request.
const READ: [&str; 17] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "reasoning_effort",
    "stream",
    "stream_options",
    "metadata",
    "store",
];

/// The members that are stored with the run and change nothing, with their greatest lengths.
const KEPT: [(&str, usize); 4] = [
    ("user", 512),
    ("safety_identifier", 64),
    ("prompt_cache_key", 64),
    ("prompt_cache_retention", 64),
];

/// Reads how the run differs from what its agent is configured to do.
pub(super) fn options(fields: &Fields<'_>) -> Result<RunOptions, RequestError> {
    check_members(fields)?;
    let model = fields.required("model", 256)?;
    let max_output_tokens = max_tokens(fields)?;
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh"];
    let mut options = RunOptions {
        model: Some(model.to_owned()),
        tools: tools(fields)?,
        tool_choice: tool_choice(fields)?,
        parallel_tool_calls: fields.flag("parallel_tool_calls")?,
        temperature: fields.number("temperature", 0.0, 2.0)?,
        top_p: fields.number("top_p", 0.0, 1.0)?,
        presence_penalty: fields.number("presence_penalty", -2.0, 2.0)?,
        frequency_penalty: fields.number("frequency_penalty", -2.0, 2.0)?,
        max_output_tokens,
        max_run_output_tokens: max_output_tokens,
        tokens_begin_here: max_output_tokens.is_some(),
        reasoning_effort: fields
            .word("reasoning_effort", &efforts)?
            .map(str::to_owned),
        format: format(fields)?,
        ..RunOptions::default()
    };
    options.echo.insert(VIEW.to_owned(), kept(fields, model)?);
    Ok(options)
}

/// Data that is stored with the run for its reader.
fn kept(fields: &Fields<'_>, model: &str) -> Result<Value, RequestError> {
    let mut kept = Map::from_iter([("model".to_owned(), model.into())]);
    for (key, limit) in KEPT {
        let text = fields.text(key, limit)?;
        kept.extend(text.map(|text| (key.to_owned(), text.into())));
    }
    let metadata = metadata(fields, "metadata")?;
    if !metadata.is_empty() {
        kept.insert("metadata".to_owned(), metadata.into());
    }
    Ok(kept.into())
}

/// Refuses members that are not known, and values that can't be met.
fn check_members(fields: &Fields<'_>) -> Result<(), RequestError> {
    for (key, value) in fields.map() {
        let key = key.as_str();
        let is_read = READ.contains(&key) || KEPT.iter().any(|(kept, _)| *kept == key);
        if is_read || value.is_null() {
            continue;
        }
        let expected = match key {
            "n" if *value == json!(1) => continue,
            "n" => "expected 1: a run gives one answer",
            "logprobs" if *value == json!(false) => continue,
            "top_logprobs" if *value == json!(0) => continue,
            "logprobs" | "top_logprobs" => "expected no value: log probabilities are not kept",
            "logit_bias" if *value == json!({}) => continue,
            "stop" if *value == json!([]) => continue,
            "logit_bias" | "seed" | "stop" | "prediction" | "web_search_options" => {
                "expected no value: runs do not have this option"
            }
            "modalities" if *value == json!(["text"]) => continue,
            "modalities" | "audio" => "expected text only: answers have no audio",
            "service_tier" if matches!(value.as_str(), Some("auto" | "default")) => continue,
            "service_tier" => "expected \"auto\" or \"default\": there is one tier",
            "verbosity" if *value == "medium" => continue,
            "verbosity" => "expected \"medium\": how much an answer says is left to the model",
            "functions" | "function_call" => {
                "expected no value: send \"tools\" and \"tool_choice\""
            }
            _ => {
                let message = format!("Unknown parameter: '{key}'.");
                return Err(RequestError::at(
                    fields.at(key),
                    "unknown_parameter",
                    message,
                ));
            }
        };
        return Err(unsupported(fields.at(key), expected));
    }
    Ok(())
}

/// The limit of an answer, under its new or its old name.
fn max_tokens(fields: &Fields<'_>) -> Result<Option<u64>, RequestError> {
    let old = fields.count("max_tokens", MIN_ANSWER_TOKENS, u64::MAX)?;
    let new = fields.count("max_completion_tokens", MIN_ANSWER_TOKENS, u64::MAX)?;
    match (old, new) {
        (Some(old), Some(new)) if old != new => Err(invalid(
            fields.at("max_tokens"),
            "expected the value of \"max_completion_tokens\", or no value",
        )),
        (old, new) => Ok(new.or(old)),
    }
}

/// Refuses what is no function.
pub(super) fn check_function(fields: &Fields<'_>) -> Result<(), RequestError> {
    match fields.required("type", 256)? {
        "function" => Ok(()),
        kind => {
            let message = format!("expected \"function\", got {kind:?}");
            Err(unsupported(fields.at("type"), &message))
        }
    }
}

fn tools(fields: &Fields<'_>) -> Result<Vec<ClientTool>, RequestError> {
    let list = fields.placed("tools", MAX_TOOLS)?.unwrap_or_default();
    let tools = list.into_iter().map(|(at, value)| {
        let tool = Fields::of(value, at)?;
        check_function(&tool)?;
        function(&tool.inner("function")?)
    });
    let tools: Vec<ClientTool> = tools.collect::<Result<_, RequestError>>()?;
    check_names(&tools, |place| {
        format!("{}/{place}/function/name", fields.at("tools"))
    })?;
    Ok(tools)
}

fn tool_choice(fields: &Fields<'_>) -> Result<Option<RunToolChoice>, RequestError> {
    let at = fields.at("tool_choice");
    let choice = match fields.get("tool_choice") {
        None => return Ok(None),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => RunToolChoice::Auto,
            "none" => RunToolChoice::None,
            "required" => RunToolChoice::Required,
            _ => {
                let expected = "expected \"auto\", \"none\", \"required\" or an object";
                return Err(invalid(at, expected));
            }
        },
        Some(value @ Value::Object(_)) => {
            let choice = Fields::of(value, at)?;
            match choice.required("type", 256)? {
                "allowed_tools" => allowed(&choice.inner("allowed_tools")?)?,
                _ => RunToolChoice::Function {
                    name: function_name(&choice)?,
                },
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(wrong(at, "a string or an object"));
        }
    };
    Ok(Some(choice))
}

fn function_name(fields: &Fields<'_>) -> Result<String, RequestError> {
    check_function(fields)?;
    name(&fields.inner("function")?)
}

fn allowed(fields: &Fields<'_>) -> Result<RunToolChoice, RequestError> {
    let tools = fields.placed("tools", MAX_TOOLS)?.unwrap_or_default();
    if tools.is_empty() {
        return Err(invalid(fields.at("tools"), "expected 1 to 128 tools"));
    }
    let names = tools.into_iter();
    let names = names.map(|(at, tool)| function_name(&Fields::of(tool, at)?));
    let names = names.collect::<Result<_, RequestError>>()?;
    let mode = fields.word("mode", &["auto", "required"])?;
    Ok(RunToolChoice::Allowed {
        names,
        required: mode == Some("required"),
    })
}

fn format(fields: &Fields<'_>) -> Result<Option<AnswerFormat>, RequestError> {
    let Some(format) = fields.object("response_format")? else {
        return Ok(None);
    };
    match format.required("type", 256)? {
        "text" => Ok(None),
        "json_object" => Ok(Some(AnswerFormat::JsonObject)),
        "json_schema" => {
            let named = format.inner("json_schema")?;
            let (_, schema) = named_schema(&named)?;
            let schema = schema.clone();
            Ok(Some(AnswerFormat::JsonSchema { schema }))
        }
        kind => {
            let expected = "expected \"text\", \"json_object\" or \"json_schema\"";
            let message = format!("{expected}, got {kind:?}");
            Err(unsupported(format.at("type"), &message))
        }
    }
}
