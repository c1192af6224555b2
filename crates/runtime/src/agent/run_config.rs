//! The agent's configuration for one run, and the run's limits.

use super::AgentReactor;
use super::journal::AgentJournal;
use super::limits::{Budget, Spent};
use super::options::{self, OptionsRefused};
use interop::options::RunOptions;
use serde_json::Value;
use std::sync::Arc;
use timeline::{Answer, AnswerContent, Item, ItemType};

/// The parameters of one run that differ from the agent's.
pub(super) struct RunConfig {
    /// The parameters as requested.
    params: Value,
    /// Maximum number of calls in the run of tools that the agent itself runs.
    max_tool_calls: Option<u64>,
    /// The limit on output tokens.
    budget: Option<Arc<Budget>>,
    /// Whether it restarts the token count although it answers an earlier run's calls.
    tokens_begin_here: bool,
    /// Whether the step makes no model call.
    without_model: bool,
}

impl AgentReactor {
    /// The agent with the run's parameters; none if they don't change it.
    pub(super) fn configured(
        &self,
        params: Option<&Value>,
    ) -> Result<Option<Self>, OptionsRefused> {
        let Some(wanted) = options::wanted(params)? else {
            return Ok(None);
        };
        let budget = wanted.max_run_output_tokens.map(Budget::new);
        let models = self.models.as_deref();
        let agent = options::configured(&self.agent, &wanted, models, budget.as_ref())?;
        let params = params.cloned().unwrap_or_default();
        let RunOptions {
            max_tool_calls,
            tokens_begin_here,
            without_model,
            ..
        } = wanted;
        Ok(Some(Self {
            agent,
            models: None,
            compaction: self.compaction.clone(),
            wanted: Some(Arc::new(RunConfig {
                params,
                max_tool_calls,
                budget,
                tokens_begin_here,
                without_model,
            })),
        }))
    }

    /// Whether it is the reactor of a run with these parameters.
    pub(super) fn is_for(&self, params: Option<&Value>) -> bool {
        let own = self.wanted.as_ref().map(|wanted| &wanted.params);
        own.is_some() && own == params
    }

    /// Maximum number of calls of the agent's own tools in a response, after `n_before` calls of
    /// the run.
    pub(super) fn calls_left(&self, n_before: Option<u64>) -> Option<usize> {
        let max = self.wanted.as_ref()?.max_tool_calls?;
        let left = max.saturating_sub(n_before.unwrap_or_default());
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Whether the run has a limit on calls or on output tokens.
    pub(super) fn is_limited(&self) -> bool {
        let wanted = self.wanted.as_ref();
        wanted.is_some_and(|wanted| wanted.max_tool_calls.is_some() || wanted.budget.is_some())
    }

    /// Whether the run is over without a model call.
    pub(super) fn asks_no_model(&self) -> bool {
        let wanted = self.wanted.as_ref();
        wanted.is_some_and(|wanted| wanted.without_model)
    }

    /// Whether tokens are counted from these answers on.
    pub(super) fn begins_tokens(&self, trigger: &Item) -> bool {
        let wanted = self.wanted.as_ref();
        wanted.is_some_and(|wanted| wanted.tokens_begin_here) && brings(trigger)
    }

    pub(super) fn budget(&self) -> Option<&Budget> {
        self.wanted.as_ref()?.budget.as_deref()
    }

    /// Whether too few tokens are left for another answer.
    pub(super) fn is_spent(&self, before: Option<Spent>, journal: &AgentJournal<'_>) -> bool {
        let spent = before.map(|before| before.after(0, &journal.about()));
        let budget = self.budget().zip(spent);
        budget.is_some_and(|(budget, spent)| budget.is_spent(spent))
    }
}

/// Whether a client answered calls; a notice that a sub-agent continues is no answer.
fn brings(trigger: &Item) -> bool {
    let answers = Answer::read(trigger.content.as_ref()).unwrap_or_default();
    let mut answers = answers.iter();
    trigger.item_type == ItemType::ActionResult
        && answers.any(|it| it.content != AnswerContent::Resumed)
}
