//! The times of one execution: its steps, its attempts at the model, its tool calls.

use crate::parts::{ToolPart, ToolState};
use jiff::Timestamp;
use timeline::{
    Chunk, Event, ExecutionId, ExecutionStatus, Marker, Payload, Record, Seq, StepId, StepStatus,
};

/// A duration in milliseconds as text: `12 ms`, `1.9 s`, `3 min 5 s`, `3 d 2 h`.
pub fn duration_text(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
        3_600_000..86_400_000 => format!(
            "{} h {} min",
            millis / 3_600_000,
            millis % 3_600_000 / 60_000
        ),
        _ => format!(
            "{} d {} h",
            millis / 86_400_000,
            millis % 86_400_000 / 3_600_000
        ),
    }
}

/// The reason for the end of an attempt at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The model answered.
    Completed,
    /// The step failed or was stopped before the model answered.
    Failed,
    /// The process stopped, and another one tried again.
    Restarted,
    /// The process tried again without a restart.
    Retried,
}

/// An attempt at the model's answer in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The event that began it.
    pub first_seq: Seq,
    /// Its last event so far.
    pub last_seq: Seq,
    /// Number of chunks that it streamed.
    pub n_chunks: usize,
    /// When it began.
    pub started: Timestamp,
    /// When its first chunk was written.
    pub first_chunk: Option<Timestamp>,
    /// When it ended, and why. If a process died, this is its last record.
    pub ended: Option<(Timestamp, AttemptEnd)>,
}

/// A tool call of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// Its id.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// When the step stored the call.
    pub created: Timestamp,
    /// When the tool started, if the log or the duration of the call has it.
    pub started: Option<Timestamp>,
    /// When its result was stored.
    pub ended: Option<Timestamp>,
    /// `ok`, `error`, or a more specific outcome such as `denied` or `interrupted`.
    pub outcome: Option<String>,
    /// Whether it needed an approval from outside.
    pub needs_approval: bool,
}

/// The times of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTimes {
    /// The step.
    pub id: StepId,
    /// The event that created it.
    pub first_seq: Seq,
    /// Its last event so far.
    pub last_seq: Seq,
    /// Its attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Its tool calls, in order.
    pub calls: Vec<CallTimes>,
    last: Timestamp,
}

/// Another process took up the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// The event.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// Whether the process before it shut down in order.
    pub is_orderly: bool,
}

/// The times of one execution, folded from its records. It needs the chunks.
#[derive(Clone, Debug)]
pub struct ExecutionTimes {
    execution: ExecutionId,
    /// Its steps, in order.
    pub steps: Vec<StepTimes>,
    /// The processes that took it up.
    pub restarts: Vec<Restart>,
    was_parked: bool,
}

impl ExecutionTimes {
    /// The times of an execution, before its first record.
    pub fn new(execution: ExecutionId) -> Self {
        Self {
            execution,
            steps: Vec::new(),
            restarts: Vec::new(),
            was_parked: false,
        }
    }

    /// The execution.
    pub fn id(&self) -> &ExecutionId {
        &self.execution
    }

    /// Folds a record of the thread in, and returns whether the execution is over. Records of other
    /// executions have no effect.
    pub fn apply(&mut self, record: &Record) -> bool {
        let at = record.at;
        match &record.event {
            Event::ExecutionStatusChanged {
                execution_id, to, ..
            } => {
                return *execution_id == self.execution && *to != ExecutionStatus::Executing;
            }
            Event::StepCreated { step } if step.execution_id == self.execution => {
                self.steps.push(StepTimes {
                    id: step.id.clone(),
                    first_seq: record.seq,
                    last_seq: record.seq,
                    attempts: vec![Attempt::begin(record)],
                    calls: Vec::new(),
                    last: at,
                });
            }
            Event::StepStatusChanged { step_id, to, .. } => {
                if let Some(step) = self.step(step_id) {
                    let end = match to {
                        StepStatus::Failed => AttemptEnd::Failed,
                        StepStatus::Running | StepStatus::Completed => AttemptEnd::Completed,
                    };
                    step.last_seq = record.seq;
                    step.end((record.seq, at), end);
                }
            }
            Event::PartCreated { step_id, part, .. } | Event::PartUpdated { step_id, part, .. } => {
                if let Some(step) = self.step(step_id) {
                    step.wrote(record);
                    step.part(part, at);
                }
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: Some(step_id),
                data,
                ..
            } => {
                let chunk = Chunk::decode(chunk_type, data.as_ref());
                self.chunk(step_id, &chunk, record);
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ExecutionCreated { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::ChunkEmitted { step_id: None, .. }
            | Event::ThreadFinished { .. } => {}
        }
        false
    }

    fn step(&mut self, id: &StepId) -> Option<&mut StepTimes> {
        self.steps.iter_mut().rev().find(|step| step.id == *id)
    }

    fn chunk(&mut self, id: &StepId, chunk: &Chunk<'_>, record: &Record) {
        let (at, last_restart) = (record.at, self.restarts.last().copied());
        let Some(step) = self.step(id) else { return };
        step.last_seq = record.seq;
        if let Chunk::Marker(Marker::ExecutionParked) = chunk {
            self.was_parked = true;
        } else if let Chunk::Marker(Marker::ExecutionResumed) = chunk {
            self.restarts.push(Restart {
                seq: record.seq,
                at,
                is_orderly: std::mem::take(&mut self.was_parked),
            });
        } else if let Chunk::Marker(Marker::StepReset) = chunk {
            step.reset(record, last_restart);
        } else if let Chunk::Marker(Marker::StepResponse(_)) = chunk {
            step.end((record.seq, at), AttemptEnd::Completed);
        } else if let Chunk::Marker(Marker::ToolStarted(data)) = chunk {
            let call = data.and_then(|data| data.str_field("toolCallId"));
            if let Some(call) = call.and_then(|id| step.call(&id)) {
                call.started = Some(at);
            }
        } else if !matches!(chunk, Chunk::Marker(_) | Chunk::Runtime { .. }) {
            step.wrote(record);
            if let Some(attempt) = step.attempts.last_mut() {
                attempt.n_chunks += 1;
                attempt.first_chunk.get_or_insert(at);
            }
        }
    }
}

impl Attempt {
    fn begin(record: &Record) -> Self {
        Self {
            first_seq: record.seq,
            last_seq: record.seq,
            n_chunks: 0,
            started: record.at,
            first_chunk: None,
            ended: None,
        }
    }
}

impl StepTimes {
    fn call(&mut self, id: &str) -> Option<&mut CallTimes> {
        self.calls.iter_mut().find(|call| call.tool_call_id == id)
    }

    /// A record of its output.
    fn wrote(&mut self, record: &Record) {
        self.last = record.at;
        self.last_seq = record.seq;
        if let Some(attempt) = self.attempts.last_mut()
            && attempt.ended.is_none()
        {
            attempt.last_seq = record.seq;
        }
    }

    fn end(&mut self, (seq, at): (Seq, Timestamp), end: AttemptEnd) {
        if let Some(attempt) = self.attempts.last_mut()
            && attempt.ended.is_none()
        {
            attempt.last_seq = seq;
            attempt.ended = Some((at, end));
        }
    }

    fn reset(&mut self, record: &Record, restart: Option<Restart>) {
        let last = self.last;
        let attempt = self.attempts.last();
        let started = attempt.map_or(last, |attempt| attempt.started);
        let last_seq = attempt.map_or(record.seq, |attempt| attempt.last_seq);
        let end = if restart.is_some_and(|restart| restart.at >= started) {
            AttemptEnd::Restarted
        } else {
            AttemptEnd::Retried
        };
        self.end((last_seq, last), end);
        self.attempts.push(Attempt::begin(record));
        self.calls.clear();
        self.last = record.at;
    }

    fn part(&mut self, part: &Payload, at: Timestamp) {
        let Some(tool) = ToolPart::read(part) else {
            return;
        };
        if self.call(&tool.tool_call_id).is_none() {
            self.calls.push(CallTimes {
                tool_call_id: tool.tool_call_id.clone(),
                tool_name: tool.tool_name().to_owned(),
                created: at,
                started: None,
                ended: None,
                outcome: None,
                needs_approval: false,
            });
        }
        let Some(call) = self.call(&tool.tool_call_id) else {
            return;
        };
        call.needs_approval |= tool.approval.is_some();
        if !tool.is_answered() || call.ended.is_some() {
            return;
        }
        call.ended = Some(at);
        let millis = tool.duration_ms.and_then(|ms| i64::try_from(ms).ok());
        let began =
            millis.and_then(|ms| at.checked_sub(jiff::SignedDuration::from_millis(ms)).ok());
        call.started = call.started.or(began);
        let is_ok = tool.state == ToolState::OutputAvailable;
        let usual = if is_ok { "ok" } else { "error" };
        call.outcome = Some(tool.outcome.unwrap_or_else(|| usual.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn folded(events: &[(u64, Value)]) -> ExecutionTimes {
        let mut times = ExecutionTimes::new("e".into());
        for (second, event) in events {
            times.apply(&Record {
                seq: Seq(*second),
                at: at(*second),
                event: Event::decode(&event.to_string()).unwrap(),
            });
        }
        times
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
    }

    fn step() -> Value {
        json!({"type": "step.created", "step": {
            "id": "s", "executionId": "e", "iteration": 0, "status": "running", "eventId": "i",
            "createdAt": "1970-01-01T00:00:01Z",
        }})
    }

    fn chunk(name: &str) -> Value {
        let data = json!({"id": "t0-0", "delta": "a"});
        json!({"type": "chunk.emitted", "chunkType": name, "contextId": "c", "executionId": "e", "stepId": "s", "data": data})
    }

    #[test]
    fn an_attempt_that_a_restart_voids_ends_with_its_last_event() {
        let times = folded(&[
            (1, step()),
            (3, chunk("text-delta")),
            (4, chunk("text-delta")),
            (8, chunk("data-execution-resumed")),
            (9, chunk("data-step-reset")),
            (11, chunk("text-delta")),
            (12, chunk("data-step-response")),
        ]);
        let expected = [
            Attempt {
                first_seq: Seq(1),
                last_seq: Seq(4),
                n_chunks: 2,
                started: at(1),
                first_chunk: Some(at(3)),
                ended: Some((at(4), AttemptEnd::Restarted)),
            },
            Attempt {
                first_seq: Seq(9),
                last_seq: Seq(12),
                n_chunks: 1,
                started: at(9),
                first_chunk: Some(at(11)),
                ended: Some((at(12), AttemptEnd::Completed)),
            },
        ];
        assert_eq!(times.steps[0].attempts, expected);
        let restart = Restart {
            seq: Seq(8),
            at: at(8),
            is_orderly: false,
        };
        assert_eq!(times.restarts, [restart]);
    }

    #[test]
    fn a_reset_without_a_restart_is_a_retry() {
        let times = folded(&[(1, step()), (2, chunk("data-step-reset"))]);
        let ended = times.steps[0].attempts[0].ended;
        assert_eq!(ended, Some((at(1), AttemptEnd::Retried)));
    }

    #[test]
    fn a_restart_after_an_orderly_shutdown_is_orderly() {
        let times = folded(&[
            (1, step()),
            (2, chunk("data-execution-parked")),
            (3, chunk("data-execution-resumed")),
        ]);
        assert!(times.restarts[0].is_orderly);
    }

    #[test]
    fn a_call_has_the_times_of_its_start_and_its_result() {
        let part = |part: Value, kind: &str| json!({"type": kind, "partKey": "s:0", "stepId": "s", "idx": 0, "part": part});
        let call = json!({"type": "tool-compute", "toolCallId": "c", "state": "input-available"});
        let result = json!({
            "type": "tool-compute", "toolCallId": "c", "state": "output-available", "output": 1, "durationMs": 2000,
        });
        let times = folded(&[
            (1, step()),
            (2, part(call, "part.created")),
            (9, part(result, "part.updated")),
        ]);
        let call = &times.steps[0].calls[0];
        assert_eq!(
            (call.created, call.started, call.ended),
            (at(2), Some(at(7)), Some(at(9)))
        );
        assert_eq!(call.outcome.as_deref(), Some("ok"));
        assert!(!call.needs_approval);
    }
}
