//! Options for rendering a thread.

use crate::json::Json;

/// For whom and how a thread is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// The agent that is to speak next.
    pub agent_id: String,
    /// How it learns the authors of messages.
    pub attribution: SpeakerAttribution,
    /// How much of other agents' tool calls it sees.
    pub tool_traffic: ToolTraffic,
    /// The treatment of calls without an answer.
    pub unanswered: Unanswered,
    /// The model that will read the messages. If it is set, the agent's own reasoning from another
    /// provider or model is left out too.
    pub target: Option<TargetModel>,
    /// The agent's system prompts: whole parts, or strings, which become `system-prompt` parts.
    /// They are added at the start of the first request (TP-8); a thread without messages gets
    /// none.
    pub system_prompts: Vec<Json>,
    /// The agent's instructions, written into every request.
    pub instructions: Option<String>,
}

impl RenderOptions {
    /// The specification's rendering for an agent.
    #[must_use]
    pub fn new(agent_id: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            ..Self::default()
        }
    }
}

/// How the viewing agent learns the authors of messages (ruling 17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpeakerAttribution {
    /// `{agent:NAME}: ` before each text of another agent, the specification's rendering. Models
    /// imitate it: see [`strip_markers`](super::strip_markers).
    #[default]
    Prefix,
    /// A member `name` on each response of another agent, its text untouched.
    NameField,
    /// Each turn of another agent becomes a request with a prompt that names the agent and quotes
    /// it. Its calls become sentences.
    QuotedInUserMessage,
}

/// How much the viewing agent sees of other agents' tool calls and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolTraffic {
    /// All calls and answers.
    #[default]
    Show,
    /// One text for the calls of a response, such as `called get_weather and got an answer`.
    Summarise,
    /// Nothing.
    Hide,
}

/// The treatment of calls without an answer when a model is called again (ruling 15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unanswered {
    /// An answer with the outcome `interrupted` is added. If the last turn is complete, the viewing
    /// agent's own calls at the very end stay open: they are pending (ruling 2), and the caller
    /// supplies the answers.
    #[default]
    AnswerAsInterrupted,
    /// The response goes with its other calls and their answers, as 0.0.4 has it; so do calls that
    /// are pending.
    Drop,
}

/// The model that will read the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetModel {
    /// Its provider, as `provider_name` of thoughts spells it.
    pub provider_name: String,
    /// The model, spelled like `model_name` of responses. `None` means any model of the provider.
    pub model_name: Option<String>,
}

impl TargetModel {
    /// Whether the model can read a thought of this provider and model. Missing data counts as a
    /// match.
    pub(super) fn may_read(&self, provider_name: Option<&str>, model_name: Option<&str>) -> bool {
        let same_model = match (&self.model_name, model_name) {
            (Some(asked), Some(model)) => asked == model,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        same_model && provider_name.is_none_or(|provider| provider == self.provider_name)
    }
}
