//! Reads one answer: an approval or a denial, or the result of a call.

use crate::langgraph::error::RequestError;
use crate::langgraph::fields::{Fields, MAX_ID};
use serde_json::{Map, Value};

/// The members that answers have by themselves: no call has such an id.
pub(super) const WORDS: [&str; 9] = [
    "approved",
    "args",
    "arguments",
    "decisions",
    "edited_action",
    "errorText",
    "message",
    "output",
    "type",
];

/// The result of a call: `{"output": …}`, `{"errorText": …}`, or else the value itself.
pub(super) fn output(answer: &Value) -> Map<String, Value> {
    if let Value::Object(map) = answer
        && map.len() == 1
        && (map.contains_key("output") || map.get("errorText").is_some_and(Value::is_string))
    {
        return map.clone();
    }
    Map::from_iter([("output".to_owned(), answer.clone())])
}

/// The expected form of an approval, for errors.
const APPROVAL: &str = "expected true or false, {\"approved\": …}, or a decision: {\"type\": \"approve\"}, \
                        {\"type\": \"edit\", \"edited_action\": {\"name\", \"args\"}} or {\"type\": \"reject\", \"message\"}";

/// Reads an approval or a denial in the log's form. An approval may change the arguments.
pub(super) fn approval(
    answer: &Value,
    pointer: &str,
    tool: &str,
) -> Result<Map<String, Value>, RequestError> {
    let wrong = || RequestError::at(pointer, APPROVAL);
    let approved = |yes: bool| Map::from_iter([("approved".to_owned(), Value::Bool(yes))]);
    // One question in a list of one, as older clients answer it.
    let answer = match answer.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        Some(_) => return Err(wrong()),
        None => answer,
    };
    match answer {
        Value::Bool(yes) => return Ok(approved(*yes)),
        Value::Object(map) if map.len() == 1 && map.contains_key("decisions") => {
            return match map["decisions"].as_array().map(Vec::as_slice) {
                Some([only]) if only.get("decisions").is_none() => approval(only, pointer, tool),
                _ => Err(wrong()),
            };
        }
        Value::Object(_) => {}
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return Err(wrong()),
    }
    if answer.get("approved").is_some() {
        let known = ["approved", "arguments", "message"];
        let fields = Fields::closed(answer, pointer, &known)?;
        let yes = fields.flag("approved")?.ok_or_else(wrong)?;
        let mut says = approved(yes);
        for key in ["arguments", "message"] {
            says.extend(fields.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        return Ok(says);
    }
    let fields = Fields::closed(
        answer,
        pointer,
        &["type", "args", "edited_action", "message"],
    )?;
    let kinds = [
        ("approve", Decision::Approve),
        ("accept", Decision::Approve),
        ("edit", Decision::Edit),
        ("reject", Decision::Reject),
        ("ignore", Decision::Reject),
    ];
    match fields.word("type", &kinds)?.ok_or_else(wrong)? {
        Decision::Approve => Ok(approved(true)),
        Decision::Reject => {
            let mut says = approved(false);
            let told = fields.get("message").or(fields.get("args"));
            let told = told.map(|it| it.as_str().ok_or_else(wrong)).transpose()?;
            says.extend(told.map(|it| ("message".to_owned(), it.into())));
            Ok(says)
        }
        Decision::Edit => {
            let mut says = approved(true);
            says.insert("arguments".to_owned(), edited(&fields, tool)?);
            Ok(says)
        }
    }
}

/// The arguments of an edited call. The tool must stay the same, because another tool would run
/// without an approval.
fn edited(fields: &Fields<'_>, tool: &str) -> Result<Value, RequestError> {
    let spellings = [("edited_action", "name"), ("args", "action")];
    let mut given = spellings.into_iter();
    let given = given.find_map(|(key, name)| Some((key, name, fields.get(key)?)));
    let (key, name, action) = given.ok_or_else(|| fields.wrong("edited_action", APPROVAL))?;
    let action = Fields::of(action, fields.at(key))?;
    if action
        .text(name, MAX_ID)?
        .is_some_and(|named| named != tool)
    {
        let what = format!("the call is one of {tool:?}: reject it to have another tool run");
        return Err(action.wrong(name, what));
    }
    let args = action.get("args").filter(|it| it.is_object());
    let args = args.ok_or_else(|| action.wrong("args", "expected an object"))?;
    Ok(args.clone())
}

#[derive(Clone, Copy)]
enum Decision {
    Approve,
    Edit,
    Reject,
}
