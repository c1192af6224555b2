//! Assistants: those the server is configured with, and those that clients made.

use super::error::RequestError;
use super::fields::Fields;
use super::metadata::{Carrier, Metadata};
use super::object::Named;
use super::tools::{self, AssistantTool};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const MAX_MODEL: usize = 256;
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 512;
pub(super) const MAX_INSTRUCTIONS: usize = 256_000;
const MAX_TOOLS: usize = 128;

/// An assistant. The server stores this JSON for an assistant that a client created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assistant {
    /// `asst_…`, or the name of the agent that it is.
    pub id: String,
    /// Unix seconds.
    pub created_at: i64,
    /// The model's name.
    pub model: String,
    /// The name, for people.
    #[serde(default)]
    pub name: Option<String>,
    /// The description, for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The instructions that the model receives.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Tools that clients execute.
    #[serde(default)]
    pub tools: Vec<AssistantTool>,
    /// The client's value. The server does not use it.
    #[serde(default)]
    pub tool_resources: Option<Value>,
    /// The client's metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// 0 to 2.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// The client's value.
    #[serde(default)]
    pub response_format: Option<Value>,
    /// How much the model reasons.
    #[serde(default)]
    pub reasoning_effort: Option<String>,
    /// The configured agent that this assistant represents. Its runs need no options for what the
    /// agent has anyway. A run of an assistant that a client created has options for all of the above.
    #[serde(default)]
    pub agent: Option<String>,
}

impl Named for Assistant {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Assistant {
    /// A configured agent as an assistant; the id is the agent's name. Its tools run on the server.
    /// They are not listed in `tools`, because a `function` of this API is run by the client.
    pub fn of_agent(
        name: &str,
        model: &str,
        instructions: Option<String>,
        created_at: jiff::Timestamp,
    ) -> Self {
        Self {
            id: name.to_owned(),
            created_at: created_at.as_second(),
            model: model.to_owned(),
            name: Some(name.to_owned()),
            description: None,
            instructions,
            tools: Vec::new(),
            tool_resources: None,
            metadata: Metadata::default(),
            temperature: None,
            top_p: None,
            response_format: None,
            reasoning_effort: None,
            agent: Some(name.to_owned()),
        }
    }

    /// The object that clients are shown.
    pub fn object(&self) -> Value {
        let mut object = json!({
            "id": self.id, "object": "assistant", "created_at": self.created_at,
            "name": self.name, "description": self.description, "model": self.model,
            "instructions": self.instructions, "tools": self.tools,
            "tool_resources": self.tool_resources, "metadata": self.metadata,
            "temperature": self.temperature, "top_p": self.top_p,
            "response_format": self.response_format.clone().unwrap_or_else(|| "auto".into()),
        });
        if let (Value::Object(object), Some(effort)) = (&mut object, &self.reasoning_effort) {
            object.insert("reasoning_effort".to_owned(), effort.as_str().into());
        }
        object
    }
}

/// `POST /assistants`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateAssistant(AssistantChange);

impl CreateAssistant {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let change = AssistantChange::read(body)?;
        if !change.names_a_model() {
            let pointer = "/model".to_owned();
            return Err(RequestError::Missing { pointer });
        }
        Ok(Self(change))
    }

    /// The assistant; `id` is our id of it, which becomes `asst_…`.
    pub fn assistant(self, id: &str, created_at: jiff::Timestamp) -> Assistant {
        let mut assistant = Assistant::of_agent("", "", None, created_at);
        assistant.id = super::ids::ASSISTANT.write(id);
        assistant.name = None;
        assistant.agent = None;
        self.0.apply(&mut assistant);
        assistant
    }
}

/// `POST /assistants/{id}`: members that are absent stay as they are, and null empties those that can
/// be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantChange(Vec<Set>);

/// One member and what it becomes.
#[derive(Clone, Debug, PartialEq)]
enum Set {
    Model(String),
    Name(Option<String>),
    Description(Option<String>),
    Instructions(Option<String>),
    Tools(Vec<AssistantTool>),
    ToolResources(Option<Value>),
    Metadata(Metadata),
    Temperature(Option<f64>),
    TopP(Option<f64>),
    ResponseFormat(Option<Value>),
    ReasoningEffort(Option<String>),
}

impl AssistantChange {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        let text = |key: &str, max| -> Result<Option<String>, RequestError> {
            Ok(fields.text(key, max)?.map(str::to_owned))
        };
        let mut all = Vec::new();
        let mut set = |key: &str, to: Set| {
            if fields.present(key).is_some() {
                all.push(to);
            }
        };
        if let Some(model) = text("model", MAX_MODEL)? {
            set("model", Set::Model(model));
        }
        set("name", Set::Name(text("name", MAX_NAME)?));
        let description = text("description", MAX_DESCRIPTION)?;
        set("description", Set::Description(description));
        let instructions = text("instructions", MAX_INSTRUCTIONS)?;
        set("instructions", Set::Instructions(instructions));
        let own = tools::tools(&fields, MAX_TOOLS)?;
        set("tools", Set::Tools(own.unwrap_or_default()));
        let resources = tools::tool_resources(&fields)?;
        set("tool_resources", Set::ToolResources(resources));
        let metadata = Metadata::read(&fields, Carrier::Other)?;
        set("metadata", Set::Metadata(metadata.unwrap_or_default()));
        let temperature = fields.number("temperature", 2.0, "a number from 0 to 2")?;
        set("temperature", Set::Temperature(temperature));
        let top_p = fields.number("top_p", 1.0, "a number from 0 to 1")?;
        set("top_p", Set::TopP(top_p));
        let format = tools::response_format(&fields)?.map(|(value, _)| value);
        set("response_format", Set::ResponseFormat(format));
        let effort = fields.word("reasoning_effort", tools::EFFORTS)?;
        let effort = effort.map(str::to_owned);
        set("reasoning_effort", Set::ReasoningEffort(effort));
        Ok(Self(all))
    }

    fn names_a_model(&self) -> bool {
        self.0.iter().any(|set| matches!(set, Set::Model(_)))
    }

    /// Changes an assistant that a client made.
    pub fn apply(self, assistant: &mut Assistant) {
        for set in self.0 {
            match set {
                Set::Model(model) => assistant.model = model,
                Set::Name(name) => assistant.name = name,
                Set::Description(description) => assistant.description = description,
                Set::Instructions(instructions) => assistant.instructions = instructions,
                Set::Tools(tools) => assistant.tools = tools,
                Set::ToolResources(resources) => assistant.tool_resources = resources,
                Set::Metadata(metadata) => assistant.metadata = metadata,
                Set::Temperature(temperature) => assistant.temperature = temperature,
                Set::TopP(top_p) => assistant.top_p = top_p,
                Set::ResponseFormat(format) => assistant.response_format = format,
                Set::ReasoningEffort(effort) => assistant.reasoning_effort = effort,
            }
        }
    }
}
