//! The archive form: a conversation's histories with all of their source bytes.
//!
//! The canonical document is the part that other runtimes can continue: complete cycles, no system
//! prompts, one vocabulary. Real histories hold more, in the vocabulary of their source. An
//! [`Archive`] stores each [`SourceText`] unchanged, byte for byte, in [`ArchivedRun`]s that name
//! the format and the agent. Everything else is a view: [`Archive::to_thread`] is a pure function
//! of the archive, and so is each foreign format.
//!
//! As JSON: `archive` (the version of this form), the root members of a ThreadProtocol document
//! (`thread_id`, `created_at`, `updated_at`, `title`, `metadata`, `relationships`, `agents`), and
//! `runs` in chronological order. Unknown members stay in place.

mod decode;
mod record;
pub mod schema;

pub use decode::ArchiveError;
pub use record::SourceText;
pub use schema::schema;

use thread::{Json, Object};

/// The version of the archive form that is written.
pub const VERSION: &str = "1.0.0";

/// A conversation's histories with all of their source bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The root members, in order, but for `archive` and `runs`.
    pub root: Object,
    /// The runs, in the order in which they happened.
    pub runs: Vec<ArchivedRun>,
}

/// One run of one agent: its trigger, its output, and the answers it received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedRun {
    /// The format of the records.
    pub format: Format,
    /// The id of the agent that ran, if one did; a key of the registry.
    pub agent_id: Option<String>,
    /// Further members of the run; which ones depends on the format.
    pub head: Object,
    /// The messages of the run, in order.
    pub records: Vec<SourceText>,
}

/// The source format of a run's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Pydantic AI's `ModelMessage`s.
    PydanticAi,
    /// UI messages of the AI SDK.
    AiSdkUi,
    /// The chunks of one UI message stream of the AI SDK.
    AiSdkStream,
    /// The turns of a ThreadProtocol document; `head.root` is its root without `turns`.
    Thread,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [
        Self::PydanticAi,
        Self::AiSdkUi,
        Self::AiSdkStream,
        Self::Thread,
    ];

    /// The name of the format, as in `loomline convert --from`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PydanticAi => "pydantic-ai",
            Self::AiSdkUi => "ai-sdk-ui",
            Self::AiSdkStream => "ai-sdk-stream",
            Self::Thread => "thread",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl Archive {
    /// An archive of nothing yet.
    #[must_use]
    pub fn new(thread_id: &str, created_at: &str) -> Self {
        let root = Object::new()
            .with("thread_id", thread_id)
            .with("created_at", created_at)
            .with("updated_at", created_at)
            .with("agents", Object::new());
        Self {
            root,
            runs: Vec::new(),
        }
    }

    /// The id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> Option<&str> {
        self.root.get_str("thread_id")
    }

    /// The registered agent of this id.
    #[must_use]
    pub fn agent(&self, agent_id: &str) -> Option<&Object> {
        self.root.get("agents")?.get(agent_id)?.as_object()
    }

    /// Registers an agent; an existing entry stays unchanged.
    pub fn register(&mut self, agent_id: &str, config: Object) {
        if self.root.get("agents").and_then(Json::as_object).is_none() {
            self.root.insert("agents", Object::new());
        }
        let agents = self.root.get_mut("agents").and_then(Json::as_object_mut);
        if let Some(agents) = agents
            && !agents.contains_key(agent_id)
        {
            agents.insert(agent_id, config);
        }
    }

    /// The compact text of the archive; each record is copied unchanged.
    #[must_use]
    pub fn encode(&self) -> String {
        let runs = self.runs.iter().flat_map(|run| &run.records);
        let records: usize = runs.map(|record| record.text().len() + 1).sum();
        let mut text = String::with_capacity(records + 1024);
        text.push_str(r#"{"archive":""#);
        text.push_str(VERSION);
        text.push('"');
        members(&self.root, &mut text);
        text.push_str(r#","runs":["#);
        for (place, run) in self.runs.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            run.encode(&mut text);
        }
        text.push_str("]}");
        text
    }
}

impl ArchivedRun {
    /// A run of these records.
    #[must_use]
    pub fn new(format: Format, agent_id: Option<&str>, records: Vec<SourceText>) -> Self {
        Self {
            format,
            agent_id: agent_id.map(str::to_owned),
            head: Object::new(),
            records,
        }
    }

    fn encode(&self, text: &mut String) {
        text.push_str(r#"{"format":""#);
        text.push_str(self.format.name());
        text.push('"');
        if let Some(agent_id) = &self.agent_id {
            text.push_str(r#","agent_id":"#);
            text.push_str(&Json::from(agent_id.as_str()).to_text());
        }
        members(&self.head, text);
        text.push_str(r#","records":"#);
        SourceText::write_list(&self.records, text);
        text.push('}');
    }
}

/// Writes the members of an object after others.
fn members(object: &Object, text: &mut String) {
    let inner = Json::from(object.clone()).to_text();
    let inner = inner
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    if let Some(inner) = inner.filter(|inner| !inner.is_empty()) {
        text.push(',');
        text.push_str(inner);
    }
}
