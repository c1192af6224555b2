//! Tools, tool choice and response format: read, checked, and converted to a run's options.

use super::error::RequestError;
use super::fields::{Fields, check_word, wrong};
use crate::options::{
    AnswerFormat, ClientTool, RunToolChoice, TOOL_NAME, check_schema, is_tool_name, repeated,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most characters of a tool's description.
const MAX_DESCRIPTION: usize = 1 << 16;
const MAX_NAME: usize = 64;

const TOOLS: &[&str] = &["code_interpreter", "file_search", "function"];
const CHOICES: &[&str] = &["none", "auto", "required"];
const FORMATS: &[&str] = &["text", "json_object", "json_schema"];
/// The reasoning efforts that a request may select.
pub(super) const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A tool of an assistant or a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantTool {
    /// The provider's code interpreter. It occurs only in assistants from other servers.
    CodeInterpreter,
    /// The provider's file search. It occurs only in assistants from other servers.
    FileSearch {
        /// Its settings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_search: Option<Value>,
    },
    /// A tool that the client executes.
    Function {
        /// The function as the model sees it.
        function: ClientTool,
    },
}

/// Reads the member `tools`. Tools that only `OpenAI` executes are refused by name.
pub(super) fn tools(
    fields: &Fields<'_>,
    max: usize,
) -> Result<Option<Vec<AssistantTool>>, RequestError> {
    let Some(list) = fields.placed("tools", max)? else {
        return Ok(None);
    };
    let tools = list.into_iter().map(|(pointer, value)| {
        let tool = Fields::of(value, pointer)?;
        let what = match tool.kind(TOOLS)? {
            "code_interpreter" => "the tool code_interpreter",
            "file_search" => "the tool file_search",
            _ => {
                let function = tool.inner("function")?;
                let function = client_tool(&function)?;
                return Ok(AssistantTool::Function { function });
            }
        };
        let pointer = tool.at("type");
        Err(RequestError::Unsupported { pointer, what })
    });
    let tools: Vec<AssistantTool> = tools.collect::<Result<_, _>>()?;
    // Nothing but functions has come so far.
    if let Some(place) = repeated(&client_tools(&tools)) {
        let pointer = format!("{}/{place}/function/name", fields.at("tools"));
        let expected = "a name that no other tool has";
        return Err(RequestError::Outside { pointer, expected });
    }
    Ok(Some(tools))
}

/// The name of a function.
fn tool_name(function: &Fields<'_>) -> Result<String, RequestError> {
    let name = function.required("name", MAX_NAME)?;
    if is_tool_name(name) {
        return Ok(name.to_owned());
    }
    let pointer = function.at("name");
    let expected = TOOL_NAME;
    Err(RequestError::Outside { pointer, expected })
}

fn client_tool(function: &Fields<'_>) -> Result<ClientTool, RequestError> {
    let name = tool_name(function)?;
    let parameters = function.object("parameters")?;
    let parameters = parameters.and_then(|_| function.get("parameters"));
    if let Some(schema) = parameters {
        usable(schema, &function.at("parameters"))?;
    }
    Ok(ClientTool {
        name,
        description: function
            .text("description", MAX_DESCRIPTION)?
            .map(str::to_owned),
        parameters: parameters.cloned(),
        strict: function.flag("strict")?,
    })
}

/// Checks a JSON Schema against the limits.
fn usable(schema: &Value, pointer: &str) -> Result<(), RequestError> {
    let checked = check_schema(schema, pointer);
    checked.map_err(|(pointer, expected)| RequestError::Outside { pointer, expected })
}

/// The tools of these that the client executes.
pub(super) fn client_tools(tools: &[AssistantTool]) -> Vec<ClientTool> {
    let own = tools.iter().filter_map(|tool| match tool {
        AssistantTool::Function { function } => Some(function.clone()),
        AssistantTool::CodeInterpreter | AssistantTool::FileSearch { .. } => None,
    });
    own.collect()
}

/// Reads the member `tool_choice`. Returns the client's value with the decoded one.
pub(super) fn tool_choice(
    fields: &Fields<'_>,
) -> Result<Option<(Value, RunToolChoice)>, RequestError> {
    let Some(value) = fields.get("tool_choice") else {
        return Ok(None);
    };
    let pointer = fields.at("tool_choice");
    let choice = match value {
        Value::String(word) => match check_word(pointer, word, CHOICES)? {
            "none" => RunToolChoice::None,
            "required" => RunToolChoice::Required,
            _ => RunToolChoice::Auto,
        },
        Value::Object(_) => named(&Fields::of(value, pointer)?)?,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(wrong(pointer, "a string or an object", other));
        }
    };
    Ok(Some((value.clone(), choice)))
}

fn named(choice: &Fields<'_>) -> Result<RunToolChoice, RequestError> {
    let what = match choice.kind(TOOLS)? {
        "code_interpreter" => "the tool code_interpreter",
        "file_search" => "the tool file_search",
        _ => {
            let function = choice.inner("function")?;
            let name = tool_name(&function)?;
            return Ok(RunToolChoice::Function { name });
        }
    };
    let pointer = choice.at("type");
    Err(RequestError::Unsupported { pointer, what })
}

/// Reads the member `response_format`. Returns the client's value with the decoded one.
pub(super) fn response_format(
    fields: &Fields<'_>,
) -> Result<Option<(Value, Option<AnswerFormat>)>, RequestError> {
    let Some(value) = fields.get("response_format") else {
        return Ok(None);
    };
    let pointer = fields.at("response_format");
    let format = match value {
        Value::String(word) => {
            check_word(pointer, word, &["auto"])?;
            None
        }
        Value::Object(_) => answer_format(&Fields::of(value, pointer)?)?,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(wrong(pointer, "\"auto\" or an object", other));
        }
    };
    Ok(Some((value.clone(), format)))
}

fn answer_format(format: &Fields<'_>) -> Result<Option<AnswerFormat>, RequestError> {
    match format.kind(FORMATS)? {
        "json_object" => Ok(Some(AnswerFormat::JsonObject)),
        "json_schema" => {
            let about = format.inner("json_schema")?;
            about.required("name", MAX_NAME)?;
            about.flag("strict")?;
            about.object("schema")?;
            let schema = about.get("schema").cloned();
            if let Some(schema) = &schema {
                usable(schema, &about.at("schema"))?;
            }
            Ok(Some(schema.map_or(AnswerFormat::JsonObject, |schema| {
                AnswerFormat::JsonSchema { schema }
            })))
        }
        _ => Ok(None),
    }
}

/// Reads the member `tool_resources`. The server stores and returns it, but does not use it.
pub(super) fn tool_resources(fields: &Fields<'_>) -> Result<Option<Value>, RequestError> {
    let Some(resources) = fields.object("tool_resources")? else {
        return Ok(None);
    };
    if let Some(interpreter) = resources.object("code_interpreter")? {
        interpreter.texts("file_ids", 20)?;
    }
    if let Some(search) = resources.object("file_search")? {
        search.texts("vector_store_ids", 1)?;
        if search.get("vector_stores").is_some() {
            let pointer = search.at("vector_stores");
            let what = "making vector stores";
            return Err(RequestError::Unsupported { pointer, what });
        }
    }
    Ok(fields.get("tool_resources").cloned())
}
