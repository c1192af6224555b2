//! Runs an agent; the only implementation, with or without a reader of the stream (UAP §11.4).

use super::record::{Progress, Recorder, messages_after, messages_from};
use super::session::{checkpoint, in_effect, note};
use super::{Agent, GenerateResult, resume};
use crate::answers::Answers;
use crate::error::AgentError;
use crate::event::UapEventType;
use crate::journal::Journal;
use crate::middleware::{MiddlewareContext, enter, leave};
use crate::state::AgentState;
use crate::strategy::{Loop, Next, StepContext, StepOutcome};
use crate::telemetry;
use serde_json::Map;
use std::any::Any;
use std::pin::pin;
use upp::{Message, Signal, ToolCall};

/// The start of a run.
pub(crate) enum Start {
    /// A new message.
    Input(Message),
    /// Answers to the open calls at the end of the state.
    Resume(Answers),
}

/// Runs one request, in a span of its own. The result is boxed, because it is large and often
/// moved.
pub(crate) async fn request(
    agent: Agent,
    start: Start,
    state: AgentState,
    journal: &dyn Journal,
    signal: Signal,
) -> Result<Box<GenerateResult>, AgentError> {
    let operation = telemetry::invoke_agent(&agent, in_effect(&agent, &state));
    // Pinned here, for a future that is handed on is copied.
    let run = pin!(in_middleware(agent, start, state, journal, signal));
    telemetry::observe(operation, run, |result| Some(&result.turn.usage)).await
}

/// Runs one request through the middleware (UAP §3.3).
async fn in_middleware(
    agent: Agent,
    start: Start,
    state: AgentState,
    journal: &dyn Journal,
    signal: Signal,
) -> Result<Box<GenerateResult>, AgentError> {
    let (input, answers) = match start {
        Start::Input(input) => (input, None),
        Start::Resume(answers) => (resume::question(&state), Some(answers)),
    };
    // Answers that do not fit are refused before any layer does its work.
    if let Some(answers) = &answers
        && let Err(error) = agent.check(answers, &state)
    {
        return failed(&agent, error.into(), &state);
    }
    if agent.options().middleware.is_empty() {
        return execute(&agent, &input, state, answers.as_ref(), journal, &signal).await;
    }
    // In a box, so that a run without layers has no room for them.
    Box::pin(in_layers(agent, input, answers, state, journal, signal)).await
}

/// Runs one request through the configured layers.
async fn in_layers(
    agent: Agent,
    input: Message,
    answers: Option<Answers>,
    state: AgentState,
    journal: &dyn Journal,
    signal: Signal,
) -> Result<Box<GenerateResult>, AgentError> {
    let layers = agent.options().middleware.clone();
    let mut context = MiddlewareContext {
        agent: agent.clone(),
        input,
        state,
        metadata: Map::new(),
    };
    let (n_entered, entered) = enter(&layers, &mut context, &signal).await;
    let outcome = match entered {
        Ok(()) => {
            let (input, state) = (&context.input, context.state.clone());
            execute(&agent, input, state, answers.as_ref(), journal, &signal).await
        }
        Err(error) => Err(error),
    };
    let entered = layers.get(..n_entered).unwrap_or_default();
    let outcome = outcome.map(|result| *result);
    let outcome = leave(entered, &mut context, outcome, &signal).await;
    outcome.map(Box::new)
}

/// Runs cycles until one is the last.
async fn execute(
    agent: &Agent,
    input: &Message,
    mut state: AgentState,
    answers: Option<&Answers>,
    journal: &dyn Journal,
    signal: &Signal,
) -> Result<Box<GenerateResult>, AgentError> {
    let hooks = &agent.options().strategy;
    let outcome = steps(agent, input, answers, &mut state, journal, signal).await;
    match outcome {
        Ok(result) => {
            // A run that waits is not complete.
            if result.pending.is_empty() {
                hooks.on_complete(&result);
            }
            Ok(result)
        }
        Err(error) => failed(agent, error, &state),
    }
}

/// The outcome of a failure after the hook: the hook's result, or the error.
fn failed(
    agent: &Agent,
    error: AgentError,
    state: &AgentState,
) -> Result<Box<GenerateResult>, AgentError> {
    match agent.options().strategy.on_error(&error, state) {
        Some(result) if !matches!(error, AgentError::Cancelled) => Ok(Box::new(result)),
        Some(_) | None => Err(error),
    }
}

/// Stores the state after the last complete cycle in `state`.
async fn steps(
    agent: &Agent,
    input: &Message,
    answers: Option<&Answers>,
    state: &mut AgentState,
    journal: &dyn Journal,
    signal: &Signal,
) -> Result<Box<GenerateResult>, AgentError> {
    let n_before = state.messages().len();
    let before = state.messages().last().map(|message| message.id().clone());
    if let Some(answers) = answers {
        // Layers may have changed the state since.
        agent.check(answers, state)?;
    } else {
        let n_calls = n_unanswered(state, input);
        if n_calls > 0 {
            return Err(AgentError::OpenCalls { n_calls });
        }
        // A phase left by a run that failed within a step is no position in this one.
        if state.phase().is_some() {
            *state = state.with_phase(None);
        }
        *state = state.with_message(input.clone());
    }
    note(agent, state);
    let mut context = StepContext {
        agent,
        journal,
        signal: signal.clone(),
        answered: &[],
        scope: "",
        answers,
        n_calls_left: None,
        host: None,
        call_record: None,
    };
    let mut progress = Progress::default();
    let pending = loop {
        let outcome = step(agent, state, &context, &mut progress).await?;
        *state = outcome.state;
        match outcome.next {
            // Ids of calls may repeat in another response, so answers are for one step alone.
            Next::Continue => context.answers = None,
            Next::Wait => break agent.pending(state),
            Next::Done => break Vec::new(),
        }
    };
    let messages = match before.filter(|_| answers.is_some()) {
        Some(last) => messages_after(state, &last, n_before),
        None => messages_from(state, input.id(), n_before),
    };
    let mut turn = progress.into_record().turn(messages, state)?;
    // A plan's own data is no answer that was asked for.
    if agent.options().structure.is_none() {
        turn.data = None;
    }
    Ok(Box::new(GenerateResult {
        turn,
        state: state.clone(),
        pending,
    }))
}

/// The number of the state's open calls for which the input has no result.
fn n_unanswered(state: &AgentState, input: &Message) -> usize {
    let results = match input {
        Message::ToolResult(message) => message.results.as_slice(),
        Message::User(_) | Message::Assistant(_) => &[],
    };
    let is_open = |call: &&&ToolCall| {
        let mut ids = results.iter().map(|result| &result.tool_call_id);
        !ids.any(|id| *id == call.tool_call_id)
    };
    state.open_calls().iter().filter(is_open).count()
}

/// Runs one cycle with the events and hooks of its step. `progress` is the work of earlier cycles
/// that the caller knows.
pub(crate) async fn step(
    agent: &Agent,
    state: &AgentState,
    context: &StepContext<'_>,
    progress: &mut Progress,
) -> Result<StepOutcome, AgentError> {
    if context.signal.is_cancelled() {
        return Err(AgentError::Cancelled);
    }
    let run = pin!(observed_cycle(agent, state, context, progress));
    let outcome = context.signal.run_until_cancelled(run).await;
    outcome.unwrap_or(Err(AgentError::Cancelled))
}

async fn observed_cycle(
    agent: &Agent,
    state: &AgentState,
    context: &StepContext<'_>,
    progress: &mut Progress,
) -> Result<StepOutcome, AgentError> {
    let execution = &agent.options().execution;
    let state = match (state.phase(), context.answers) {
        (None, _) => {
            // The number goes on over calls of one agent, so that a stop condition can bound a session.
            let state = state.with_step(state.step().saturating_add(1));
            begin_step(&state, context, progress).await?;
            state
        }
        // A step that waited within its cycles begins again, under its number.
        (Some(_), Some(_)) => {
            begin_step(state, context, progress).await?;
            state.clone()
        }
        (Some(_), None) => state.clone(),
    };
    progress.begin_cycle(state.messages().len());
    let recorder = Recorder::new(context.journal);
    let inner = StepContext {
        agent,
        journal: &recorder,
        signal: context.signal.clone(),
        answered: context.answered,
        scope: context.scope,
        answers: context.answers,
        n_calls_left: context.n_calls_left,
        host: context.host.clone(),
        call_record: context.call_record.clone(),
    };
    // A box for each cycle of the usual strategy would lie in another cold place each time.
    let usual = (&**execution as &dyn Any).downcast_ref::<Loop>();
    let cycle = match usual {
        Some(usual) => usual.cycle(state.clone(), &inner).await,
        None => execution.step(state.clone(), &inner).await,
    };
    let mut outcome = cycle?;
    progress.end_cycle(recorder.into_record());
    if resume::waits(agent, &outcome) {
        // The step is not complete: it goes on, under its number, when the answers come.
        outcome.next = Next::Wait;
        if agent.pending(&outcome.state).is_empty() {
            let strategy = execution.name().to_owned();
            return Err(AgentError::NothingWaits { strategy });
        }
        if outcome.state.phase().is_none() {
            let number = outcome.state.step();
            outcome.state = outcome.state.with_step(number.saturating_sub(1));
        }
        // The answers may be a long time coming.
        checkpoint(agent, &mut outcome.state);
        return Ok(outcome);
    }
    let is_over = match outcome.next {
        Next::Done => true,
        Next::Continue => outcome.state.phase().is_none(),
        Next::Wait => false,
    };
    if is_over {
        return end_step(&state, outcome, context, progress).await;
    }
    Ok(outcome)
}

async fn begin_step(
    state: &AgentState,
    context: &StepContext<'_>,
    progress: &mut Progress,
) -> Result<(), AgentError> {
    let options = context.agent.options();
    progress.begin_step();
    let number = state.step();
    let data = options.execution.begin_step(state, context.agent)?;
    options.strategy.on_step_start(number, state);
    let shown = context.emit_data(UapEventType::StepStart, number, data.into());
    Ok(shown.await?)
}

/// `before` is the state before the step's last cycle.
async fn end_step(
    before: &AgentState,
    outcome: StepOutcome,
    context: &StepContext<'_>,
    progress: &mut Progress,
) -> Result<StepOutcome, AgentError> {
    let options = context.agent.options();
    let number = before.step();
    let StepOutcome {
        mut state,
        mut next,
    } = outcome;
    if state.phase().is_some() {
        state = state.with_phase(None);
    }
    let data = options.execution.end_step(before, &state);
    let shown = context.emit_data(UapEventType::StepEnd, number, data.into());
    shown.await?;
    let hooks = &options.strategy;
    let mut state = progress.end_step(state, next, |result| {
        hooks.on_step_end(number, result);
    })?;
    checkpoint(context.agent, &mut state);
    if hooks.stop_condition(&state).await {
        next = Next::Done;
    }
    Ok(StepOutcome { state, next })
}
