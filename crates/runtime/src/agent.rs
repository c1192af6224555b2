//! An agent as a reactor: each step of the log is one cycle of the agent's strategy.

mod answers;
mod begin;
mod compact;
mod failure;
mod finish;
mod journal;
mod limits;
mod middleware;
mod options;
pub(crate) mod record;
mod replay;
mod run_config;

pub(crate) use answers::called;
pub use compact::CompactionPolicy;
pub use options::{Models, OptionsRefused};

use crate::error::AnswerRefusal;
use crate::handoff::{self, HandoffJournal};
use crate::reactor::{MessagesForModel, Reacted, Reactor, ReactorError, Resumed, StepRun};
use agents::telemetry;
use agents::{
    Agent, AgentError, AgentOptions, AgentState, Answers, Next, OptionsError, StepContext,
    StepOutcome as Cycle,
};
use answers::SubmittedAnswers;
use failure::{CycleError, failed, unwritable};
use futures_util::future::BoxFuture;
use interop::model;
use interop::parts::{ToolPart, ToolState};
use journal::AgentJournal;
use limits::Spent;
use middleware::{Around, StartedRun};
use record::StateRecord;
use run_config::RunConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Run;
use timeline::{Answer, Item, OpenCall, Payload, StepOutcome};
use upp::{Messages, Model, Script, Scripted, Tool, ToolResult};

/// Runs an agent step by step under the runtime.
///
/// The reactor caches the agent's state between the steps and runs of one thread, so that a step
/// costs only what it adds. After a restart, it folds the state from the log once. The state
/// besides messages is stored with each step's end, so that every strategy can continue. If a crash
/// interrupted a step after the model had answered, the step runs again with that answer.
///
/// A run that waits for answers from outside ends and leaves its calls open. Each answer starts an
/// execution. Its first step runs the allowed calls without a request to the model.
///
/// The agent's middleware wraps each execution. `before` runs at the first step; `after`,
/// `on_complete` and `on_error` run at the end. Changes of `before` to the conversation are a view
/// that is stored with the step; the log has the original messages. Changes of `after` to the turn
/// don't change the log. If an execution is stopped or replaced, its middleware's end does not run.
///
/// The run's parameters ([`RunOptions`](interop::options::RunOptions)) apply to one run:
/// instructions, tools that the client executes, another model, settings. They are stored with the
/// execution, so they still apply after a crash and after answers.
#[derive(Clone)]
pub struct AgentReactor {
    agent: Agent,
    models: Option<Arc<dyn Models>>,
    /// When older runs are summarised.
    compaction: Option<Arc<CompactionPolicy>>,
    /// The parameters of the run, if this is the reactor of one run.
    wanted: Option<Arc<RunConfig>>,
}

/// The state cached between steps.
struct Remembered {
    state: AgentState,
    /// The agent with the run's parameters, if they change it.
    configured: Option<AgentReactor>,
    /// The usage of the run, if it has a limit.
    spent: Option<Spent>,
    /// Absent between executions.
    around: Option<Around>,
}

impl AgentReactor {
    /// A reactor for this agent.
    pub fn new(agent: Agent) -> Self {
        Self {
            agent,
            models: None,
            compaction: None,
            wanted: None,
        }
    }

    /// The scripted reactor: it needs no model. A script has the answers; without one, the text of the
    /// last message decides ([`Scripted`]).
    ///
    /// # Errors
    ///
    /// Those of [`Agent::new`], for tools that can't be used.
    pub fn scripted(script: Option<Script>, tools: Vec<Tool>) -> Result<Self, OptionsError> {
        let model = script.map_or_else(Scripted::new, Scripted::with_script);
        let mut options = AgentOptions::new("scripted", Arc::new(model));
        options.id = Some("scripted".into());
        options.tools = tools;
        Agent::new(options).map(Self::new)
    }

    /// Lets runs select one of these models instead of the agent's.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn Models>) -> Self {
        Self {
            models: Some(models),
            ..self
        }
    }

    /// Compacts the thread before a step whose messages exceed a limit.
    #[must_use]
    pub fn with_compaction(self, policy: CompactionPolicy) -> Self {
        Self {
            compaction: Some(Arc::new(policy)),
            ..self
        }
    }

    /// The agent's name.
    pub(crate) fn name(&self) -> &str {
        self.agent.name()
    }

    /// The reactor with another model, for one step.
    pub(crate) fn for_step(
        &self,
        model: Arc<dyn Model>,
        step: &mut StepRun,
    ) -> Result<Self, OptionsError> {
        let memory = step.memory.as_mut();
        if let Some(memory) = memory.and_then(|it| it.downcast_mut::<Remembered>()) {
            // It has the model of the step before.
            memory.configured = None;
        }
        let mut options = self.agent.options().clone();
        options.id = Some(self.agent.id().into());
        options.model = model;
        Ok(Self {
            agent: self.agent.with_options(options)?,
            ..self.clone()
        })
    }

    /// Checks whether the agent can run with these parameters.
    ///
    /// # Errors
    ///
    /// [`OptionsRefused`] if a parameter is invalid or not allowed.
    pub fn check_params(&self, params: Option<&Value>) -> Result<(), OptionsRefused> {
        self.configured(params).map(drop)
    }

    async fn react_as_wanted(&self, step: &mut StepRun) -> Result<Reacted, ReactorError> {
        let params = step.run.params.as_ref();
        let memory = step.memory.as_ref();
        let memory = memory.and_then(|memory| memory.downcast_ref::<Remembered>());
        let known = memory.and_then(|memory| memory.configured.clone());
        let known = known.filter(|known| known.is_for(params));
        match known.map_or_else(|| self.configured(params), |known| Ok(Some(known))) {
            Ok(None) => self.run(step).await,
            Ok(Some(configured)) => configured.run(step).await,
            Err(refused) => Err(ReactorError::failed(refused.to_string())),
        }
    }

    async fn run(&self, step: &mut StepRun) -> Result<Reacted, ReactorError> {
        let StartedRun {
            state,
            mut around,
            view,
            view_n_messages,
            failure,
            spent: before,
            holds_back,
        } = self.started(step).await?;
        let resumed = step.resumed.take();
        if let (Some(budget), Some(before)) = (self.budget(), before) {
            budget.set(before);
        }
        let n_before = before.map(|before| before.calls);
        let sent = state.messages().clone();
        let journal = AgentJournal::new(&self.agent, &step.writer, step.step.iteration);
        let has_begun = failure.is_none();
        let ran = match failure {
            Some(error) => Err(error.into()),
            None => self.cycle(step, &state, resumed, &journal, n_before).await,
        };
        let mut after = None;
        let mut wants_more = false;
        let mut cut_short = None;
        let mut handoff = None;
        match ran {
            Ok(cycle) => {
                around.push(&journal);
                handoff = handoff::decided(&self.agent, &journal.written(), step.children.as_ref());
                // Another agent goes on: for this one the run is over.
                wants_more =
                    cycle.next == Next::Continue && handoff.is_none() && !self.asks_no_model();
                if (wants_more || handoff.is_some()) && self.is_spent(before, &journal) {
                    wants_more = false;
                    handoff = None;
                    cut_short = Some(StepOutcome::SPENT.to_owned());
                }
                after = Some(if wants_more || self.asks_no_model() {
                    cycle.state
                } else {
                    let completed = around.complete(&self.agent, step, cycle.state).await;
                    completed.map_err(|error| failed(&error))?
                });
            }
            Err(CycleError::Step(error)) => return Err(error),
            Err(CycleError::Run(error)) => {
                let ended = around.fail(&self.agent, step, &state, error, has_begun);
                let result = ended.await.map_err(|error| failed(&error))?;
                self.rescue(result, &journal).await?;
            }
        }
        let known = after.as_ref().unwrap_or(&state);
        let open = match &after {
            Some(after) => answers::left_open(&self.agent, after, step, &journal)?,
            None => answers::abandoned(&journal.written()),
        };
        let mut record = StateRecord::between(&state, known);
        record.view_n_messages = (!view.is_empty()).then_some(view_n_messages);
        record.view = view;
        let so_far = before.map(|before| before.after(journal.n_made(), &journal.about()));
        record.tool_calls = so_far.map(|spent| spent.calls);
        record.output_tokens = so_far.map(|spent| spent.tokens);
        if wants_more && step.step.iteration == 0 {
            record
                .middleware_state
                .clone_from(around.extension_members());
        }
        let mut outcome = outcome(&journal.written());
        outcome.open_calls = open;
        outcome.cut_short = cut_short;
        outcome.agent_state = Some(Payload::write(&record).map_err(|error| unwritable(&error))?);
        // What is held back has its place only in the log: the next step reads that.
        let after = after.filter(|_| !holds_back);
        let remembered = after.map(|state| Remembered {
            state,
            configured: self.wanted.is_some().then(|| self.clone()),
            spent: so_far,
            around: wants_more.then_some(around),
        });
        Ok(Reacted {
            outcome,
            wants_more,
            messages_for_model: (!self.asks_no_model()).then(|| self.messages_for_model(sent)),
            memory: remembered.map(|it| Box::new(it) as _),
            handoff,
        })
    }

    /// Runs one cycle, from the step's stored progress.
    async fn cycle(
        &self,
        step: &StepRun,
        state: &AgentState,
        resumed: Option<Resumed>,
        journal: &AgentJournal<'_>,
        n_before: Option<u64>,
    ) -> Result<Cycle, CycleError> {
        let (mut cycle, has_traces) = match (SubmittedAnswers::of(step, state)?, resumed) {
            (Some(given), resumed) => {
                // The calls of the response that waited are among those that were made.
                let made = state.last_response().map_or(&[][..], |it| &it.tool_calls);
                let own = made.iter().filter(|call| self.agent.runs(&call.tool_name));
                let made = u64::try_from(own.count()).unwrap_or(u64::MAX);
                let left = self.calls_left(n_before.map(|before| before.saturating_sub(made)));
                let answered = self.answered(step, state, (given, left), resumed, journal);
                let (cycle, has_traces) = answered.await?;
                (heard(&step.trigger, cycle), has_traces)
            }
            (None, resumed) if self.asks_no_model() => {
                if resumed.is_none() {
                    // It says that no model was asked, so that the step is one that has responded.
                    let about = Payload::from(json!({ "answers": true }));
                    step.writer.respond(Vec::new(), Vec::new(), about);
                }
                let (state, next) = (state.clone(), Next::Done);
                (Cycle { state, next }, false)
            }
            (None, Some(resumed)) => {
                let left = self.calls_left(n_before);
                self.resumed(step, state, (&resumed, left), journal).await?
            }
            (None, None) => {
                let (agent, left) = (&self.agent, self.calls_left(n_before));
                let ran = cycle(step, state, agent, journal, &[], None, left);
                (ran.await?, false)
            }
        };
        if has_traces {
            let n_known = state.subagent_traces().len();
            let traces = record::traces(&journal.written());
            cycle.state = record::with_traces(&cycle.state, n_known, traces);
        }
        Ok(cycle)
    }

    /// Runs a step again whose model had answered before a crash, with that answer. Also returns
    /// whether sub-agents had ended in it.
    async fn resumed(
        &self,
        step: &StepRun,
        state: &AgentState,
        (resumed, left): (&Resumed, Option<usize>),
        journal: &AgentJournal<'_>,
    ) -> Result<(Cycle, bool), CycleError> {
        let known = model::recorded(&resumed.parts, &resumed.response, step.step.created_at);
        let agent = replay::replaying(&self.agent, known)
            .map_err(|error| ReactorError::failed(crate::error::render_error(&error)))?;
        journal.resume(resumed.parts.clone(), resumed.response.clone());
        let answered = self.finish_step(step, resumed, journal, left).await?;
        let ran = cycle(step, state, &agent, journal, &answered, None, left);
        Ok((ran.await?, !record::traces(&resumed.parts).is_empty()))
    }

    /// Runs a step without a model call, which applies answers to waiting calls.
    async fn answered(
        &self,
        step: &StepRun,
        state: &AgentState,
        (given, left): (SubmittedAnswers, Option<usize>),
        resumed: Option<Resumed>,
        journal: &AgentJournal<'_>,
    ) -> Result<(Cycle, bool), CycleError> {
        let calls = state
            .last_response()
            .map(|response| response.tool_calls.clone())
            .unwrap_or_default();
        let mut known = Vec::new();
        let mut has_traces = false;
        if let Some(resumed) = resumed {
            journal.answer(calls, resumed.parts.clone(), resumed.response.clone());
            known = self.finish_step(step, &resumed, journal, left).await?;
            has_traces = !record::traces(&resumed.parts).is_empty();
        } else {
            let about = Payload::from(json!({ "answers": true }));
            journal.answer(calls, given.parts.clone(), about.clone());
            step.writer.respond(Vec::new(), given.parts, about);
        }
        if given.answers.is_empty() {
            // What it was for has been settled otherwise since.
            let next = Next::Done;
            let state = state.clone();
            return Ok((Cycle { state, next }, false));
        }
        let (agent, answers) = (&self.agent, Some(&given.answers));
        let ran = cycle(step, state, agent, journal, &known, answers, left);
        Ok((ran.await?, has_traces))
    }

    fn messages_for_model(&self, sent: Messages) -> MessagesForModel {
        let system = self.agent.system().map(str::to_owned);
        MessagesForModel(Arc::new(move || {
            let system = system
                .iter()
                .map(|text| json!({"type": "system", "text": text}).into());
            let sent = sent.iter();
            system
                .chain(sent.filter_map(|message| Payload::write(message).ok()))
                .collect()
        }))
    }
}

/// Adds the messages that were posted together with the answers, after the results, and continues.
fn heard(trigger: &Item, mut cycle: Cycle) -> Cycle {
    for said in timeline::messages_with_answers(trigger) {
        if let Some(left) = model::superseded(cycle.state.open_calls(), &said) {
            cycle.state = cycle.state.with_message(left);
        }
        cycle.state = cycle.state.with_message(model::item_message(&said));
        cycle.next = Next::Continue;
    }
    cycle
}

/// Runs one cycle of the agent's strategy.
async fn cycle(
    step: &StepRun,
    state: &AgentState,
    agent: &Agent,
    journal: &AgentJournal<'_>,
    answered: &[ToolResult],
    answers: Option<&Answers>,
    n_calls_left: Option<usize>,
) -> Result<Cycle, AgentError> {
    // The same whenever a call is run, and no other response's: providers may repeat call ids.
    let scope = scope(step);
    let parts = journal.written();
    let handoffs = HandoffJournal::new(journal, agent, step.children.as_ref(), &parts);
    let number = state.step().saturating_add(1);
    let context = StepContext {
        agent,
        journal: &handoffs,
        signal: step.signal.clone().into(),
        answered,
        scope: &scope,
        answers,
        n_calls_left,
        host: Some(step.children.host(agent, number)),
        call_record: Some(Arc::clone(&step.call_record)),
    };
    // One span a step: no span outlives the process, and a run may.
    let operation = telemetry::invoke_agent(agent, Some(&step.key));
    let run = agent.run_step(state.clone(), &context);
    telemetry::observe(operation, run, |_| None).await
}

fn scope(step: &StepRun) -> String {
    format!("{}:{}", step.thread, step.origin)
}

/// The step's outcome: its calls, and the results of those that were answered.
fn outcome(parts: &[Payload]) -> StepOutcome {
    let tools: Vec<ToolPart> = parts.iter().filter_map(ToolPart::read).collect();
    let calls: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"toolCallId": tool.tool_call_id, "toolName": tool.tool_name()}))
        .collect();
    let results: Vec<Value> = tools
        .iter()
        .filter(|tool| tool.is_answered())
        .map(|tool| json!({"toolCallId": tool.tool_call_id, "success": tool.state == ToolState::OutputAvailable}))
        .collect();
    let some = |list: Vec<Value>| (!list.is_empty()).then(|| Value::Array(list).into());
    StepOutcome {
        tool_calls: some(calls),
        tool_execution_results: some(results),
        ..StepOutcome::default()
    }
}

impl Reactor for AgentReactor {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(self.react_as_wanted(step))
    }

    fn abandon(&self, note: Value) -> BoxFuture<'_, ()> {
        self.agent.model().abandon(note)
    }

    fn check(&self, run: &Run, open: &[OpenCall], answers: &[Answer]) -> Result<(), AnswerRefusal> {
        let configured = self.configured(run.params.as_ref());
        let configured = configured.map_err(|refused| AnswerRefusal {
            call: None,
            detail: refused.to_string(),
        })?;
        let agent = configured.as_ref().map_or(&self.agent, |it| &it.agent);
        answers::check(agent, open, answers)
    }
}
