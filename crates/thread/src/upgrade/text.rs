//! Upgrades a text turn by turn, so that the document is never built whole.

use super::steps::{to_0_0_3, turns_to_0_0_4, unanswered};
use super::{Origin, UpgradeError, known, upgrade_whole};
use crate::document::{Thread, Version};
use crate::json::{DecodeError, Json, Limits, Member, Object, Scanner, Shape, write_string};
use crate::versioned::{Change, Changes};
use std::ops::Range;

/// Upgrades a document's text as [`upgrade_to`](super::upgrade_to) upgrades the document. Appends
/// the result to `out` and returns the changes.
///
/// In addition to both texts, it needs memory for one turn and for the calls and answers of all
/// turns. A document of 1.0.0 is built whole.
pub fn upgrade_text(
    text: &str,
    limits: &Limits,
    to: &Version,
    out: &mut String,
) -> Result<Result<Vec<Change>, UpgradeError>, DecodeError> {
    if let Some(plan) = Plan::of(text, limits, to) {
        return Ok(Ok(plan.write(out)));
    }
    let upgraded = upgrade_whole(Thread::decode_with(text, limits)?, to);
    Ok(upgraded.map(|upgraded| {
        out.push_str(&upgraded.thread.encode());
        upgraded.changes
    }))
}

/// A document whose turns can be upgraded one by one.
struct Plan<'t> {
    text: &'t str,
    limits: &'t Limits,
    from: Version,
    to: Version,
    /// The root, with empty turns.
    root: Object,
    turns: Vec<Range<usize>>,
}

/// The changes by step. Each step covers the whole document.
#[derive(Default)]
struct Steps {
    to_0_0_3: Changes,
    to_0_0_4: Changes,
}

impl<'t> Plan<'t> {
    /// The plan; `None` if only a fully built document can determine the changes.
    fn of(text: &'t str, limits: &'t Limits, to: &Version) -> Option<Self> {
        let mut scanner = Scanner::new(text, limits).ok()?;
        if scanner.peek().ok()? != Shape::Object {
            return None;
        }
        let mut members: Vec<Member<'t>> = Vec::new();
        scanner.members(&mut members).ok()?;
        scanner.finish().ok()?;
        let mut root = Object::new();
        let mut turns = None;
        for member in members {
            let value = if member.key == "turns" && member.shape == Shape::Array {
                turns = Some(elements(text, limits, member.span)?);
                Json::Array(Vec::new())
            } else {
                Json::parse_with(text.get(member.span)?, limits).ok()?
            };
            root.insert(member.key.as_ref(), value);
        }
        let (from, to) = (
            root.get_str("version").map(Version::from)?,
            known(to.clone()).ok()?,
        );
        let is_known = matches!(from, Version::V2_0_0 | Version::V0_0_3 | Version::V0_0_4);
        (is_known && from <= to).then_some(Self {
            text,
            limits,
            from,
            to,
            root,
            turns: turns?,
        })
    }

    fn passes(&self, step: &Version) -> bool {
        self.from < *step && *step <= self.to
    }

    fn write(mut self, out: &mut String) -> Vec<Change> {
        out.reserve(self.text.len() + self.text.len() / 8);
        let mut steps = Steps::default();
        let root = Thread::from_root(std::mem::take(&mut self.root));
        let mut root = self.upgraded(root, &mut steps).into_root();
        if self.from != self.to {
            root.insert("version", self.to.as_str());
        }
        // What the root says of its links is told before the turns, and its parent after them.
        let of_root = std::mem::take(&mut steps.to_0_0_3.0);
        let (first, last): (Vec<_>, Vec<_>) = of_root
            .into_iter()
            .partition(|change| change.pointer == "/relationships");
        steps.to_0_0_3.0 = first;
        let skeleton = self.write_members(root, &mut steps, out);
        steps.to_0_0_3.0.extend(last);
        if self.passes(&Version::V0_0_4) {
            let turns = Object::new().with("turns", Json::Array(skeleton));
            unanswered(
                &Thread::from_root(turns),
                &mut steps.to_0_0_4,
                &Origin::Turns,
            );
        }
        let mut changes = steps.to_0_0_3.0;
        changes.extend(steps.to_0_0_4.0);
        changes
    }

    /// Writes the root with its turns; returns the turns reduced by [`bones`].
    fn write_members(&self, root: Object, steps: &mut Steps, out: &mut String) -> Vec<Json> {
        let mut skeleton = Vec::new();
        out.push('{');
        for (place, (key, value)) in root.into_iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            // Writing to a string can't fail.
            let _ = write_string(&key, out);
            out.push(':');
            if *key == *"turns" {
                skeleton = self.write_turns(steps, out);
            } else {
                out.push_str(&value.to_text());
            }
        }
        out.push('}');
        skeleton
    }

    fn write_turns(&self, steps: &mut Steps, out: &mut String) -> Vec<Json> {
        let mut skeleton = Vec::with_capacity(self.turns.len());
        out.push('[');
        for (place, span) in self.turns.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            let text = self.text.get(span.clone()).unwrap_or_default();
            let turn = Json::parse_with(text, self.limits).unwrap_or_default();
            let alone = Object::new().with("turns", Json::Array(vec![turn]));
            let mut of_turn = Steps::default();
            let mut alone = self
                .upgraded(Thread::from_root(alone), &mut of_turn)
                .into_root();
            let turns = alone.get_mut("turns").and_then(Json::as_array_mut);
            let turn = turns.and_then(Vec::pop).unwrap_or_default();
            steps
                .to_0_0_3
                .0
                .extend(of_turn.to_0_0_3.0.into_iter().map(|it| moved(it, place)));
            steps
                .to_0_0_4
                .0
                .extend(of_turn.to_0_0_4.0.into_iter().map(|it| moved(it, place)));
            out.push_str(&turn.to_text());
            skeleton.push(bones(&turn));
        }
        out.push(']');
        skeleton
    }

    fn upgraded(&self, mut thread: Thread, steps: &mut Steps) -> Thread {
        if self.passes(&Version::V0_0_3) {
            to_0_0_3(&mut thread, &mut steps.to_0_0_3, &Origin::Turns);
        }
        if self.passes(&Version::V0_0_4) {
            turns_to_0_0_4(&mut thread, &mut steps.to_0_0_4, &Origin::Turns);
        }
        thread
    }
}

/// The byte ranges of an array's elements in a text.
fn elements(text: &str, limits: &Limits, span: Range<usize>) -> Option<Vec<Range<usize>>> {
    let mut scanner = Scanner::new(text.get(span.clone())?, limits).ok()?;
    let mut elements = Vec::new();
    let walked = scanner.array(|scanner, _| {
        let element = scanner.skip()?;
        elements.push(span.start + element.start..span.start + element.end);
        Ok::<(), DecodeError>(())
    });
    walked.ok().map(|_| elements)
}

/// Converts a change of a single turn to one of the turn at index `place`.
fn moved(mut change: Change, place: usize) -> Change {
    if let Some(rest) = change.pointer.strip_prefix("/turns/0") {
        change.pointer = format!("/turns/{place}{rest}");
    }
    change
}

/// A turn reduced to the members that distinguish calls from answers; all others are `null`.
fn bones(turn: &Json) -> Json {
    let Some(turn) = turn.as_object() else {
        return Json::Null;
    };
    let parts = turn.get("parts").and_then(Json::as_array);
    let tells = |part: &Json| part.get("tool_call_id").is_some();
    if turn.get_str("turn_type") == Some("user") && !parts.unwrap_or_default().iter().any(tells) {
        return Json::Null;
    }
    let list = |holder: &Object, key: &str, bone: fn(&Json) -> Json| {
        let items = holder.get(key).and_then(Json::as_array)?;
        Some(Json::Array(items.iter().map(bone).collect()))
    };
    picked(turn, &["turn_type", "agent_id", "completion_status"])
        .with_some("parts", list(turn, "parts", part_bones))
        .with_some(
            "messages",
            list(turn, "messages", |message| {
                let Some(message) = message.as_object() else {
                    return Json::Null;
                };
                let parts = message.get("parts").and_then(Json::as_array);
                let parts = parts.map(|parts| Json::Array(parts.iter().map(part_bones).collect()));
                picked(message, &["message_type"])
                    .with_some("parts", parts)
                    .into()
            }),
        )
        .into()
}

fn part_bones(part: &Json) -> Json {
    let part = part.as_object();
    let part = part.filter(|part| part.contains_key("tool_call_id"));
    part.map_or(Json::Null, |part| {
        picked(part, &["part_kind", "tool_call_id", "tool_name"]).into()
    })
}

fn picked(object: &Object, keys: &[&str]) -> Object {
    let picked = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), object.get(key)?.clone())));
    picked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the changes of both ways.
    fn both(text: &str, to: &Version) -> [(String, Vec<Change>); 2] {
        let limits = Limits::default();
        let mut streamed = String::new();
        let changes = upgrade_text(text, &limits, to, &mut streamed)
            .unwrap()
            .unwrap();
        let whole = upgrade_whole(Thread::decode(text).unwrap(), to).unwrap();
        [(streamed, changes), (whole.thread.encode(), whole.changes)]
    }

    #[test]
    fn a_text_is_upgraded_turn_by_turn_to_what_its_document_is_upgraded_to() {
        let call =
            r#"{"part_kind":"tool-call","tool_name":"t","tool_call_id":"c","args":{ "a" : 1.0 }}"#;
        let answer = r#"{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","content_ref":{"uri":"s3://a/b"}}"#;
        let turns = format!(
            r#"[{{"turn_type":"user","client_metadata":{{"a":1}},"parts":[{answer}]}},7,
            {{"turn_type":"agent","agent_id":"a","messages":[{{"message_type":"response","parts":[{call}]}},
            {{"message_type":"request","parts":[{answer},null]}},
            {{"message_type":"system","event_type":"agent.handoff","event_data":{{}}}}]}},
            {{"turn_type":"agent","agent_id":"a","messages":[{{"message_type":"response","parts":[{call}]}}]}},
            {{"turn_type":"agent","agent_id":"b","messages":[{{"message_type":"response","parts":[{call}]}},
            {{"message_type":"response","parts":[]}}]}}]"#
        );
        for version in ["2.0.0", "0.0.3", "0.0.4"] {
            for root in [
                format!(
                    r#"{{"version":"{version}","parent_thread_id":"p","turns":{turns},"x":1e2}}"#
                ),
                format!(r#"{{"relationships":7,"turns":{turns},"version":"{version}"}}"#),
                format!(r#"{{"version":"{version}","turns":{{}}}}"#),
                format!(r#"{{"version":"{version}"}}"#),
            ] {
                let [streamed, whole] = both(&root, &Version::V0_0_4);
                assert_eq!(streamed, whole, "{root}");
            }
        }
        let text = format!(r#"{{"version":"2.0.0","turns":{turns}}}"#);
        let [streamed, whole] = both(&text, &Version::V0_0_3);
        assert_eq!(streamed, whole);
        let old = r#"{"version":"1.0.0","actions":[{"action_type":"user_message","content":"x"}]}"#;
        let [streamed, whole] = both(old, &Version::V0_0_4);
        assert_eq!(streamed, whole);
    }

    #[test]
    fn a_text_that_can_not_be_upgraded_is_refused_as_its_document_is() {
        let upgraded = |text: &str, to: &Version| {
            upgrade_text(text, &Limits::default(), to, &mut String::new())
        };
        assert!(upgraded("[]", &Version::V0_0_4).is_err());
        let newest = r#"{"version":"0.0.4","turns":[]}"#;
        assert!(upgraded(newest, &Version::V2_0_0).unwrap().is_err());
        assert!(
            upgraded(r#"{"version":"9"}"#, &Version::V0_0_4)
                .unwrap()
                .is_err()
        );
    }
}
