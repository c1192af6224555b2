//! Text in, text out: the simple way to run a durable agent.

use crate::agent::called;
use crate::error::RuntimeError;
use crate::follow::Until;
use crate::request::{Accepted, AnswerRequest, React, continued_run};
use crate::runtime::Runtime;
use agents::{Answers, ExternalResult, PendingCall, PendingKind, Verdict};
use futures_util::TryStreamExt;
use interop::parts::StepResponse;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::Run;
use store::TenantId;
use timeline::{
    ANSWER, Event, ExecutionId, Interruption, ItemId, ItemType, NewItem, OpenCall, OpenKind,
    Payload, StepId, chunk_type,
};

/// What an agent has made of what was said to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text of its last answer; empty where it gave none.
    pub text: String,
    /// The calls that wait for an answer from outside. The run goes on with [`Runtime::answer_calls`].
    pub pending: Vec<PendingCall>,
    /// Why the run ended before its time; absent where it is complete or waits.
    pub interruption: Option<Interruption>,
}

impl AnswerRequest {
    /// Answers to calls that wait, as the item of this id. They are the same [`Answers`] that an agent
    /// in memory takes.
    pub fn new(
        tenant: TenantId,
        key: impl Into<String>,
        id: impl Into<ItemId>,
        answers: &Answers,
    ) -> Self {
        Self {
            tenant,
            key: key.into(),
            item: NewItem {
                item_type: ItemType::ActionResult,
                role: None,
                ..NewItem::user(id, content(answers))
            },
            run: None,
            token: None,
        }
    }
}

impl Runtime {
    /// Says a text to a thread's agent, and waits for what the agent makes of it. The thread is made if
    /// there is none; one that is busy answers in its turn.
    ///
    /// The run belongs to the runtime: it goes on when this future is dropped, and after a crash.
    ///
    /// # Errors
    ///
    /// What [`react`](Self::react) refuses. A run that failed is a reply with an interruption.
    pub async fn say(
        &self,
        tenant: &TenantId,
        key: &str,
        text: impl Into<String>,
    ) -> Result<Reply, RuntimeError> {
        let said = json!([{"type": "input_text", "text": text.into()}]);
        let item = NewItem::user(self.mint(), said.into());
        let mut request = React::new(tenant.clone(), key, item);
        // Named here, so that the run can be followed while it waits for its turn.
        let execution = ExecutionId::from(self.mint());
        request.run.execution_id = Some(execution.clone());
        let accepted = self.react(request).await?;
        self.reply(tenant, key, accepted, execution).await
    }

    /// Answers calls that wait, and waits for what the agent makes of it.
    ///
    /// # Errors
    ///
    /// What [`answer`](Self::answer) refuses: then nothing is written.
    pub async fn answer_calls(
        &self,
        tenant: &TenantId,
        key: &str,
        answers: &Answers,
    ) -> Result<Reply, RuntimeError> {
        let mut request = AnswerRequest::new(tenant.clone(), key, self.mint(), answers);
        let execution = ExecutionId::from(self.mint());
        let (state, _) = self.state(tenant, key).await?;
        let before = state.open().and_then(|open| open.execution.run.as_ref());
        request.run = Some(Run {
            execution_id: Some(execution.clone()),
            ..continued_run(before)
        });
        let accepted = self.answer(request).await?;
        self.reply(tenant, key, accepted, execution).await
    }

    async fn reply(
        &self,
        tenant: &TenantId,
        key: &str,
        accepted: Accepted,
        named: ExecutionId,
    ) -> Result<Reply, RuntimeError> {
        let execution = accepted.execution_id.unwrap_or(named);
        let until = Until::Execution(execution.clone());
        let mut records = self.follow(tenant, key, accepted.after, until).await?;
        let mut heard = Heard::of(execution);
        while let Some(logged) = records.try_next().await? {
            heard.event(&logged.record.event);
            if heard.is_over {
                return Ok(heard.reply);
            }
        }
        Err(RuntimeError::ShuttingDown)
    }
}

/// What was heard of an execution so far.
struct Heard {
    execution: ExecutionId,
    step: Option<StepId>,
    /// The texts of the running step, by their places.
    texts: BTreeMap<u32, String>,
    reply: Reply,
    is_over: bool,
}

impl Heard {
    fn of(execution: ExecutionId) -> Self {
        Self {
            execution,
            step: None,
            texts: BTreeMap::new(),
            reply: Reply::default(),
            is_over: false,
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::StepCreated { step } => {
                if step.execution_id == self.execution {
                    self.step = Some(step.id.clone());
                    self.texts.clear();
                }
            }
            Event::PartCreated {
                step_id, idx, part, ..
            }
            | Event::PartUpdated {
                step_id, idx, part, ..
            } => self.part(step_id, *idx, part),
            Event::ChunkEmitted {
                chunk_type,
                step_id,
                data,
                ..
            } => {
                if step_id.as_ref().is_some_and(|step| self.is_running(step)) {
                    self.marker(chunk_type, data.as_ref());
                }
            }
            Event::StepStatusChanged {
                step_id, outcome, ..
            } => {
                if self.is_running(step_id) {
                    let open = OpenCall::list(outcome.open_calls.as_ref());
                    self.reply.pending = open.iter().filter_map(pending).collect();
                }
            }
            Event::ExecutionStatusChanged {
                execution_id,
                interruption,
                ..
            } => {
                if *execution_id == self.execution {
                    self.reply.interruption.clone_from(interruption);
                }
            }
            Event::ThreadFinished { execution_id, .. } => {
                self.is_over |= *execution_id == self.execution;
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ExecutionCreated { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. } => {}
        }
    }

    fn part(&mut self, step: &StepId, idx: u32, part: &Payload) {
        if self.is_running(step) && part.str_field("type").as_deref() == Some("output_text") {
            let text = part.str_field("text").unwrap_or_default();
            self.texts.insert(idx, text);
        }
    }

    fn marker(&mut self, kind: &str, data: Option<&Payload>) {
        match kind {
            chunk_type::STEP_RESET => self.texts.clear(),
            chunk_type::STEP_RESPONSE => {
                let said: StepResponse = data.and_then(|it| it.read().ok()).unwrap_or_default();
                if !said.answers {
                    self.reply.text = self.texts.values().map(String::as_str).collect();
                }
            }
            _ => {}
        }
    }

    fn is_running(&self, step: &StepId) -> bool {
        self.step.as_ref() == Some(step)
    }
}

/// The call as an agent in memory tells of it; none where it waits for other calls alone.
fn pending(open: &OpenCall) -> Option<PendingCall> {
    let kind = match open.kind {
        OpenKind::Approval => PendingKind::Approval,
        OpenKind::External => PendingKind::External,
        OpenKind::Child => PendingKind::Subagent,
        OpenKind::Others => return None,
    };
    let call = called(open)?;
    Some(PendingCall { call, kind })
}

/// The content of an item with these answers.
fn content(answers: &Answers) -> Payload {
    let part = |call: &str, says: Value| {
        let mut part = json!({"type": ANSWER, "toolCallId": call});
        if let (Value::Object(part), Value::Object(says)) = (&mut part, says) {
            part.extend(says.into_iter().filter(|(_, value)| !value.is_null()));
        }
        part
    };
    let approvals = answers.approvals.iter().map(|(call, verdict)| {
        let says = match verdict {
            Verdict::Approve { arguments } => json!({"approved": true, "arguments": arguments}),
            Verdict::Deny { message } => json!({"approved": false, "message": message}),
        };
        part(call.as_str(), says)
    });
    let results = answers.results.iter().map(|(call, result)| {
        let mut part = part(call.as_str(), json!({}));
        part[key_of(result)] = result.result.clone();
        part
    });
    let resumed = answers.resumptions.keys();
    let resumed = resumed.map(|call| part(call.as_str(), json!({"resumed": true})));
    Value::Array(approvals.chain(results).chain(resumed).collect()).into()
}

fn key_of(result: &ExternalResult) -> &'static str {
    if result.is_error {
        "errorText"
    } else {
        "output"
    }
}
