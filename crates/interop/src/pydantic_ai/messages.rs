//! Messages of other formats in the library's form.

mod part;

use super::check::CHECKED;
use super::note::notes;
use super::{PydanticAiError, schema};
use crate::runs::ModelMessage;
use crate::{Converted, Losses};
use thread::{Json, Object};

/// Model messages in the library's form.
///
/// The messages are those of [`thread::render::render`]: they have the library's frame, with parts
/// in the protocol's form. Statuses become outcomes and `thinking_id` becomes `id`. Data that the
/// library refuses is left out. Members that it does not know, such as `name`, stay. Messages that
/// become empty are removed. No call loses its answer.
///
/// The pointers of the losses refer to `messages`.
///
/// ```
/// use loomline_interop::pydantic_ai::library_messages;
/// use thread::Json;
///
/// let message = Json::parse(
///     r#"{"parts":[{"part_kind":"custom:mood"},{"part_kind":"text","content":"Hi."}],"usage":null,"kind":"response"}"#,
/// )?;
/// let taken = library_messages(&[message]);
/// assert_eq!(
///     taken.value[0].to_text(),
///     r#"{"parts":[{"content":"Hi.","part_kind":"text"}],"kind":"response"}"#
/// );
/// assert_eq!(taken.losses[0].pointer, "/0/parts/0");
/// # Ok::<(), thread::DecodeError>(())
/// ```
pub fn library_messages(messages: &[Json]) -> Converted<Vec<Json>> {
    let n_parts = |message: &Json| message.get("parts")?.as_array().map(<[Json]>::len);
    let mut losses = Losses::default();
    let mut value = Vec::with_capacity(messages.len());
    for (place, json) in messages.iter().enumerate() {
        let message = ModelMessage {
            json: json.clone(),
            pointer: format!("/{place}"),
        };
        let Some(taken) = library_message(&message, &mut losses) else {
            continue;
        };
        if n_parts(&taken) == Some(0) && n_parts(json) != Some(0) {
            losses.push(message.pointer, "a message of which nothing is left");
        } else {
            value.push(taken);
        }
    }
    losses.with(value)
}

/// A message that the library loads, or `None` if it has no equivalent.
pub(super) fn library_message(message: &ModelMessage, losses: &mut Losses) -> Option<Json> {
    let at = &message.pointer;
    let Some(source) = message.json.as_object() else {
        losses.push(at.clone(), "what is no message");
        return None;
    };
    if source.get_str("message_type") == Some("system") {
        losses.push(at.clone(), "a system message");
        return None;
    }
    let instant = source.get_str("timestamp");
    let kind = source.get_str("kind").unwrap_or_default();
    let parts = source
        .get("parts")
        .and_then(Json::as_array)
        .unwrap_or_default();
    let mut written = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        let at = format!("{at}/parts/{place}");
        let known = part.get("part_kind").and_then(Json::as_str);
        match known.and_then(schema::part).zip(part.as_object()) {
            Some(((_, table), part)) => {
                let part = part::library_part(part, kind, instant, &at, losses);
                written.extend(part.map(|part| Json::from(ordered(part, table))));
            }
            None => losses.push(at, "a part of a kind that the library has not"),
        }
    }
    let mut whole = source.clone();
    whole.insert("parts", Json::Array(Vec::new()));
    if kind == "response" && source.get("timestamp").is_some_and(Json::is_null) {
        whole.remove("timestamp");
    }
    while let Err(error) = judged(whole.clone()) {
        if !without_refused(&mut whole, &error, 2, at, losses) {
            losses.push(at.clone(), refusal(&error));
            return None;
        }
    }
    whole.insert("parts", Json::Array(written));
    Some(ordered(whole, &schema::MESSAGE).into())
}

fn judged(message: Object) -> Result<(), PydanticAiError> {
    let history = Json::Array(vec![message.into()]);
    notes(&history.to_text(), &CHECKED).map(drop)
}

fn refusal(error: &PydanticAiError) -> String {
    match error {
        PydanticAiError::Shape {
            expected, found, ..
        } => format!("what the library does not take: expected {expected}, found {found}"),
        PydanticAiError::Json(_)
        | PydanticAiError::NotAList { .. }
        | PydanticAiError::NotAMessage { .. } => {
            format!("what the library does not take: {error}")
        }
    }
}

/// Removes the refused member, within `usage` only the member in it; returns whether there was one.
/// A null has no information, so its removal is not a loss.
fn without_refused(
    object: &mut Object,
    error: &PydanticAiError,
    n_before: usize,
    at: &str,
    losses: &mut Losses,
) -> bool {
    let mut steps = error.pointer().split('/').skip(n_before);
    let Some(member) = steps.next() else {
        return false;
    };
    let inner = steps.next().filter(|_| member == "usage");
    let inner = inner.and_then(|key| {
        let gone = object.get_mut(member)?.as_object_mut()?.remove(key)?;
        Some((format!("{at}/{member}/{key}"), gone))
    });
    let gone = inner.or_else(|| Some((format!("{at}/{member}"), object.remove(member)?)));
    let Some((place, gone)) = gone else {
        return false;
    };
    if !gone.is_null() {
        losses.push(place, refusal(error));
    }
    true
}

/// The members in the order of the table, then all others.
fn ordered(object: Object, table: &schema::Table) -> Object {
    let mut members: Vec<_> = object
        .into_iter()
        .map(|(key, value)| (table.index_of(&key, 0).unwrap_or(usize::MAX), key, value))
        .collect();
    members.sort_by_key(|(place, ..)| *place);
    members
        .into_iter()
        .map(|(_, key, value)| (key, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(messages: &str) -> (String, Vec<String>) {
        let messages = Json::parse(messages).expect("JSON");
        let taken = library_messages(messages.as_array().expect("a list"));
        let losses = taken.losses.into_iter().map(|loss| loss.pointer);
        (Json::Array(taken.value).to_text(), losses.collect())
    }

    fn part(kind: &str, part: &str) -> (String, Vec<String>) {
        let (text, losses) = taken(&format!(
            r#"[{{"kind":"{kind}","timestamp":"2026-01-05T08:00:00Z","parts":[{part}]}}]"#
        ));
        let value = Json::parse(&text).expect("JSON");
        let part = value.pointer("/0/parts/0").map(Json::to_text);
        (part.unwrap_or_default(), losses)
    }

    #[test]
    fn statuses_become_outcomes() {
        for (status, outcome) in [("error", "failed"), ("validation_error", "retried")] {
            let (text, losses) = part(
                "request",
                &format!(
                    r#"{{"part_kind":"tool-return","tool_name":"f","content":1,"tool_call_id":"c","status":"{status}"}}"#
                ),
            );
            assert!(
                text.contains(&format!(r#""outcome":"{outcome}""#)),
                "{text}"
            );
            assert!(!text.contains("status") && losses.is_empty(), "{text}");
        }
    }

    #[test]
    fn no_call_loses_its_answer_over_a_member() {
        for (member, lost) in [
            (r#""tool_name":"f","outcome":"vanished""#, "outcome"),
            (r#""tool_name":"f","status":"odd""#, "status"),
            (r#""tool_name":7"#, "tool_name"),
            (r#""tool_name":"f","timestamp":"yesterday""#, "timestamp"),
        ] {
            let (text, losses) = part(
                "request",
                &format!(
                    r#"{{"part_kind":"tool-return","content":1,"tool_call_id":"c",{member}}}"#
                ),
            );
            assert!(text.contains(r#""tool_call_id":"c""#), "{text}");
            assert_eq!(losses, [format!("/0/parts/0/{lost}")]);
        }
        let (text, losses) = part(
            "request",
            r#"{"part_kind":"retry-prompt","tool_name":"f","content":{"a":1},"tool_call_id":"c"}"#,
        );
        assert!(text.contains(r#""content":"{\"a\":1}""#), "{text}");
        assert_eq!(losses, ["/0/parts/0/content"]);
    }

    #[test]
    fn nulls_go_unsaid() {
        let (text, losses) = part(
            "request",
            r#"{"part_kind":"retry-prompt","content":"again","tool_call_id":null}"#,
        );
        assert!(!text.contains("null") && losses.is_empty(), "{text}");
        let (text, losses) = taken(
            r#"[{"kind":"response","parts":[],"usage":null,"timestamp":null,"state":null},
            {"kind":"response","parts":[],"usage":{"input_tokens":null,"output_tokens":2}}]"#,
        );
        let expected = r#"[{"parts":[],"kind":"response"},{"parts":[],"usage":{"output_tokens":2},"kind":"response"}]"#;
        assert_eq!((text.as_str(), losses.len()), (expected, 0));
    }

    #[test]
    fn what_the_library_refuses_of_a_prompt_is_left_out_and_the_rest_stays() {
        let (text, losses) = part(
            "request",
            r#"{"part_kind":"user-prompt","content":["see",{"kind":"hologram"},{"url":"u"},
            {"kind":"image-url","url":"u","force_download":null}]}"#,
        );
        assert!(
            text.contains(r#""content":["see",{"kind":"image-url","url":"u"}]"#),
            "{text}"
        );
        assert_eq!(losses, ["/0/parts/0/content/1", "/0/parts/0/content/2"]);
    }

    #[test]
    fn a_message_of_which_nothing_is_left_goes_and_a_name_stays() {
        let (text, losses) = taken(
            r#"[{"kind":"response","parts":[{"part_kind":"custom:x"}]},7,
            {"kind":"response","parts":[{"part_kind":"text","content":"Hi."}],"name":"Ada"}]"#,
        );
        let expected =
            r#"[{"parts":[{"content":"Hi.","part_kind":"text"}],"kind":"response","name":"Ada"}]"#;
        assert_eq!(text, expected);
        assert_eq!(losses, ["/0/parts/0", "/0", "/1"]);
    }
}
