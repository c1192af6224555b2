//! Compaction before a step, as an agent's configuration requests it.

use super::AgentReactor;
use crate::compaction::{Cut, Draft, append};
use crate::error::{RuntimeError, render_error};
use crate::reactor::{ReactorError, StepRun};
use agents::AgentState;
use agents::middleware::Summarise;
use timeline::{SummaryAuthor, SummaryTokens};

/// When older runs of a thread are represented by a summary, and its author.
///
/// Before a step, if the messages have more than [`Summarise::threshold`] tokens, the summariser
/// writes a summary of all but the latest runs. The runtime appends it as one event. After a crash
/// before that event, the step begins again without it. If the summariser fails, or no run can be
/// summarised, the run continues with all messages and does not try again. A failure is logged.
#[derive(Clone, Debug)]
pub struct CompactionPolicy {
    /// Its threshold, author and prompt. The runs decide what is summarised, not `keep_recent`.
    pub summarise: Summarise,
    /// Number of the latest finished runs that stay.
    pub keep_runs: usize,
}

impl AgentReactor {
    /// Compacts the thread if the messages of the step exceed the limit, unless the execution has
    /// failed to do so. Returns whether it did.
    pub(super) async fn compact(
        &self,
        step: &mut StepRun,
        state: &AgentState,
        has_failed: &mut bool,
    ) -> Result<bool, ReactorError> {
        let Some(policy) = self.compaction.as_deref() else {
            return Ok(false);
        };
        if *has_failed
            || step.resumed.is_some()
            || self.asks_no_model()
            || !policy.summarise.is_exceeded(state.messages())
        {
            return Ok(false);
        }
        let is_done = self.compact_by(policy, step).await?;
        *has_failed = !is_done;
        Ok(is_done)
    }

    async fn compact_by(
        &self,
        policy: &CompactionPolicy,
        step: &mut StepRun,
    ) -> Result<bool, ReactorError> {
        let summarise = &policy.summarise;
        let live = step.writer.live();
        let cut = Cut::KeepRuns(policy.keep_runs);
        let draft = match Draft::at_end_of(live, &cut).await {
            Ok(draft) => draft,
            Err(RuntimeError::Cut(_)) => return Ok(false),
            Err(error) => {
                warn(step, &error);
                return Ok(false);
            }
        };
        let written = match summarise.written(&draft.messages()).await {
            Ok(written) => written,
            Err(error) => {
                warn(step, &error);
                return Ok(false);
            }
        };
        let author = SummaryAuthor {
            client: None,
            agent: Some(self.agent.name().to_owned()),
            model: Some(summarise.model().model_id().to_owned()),
            tokens: Some(SummaryTokens {
                input: written.n_input,
                output: written.n_output,
            }),
        };
        // A step makes at most one, and the id says which.
        let id = format!("{}:compaction", step.step.id);
        let made = draft.finish(id.into(), written.text, author);
        match append(step.writer.live(), step.generation, made).await {
            Ok(Some(next)) => {
                step.generation = next;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(RuntimeError::Store(error)) => Err(step.writer.stopped(error.into()).into()),
            Err(error) => {
                warn(step, &error);
                Ok(false)
            }
        }
    }
}

fn warn(step: &StepRun, error: &(dyn std::error::Error + 'static)) {
    let (error, thread) = (render_error(error), step.thread.as_str());
    tracing::warn!(error, thread, "the thread was not compacted");
}
