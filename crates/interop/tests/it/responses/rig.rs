//! Logs of one execution, and what clients see of them.

use super::client::{events_of, stream};
use crate::log::Log;
use crate::native::thread;
use loomline_interop::parts::{EventPart, StepResponse, ToolPart, ToolState};
use loomline_interop::responses::{Echo, ResponseOf, response};
use serde_json::{Value, json};
use timeline::{
    Command, Ending, NewChunk, NewItem, Payload, Record, StepOutcome, Transcript, Trigger,
};

pub(super) fn run(echo: &Echo) -> Payload {
    json!({"agent": "ada", "params": {"echo": {"responses": echo}}}).into()
}

pub(super) fn transcript(records: &[Record]) -> Transcript {
    let mut transcript = Transcript::default();
    for record in records {
        transcript.apply(record);
    }
    transcript
}

pub(super) fn object(records: &[Record], execution: &str) -> Value {
    let made = response(&transcript(records), &execution.into()).unwrap();
    serde_json::from_str(&made.value.json).unwrap()
}

pub(super) fn user(id: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": "hi"}]).into())
}

pub(super) fn begun(run: Option<Payload>) -> Log {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    log.run(Command::Start {
        trigger: Trigger::New(user("u")),
        run,
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    log
}

pub(super) fn emit(log: &mut Log, kind: &str, data: Value) {
    let chunk = NewChunk {
        chunk_type: kind.to_owned(),
        data: Some(data.into()),
    };
    log.run(Command::Emit {
        chunks: vec![chunk],
    });
}

pub(super) fn text(log: &mut Log, text: &str) {
    emit(log, "text-delta", json!({"id": "t0-0", "delta": text}));
}

pub(super) fn answer(log: &mut Log, parts: Vec<Value>, stop_reason: &str) {
    let said = StepResponse {
        model: Some("m".into()),
        stop_reason: Some(stop_reason.into()),
        usage: Some(json!({"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 3, "reasoningTokens": 1}).into()),
        ..StepResponse::default()
    };
    log.run(Command::Respond {
        parts: parts.into_iter().map(Payload::from).collect(),
        response: Payload::write(&said).unwrap(),
    });
}

pub(super) fn step_over(log: &mut Log, next: Option<&str>) {
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: next.map(Into::into),
    });
}

pub(super) fn over(log: &mut Log) {
    step_over(log, None);
    let ending = Ending::Completed;
    log.run(Command::End { ending });
}

pub(super) fn call(name: &str, id: &str, arguments: &str) -> Value {
    ToolPart::call(name, id, arguments).write().unwrap().value()
}

pub(super) fn events(log: &Log) -> Vec<Value> {
    events_of(&stream(&log.records, ResponseOf::Execution("e".into()))).0
}

pub(super) fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

pub(super) fn handed_over() -> Log {
    let mut log = begun(None);
    let idx = 0;
    let mut tool = ToolPart::call("transfer_to_bo", "h", "{}");
    answer(&mut log, vec![tool.write().unwrap().value()], "tool_use");
    tool.state = ToolState::OutputAvailable;
    tool.output = Some(json!("Transferred to bo.").into());
    let part = tool.write().unwrap();
    log.run(Command::PutPart { idx, part });
    let event = EventPart {
        part_type: EventPart::AGENT_HANDOFF.to_owned(),
        id: "h".to_owned(),
        data: json!({"from": "ada", "to": "bo"}).into(),
    };
    let part = event.write().unwrap();
    log.run(Command::AddPart { part });
    over(&mut log);
    let mut reference = user("r");
    reference.item_type = timeline::ItemType::ItemReference;
    reference.role = None;
    reference.content = Some(json!({"itemId": "u"}).into());
    log.run(Command::Start {
        trigger: Trigger::New(reference),
        run: None,
        execution_id: "e2".into(),
        reaction_item_id: "a2".into(),
        step_id: "s2".into(),
        workflow_run_id: None,
    });
    text(&mut log, "I am bo.");
    answer(
        &mut log,
        vec![json!({"type": "output_text", "text": "I am bo."})],
        "end_turn",
    );
    over(&mut log);
    log
}

pub(super) fn reset() -> Log {
    let mut log = begun(None);
    text(&mut log, "Hel");
    emit(
        &mut log,
        "tool-input-start",
        json!({"toolCallId": "c", "toolName": "look"}),
    );
    log.run(Command::ResetStep);
    text(&mut log, "Hallo");
    answer(
        &mut log,
        vec![json!({"type": "output_text", "text": "Hallo"})],
        "end_turn",
    );
    over(&mut log);
    log
}
