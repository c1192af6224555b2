//! Agents' content and tools' results: parts of the log ⇄ parts of a document's messages.

use super::content::{CUSTOM, PART, binary, data_url, own_extension, to_data_url};
use super::delta::{difference, is_plain, patched, read, read_object, stored, unwrapped, wrapped};
use crate::parts::{OUTPUT_FILE, ReasoningPart, TextPart, ToolPart, ToolState};
use thread::{Json, Object};
use timeline::Payload;

/// The part that holds a message which is neither a response nor the returns that follow it.
pub(super) const MESSAGE: &str = "threadprotocol-message";

/// A part of the log as the document has it; tool calls are read by [`ToolPart::read`] first.
pub(super) fn exported(part: &Payload) -> Json {
    let json = read(part);
    let text = |key: &str| json.get(key).and_then(Json::as_str);
    let extra = json.get("extra").and_then(Json::as_object);
    let kind = |name: &str| Object::new().with("part_kind", name);
    let derived = match text("type") {
        Some("output_text" | "input_text") => {
            kind("text").with("content", text("text").unwrap_or_default())
        }
        Some("reasoning") => kind("thinking")
            .with("content", text("text").unwrap_or_default())
            .with_some("signature", text("signature"))
            .with_some("provider_name", text("provider")),
        Some(PART) => return unwrapped(&json, "part"),
        Some("refusal") => kind("text")
            .with("content", text("refusal").unwrap_or_default())
            .with("refusal", true),
        Some(OUTPUT_FILE) => match text("file_data").and_then(data_url) {
            Some((media_type, data)) => {
                kind("file").with("content", binary(&json, media_type, data))
            }
            None => kind(&format!("{CUSTOM}{OUTPUT_FILE}")).with("value", json.clone()),
        },
        Some(name) => kind(&format!("{CUSTOM}{name}")).with("value", json.clone()),
        None => kind("custom:unknown").with("value", json.clone()),
    };
    patched(derived, extra).into()
}

/// A part of the log for a part of a response.
pub(super) fn imported(part: &Json) -> Result<Payload, serde_json::Error> {
    let text = |key: &str| part.get(key).and_then(Json::as_str);
    let own = match text("part_kind") {
        Some("text") => text("content").map(text_part).transpose()?,
        Some("thinking") => thinking(part).transpose()?,
        Some("tool-call") => return imported_call(part),
        Some("file") => file(part).transpose()?,
        _ => match own_extension(part, "part_kind") {
            Some(own) => return stored(&own),
            None => None,
        },
    };
    let Some((own, original)) = own.zip(part.as_object()) else {
        return whole(part);
    };
    let Json::Object(derived) = exported(&own) else {
        return whole(part);
    };
    let own = match difference(&derived, original, &[]) {
        Some(extra) => stored(&read_object(Some(&own)).with("extra", extra).into())?,
        None => own,
    };
    if is_plain(&own) { Ok(own) } else { whole(part) }
}

fn whole(part: &Json) -> Result<Payload, serde_json::Error> {
    stored(&wrapped(PART, "part", part).into())
}

fn text_part(text: &str) -> Result<Payload, serde_json::Error> {
    Payload::write(&TextPart {
        part_type: "output_text".into(),
        text: text.to_owned(),
        extra: None,
    })
}

/// A thought. It is stored whole if its content is not a text.
fn thinking(part: &Json) -> Option<Result<Payload, serde_json::Error>> {
    let text = |key: &str| part.get(key).and_then(Json::as_str).map(str::to_owned);
    let said = match part.get("content") {
        None | Some(Json::Null) => String::new(),
        Some(content) => content.as_str()?.to_owned(),
    };
    Some(Payload::write(&ReasoningPart {
        part_type: "reasoning".into(),
        text: said,
        signature: text("signature"),
        provider: text("provider_name"),
        extra: None,
    }))
}

fn file(part: &Json) -> Option<Result<Payload, serde_json::Error>> {
    let content = part.get("content")?;
    let text = |key: &str| content.get(key).and_then(Json::as_str);
    if text("kind") != Some("binary") {
        return None;
    }
    let media_type = text("media_type")?;
    let (url, changed) = to_data_url(media_type, text("data")?);
    let own = Object::new()
        .with("type", OUTPUT_FILE)
        .with("file_data", url)
        .with("media_type", media_type)
        .with_some("alphabet", changed.then_some("urlsafe"));
    Some(stored(&own.into()))
}

/// The `tool-call` part of a call.
pub(super) fn exported_call(tool: &ToolPart) -> Object {
    let args = match (&tool.input_text, &tool.input) {
        (Some(text), _) => text.as_str().into(),
        (None, Some(input)) => read(input),
        (None, None) => Json::Null,
    };
    let derived = Object::new()
        .with("part_kind", "tool-call")
        .with("tool_name", tool.tool_name())
        .with("tool_call_id", tool.tool_call_id.as_str())
        .with("args", args);
    patched(derived, extra(tool.call_extra.as_ref()).as_ref())
}

fn extra(payload: Option<&Payload>) -> Option<Object> {
    payload.map(|payload| read_object(Some(payload)))
}

fn imported_call(part: &Json) -> Result<Payload, serde_json::Error> {
    let text = |key: &str| part.get(key).and_then(Json::as_str);
    let (Some(name), Some(id), Some(original)) =
        (text("tool_name"), text("tool_call_id"), part.as_object())
    else {
        return whole(part);
    };
    let mut tool = ToolPart::call(name, id, "{}");
    match part.get("args") {
        None | Some(Json::Null) => (tool.input, tool.input_text) = (None, None),
        Some(Json::String(args)) => {
            tool = ToolPart::call(name, id, args);
            // Text stays text, even where an object would say the same.
            tool.input_text = Some(args.clone());
            tool.input = tool.input.filter(is_plain);
        }
        Some(args) => tool.input = Some(stored(args)?),
    }
    if let Some(extra) = difference(&exported_call(&tool), original, &[]) {
        tool.call_extra = Some(stored(&extra.into())?);
    }
    let own = tool.write()?;
    if is_plain(&own) { Ok(own) } else { whole(part) }
}

/// The `tool-return` part of a call that has a result.
pub(super) fn exported_return(tool: &ToolPart) -> Option<Object> {
    let output = || tool.output.as_ref().map(read);
    let (status, content) = match tool.state {
        ToolState::InputAvailable | ToolState::ApprovalRequested | ToolState::ApprovalResponded => {
            return None;
        }
        ToolState::OutputAvailable => ("success", output().unwrap_or_default()),
        ToolState::OutputError => {
            let told = || tool.error_text.as_deref().unwrap_or_default().into();
            let status = match tool.outcome.as_deref() {
                Some("validation_error") => "validation_error",
                Some(_) | None => "error",
            };
            (status, output().unwrap_or_else(told))
        }
    };
    let derived = Object::new()
        .with("part_kind", "tool-return")
        .with("tool_name", tool.tool_name())
        .with("tool_call_id", tool.tool_call_id.as_str())
        .with("status", status)
        .with("content", content)
        .with_some("outcome", tool.outcome.as_deref())
        .with_some("duration_ms", tool.duration_ms);
    Some(patched(derived, extra(tool.return_extra.as_ref()).as_ref()))
}

/// The call with its answer: a `tool-return`, or a `retry-prompt` with the call's id. `None` if the
/// log can't store the answer as a value.
pub(super) fn answered(
    call: &ToolPart,
    part: &Object,
) -> Result<Option<ToolPart>, serde_json::Error> {
    let mut tool = call.clone();
    let status = part.get_str("status").or_else(|| part.get_str("outcome"));
    let retry = part.get_str("part_kind") == Some("retry-prompt");
    let failed = retry || !matches!(status, None | Some("success" | "interrupted"));
    let content = part.get("content");
    let text = content.and_then(Json::as_str);
    tool.outcome = match part.get_str("outcome") {
        Some("success" | "failed") => None,
        Some(outcome) => Some(outcome.to_owned()),
        None if retry => Some("retried".to_owned()),
        None if status == Some("validation_error") => Some("validation_error".to_owned()),
        None => None,
    };
    tool.duration_ms = part.get("duration_ms").and_then(Json::as_u64);
    tool.state = if failed {
        ToolState::OutputError
    } else {
        ToolState::OutputAvailable
    };
    if failed {
        let told = || content.map(Json::to_text).unwrap_or_default();
        tool.error_text = Some(text.map_or_else(told, str::to_owned));
    }
    if !(failed && text.is_some()) {
        // A stored `null` reads as nothing.
        let output = content.filter(|content| !content.is_null());
        tool.output = output.map(stored).transpose()?;
    }
    if let Some(derived) = exported_return(&tool)
        && let Some(extra) = difference(&derived, part, &[])
    {
        tool.return_extra = Some(stored(&extra.into())?);
    }
    Ok(is_plain(&tool.write()?).then_some(tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::EventPart;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn parts_of_a_response_come_back_as_they_were() {
        for text in [
            r#"{"part_kind":"text","content":"a"}"#,
            r#"{"content":"a","id":null,"part_kind":"text"}"#,
            r#"{"part_kind":"text","content":42}"#,
            r#"{"part_kind":"thinking","signature":"s","provider_name":"p"}"#,
            r#"{"part_kind":"thinking","content":null,"id":"rs_1"}"#,
            r#"{"part_kind":"file","content":{"kind":"binary","data":"-_8=","media_type":"image/png","identifier":"i"}}"#,
            r#"{"part_kind":"builtin-tool-call","args":{"big":12345678901234567890123}}"#,
            r#"{"part_kind":"custom:app-x","value":{"type":"app-x","n":1.0}}"#,
            r#"{"part_kind":"custom:tool-x","value":{"type":"tool-x"}}"#,
            r#"{"part_kind":"text","content":"a","x":1e999}"#,
            r#"{"part_kind":"tool-call","tool_name":"t","tool_call_id":"c","args":{"a":1e999}}"#,
            "7",
        ] {
            let part = imported(&json(text)).unwrap();
            assert_eq!(exported(&part).to_text(), text);
        }
    }

    #[test]
    fn a_part_that_looks_like_an_event_of_the_runtime_comes_back_and_is_none() {
        for name in EventPart::NAMES {
            let text = format!(
                r#"{{"part_kind":"custom:{name}","value":{{"type":"{name}","id":"t","data":{{}}}}}}"#
            );
            let part = imported(&json(&text)).unwrap();
            assert_eq!(EventPart::read(&part), None);
            assert_eq!(exported(&part).to_text(), text);
        }
    }

    #[test]
    fn calls_keep_their_arguments_as_text_or_as_value() {
        for args in [
            r#""{\"a\": 1}""#,
            r#"{"a":1.0}"#,
            "null",
            r#""cut {""#,
            "[1]",
            "7",
        ] {
            let text = format!(
                r#"{{"part_kind":"tool-call","tool_name":"t","tool_call_id":"c","args":{args},"id":null}}"#
            );
            let tool = ToolPart::read(&imported(&json(&text)).unwrap()).unwrap();
            assert_eq!(Json::from(exported_call(&tool)).to_text(), text);
        }
    }

    #[test]
    fn every_answer_comes_back_as_it_was() {
        for text in [
            r#"{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","status":"success","content":{"a":null}}"#,
            r#"{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","status":"validation_error","content":[1]}"#,
            r#"{"tool_name":"t","content":"no","tool_call_id":"c","outcome":"denied","status":"error","part_kind":"tool-return"}"#,
            r#"{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","status":"success","content_ref":{"uri":"s3://a"}}"#,
            r#"{"content":[{"type":"missing"}],"tool_name":"t","tool_call_id":"c","part_kind":"retry-prompt"}"#,
        ] {
            let call = ToolPart::call("t", "c", "{}");
            let tool = answered(&call, json(text).as_object().unwrap())
                .unwrap()
                .unwrap();
            let back = exported_return(&tool).map(Json::from).unwrap();
            assert_eq!(back.to_text(), text);
        }
    }
}
