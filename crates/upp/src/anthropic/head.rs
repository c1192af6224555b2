//! The body before the conversation: parameters, tools, instructions.

use super::{ANSWER_TOOL, Anthropic, StructureForm};
use crate::error::Error;
use crate::model::{Request, ToolChoice};
use crate::tool::Tool;
use serde_json::{Map, Value, json};

/// The field of the parameter `tool_choice` that turns parallel tool calls off.
const PARALLEL: &str = "disable_parallel_tool_use";

/// Parameters come first. Fields of the protocol overwrite them or are merged with them.
pub(super) fn head(codec: &Anthropic, request: &Request) -> Result<Map<String, Value>, Error> {
    let mut head: Map<String, Value> = (*request.params).clone();
    head.shift_remove("messages");
    head.insert("model".into(), json!(codec.model_id));
    head.insert("stream".into(), json!(true));
    if head.get("max_tokens").is_none_or(Value::is_null) {
        let tokens = codec.default_max_tokens.ok_or_else(|| {
            codec.refused(
                "the parameter max_tokens is missing; the provider takes no request without",
            )
        })?;
        head.insert("max_tokens".into(), json!(tokens));
    }
    system(codec, request, &mut head)?;
    tools(codec, request, &mut head)?;
    if let (Some(schema), StructureForm::OutputFormat) = (&request.structure, codec.structure_form)
    {
        let config = object_at(codec, &mut head, "output_config")?;
        let mut schema = (**schema).clone();
        close_objects(&mut schema);
        let format = json!({"type": "json_schema", "schema": schema});
        config.insert("format".into(), format);
    }
    Ok(head)
}

/// The object of a parameter that is shared with the caller.
fn object_at<'a>(
    codec: &Anthropic,
    head: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, Error> {
    head.entry(key)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
        .ok_or_else(|| codec.refused(format!("the parameter {key} is not an object")))
}

/// The request's instructions, then the blocks of the parameter `system`.
fn system(
    codec: &Anthropic,
    request: &Request,
    head: &mut Map<String, Value>,
) -> Result<(), Error> {
    let given = match head.get("system") {
        Some(Value::Array(blocks)) => Some(blocks.clone()),
        Some(Value::String(text)) => Some(vec![json!({"type": "text", "text": text})]),
        None | Some(Value::Null) => None,
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            return Err(
                codec.refused("the parameter system is neither a text nor a list of blocks")
            );
        }
    };
    let text =
        |block: &Value| block.get("type") == Some(&json!("text")) && block["text"].is_string();
    if given.iter().flatten().any(|block| !text(block)) {
        return Err(codec.refused("a block of the parameter system is not text"));
    }
    let Some(own) = request.system.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let value = if given.is_none() && codec.system_cache_control.is_none() {
        json!(own)
    } else {
        let mut block = json!({"type": "text", "text": own});
        if let (Some(cache_control), Some(fields)) =
            (&codec.system_cache_control, block.as_object_mut())
        {
            fields.insert("cache_control".into(), cache_control.clone());
        }
        let blocks = std::iter::once(block).chain(given.into_iter().flatten());
        Value::Array(blocks.collect())
    };
    head.insert("system".into(), value);
    Ok(())
}

/// The request's tools, then those of the parameter `tools`, and which of them to call.
fn tools(codec: &Anthropic, request: &Request, head: &mut Map<String, Value>) -> Result<(), Error> {
    let mut tools: Vec<Value> = request.tools.iter().map(|it| tool(codec, it)).collect();
    match head.get("tools") {
        Some(Value::Array(native)) => tools.extend(native.iter().cloned()),
        None | Some(Value::Null) => {}
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            return Err(codec.refused("the parameter tools is not a list"));
        }
    }
    let forced = request
        .structure
        .as_ref()
        .filter(|_| codec.structure_form == StructureForm::ForcedTool);
    let given = head.shift_remove("tool_choice");
    let own_choice = given.as_ref().is_some_and(|it| it.get("type").is_some());
    let mut choice = match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": name})),
    };
    if let Some(schema) = forced {
        if request.tools.iter().any(|tool| tool.name == ANSWER_TOOL) {
            let text = format!("a tool is named {ANSWER_TOOL}, as the tool for the structure is");
            return Err(codec.refused(text));
        }
        if !own_choice && matches!(request.tool_choice, ToolChoice::Auto) {
            choice = Some(json!({"type": "any"}));
        }
        if matches!(request.tool_choice, ToolChoice::None) || (tools.is_empty() && !own_choice) {
            choice = Some(json!({"type": "tool", "name": ANSWER_TOOL}));
        }
        tools.push(json!({
            "name": ANSWER_TOOL,
            "description": "Gives the answer. Call it once, when the answer is complete.",
            "input_schema": &**schema,
        }));
    }
    // The vendor takes no word about tools where there are none.
    if tools.is_empty() {
        return Ok(());
    }
    head.insert("tools".into(), Value::Array(tools));
    if let Some(choice) = joined(choice, given) {
        head.insert("tool_choice".into(), choice);
    }
    Ok(())
}

/// The request's tool choice, with the parallel-calls setting of the parameter `tool_choice`. Without a
/// choice in the request, it is the parameter. A choice without a type leaves the decision to the model.
fn joined(choice: Option<Value>, given: Option<Value>) -> Option<Value> {
    match (choice, given) {
        (Some(Value::Object(mut choice)), given) => {
            let parallel = given.as_ref().and_then(|it| it.get(PARALLEL));
            // A model that may call nothing calls nothing in parallel; the vendor takes no word of it.
            if let Some(parallel) = parallel.filter(|_| choice.get("type") != Some(&json!("none")))
            {
                choice.insert(PARALLEL.into(), parallel.clone());
            }
            Some(Value::Object(choice))
        }
        (_, Some(Value::Object(given))) if !given.contains_key("type") => {
            let kind = ("type".to_owned(), json!("auto"));
            Some(std::iter::once(kind).chain(given).collect())
        }
        (_, given) => given,
    }
}

/// A tool with the fields of its metadata. A tool that the vendor defines has a `type` there, and
/// no description or parameters of its own.
fn tool(codec: &Anthropic, tool: &Tool) -> Value {
    let metadata = [codec.provider.as_str(), "anthropic"]
        .iter()
        .find_map(|namespace| tool.metadata.get(*namespace)?.as_object());
    let kind = metadata.and_then(|fields| fields.get("type")?.as_str());
    let mut fields = Map::new();
    fields.insert("name".into(), json!(tool.name));
    if kind.is_none_or(|kind| kind == "custom") {
        fields.insert("description".into(), json!(tool.description));
        fields.insert("input_schema".into(), (*tool.parameters).clone());
    }
    for (key, value) in metadata.into_iter().flatten() {
        fields.entry(key).or_insert_with(|| value.clone());
    }
    Value::Object(fields)
}

/// Sets `additionalProperties` to false in all objects; the vendor requires that.
fn close_objects(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    let is_object = match fields.get("type") {
        Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
        kind => kind == Some(&json!("object")),
    };
    if is_object && !fields.contains_key("additionalProperties") {
        fields.insert("additionalProperties".into(), json!(false));
    }
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(close_objects);
            }
            ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(close_objects);
            }
            ("items", value) => close_objects(value),
            _ => {}
        }
    }
}
