//! How a thread is rendered.

use crate::json::Json;

/// For whom and how a thread is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// The agent that is to speak next.
    pub agent_id: String,
    /// How it learns who wrote what.
    pub attribution: SpeakerAttribution,
    /// What it sees of the tools of others.
    pub tool_traffic: ToolTraffic,
    /// What becomes of calls without an answer.
    pub unanswered: Unanswered,
    /// The model that will read the messages. Where it is given, the agent's own thoughts from
    /// another provider or model are left out too.
    pub target: Option<TargetModel>,
    /// The agent's system prompts: whole parts, or strings, which become `system-prompt` parts.
    /// They stand at the start of the first request (TP-8); a thread without messages has none.
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

/// How the viewing agent learns which agent wrote what (ruling 17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpeakerAttribution {
    /// `{agent:NAME}: ` before each text of another agent, the specification's rendering. Models
    /// imitate it: see [`strip_markers`](super::strip_markers).
    #[default]
    Prefix,
    /// A member `name` on each response of another agent, its text untouched.
    NameField,
    /// Each turn of another agent becomes a request with a prompt that names the agent and quotes
    /// it; its calls are told of in words and are no calls any more.
    QuotedInUserMessage,
}

/// What the viewing agent sees of the tool calls of other agents and of the answers to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolTraffic {
    /// All of it.
    #[default]
    Show,
    /// One text for the calls of a response, such as `called get_weather and got an answer`.
    Summarise,
    /// Nothing.
    Hide,
}

/// What becomes of calls without an answer when a model is asked again (ruling 15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unanswered {
    /// An answer with the outcome `interrupted` follows. The viewing agent's own calls at the very
    /// end are left open if the last turn is complete: they are pending (ruling 2), and the caller
    /// brings the answers.
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
    /// The model, as `model_name` of responses spells it; any of the provider's if not given.
    pub model_name: Option<String>,
}

impl TargetModel {
    /// Whether it can read a thought of this provider and model; what the thread does not say is
    /// not held against it.
    pub(super) fn may_read(&self, provider_name: Option<&str>, model_name: Option<&str>) -> bool {
        let same_model = match (&self.model_name, model_name) {
            (Some(asked), Some(model)) => asked == model,
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        same_model && provider_name.is_none_or(|provider| provider == self.provider_name)
    }
}
