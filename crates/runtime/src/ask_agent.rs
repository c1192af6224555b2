//! Runs a durable agent with a text as input and output.

use crate::agent::called;
use crate::error::RuntimeError;
use crate::follow::Until;
use crate::request::{Accepted, AnswerRequest, ReactRequest, continued_run};
use crate::runtime::Runtime;
use agents::{Answers, ExternalResult, PendingCall, PendingKind, Verdict};
use futures_util::TryStreamExt;
use interop::run::{RunEvent, RunFold, RunPart, RunSelector};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::Run;
use store::TenantId;
use timeline::{
    ANSWER, Event, ExecutionId, Interruption, ItemId, ItemType, NewItem, OpenCall, OpenKind,
    Payload,
};

/// An agent's reply to a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReply {
    /// The text of its last answer; empty if there is none.
    pub text: String,
    /// The calls that wait for an answer from outside. To continue the run, call
    /// [`Runtime::answer_calls`].
    pub pending: Vec<PendingCall>,
    /// Why the run ended early; none if it is complete or waits.
    pub interruption: Option<Interruption>,
}

impl AnswerRequest {
    /// A request with answers to waiting calls, as the item of this id. The [`Answers`] are those
    /// that an agent in memory accepts.
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
    /// Posts a text to a thread's agent and waits for the reply. If the thread does not exist, it
    /// is created. If it is busy, the message is queued.
    ///
    /// The run belongs to the runtime: it continues if this future is dropped, and after a crash.
    ///
    /// # Errors
    ///
    /// The errors of [`react`](Self::react). A failed run is a reply with an interruption.
    pub async fn ask_agent(
        &self,
        tenant: &TenantId,
        key: &str,
        text: impl Into<String>,
    ) -> Result<RunReply, RuntimeError> {
        let said = json!([{"type": "input_text", "text": text.into()}]);
        let item = NewItem::user(self.mint(), said.into());
        let mut request = ReactRequest::new(tenant.clone(), key, item);
        // Named here, so that the run can be followed while it waits for its turn.
        let execution = ExecutionId::from(self.mint());
        request.run.execution_id = Some(execution.clone());
        let accepted = self.react(request).await?;
        self.reply(tenant, key, accepted, execution).await
    }

    /// Answers pending calls and waits for the agent's reply.
    ///
    /// # Errors
    ///
    /// The errors of [`answer`](Self::answer); in that case nothing is written.
    pub async fn answer_calls(
        &self,
        tenant: &TenantId,
        key: &str,
        answers: &Answers,
    ) -> Result<RunReply, RuntimeError> {
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
    ) -> Result<RunReply, RuntimeError> {
        let execution = accepted.execution_id.unwrap_or(named);
        let until = Until::Execution(execution.clone());
        let mut records = self.follow(tenant, key, accepted.after, until).await?;
        let mut fold = RunFold::new(RunSelector::running(Some(execution.clone())));
        let mut gathered = Gathered::default();
        while let Some(logged) = records.try_next().await? {
            for event in fold.events(&logged.record) {
                gathered.event(event);
            }
            if ends(&logged.record.event, &execution) {
                return Ok(gathered.reply);
            }
        }
        Err(RuntimeError::ShuttingDown)
    }
}

/// Whether an execution is over with this event.
fn ends(event: &Event, execution: &ExecutionId) -> bool {
    matches!(event, Event::ThreadFinished { execution_id, .. } if execution_id == execution)
}

/// The reply of an execution so far.
#[derive(Default)]
struct Gathered {
    /// The texts of the current step, by their positions.
    texts: BTreeMap<u32, String>,
    reply: RunReply,
}

impl Gathered {
    fn event(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::StepStarted { .. } | RunEvent::StepReset { .. } => self.texts.clear(),
            RunEvent::Part {
                idx,
                part: RunPart::Content,
                payload,
                ..
            } if payload.str_field("type").as_deref() == Some("output_text") => {
                let text = payload.str_field("text").unwrap_or_default();
                self.texts.insert(idx, text);
            }
            RunEvent::Responded { response } => {
                if !response.is_some_and(|response| response.answers) {
                    self.reply.text = self.texts.values().map(String::as_str).collect();
                }
            }
            RunEvent::StepEnded { outcome, .. } => {
                let open = OpenCall::list(outcome.open_calls.as_ref());
                self.reply.pending = open.iter().filter_map(pending).collect();
            }
            RunEvent::ExecutionEnded { interruption, .. } => {
                self.reply.interruption = interruption.cloned();
            }
            RunEvent::Part { .. }
            | RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::Chunk(_)
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }
}

/// The call in the form of an agent in memory; none if it waits only for other calls.
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
