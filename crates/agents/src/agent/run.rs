//! The one way an agent runs, whether anybody listens or not (UAP §11.4).

use super::record::{Record, Recorder, messages_from};
use super::session::{checkpoint, note};
use super::{Agent, GenerateResult};
use crate::error::AgentError;
use crate::event::UapEventType;
use crate::id;
use crate::journal::Journal;
use crate::middleware::{MiddlewareContext, enter, leave};
use crate::state::AgentState;
use crate::strategy::{Next, StepContext, StepOutcome};
use serde_json::Map;
use tokio_util::sync::CancellationToken;
use upp::{Message, ToolCall};

/// Runs one request through the middleware (UAP §3.3).
pub(crate) async fn request(
    agent: Agent,
    input: Message,
    state: AgentState,
    journal: &dyn Journal,
    signal: CancellationToken,
) -> Result<GenerateResult, AgentError> {
    let layers = agent.options().middleware.clone();
    let mut context = MiddlewareContext {
        agent: agent.clone(),
        input,
        state,
        metadata: Map::new(),
    };
    let (n_entered, entered) = enter(&layers, &mut context, &signal).await;
    let outcome = match entered {
        Ok(()) => execute(&agent, &context, journal, &signal).await,
        Err(error) => Err(error),
    };
    let entered = layers.get(..n_entered).unwrap_or_default();
    leave(entered, &mut context, outcome, &signal).await
}

/// Takes steps until one is the last.
async fn execute(
    agent: &Agent,
    context: &MiddlewareContext,
    journal: &dyn Journal,
    signal: &CancellationToken,
) -> Result<GenerateResult, AgentError> {
    let hooks = &agent.options().strategy;
    let mut state = context.state.clone();
    let outcome = steps(agent, &context.input, &mut state, journal, signal).await;
    match outcome {
        Ok(result) => {
            hooks.on_complete(&result);
            Ok(result)
        }
        Err(error) => match hooks.on_error(&error, &state) {
            Some(result) if !matches!(error, AgentError::Cancelled) => Ok(result),
            Some(_) | None => Err(error),
        },
    }
}

/// Leaves in `state` the last complete one.
async fn steps(
    agent: &Agent,
    input: &Message,
    state: &mut AgentState,
    journal: &dyn Journal,
    signal: &CancellationToken,
) -> Result<GenerateResult, AgentError> {
    let n_calls = n_unanswered(state, input);
    if n_calls > 0 {
        return Err(AgentError::OpenCalls { n_calls });
    }
    let n_before = state.messages().len();
    *state = state.with_message(input.clone());
    note(agent, state);
    let scope = id::random();
    let context = StepContext {
        agent,
        journal,
        signal: signal.clone(),
        answered: &[],
        scope: &scope,
    };
    let mut record = Record::default();
    loop {
        let (outcome, of_step) = step(agent, state.clone(), &context).await?;
        record.extend(&of_step);
        *state = outcome.state;
        if outcome.next == Next::Done {
            break;
        }
    }
    let messages = messages_from(state, input.id(), n_before);
    Ok(GenerateResult {
        turn: record.turn(messages, state)?,
        state: state.clone(),
    })
}

/// How many open calls of the state the input leaves open.
fn n_unanswered(state: &AgentState, input: &Message) -> usize {
    let results = match input {
        Message::ToolResult(message) => message.results.as_slice(),
        Message::User(_) | Message::Assistant(_) => &[],
    };
    let is_open = |call: &&ToolCall| {
        let mut ids = results.iter().map(|result| &result.tool_call_id);
        !ids.any(|id| *id == call.tool_call_id)
    };
    state.open_calls().iter().filter(is_open).count()
}

/// Runs one step with its events and hooks; gives what the journal heard, too.
pub(crate) async fn step(
    agent: &Agent,
    state: AgentState,
    context: &StepContext<'_>,
) -> Result<(StepOutcome, Record), AgentError> {
    if context.signal.is_cancelled() {
        return Err(AgentError::Cancelled);
    }
    let run = observed_step(agent, state, context);
    let outcome = context.signal.run_until_cancelled(run).await;
    outcome.unwrap_or(Err(AgentError::Cancelled))
}

async fn observed_step(
    agent: &Agent,
    state: AgentState,
    context: &StepContext<'_>,
) -> Result<(StepOutcome, Record), AgentError> {
    let options = agent.options();
    let hooks = &options.strategy;
    // The number goes on over calls of one agent, so that a stop condition can bound a session.
    let number = state.step().saturating_add(1);
    let n_before = state.messages().len();
    let state = state.with_step(number);

    hooks.on_step_start(number, &state);
    context
        .emit(UapEventType::StepStart, number, Map::new())
        .await?;
    let recorder = Recorder::new(context.journal);
    let inner = StepContext {
        agent,
        journal: &recorder,
        signal: context.signal.clone(),
        answered: context.answered,
        scope: context.scope,
    };
    let mut outcome = options.execution.step(state, &inner).await?;
    drop(inner);
    let record = recorder.into_record();
    context
        .emit(UapEventType::StepEnd, number, Map::new())
        .await?;

    hooks.on_step_end(number, &result_of_step(&record, &outcome.state, n_before)?);
    checkpoint(agent, &mut outcome.state);
    if hooks.stop_condition(&outcome.state).await {
        outcome.next = Next::Done;
    }
    Ok((outcome, record))
}

fn result_of_step(
    record: &Record,
    state: &AgentState,
    n_before: usize,
) -> Result<GenerateResult, AgentError> {
    let mut of_step = Record::default();
    of_step.extend(record);
    let messages = state.messages();
    let added = (n_before..messages.len())
        .filter_map(|at| messages.get(at).cloned())
        .collect();
    Ok(GenerateResult {
        turn: of_step.turn(added, state)?,
        state: state.clone(),
    })
}
