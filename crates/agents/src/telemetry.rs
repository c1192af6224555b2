//! The span of an agent's run, according to OpenTelemetry's `GenAI` conventions.
//!
//! [`Agent::generate`] and [`Agent::stream`] make one span for each run. Its children are the run's
//! model calls and tool executions ([`upp::telemetry`]). A sub-agent's run is a child of the tool
//! execution that spawned it. [`Agent::run_step`] makes no span, because only its caller knows the
//! conversation: the caller wraps the step with [`invoke_agent`] and [`observe`].

use crate::agent::Agent;
use crate::error::AgentError;
use std::fmt::Display;
use std::future::Future;
use tracing::Instrument;
use tracing::field::Empty;
use upp::TokenUsage;
use upp::telemetry::{Operation, TARGET, code_name, count, error_type, names, provider_name};

/// Starts a run of an agent, in a span named `invoke_agent {name}`, a child of the current one.
pub fn invoke_agent(agent: &Agent, conversation_id: Option<impl Display>) -> Operation {
    let model = agent.model();
    Operation::new(tracing::info_span!(
        target: TARGET,
        "invoke_agent",
        { names::OTEL_NAME } = %format_args!("invoke_agent {}", agent.name()),
        { names::OTEL_KIND } = "internal",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::OPERATION_NAME } = "invoke_agent",
        { names::PROVIDER_NAME } = provider_name(model.provider()),
        { names::REQUEST_MODEL } = model.model_id(),
        { names::AGENT_ID } = agent.id(),
        { names::AGENT_NAME } = agent.name(),
        { names::CONVERSATION_ID } = conversation_id.map(tracing::field::display),
        { names::USAGE_INPUT_TOKENS } = Empty,
        { names::USAGE_OUTPUT_TOKENS } = Empty,
    ))
}

/// Runs `run` in the operation's span and records the outcome. `usage` returns the token usage of
/// the run, if it is known.
pub async fn observe<T>(
    operation: Operation,
    run: impl Future<Output = Result<T, AgentError>>,
    usage: impl FnOnce(&T) -> Option<&TokenUsage>,
) -> Result<T, AgentError> {
    let outcome = run.instrument(operation.span().clone()).await;
    if operation.span().is_disabled() {
        return outcome;
    }
    match &outcome {
        Ok(result) => {
            if let Some(usage) = usage(result) {
                let span = operation.span();
                span.record(names::USAGE_INPUT_TOKENS, count(usage.input_tokens));
                span.record(names::USAGE_OUTPUT_TOKENS, count(usage.output_tokens));
            }
            operation.succeed();
        }
        Err(error) => operation.fail(error.code().map_or(error_type::OTHER, code_name)),
    }
    outcome
}
