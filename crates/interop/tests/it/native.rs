//! Conversations that this system has had itself.

use crate::dice::Dice;
use crate::document::errors;
use crate::log::{Log, ids, of_import};
use jiff::Timestamp;
use loomline_interop::document::{agent_id, from_document, to_document};
use loomline_interop::parts::{
    EventPart, ReasoningPart, StepResponse, TextPart, ToolPart, ToolState,
};
use proptest::prelude::*;
use serde_json::json;
use thread::validate::Rule;
use thread::{Json, Profile, validate};
use timeline::{
    Command, Ending, Fork, Interruption, NewChunk, NewItem, NewThread, Payload, Seq, StepOutcome,
    Trigger,
};

const THREAD: &str = "0197b2c4-0000-7000-8000-000000000001";

pub(crate) fn thread() -> NewThread {
    NewThread::new(THREAD, Some("k"))
}

fn start() -> Timestamp {
    "2026-01-05T08:00:00Z".parse().unwrap()
}

fn user(id: &str) -> NewItem {
    let content = json!([{"type": "input_text", "text": "hi"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]);
    NewItem::user(id, content.into())
}

/// A conversation as the runtime would write it.
struct Runtime<'a> {
    dice: Dice<'a>,
    log: Log,
    n: usize,
}

impl Runtime<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.n += 1;
        format!("{kind}_{}", self.n)
    }

    fn emit(&mut self, kind: &str, data: serde_json::Value) {
        let chunk = NewChunk {
            chunk_type: kind.to_owned(),
            data: Some(data.into()),
        };
        self.log.run(Command::Emit {
            chunks: vec![chunk],
        });
    }

    /// Streams an answer and gives its parts.
    fn speak(&mut self, iteration: usize) -> Vec<Payload> {
        let mut parts = Vec::new();
        let streams = self.dice.one_in(2);
        for index in 0..self.dice.roll(3) {
            let text = self.dice.pick(&["Hello", "", "☀", "Hello"]);
            let (kind, letter) = self.dice.pick(&[("text", 't'), ("reasoning", 'r')]);
            let id = format!("{letter}{iteration}-{index}");
            if !text.is_empty() && streams {
                self.emit(&format!("{kind}-start"), json!({"id": id}));
                for delta in text.split_inclusive('l') {
                    self.emit(&format!("{kind}-delta"), json!({"id": id, "delta": delta}));
                }
                if self.dice.roll(2) == 0 {
                    self.emit(&format!("{kind}-end"), json!({"id": id}));
                }
            }
            let text = text.to_owned();
            parts.push(if kind == "text" {
                Payload::write(&TextPart {
                    part_type: "output_text".into(),
                    text,
                    extra: None,
                })
                .unwrap()
            } else {
                let part_type = "reasoning".into();
                let provider = Some("p".to_owned());
                Payload::write(&ReasoningPart {
                    part_type,
                    text,
                    signature: None,
                    provider,
                    extra: None,
                })
                .unwrap()
            });
        }
        for _ in 0..self.dice.roll(3) {
            let id = self.id("call");
            let arguments = self.dice.pick(&[r#"{"a":1}"#, "{\"cut", ""]);
            if streams {
                self.emit(
                    "tool-input-start",
                    json!({"toolCallId": id, "toolName": "look"}),
                );
                self.emit(
                    "tool-input-delta",
                    json!({"toolCallId": id, "inputTextDelta": arguments}),
                );
            }
            parts.push(ToolPart::call("look", &id, arguments).write().unwrap());
        }
        parts
    }

    fn respond(&mut self, parts: &[Payload]) {
        let calls = parts.iter().any(|part| ToolPart::read(part).is_some());
        let said = StepResponse {
            provider: Some("p".into()),
            model: Some("m".into()),
            stop_reason: Some(if calls { "tool_use" } else { "end_turn" }.into()),
            usage: Some(json!({"inputTokens": 3, "outputTokens": 4, "cacheReadTokens": 0, "cacheWriteTokens": 1}).into()),
            ..StepResponse::default()
        };
        let response = Payload::write(&said).unwrap();
        self.log.run(Command::Respond {
            parts: parts.to_vec(),
            response,
        });
    }

    /// Runs the tools; says whether all of them came back.
    fn act(&mut self, parts: &[Payload]) -> bool {
        let mut whole = true;
        if self.dice.one_in(4) {
            let kinds = [EventPart::THREAD_SPAWN, EventPart::THREAD_END];
            let kind = self.dice.pick(&kinds);
            self.log
                .run(event(kind, json!({"spawned_thread_id": "child"})));
        }
        for (idx, part) in (0..).zip(parts) {
            let Some(mut tool) = ToolPart::read(part) else {
                continue;
            };
            match self.dice.roll(5) {
                0 => {
                    tool.state = ToolState::OutputError;
                    tool.error_text = Some("no".into());
                }
                1 => {
                    whole = false;
                    continue;
                }
                _ => {
                    tool.state = ToolState::OutputAvailable;
                    tool.output = Some(json!({"ok": [1, null]}).into());
                }
            }
            self.log.run(Command::PutPart {
                idx,
                part: tool.write().unwrap(),
            });
        }
        whole
    }

    fn next(&mut self, next: Option<String>) {
        let outcome = StepOutcome::default();
        self.log.run(Command::ImportStep {
            outcome,
            next: next.map(Into::into),
        });
    }

    fn execution(&mut self) {
        let ids = ["user", "execution", "item", "step"].map(|kind| self.id(kind));
        let waits = self.log.state.waiting().len() > 0;
        let run = json!({"agent": self.dice.pick(&["ada", "bo"])}).into();
        self.log.run(Command::Start {
            trigger: if waits {
                Trigger::Waiting
            } else {
                Trigger::New(user(&ids[0]))
            },
            run: Some(run),
            execution_id: ids[1].as_str().into(),
            reaction_item_id: ids[2].as_str().into(),
            step_id: ids[3].as_str().into(),
            workflow_run_id: None,
        });
        let ending = self.steps();
        self.log.run(Command::End { ending });
    }

    fn steps(&mut self) -> Ending {
        for iteration in 0.. {
            let mut parts = self.speak(iteration);
            if self.dice.one_in(5) {
                return self.stop();
            }
            if self.dice.one_in(4) {
                self.log.run(Command::ResetStep);
                parts = self.speak(iteration);
            }
            if self.dice.one_in(5) {
                let item = user(&self.id("user"));
                let run = json!({"agent": "ada"}).into();
                self.log.run(Command::Enqueue { item, run });
            }
            self.respond(&parts);
            let whole = self.act(&parts);
            if self.dice.one_in(5) {
                return self.stop();
            }
            if !whole || iteration > 2 || self.dice.roll(2) == 0 {
                self.next(None);
                return Ending::Completed;
            }
            let next = self.id("step");
            self.next(Some(next));
        }
        Ending::Completed
    }

    fn stop(&mut self) -> Ending {
        let why = |reason: &str, detail: Option<&str>| Interruption {
            reason: reason.into(),
            detail: detail.map(str::to_owned),
        };
        match self.dice.roll(2) {
            0 => Ending::Stopped(why("user_cancelled", None)),
            _ => Ending::Failed(why("error", Some("it broke"))),
        }
    }
}

/// The log of a conversation as the runtime would write it.
pub(crate) fn conversation(bytes: &[u8]) -> Log {
    let log = Log::new(thread(), start());
    let mut runtime = Runtime {
        dice: Dice::new(bytes),
        log,
        n: 0,
    };
    for _ in 0..runtime.dice.roll(5) {
        if runtime.dice.one_in(4) {
            let item = user(&runtime.id("user"));
            runtime.log.run(Command::Record { item });
        }
        runtime.execution();
    }
    runtime.log
}

proptest! {
    #[test]
    fn what_the_runtime_wrote_is_a_valid_document_in_order(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let document = to_document(&conversation(&bytes).transcript()).value;
        prop_assert_eq!(errors(&document), Vec::<String>::new());
        let late = validate(&document, Profile::Strict)
            .into_iter()
            .find(|violation| matches!(violation.rule, Rule::TurnOverlap | Rule::MessageOrder));
        prop_assert_eq!(late, None, "{}", document.encode());
    }

    #[test]
    fn an_own_document_survives_a_move_to_another_log(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let document = to_document(&conversation(&bytes).transcript()).value;
        let (back, losses) = crate::document::round_trip(&document);
        prop_assert_eq!(back.encode(), document.encode());
        prop_assert_eq!(losses, []);
    }

    #[test]
    fn the_document_is_the_same_after_a_restart(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut log = conversation(&bytes);
        let before = to_document(&log.transcript());
        for record in &mut log.records {
            record.event = timeline::Event::decode(&record.event.encode().unwrap()).unwrap();
        }
        prop_assert_eq!(to_document(&log.transcript()), before);
    }
}

fn answered(log: &mut Log, run: &str, parts: Vec<Payload>) {
    log.run(Command::Start {
        trigger: Trigger::New(user(&format!("user_{run}"))),
        run: Some(json!({"agent": "ada"}).into()),
        execution_id: run.into(),
        reaction_item_id: format!("item_{run}").into(),
        step_id: format!("step_{run}").into(),
        workflow_run_id: None,
    });
    let response = json!({"model": "m", "provider": "p", "stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 4}});
    log.run(Command::Respond {
        parts,
        response: response.into(),
    });
}

fn complete(log: &mut Log) {
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
}

#[test]
fn an_answer_is_written_as_the_protocol_spells_it() {
    let mut log = Log::new(thread(), start());
    answered(
        &mut log,
        "1",
        vec![json!({"type": "output_text", "text": "hello"}).into()],
    );
    complete(&mut log);
    let document = to_document(&log.transcript());
    let expected = concat!(
        r#"{"version":"0.0.4","thread_id":"0197b2c4-0000-7000-8000-000000000001","created_at":"2026-01-05T08:00:01Z","#,
        r#""updated_at":"2026-01-05T08:00:05Z","agents":{"ID":{"agent_id":"ID","agent_name":"ada","model_name":"m","#,
        r#""provider_name":"p","created_at":"2026-01-05T08:00:02Z"}},"turns":[{"turn_type":"user","#,
        r#""submitted_at":"2026-01-05T08:00:02Z","parts":[{"part_kind":"user-prompt","content":["hi",{"kind":"binary","#,
        r#""data":"AAAA","media_type":"image/png","identifier":"IDENT"}]}]},{"turn_type":"agent","agent_id":"ID","#,
        r#""started_at":"2026-01-05T08:00:02Z","completed_at":"2026-01-05T08:00:05Z","completion_status":"complete","#,
        r#""messages":[{"message_type":"response","timestamp":"2026-01-05T08:00:03Z","agent_id":"ID","parts":["#,
        r#"{"part_kind":"text","content":"hello"}],"model_name":"m","provider_name":"p","usage":{"input_tokens":3,"#,
        r#""output_tokens":4,"total_tokens":7},"finish_reason":"stop"}],"total_usage":{"input_tokens":3,"#,
        r#""output_tokens":4,"total_tokens":7}}]}"#
    );
    let agent = loomline_interop::document::agent_id("ada");
    let parts = document
        .value
        .root()
        .get("turns")
        .unwrap()
        .pointer("/0/parts/0/content/1/identifier");
    let identifier = parts.and_then(Json::as_str).unwrap();
    let expected = expected.replace("IDENT", identifier).replace("ID", &agent);
    assert_eq!(document.value.encode(), expected);
    assert_eq!(document.losses, []);
}

/// That something happens beside a model's answer.
fn event(kind: &str, data: serde_json::Value) -> Command {
    let event = EventPart {
        part_type: kind.to_owned(),
        id: kind.to_owned(),
        data: data.into(),
    };
    Command::AddPart {
        part: event.write().unwrap(),
    }
}

#[test]
fn what_happens_beside_an_answer_is_told_by_system_messages_around_the_results() {
    let mut log = Log::new(thread(), start());
    let call = ToolPart::call("helper", "c1", "{}");
    answered(&mut log, "ada", vec![call.write().unwrap()]);
    log.run(event(
        EventPart::THREAD_SPAWN,
        json!({"spawned_thread_id": "child"}),
    ));
    log.run(event(
        EventPart::THREAD_END,
        json!({"thread_id": "child", "reason": "completed"}),
    ));
    let done = ToolPart {
        state: ToolState::OutputAvailable,
        output: Some(json!("done").into()),
        ..call
    };
    let part = done.write().unwrap();
    log.run(Command::PutPart { idx: 0, part });
    log.run(event(
        EventPart::AGENT_HANDOFF,
        json!({"from": "ada", "to": "bo"}),
    ));
    complete(&mut log);
    let document = to_document(&log.transcript());
    assert_eq!(document.losses, Vec::new());
    assert_eq!(validate(&document.value, Profile::Strict), Vec::new());
    let document: serde_json::Value = serde_json::from_str(&document.value.encode()).unwrap();
    let messages = document["turns"][1]["messages"].as_array().unwrap();
    let kind = |message: &serde_json::Value| {
        let event = message["event_type"].as_str();
        event
            .or(message["message_type"].as_str())
            .unwrap()
            .to_owned()
    };
    let kinds: Vec<String> = messages.iter().map(kind).collect();
    let [spawn, end] = ["data-tp-thread_spawn", "data-tp-thread_end"];
    assert_eq!(
        kinds,
        ["response", spawn, end, "request", "data-tp-agent_handoff"]
    );
    let (ada, bo) = (agent_id("ada"), agent_id("bo"));
    assert_eq!(messages[4]["event_data"], json!({"from": ada, "to": bo}));
    assert_eq!(messages[4]["target_agents"], json!([bo]));
    // The one who is named before speaking is in the registry all the same.
    assert_eq!(document["agents"][&bo]["agent_name"], "bo");
}

#[test]
fn calls_stay_open_until_someone_else_speaks() {
    let mut log = Log::new(thread(), start());
    answered(
        &mut log,
        "1",
        vec![ToolPart::call("ask", "c1", "{}").write().unwrap()],
    );
    complete(&mut log);
    let document = to_document(&log.transcript()).value;
    assert_eq!(thread::pending_tool_calls(&document).len(), 1);
    answered(
        &mut log,
        "2",
        vec![json!({"type": "output_text", "text": "never mind"}).into()],
    );
    complete(&mut log);
    let document = to_document(&log.transcript());
    assert_eq!(thread::pending_tool_calls(&document.value).len(), 0);
    assert_eq!(errors(&document.value), Vec::<String>::new());
    assert_eq!(document.losses[0].pointer, "/turns/1");
}

#[test]
fn what_was_dropped_still_counts() {
    let mut log = Log::new(thread(), start());
    answered(
        &mut log,
        "1",
        vec![ToolPart::call("pay", "c1", "{}").write().unwrap()],
    );
    let why = Interruption {
        reason: "user_cancelled".into(),
        detail: None,
    };
    log.run(Command::End {
        ending: Ending::Stopped(why),
    });
    let document = to_document(&log.transcript()).value;
    let turn = document
        .root()
        .get("turns")
        .unwrap()
        .pointer("/1")
        .unwrap()
        .clone();
    assert_eq!(turn.get("messages"), Some(&Json::Array(Vec::new())));
    assert_eq!(
        turn.pointer("/total_usage/total_tokens"),
        Some(&7u64.into())
    );
    assert_eq!(
        turn.pointer("/interruption/reason"),
        Some(&"user_cancelled".into())
    );
}

#[test]
fn what_waits_or_runs_is_not_in_the_document() {
    let mut log = Log::new(thread(), start());
    answered(&mut log, "1", Vec::new());
    let run = json!({"agent": "ada"}).into();
    log.run(Command::Enqueue {
        item: user("late"),
        run,
    });
    let document = to_document(&log.transcript()).value;
    assert_eq!(document.turns().len(), 1);
}

#[test]
fn a_fork_links_to_where_it_came_from() {
    let parent = "0197b2c4-0000-7000-8000-00000000000f";
    let fork = Fork {
        thread_id: parent.into(),
        seq: Seq(12),
    };
    let log = Log::new(
        NewThread {
            fork: Some(fork),
            ..thread()
        },
        start(),
    );
    let document = to_document(&log.transcript()).value;
    let link = document
        .root()
        .get("relationships")
        .unwrap()
        .pointer("/links/0")
        .unwrap();
    let expected = format!(
        r#"{{"thread_id":"{parent}","relation":"spawned_from","metadata":{{"branch_point":12}}}}"#
    );
    assert_eq!(link.to_text(), expected);
    assert_eq!(errors(&document), Vec::<String>::new());
}

#[test]
fn a_fork_of_an_import_registers_the_agents_it_inherits() {
    let text = r#"{"version":"0.0.4","thread_id":"t","created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:00:00Z",
        "agents":{"11111111-1111-4111-8111-111111111111":{"agent_id":"11111111-1111-4111-8111-111111111111","agent_name":"Ada",
        "created_at":"2026-01-05T08:00:00Z"}},"turns":[{"turn_type":"agent","agent_id":"11111111-1111-4111-8111-111111111111",
        "started_at":"2026-01-05T08:00:00Z","completion_status":"complete","messages":[]}]}"#;
    let imported = from_document(&thread::Thread::decode(text).unwrap(), &mut ids())
        .unwrap()
        .value;
    let mut transcript = of_import("t", &imported).transcript().continued();
    let fork = Some(Fork {
        thread_id: "t".into(),
        seq: Seq(9),
    });
    for record in &Log::new(NewThread { fork, ..thread() }, start()).records {
        transcript.apply(record);
    }
    let document = to_document(&transcript).value;
    let names: Vec<_> = document
        .agents()
        .filter_map(|(_, agent)| agent.agent_name())
        .collect();
    assert_eq!((names, document.turns().len()), (vec!["Ada"], 1));
}

/// Documents that readers can live with, or not even that, are given out as what may be written.
#[test]
fn an_export_keeps_the_strict_rules_whatever_was_imported() {
    use loomline_interop::document::to_strict_document;
    let early = r#"{"version":"0.0.4","thread_id":"t","agents":{"a":{"agent_id":"b"}},"turns":[
        {"turn_type":"user","submitted_at":"2026-01-05T08:00:00","parts":[{"part_kind":"user-prompt",
        "content":[{"kind":"binary","data":"%","media_type":"a/b"}]}],"client_metadata":{"plain":1}},
        {"turn_type":"agent","agent_id":"a","started_at":"2026-01-05T08:00:00Z","messages":[
        {"message_type":"response","agent_id":"c","parts":[{"part_kind":"text","content":"x"}]},
        {"message_type":"system","event_type":"data-tp-agent_handoff","event_data":{},"source_agent":"z"},
        {"message_type":"request","parts":[{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c"}]}]}]}"#;
    let fixtures = [
        early,
        include_str!("../../../thread/tests/fixtures/broken_shapes.json"),
        include_str!("../../../thread/tests/fixtures/broken_calls.json"),
        include_str!("../../../thread/tests/fixtures/versions/broken_actions.json"),
    ];
    for text in fixtures {
        let broken = thread::Thread::decode(text).unwrap();
        let imported = from_document(&broken, &mut ids()).unwrap().value;
        let given = to_strict_document(&of_import(THREAD, &imported).transcript());
        let errors: Vec<_> = validate(&given.value, Profile::Strict)
            .into_iter()
            .filter(|it| it.severity == thread::Severity::Error)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_ne!(given.losses, []);
    }
}
