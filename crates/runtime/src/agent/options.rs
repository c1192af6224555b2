//! Applies a run's options to an agent.

use super::limits::{Budget, Budgeted};
use agents::{Agent, AgentOptions, OptionsError};
use interop::options::{AnswerFormat, ClientTool, RunOptions, RunToolChoice};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::{Model, NativeSettings, Settings, Tool};

/// The models that a run may select by name.
pub trait Models: Send + Sync {
    /// The model of this name, if there is one.
    fn find(&self, name: &str) -> Option<Arc<dyn Model>>;
}

/// Why an agent can't run with the requested options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsRefused {
    /// There is no such model.
    #[error("there is no model {0:?}")]
    UnknownModel(String),
    /// A tool is invalid: another tool has its name, or its schema is invalid.
    #[error("{0}")]
    Tool(String),
    /// The model lacks a capability that the run needs.
    #[error("{0}")]
    Unsupported(String),
    /// A tool that is required or exclusively allowed does not exist.
    #[error("there is no tool {0:?} to choose")]
    UnknownTool(String),
    /// The options stored with the execution can't be parsed.
    #[error("the options of the run can't be read: {0}")]
    Unreadable(String),
}

/// Reads the options of a run; none if they contain nothing that concerns the agent.
pub(super) fn wanted(params: Option<&Value>) -> Result<Option<RunOptions>, OptionsRefused> {
    let Some(params) = params else {
        return Ok(None);
    };
    if RunOptions::asks_nothing(params) {
        return Ok(None);
    }
    let mut options = RunOptions::deserialize(params)
        .map_err(|error| OptionsRefused::Unreadable(error.to_string()))?;
    // The view's own.
    options.echo.clear();
    Ok((options != RunOptions::default()).then_some(options))
}

/// The agent with these run options.
pub(super) fn configured(
    agent: &Agent,
    wanted: &RunOptions,
    models: Option<&dyn Models>,
    budget: Option<&Arc<Budget>>,
) -> Result<Agent, OptionsRefused> {
    let mut options = agent.options().clone();
    options.id = Some(agent.id().into());
    if let Some(name) = &wanted.model {
        let found = models.and_then(|models| models.find(name));
        options.model = found.ok_or_else(|| OptionsRefused::UnknownModel(name.clone()))?;
    }
    if let Some(budget) = budget {
        options.model = Arc::new(Budgeted {
            model: options.model,
            budget: Arc::clone(budget),
        });
    }
    instruct(&mut options, wanted);
    apply(&mut options, wanted);
    match &wanted.format {
        None => {}
        Some(AnswerFormat::JsonObject) => {
            options.structure = Some(Arc::new(json!({"type": "object"})));
        }
        Some(AnswerFormat::JsonSchema { schema }) => {
            options.structure = Some(Arc::new(schema.clone()));
        }
    }
    if wanted.only_these_tools {
        options.tools.clear();
    }
    if wanted.without_model {
        // It is around what a model makes of a conversation, and may ask one itself.
        options.middleware.clear();
    }
    options.tools.extend(wanted.tools.iter().map(external));
    choose(&mut options, wanted.tool_choice.as_ref())?;
    let made = agent.with_options(options);
    made.map_err(|error| {
        let told = crate::error::render_error(&error);
        if matches!(error, OptionsError::Unsupported { .. }) {
            return OptionsRefused::Unsupported(told);
        }
        OptionsRefused::Tool(told)
    })
}

fn instruct(options: &mut AgentOptions, wanted: &RunOptions) {
    if let Some(instructions) = &wanted.instructions {
        options.system = Some(instructions.as_str().into());
    }
    if let Some(more) = &wanted.additional_instructions {
        let before = options
            .system
            .as_deref()
            .map(|system| format!("{system}\n\n"));
        options.system = Some(format!("{}{more}", before.unwrap_or_default()).into());
    }
}

/// Converts the settings to the model's parameters, which override the agent's.
fn apply(options: &mut AgentOptions, wanted: &RunOptions) {
    let NativeSettings { params, left_out } = options.model.settings(&Settings {
        temperature: wanted.temperature,
        top_p: wanted.top_p,
        presence_penalty: wanted.presence_penalty,
        frequency_penalty: wanted.frequency_penalty,
        max_output_tokens: wanted.max_output_tokens,
        parallel_tool_calls: wanted.parallel_tool_calls,
        reasoning_effort: wanted.reasoning_effort.clone(),
        reasoning_summary: wanted.reasoning_summary.clone(),
    });
    if !left_out.is_empty() {
        let provider = options.model.provider();
        tracing::debug!(
            provider,
            ?left_out,
            "a provider has no word for settings of a run"
        );
    }
    if !params.is_empty() {
        upp::merge(Arc::make_mut(&mut options.params), &params);
    }
}

fn external(tool: &ClientTool) -> Tool {
    let parameters = tool.parameters.clone();
    let parameters = parameters.unwrap_or_else(|| json!({"type": "object"}));
    let description = tool.description.clone().unwrap_or_default();
    Tool::external(tool.name.as_str(), description, parameters)
}

/// Selects the offered tools, and whether one must be called. Other tools can't be called.
fn choose(
    options: &mut AgentOptions,
    choice: Option<&RunToolChoice>,
) -> Result<(), OptionsRefused> {
    let known: BTreeSet<&str> = options
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let check = |name: &String| {
        if known.contains(name.as_str()) {
            return Ok(());
        }
        Err(OptionsRefused::UnknownTool(name.clone()))
    };
    options.tool_choice = match choice {
        None => return Ok(()),
        Some(RunToolChoice::Auto) => upp::ToolChoice::Auto,
        Some(RunToolChoice::None) => upp::ToolChoice::None,
        Some(RunToolChoice::Required) => upp::ToolChoice::Required,
        Some(RunToolChoice::Function { name }) => {
            check(name)?;
            upp::ToolChoice::Tool(name.clone())
        }
        Some(RunToolChoice::Allowed { names, required }) => {
            names.iter().try_for_each(check)?;
            options.tools.retain(|tool| names.contains(&tool.name));
            if *required {
                upp::ToolChoice::Required
            } else {
                upp::ToolChoice::Auto
            }
        }
    };
    Ok(())
}
