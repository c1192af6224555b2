//! Documents through the log and back.

use crate::dice::Dice;
use crate::log::{ids, of_import};
use loomline_interop::document::{ImportError, from_document, to_document};
use proptest::prelude::*;
use thread::validate::Severity;
use thread::{Json, Object, Profile, Thread, validate};

/// A document through a fresh log and back.
pub(crate) fn round_trip(document: &Thread) -> (Thread, Vec<loomline_interop::Loss>) {
    let imported = from_document(document, &mut ids())
        .unwrap_or_else(|error| panic!("{error:?}: {}", document.encode()));
    let log = of_import(document.thread_id().unwrap(), &imported.value);
    (to_document(&log.transcript()).value, imported.losses)
}

pub(crate) fn errors(document: &Thread) -> Vec<String> {
    validate(document, Profile::Strict)
        .iter()
        .filter(|violation| violation.severity == Severity::Error)
        .map(ToString::to_string)
        .collect()
}

const THREAD: &str = "7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01";

struct Writer<'a> {
    dice: Dice<'a>,
    second: u32,
    n_calls: u32,
}

impl Writer<'_> {
    fn at(&mut self) -> String {
        self.second += 1;
        let (minute, second) = (self.second / 60 % 60, self.second % 60);
        let tail = self.dice.pick(&["Z", ".250000Z", ".5Z", "+00:00"]);
        format!("2026-01-05T08:{minute:02}:{second:02}{tail}")
    }

    /// Fields the protocol doesn't know, at the front or at the end.
    fn extra(&mut self, object: Object) -> Json {
        let extra = [
            ("id", Json::Null),
            ("run_id", "r\u{2028}1".into()),
            (
                "provider_details",
                Json::parse(r#"{"b":1.0,"a":[1e2,-0]}"#).unwrap(),
            ),
        ];
        match self.dice.roll(5) {
            0 => extra
                .into_iter()
                .chain(object.iter().map(|(k, v)| (k, v.clone())))
                .collect::<Object>()
                .into(),
            1 => object
                .with("metadata", Json::parse("[1,null]").unwrap())
                .into(),
            _ => object.into(),
        }
    }

    fn value(&mut self) -> Json {
        let text = self.dice.pick(&[
            r#"{"b":1.0,"a":{"x":null}}"#,
            r#""done""#,
            "null",
            "[1,2.50]",
            "12345678901234567890123",
            r#""""#,
        ]);
        Json::parse(text).unwrap()
    }

    fn part(&mut self) -> Json {
        let kind = |name: &str| Object::new().with("part_kind", name);
        let part = match self.dice.roll(6) {
            0 | 1 => kind("text").with("content", self.dice.pick(&["hi", "", "☀"])),
            2 => kind("thinking")
                .with("content", "hm")
                .with("signature", "s==")
                .with("provider_name", "p"),
            3 => kind("thinking").with("provider_name", "p"),
            4 => kind("custom:chart").with("value", self.value()),
            _ => kind("file").with(
                "content",
                Json::parse(
                    r#"{"kind":"binary","data":"AA-_","media_type":"image/png","identifier":"f"}"#,
                )
                .unwrap(),
            ),
        };
        self.extra(part)
    }

    fn call(&mut self) -> (String, Json) {
        self.n_calls += 1;
        let id = format!("call_{}", self.n_calls);
        let args = self.dice.pick(&[
            r#"{"a":1.0}"#,
            r#""{\"a\": 1}""#,
            r#""{\"cut""#,
            "null",
            r#""""#,
        ]);
        let call = Object::new()
            .with("part_kind", "tool-call")
            .with("tool_name", "lookup")
            .with("tool_call_id", id.as_str())
            .with("args", Json::parse(args).unwrap());
        (id, self.extra(call))
    }

    fn answer(&mut self, id: &str) -> Json {
        let base = |kind: &str| {
            Object::new()
                .with("part_kind", kind)
                .with("tool_name", "lookup")
                .with("tool_call_id", id)
        };
        let status = self.dice.pick(&["success", "error", "validation_error"]);
        let part = match self.dice.roll(4) {
            0 => base("retry-prompt").with("content", "again"),
            1 => base("tool-return")
                .with("status", status)
                .with("content", self.value())
                .with(
                    "outcome",
                    self.dice.pick(&["success", "failed", "denied", "retried"]),
                ),
            _ => base("tool-return")
                .with("status", status)
                .with("content", self.value()),
        };
        self.extra(part)
    }

    fn message(&mut self, kind: &str, agent: &str, parts: Vec<Json>) -> Json {
        let timestamp = self.at();
        let message = Object::new()
            .with("message_type", kind)
            .with("timestamp", timestamp)
            .with("agent_id", agent)
            .with("parts", Json::Array(parts));
        let message = match (kind, self.dice.roll(3)) {
            ("response", 0) => message
                .with("model_name", "m-1")
                .with(
                    "usage",
                    Json::parse(r#"{"input_tokens":3,"output_tokens":4,"total_tokens":7}"#)
                        .unwrap(),
                )
                .with(
                    "finish_reason",
                    self.dice.pick(&["stop", "length", "error"]),
                ),
            ("response", 1) => message.with("model_name", Json::Null).with(
                "usage",
                Json::parse(r#"{"input_tokens":1,"cost":"0.10"}"#).unwrap(),
            ),
            _ => message,
        };
        self.extra(message)
    }

    fn aside(&mut self, agent: &str) -> Json {
        match self.dice.roll(3) {
            0 => {
                let prompt = Object::new()
                    .with("part_kind", "user-prompt")
                    .with("content", "and?");
                self.message("request", agent, vec![prompt.into()])
            }
            1 => self.message("request", agent, Vec::new()),
            _ => Object::new()
                .with("message_type", "system")
                .with("timestamp", self.at())
                .with("event_type", "data-app-note")
                .with("event_data", self.value())
                .into(),
        }
    }

    fn messages(&mut self, agent: &str, pending: bool) -> Vec<Json> {
        let mut messages = Vec::new();
        for _ in 0..self.dice.roll(4) {
            if self.dice.one_in(4) {
                let aside = self.aside(agent);
                messages.push(aside);
            }
            let mut parts: Vec<Json> = (0..=self.dice.roll(2)).map(|_| self.part()).collect();
            let calls: Vec<(String, Json)> = (0..self.dice.roll(3)).map(|_| self.call()).collect();
            parts.extend(calls.iter().map(|(_, call)| call.clone()));
            let response = self.message("response", agent, parts);
            messages.push(response);
            if self.dice.one_in(6) {
                let aside = self.aside(agent);
                messages.push(aside);
            }
            let mut answers: Vec<Json> = calls.iter().map(|(id, _)| self.answer(id)).collect();
            if answers.is_empty() {
                continue;
            }
            match self.dice.roll(5) {
                0 => answers.reverse(),
                1 => answers
                    .push(Json::parse(r#"{"part_kind":"user-prompt","content":["x"]}"#).unwrap()),
                2 => {
                    let first = answers.remove(0);
                    let request = self.message("request", agent, vec![first]);
                    messages.push(request);
                }
                _ => {}
            }
            let request = self.message("request", agent, answers);
            messages.push(request);
        }
        if pending {
            let (_, call) = self.call();
            let response = self.message("response", agent, vec![call]);
            messages.push(response);
        }
        messages
    }

    fn agent_turn(&mut self, last: bool) -> Json {
        let agent = self.dice.pick(&[
            "11111111-1111-4111-8111-111111111111",
            "22222222-2222-4222-8222-222222222222",
        ]);
        let interrupted = self.dice.one_in(3);
        let pending = last && !interrupted && self.dice.one_in(3);
        let started_at = self.at();
        let messages = self.messages(agent, pending);
        let end = self.at();
        let turn = Object::new()
            .with("turn_type", "agent")
            .with("agent_id", agent)
            .with("started_at", started_at)
            .with("messages", Json::Array(messages));
        let turn = if interrupted {
            let why = Object::new()
                .with("reason", "user_cancelled")
                .with("interrupted_at", end);
            turn.with("completion_status", "interrupted")
                .with("interruption", why)
        } else {
            turn.with("completed_at", end)
                .with("completion_status", "complete")
        };
        let turn = if self.dice.one_in(2) {
            turn.with("total_usage", Json::parse(r#"{"input_tokens":9}"#).unwrap())
        } else {
            turn
        };
        self.extra(turn)
    }

    fn user_turn(&mut self) -> Json {
        let prompts = [
            r#"{"part_kind":"user-prompt","content":"hi"}"#,
            r#"{"part_kind":"user-prompt","content":["hi"],"timestamp":"2026-01-05T08:00:00Z"}"#,
            r#"{"part_kind":"user-prompt","content":[{"kind":"image-url","url":"https://a/b.png","identifier":"i"},"see"]}"#,
            r#"{"part_kind":"user-prompt","content":[{"kind":"binary","data":"AA==","media_type":"text/plain","identifier":"t"}]}"#,
            r#"{"part_kind":"user-prompt","content":[]}"#,
            r#"{"part_kind":"custom:poll","value":1.0}"#,
        ];
        let parts: Json = (0..self.dice.roll(3))
            .map(|_| Json::parse(self.dice.pick(&prompts)).unwrap())
            .collect();
        let turn = Object::new()
            .with("turn_type", "user")
            .with("submitted_at", self.at())
            .with("parts", parts);
        let turn = match self.dice.roll(4) {
            0 => turn.with(
                "client_metadata",
                Json::parse(r#"{"ui:draft":null,"app.x":1.0}"#).unwrap(),
            ),
            1 => turn.with("client_metadata", Object::new()),
            _ => turn,
        };
        self.extra(turn)
    }
}

/// A valid document of every kind that the converter supports.
fn document(bytes: &[u8]) -> Thread {
    let mut writer = Writer {
        dice: Dice::new(bytes),
        second: 0,
        n_calls: 0,
    };
    let n_turns = writer.dice.roll(6);
    let agents = Json::parse(
        r#"{"22222222-2222-4222-8222-222222222222":{"agent_id":"22222222-2222-4222-8222-222222222222","agent_name":"Bo",
        "created_at":"2026-01-05T08:00:00Z","x":1.0},"11111111-1111-4111-8111-111111111111":
        {"agent_id":"11111111-1111-4111-8111-111111111111","agent_name":"Ada","created_at":"2026-01-05T08:00:00Z"}}"#,
    )
    .unwrap();
    let mut root = Object::new()
        .with("version", "0.0.4")
        .with("thread_id", THREAD)
        .with("created_at", writer.at());
    if writer.dice.one_in(2) {
        root.insert("title", "greetings");
        root.insert("metadata", Json::parse(r#"{"k":[1.0]}"#).unwrap());
    }
    let turns: Vec<Json> = (0..n_turns)
        .map(|n| {
            if writer.dice.one_in(2) {
                writer.user_turn()
            } else {
                writer.agent_turn(n + 1 == n_turns)
            }
        })
        .collect();
    let root = root
        .with("updated_at", writer.at())
        .with("agents", agents)
        .with("turns", Json::Array(turns));
    let root = if writer.dice.one_in(3) {
        let links = r#"{"links":[{"thread_id":"33333333-3333-4333-8333-333333333333","relation":"referenced"}]}"#;
        root.with("relationships", Json::parse(links).unwrap())
            .with("x", Json::Null)
    } else {
        root
    };
    Thread::from_root(root)
}

proptest! {
    #[test]
    fn a_valid_document_comes_back_value_for_value(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let document = document(&bytes);
        prop_assert_eq!(errors(&document), Vec::<String>::new());
        let (back, losses) = round_trip(&document);
        prop_assert_eq!(back.encode(), document.encode());
        prop_assert_eq!(losses, []);
    }
}

#[test]
fn documents_of_earlier_versions_come_back_as_the_newest() {
    let text = r#"{"version":"2.0.0","thread_id":"t","created_at":"2025-01-15T10:00:00Z","updated_at":"2025-01-15T10:00:00Z",
        "agents":{"a":{"agent_id":"a","agent_name":"A","created_at":"2025-01-15T10:00:00Z"}},"turns":[{"turn_type":"agent",
        "agent_id":"a","started_at":"2025-01-15T10:00:00Z","completed_at":"2025-01-15T10:00:00Z","messages":[
        {"message_type":"system","timestamp":"2025-01-15T10:00:00Z","event_type":"agent.handoff","event_data":{"to":"a"}}]}]}"#;
    let (back, losses) = round_trip(&Thread::decode(text).unwrap());
    assert_eq!(losses, []);
    let text = back.encode();
    assert!(text.contains(r#""version":"0.0.4""#) && text.contains("data-tp-agent_handoff"));
    assert!(text.contains(r#""completion_status":"complete""#));
}

#[test]
fn a_document_of_an_unknown_version_is_refused() {
    let thread = Thread::decode(r#"{"version":"9","turns":[]}"#).unwrap();
    let error = from_document(&thread, &mut ids()).unwrap_err();
    assert!(matches!(error, ImportError::Version(version) if version == "9"));
}

#[test]
fn an_object_that_has_none_of_what_a_document_must_have_is_none() {
    for text in [
        "{}",
        r#"{"version":"0.0.4"}"#,
        r#"{"name":"loomline","version":"2.0.0","dependencies":[]}"#,
    ] {
        let error = from_document(&Thread::decode(text).unwrap(), &mut ids()).unwrap_err();
        assert!(
            matches!(error, ImportError::NotADocument),
            "{text}: {error}"
        );
    }
    for text in [
        r#"{"version":"0.0.4","turns":5}"#,
        r#"{"version":"0.0.4","thread_id":"t"}"#,
        r#"{"version":"1.0.0","actions":[]}"#,
    ] {
        let thread = Thread::decode(text).unwrap();
        assert!(from_document(&thread, &mut ids()).is_ok(), "{text}");
    }
}

#[test]
fn what_does_not_come_back_is_reported_where_it_stood() {
    let text = r#"{"version":"0.0.4","thread_id":"t","created_at":"2025-01-15T10:00:00Z","updated_at":"2025-01-15T10:00:00Z",
        "agents":{},"turns":[{"turn_type":"robot"},{"turn_type":"user","submitted_at":"2025-01-15T10:00:00Z","parts":[],"$order":1}]}"#;
    let (back, losses) = round_trip(&Thread::decode(text).unwrap());
    assert_eq!(back.turns().len(), 2);
    let pointers: Vec<_> = losses.iter().map(|loss| loss.pointer.as_str()).collect();
    assert_eq!(pointers, ["/turns/1/$order"]);
}
