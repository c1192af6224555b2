//! Settles calls that a crash left open (architecture rule 4).

use super::failure::unwritable;
use super::journal::AgentJournal;
use super::{AgentReactor, scope};
use crate::reactor::{ReactorError, Resumed, StepRun};
use futures_util::FutureExt;
use interop::model;
use interop::parts::ToolPart;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use timeline::Payload;
use upp::{Arguments, Reconciled, SharedJson, Tool, ToolContext, ToolExecution, ToolResult};

impl AgentReactor {
    /// Settles the calls that a crash left open, and returns the known results.
    ///
    /// - Stored results are used.
    /// - A call that was marked as started may have taken effect. Its tool's `reconcile` decides;
    ///   without it, the call gets an interrupted result.
    /// - Calls that had not started are left to run. So are calls that may run twice, as they are
    ///   never marked.
    /// - A call beyond the limit also stays; its tool never ran and won't.
    pub(super) async fn finish_step(
        &self,
        step: &StepRun,
        resumed: &Resumed,
        journal: &AgentJournal<'_>,
        n_allowed: Option<usize>,
    ) -> Result<Vec<ToolResult>, ReactorError> {
        let beyond = journal.calls_from(n_allowed.unwrap_or(usize::MAX));
        let started: BTreeSet<&str> = resumed.started.iter().map(String::as_str).collect();
        let mut answered = Vec::new();
        for (idx, part) in (0u32..).zip(&resumed.parts) {
            let Some(tool) = ToolPart::read(part) else {
                continue;
            };
            if let Some(result) = model::result_of(&tool) {
                answered.push(result);
                continue;
            }
            // Where an id repeats only its first call runs.
            let id = tool.tool_call_id.as_str();
            if !started.contains(id) || beyond.contains(id) {
                continue;
            }
            let Some(part) = self.found_out(step, part, &tool).await? else {
                continue;
            };
            answered.extend(ToolPart::read(&part).as_ref().and_then(model::result_of));
            journal.put(Some(idx), part);
        }
        Ok(answered)
    }

    /// The part of a started call with its outcome; none if the call did not take effect.
    async fn found_out(
        &self,
        step: &StepRun,
        part: &Payload,
        tool: &ToolPart,
    ) -> Result<Option<Payload>, ReactorError> {
        let known = match self.agent.tool(tool.tool_name()) {
            Some(code) => self.reconciled(step, tool, code).await,
            None => Reconciled::Unknown,
        };
        let part = match known {
            Reconciled::DidNotHappen => return Ok(None),
            Reconciled::Unknown => model::with_unknown_outcome(part),
            Reconciled::Happened(result) => {
                let execution = ToolExecution {
                    tool_name: tool.tool_name().into(),
                    tool_call_id: tool.tool_call_id.as_str().into(),
                    arguments: SharedJson::default(),
                    result: result.into(),
                    is_error: false,
                    duration: 0,
                    approved: None,
                };
                model::with_result(part, &execution)
            }
        };
        part.map(Some).map_err(|error| unwritable(&error))
    }

    /// Calls the tool's `reconcile`, if it has one. If that fails, the outcome is unknown.
    async fn reconciled(&self, step: &StepRun, tool: &ToolPart, code: &Tool) -> Reconciled {
        let Some(reconcile) = &code.reconcile else {
            return Reconciled::Unknown;
        };
        let Ok(arguments) = Arguments::from_text(tool.arguments()).parse() else {
            return Reconciled::Unknown;
        };
        let id = tool.tool_call_id.as_str();
        let options = self.agent.options();
        let context = ToolContext {
            idempotency_key: format!("{}:{id}", scope(step)).into(),
            agent_id: self.agent.id().into(),
            parent_model: Some(Arc::clone(&options.model)),
            parent_params: Arc::clone(&options.params),
            approved: tool.approval.as_ref().and_then(|it| it.approved) == Some(true),
            ..ToolContext::new(id.into(), step.signal.child_token())
        };
        let asked = AssertUnwindSafe(async { reconcile.reconcile(arguments, context).await });
        match asked.catch_unwind().await {
            Ok(Ok(known)) => known,
            Ok(Err(failure)) => {
                tracing::warn!(error = %failure, tool = code.name, call = id, "a tool could not say what became of a call");
                Reconciled::Unknown
            }
            Err(_) => {
                tracing::warn!(
                    tool = code.name,
                    call = id,
                    "a tool panicked when it was asked what became of a call"
                );
                Reconciled::Unknown
            }
        }
    }
}
