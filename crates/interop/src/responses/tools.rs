//! Tools, which of them may be called, and the form of the answer.

use super::error::RequestError;
use super::fields::{Fields, invalid, unsupported, wrong};
use super::item::name;
use crate::options::{
    AnswerFormat, ClientTool, RunToolChoice, TOOL_NAME, check_schema, is_tool_name, repeated,
};
use serde_json::{Map, Value, json};

/// The most tools of a request.
pub(crate) const MAX_TOOLS: usize = 128;
/// The most bytes of a tool's description.
pub(crate) const MAX_DESCRIPTION: usize = 65_536;

/// The tools of a request, which its client executes.
pub(super) fn tools(fields: &Fields<'_>) -> Result<Vec<ClientTool>, RequestError> {
    let list = fields.placed("tools", MAX_TOOLS)?.unwrap_or_default();
    let tools = list.into_iter().map(|(at, value)| tool(value, &at));
    let tools: Vec<ClientTool> = tools.collect::<Result<_, _>>()?;
    check_names(&tools, |place| {
        format!("{}/{place}/name", fields.at("tools"))
    })?;
    Ok(tools)
}

/// Refuses two tools with one name; `pointer` returns the pointer of a tool's name.
pub(crate) fn check_names(
    tools: &[ClientTool],
    pointer: impl Fn(usize) -> String,
) -> Result<(), RequestError> {
    match repeated(tools) {
        Some(place) => Err(invalid(
            pointer(place),
            "expected a name that no other tool has",
        )),
        None => Ok(()),
    }
}

fn tool(value: &Value, pointer: &str) -> Result<ClientTool, RequestError> {
    let fields = Fields::of(value, pointer)?;
    match fields.required("type", 256)? {
        "function" => {}
        kind => {
            let message = format!("tools of type {kind:?} are not offered, only \"function\"");
            return Err(unsupported(fields.at("type"), &message));
        }
    }
    function(&fields)
}

/// A function that the client runs.
pub(crate) fn function(fields: &Fields<'_>) -> Result<ClientTool, RequestError> {
    let parameters = fields.read("parameters", "a JSON Schema of an object", object)?;
    // Before it is copied: a schema that is refused may be large.
    if let Some(schema) = parameters {
        usable(schema, &fields.at("parameters"))?;
    }
    Ok(ClientTool {
        name: name(fields)?,
        description: fields
            .text("description", MAX_DESCRIPTION)?
            .map(str::to_owned),
        parameters: parameters.cloned(),
        strict: fields.flag("strict")?,
    })
}

fn object(value: &Value) -> Option<&Value> {
    value.is_object().then_some(value)
}

/// Checks a JSON Schema against the limits.
fn usable(schema: &Value, pointer: &str) -> Result<(), RequestError> {
    let checked = check_schema(schema, pointer);
    checked.map_err(|(pointer, what)| invalid(pointer, &format!("expected {what}")))
}

/// A tool as responses say it again.
pub(super) fn tool_echo(tool: &ClientTool) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description,
        "parameters": tool.parameters, "strict": tool.strict,
    })
}

/// The tools that the model may or must call, and the choice as responses repeat it.
pub(super) fn tool_choice(
    fields: &Fields<'_>,
) -> Result<(Option<RunToolChoice>, Value), RequestError> {
    let at = fields.at("tool_choice");
    match fields.get("tool_choice") {
        None => Ok((None, "auto".into())),
        Some(said @ Value::String(word)) => {
            let choice = match word.as_str() {
                "auto" => RunToolChoice::Auto,
                "none" => RunToolChoice::None,
                "required" => RunToolChoice::Required,
                _ => {
                    return Err(invalid(
                        at,
                        "expected \"auto\", \"none\", \"required\" or an object",
                    ));
                }
            };
            Ok((Some(choice), said.clone()))
        }
        Some(value @ Value::Object(_)) => {
            let choice = Fields::of(value, at)?;
            match choice.required("type", 256)? {
                "function" => {
                    let name = name(&choice)?;
                    let said = json!({"type": "function", "name": name});
                    Ok((Some(RunToolChoice::Function { name }), said))
                }
                "allowed_tools" => {
                    let (choice, said) = allowed(&choice)?;
                    Ok((Some(choice), said))
                }
                kind => {
                    let message = format!("a choice of type {kind:?} is not supported");
                    Err(unsupported(choice.at("type"), &message))
                }
            }
        }
        Some(_) => Err(wrong(at, "a string or an object")),
    }
}

fn allowed(choice: &Fields<'_>) -> Result<(RunToolChoice, Value), RequestError> {
    let tools = choice.placed("tools", MAX_TOOLS)?.unwrap_or_default();
    if tools.is_empty() {
        return Err(invalid(choice.at("tools"), "expected 1 to 128 tools"));
    }
    let mut names = Vec::with_capacity(tools.len());
    for (pointer, value) in tools {
        let tool = Fields::of(value, pointer)?;
        if tool.required("type", 256)? != "function" {
            return Err(unsupported(
                tool.at("type"),
                "only tools of type \"function\" can be allowed",
            ));
        }
        names.push(name(&tool)?);
    }
    let mode = choice.word("mode", &["none", "auto", "required"])?;
    let mode = mode.unwrap_or("auto");
    let tool = |name: &String| json!({"type": "function", "name": name});
    let tools: Vec<Value> = names.iter().map(tool).collect();
    let said = json!({"type": "allowed_tools", "tools": tools, "mode": mode});
    let choice = match mode {
        "none" => RunToolChoice::None,
        mode => RunToolChoice::Allowed {
            names,
            required: mode == "required",
        },
    };
    Ok((choice, said))
}

/// The form of the answer, and `text` as responses say it again.
pub(super) fn text(fields: &Fields<'_>) -> Result<(Option<AnswerFormat>, Value), RequestError> {
    let plain = || json!({"format": {"type": "text"}});
    let Some(text) = fields.object("text")? else {
        return Ok((None, plain()));
    };
    let (format, mut said) = match text.object("format")? {
        None => (None, plain()),
        Some(given) => {
            let (format, said) = format(&given)?;
            (format, json!({"format": said}))
        }
    };
    if let Some(word) = text.word("verbosity", &["low", "medium", "high"])? {
        said["verbosity"] = word.into();
    }
    Ok((format, said))
}

/// The name and the schema of an answer's form.
pub(crate) fn named_schema<'a>(fields: &Fields<'a>) -> Result<(&'a str, &'a Value), RequestError> {
    let name = fields.required("name", 64)?;
    if !is_tool_name(name) {
        return Err(invalid(fields.at("name"), &format!("expected {TOOL_NAME}")));
    }
    let schema = fields.expect("schema", "a JSON Schema", object)?;
    usable(schema, &fields.at("schema"))?;
    Ok((name, schema))
}

fn format(fields: &Fields<'_>) -> Result<(Option<AnswerFormat>, Value), RequestError> {
    match fields.required("type", 256)? {
        "text" => Ok((None, json!({"type": "text"}))),
        "json_object" => Ok((
            Some(AnswerFormat::JsonObject),
            json!({"type": "json_object"}),
        )),
        "json_schema" => {
            let (name, schema) = named_schema(fields)?;
            let said: Map<String, Value> = [
                ("type", "json_schema".into()),
                ("name", name.into()),
                (
                    "description",
                    fields.text("description", MAX_DESCRIPTION)?.into(),
                ),
                ("schema", schema.clone()),
                ("strict", fields.flag("strict")?.unwrap_or(false).into()),
            ]
            .into_iter()
            .map(|(key, value): (&str, Value)| (key.to_owned(), value))
            .collect();
            let schema = schema.clone();
            Ok((Some(AnswerFormat::JsonSchema { schema }), said.into()))
        }
        kind => {
            let message = format!("a format of type {kind:?} is not supported");
            Err(unsupported(fields.at("type"), &message))
        }
    }
}
