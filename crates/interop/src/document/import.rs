//! A document as the commands that write it.

use super::agents::agent_id;
use super::check;
use super::content;
use super::delta::{difference, stored, wrapped};
use super::events::read_event_turn;
use super::export::Root;
use super::message::{Cycle, cycles};
use super::turns::{EXTENSION, TURN, Turn as Written, client_metadata, user_object};
use super::upgrade::newest;
use super::usage;
use crate::Converted;
use crate::parts::{ToolPart, ToolState};
use jiff::Timestamp;
use serde_json::json;
use thread::document::{
    AgentConfig, AgentTurn, CompletionStatus, Interruption as Why, Turn, UserTurn,
};
use thread::{Json, Object, Thread};
use timeline::{
    Command, Ending, Interruption, ItemId, ItemType, NewItem, Payload, Rejected, Role, StepOutcome,
    Trigger,
};

/// The members of a document besides its version: `actions` up to 1.0.0, `turns` since 2.0.0.
const MEMBERS: [&str; 6] = [
    "thread_id",
    "created_at",
    "updated_at",
    "agents",
    "turns",
    "actions",
];

/// A conversation from a document: the data of the new thread, and the commands that write it. They
/// are decided in order after `Create`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The title.
    pub title: Option<String>,
    /// The application's metadata. `threadprotocol` holds the document's other root members.
    pub metadata: Option<Payload>,
    /// When the conversation began.
    pub created_at: Option<Timestamp>,
    /// The commands, each with its time.
    pub commands: Vec<(Timestamp, Command)>,
}

/// The reason why a document can't be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The value has no member that a document must have.
    #[error("it is no ThreadProtocol document: it has none of {}", MEMBERS.join(", "))]
    NotADocument,
    /// The document's version is not supported.
    #[error("documents of version {0:?} can't be imported, expected 1.0.0, 2.0.0, 0.0.3 or 0.0.4")]
    Version(String),
    /// A value in the document can't be stored as JSON.
    #[error("a value can't be stored")]
    Json(#[from] serde_json::Error),
    /// The log rejects a command.
    #[error("the thread's log refuses it")]
    Refused(#[from] Rejected),
}

/// The commands that write a document into a fresh log as finished executions.
///
/// `ids` generates the ids of items, executions and steps. All commands were tested and are valid.
/// The losses are the differences between `thread` and the document that the log exports. The new
/// thread has its own id; to restore the document's id, create the thread with it.
pub fn from_document(
    thread: &Thread,
    ids: &mut dyn FnMut() -> String,
) -> Result<Converted<Imported>, ImportError> {
    if MEMBERS.iter().all(|it| thread.root().get(it).is_none()) {
        return Err(ImportError::NotADocument);
    }
    let document = newest(thread)?;
    let created_at = document.created_at().and_then(|text| text.parse().ok());
    let mut import = Import {
        document: &document,
        ids,
        at: created_at.unwrap_or(Timestamp::UNIX_EPOCH),
        last_item: None,
        n_entries: 0,
        commands: Vec::new(),
    };
    let turns: Vec<Turn<'_>> = document.turns().collect();
    let mut trigger = None;
    for (place, turn) in turns.iter().enumerate() {
        match turn {
            Turn::User(user) => {
                let item = import.user_item(*user)?;
                let submitted_at = user.submitted_at();
                let answered = matches!(turns.get(place + 1), Some(Turn::Agent(agent)) if read_event_turn(*agent).is_none());
                if answered {
                    import.pass(submitted_at);
                    trigger = Some(item);
                } else {
                    import.push(submitted_at, Command::Record { item });
                }
                import.n_entries += 1;
            }
            Turn::Agent(agent) => {
                if !import.event_turn(*agent)? {
                    import.agent_turn(*agent, trigger.take())?;
                }
            }
            Turn::Unknown(json) => import.unknown_turn(json)?,
        }
    }
    let (commands, n_entries) = (import.commands, import.n_entries);
    let imported = Imported {
        title: document.title().map(str::to_owned),
        metadata: Some(metadata(&document, n_entries)?),
        created_at,
        commands,
    };
    let losses = check::losses(&document, &imported)?;
    Ok(Converted {
        value: imported,
        losses,
    })
}

/// The thread's metadata: that of the document, and the document's other root members.
fn metadata(document: &Thread, n_entries: u64) -> Result<Payload, serde_json::Error> {
    let root = document.root();
    let object = |key: &str| root.get(key).and_then(Json::as_object);
    let mut metadata = object("metadata").cloned().unwrap_or_default();
    metadata.remove(EXTENSION);
    let derived = Root {
        thread_id: "",
        created_at: String::new(),
        updated_at: String::new(),
        title: document.title(),
        metadata: Some(metadata.clone()).filter(|metadata| !metadata.is_empty()),
        agents: Object::new(),
        turns: Vec::new(),
    };
    let written_elsewhere = ["thread_id", "updated_at", "agents", "turns"];
    let root_extra = difference(&derived.into_object(), root, &written_elsewhere);
    let kept = Object::new()
        .with_some("thread_id", document.thread_id())
        .with_some("updated_at", document.updated_at())
        .with("n_entries", n_entries)
        .with_some("agents", object("agents").cloned())
        .with_some("root", root_extra);
    stored(&metadata.with(EXTENSION, kept).into())
}

struct Import<'a> {
    document: &'a Thread,
    ids: &'a mut dyn FnMut() -> String,
    at: Timestamp,
    last_item: Option<String>,
    n_entries: u64,
    commands: Vec<(Timestamp, Command)>,
}

impl Import<'_> {
    /// Advances the clock to an instant of the document; the log's instants never go back.
    fn pass(&mut self, instant: Option<&str>) {
        let instant = instant.and_then(|text| text.parse().ok());
        self.at = instant.map_or(self.at, |instant: Timestamp| self.at.max(instant));
    }

    fn push(&mut self, instant: Option<&str>, command: Command) {
        self.pass(instant);
        self.commands.push((self.at, command));
    }

    fn item_id(&mut self) -> String {
        let id = (self.ids)();
        self.last_item = Some(id.clone());
        id
    }

    fn user_item(&mut self, turn: UserTurn<'_>) -> Result<NewItem, serde_json::Error> {
        let original = turn.object();
        let parts = original.get("parts").and_then(Json::as_array);
        let (content, groups) = content::imported(parts.unwrap_or_default());
        let metadata = turn.client_metadata().cloned().unwrap_or_default();
        let client = client_metadata(&metadata, None);
        let derived = user_object(String::new(), Vec::new(), client);
        let extra = difference(&derived, original, &["parts"]);
        let plain = content::exported(&content, None);
        let grouped = Some(plain.as_slice()) != parts;
        let kept = Object::new()
            .with("turn", extra.unwrap_or_default())
            .with_some("parts", grouped.then_some(groups));
        let content = stored(&Json::Array(content))?;
        let mut item = NewItem::user(self.item_id(), content);
        item.metadata = Some(stored(&metadata.with(EXTENSION, kept).into())?);
        Ok(item)
    }

    /// The trigger of an agent's turn that no user turn precedes: a reference to the last item.
    fn reference(&mut self) -> NewItem {
        let former = self.last_item.as_deref().map(ItemId::from);
        NewItem::reference(self.item_id(), former.as_ref())
    }

    fn unknown_turn(&mut self, turn: &Json) -> Result<(), serde_json::Error> {
        let part = wrapped(TURN, "turn", turn);
        let item = NewItem {
            id: self.item_id().into(),
            item_type: ItemType::Message,
            role: Some(Role::System),
            channel: None,
            content: Some(stored(&Json::Array(vec![part.into()]))?),
            metadata: None,
        };
        self.push(None, Command::Record { item });
        self.n_entries += 1;
        Ok(())
    }

    /// Imports a turn as an event of the thread, if it is one; returns whether it is.
    fn event_turn(&mut self, turn: AgentTurn<'_>) -> Result<bool, serde_json::Error> {
        let Some((mut event, at)) = read_event_turn(turn) else {
            return Ok(false);
        };
        // One that comes before what came before it would get another instant.
        if at.parse().is_ok_and(|at: Timestamp| at < self.at) {
            return Ok(false);
        }
        event.id = self.item_id();
        let item = event.into_item(None)?;
        self.push(Some(at), Command::Record { item });
        self.n_entries += 1;
        Ok(true)
    }

    fn agent_turn(
        &mut self,
        turn: AgentTurn<'_>,
        trigger: Option<NewItem>,
    ) -> Result<(), serde_json::Error> {
        let (name, id) = self.agent(turn);
        let ending = turn
            .completion_status()
            .unwrap_or(CompletionStatus::Complete);
        let interruption = Interruption {
            reason: reason(turn, "reason").unwrap_or_else(|| "error".to_owned()),
            detail: reason(turn, "detail"),
        };
        let messages = turn.object().get("messages").and_then(Json::as_array);
        let messages = messages.unwrap_or_default();
        let derived = Written {
            agent_id: &id,
            started_at: String::new(),
            ended_at: String::new(),
            ending,
            interruption: Some(&interruption),
            messages: Vec::new(),
            total: usage::total(messages),
        };
        let extra = difference(&derived.into_object(), turn.object(), &["messages"]);
        let kept = Object::new()
            .with("agent_id", id.as_str())
            .with("turn", extra.unwrap_or_default());
        let run = Object::new().with("agent", name).with(EXTENSION, kept);
        let trigger = if let Some(item) = trigger {
            item
        } else {
            self.n_entries += 1;
            self.reference()
        };
        self.n_entries += 1;
        let mut step_id = (self.ids)();
        let start = Command::Start {
            trigger: Trigger::New(trigger),
            run: Some(stored(&run.into())?),
            execution_id: (self.ids)().into(),
            reaction_item_id: self.item_id().into(),
            step_id: step_id.as_str().into(),
            workflow_run_id: None,
        };
        self.push(turn.started_at(), start);
        let cycles = cycles(messages);
        for (place, cycle) in cycles.iter().enumerate() {
            let next = (place + 1 < cycles.len()).then(|| {
                step_id = (self.ids)();
                step_id.clone()
            });
            self.step(cycle, &id, next)?;
        }
        let (at, ending) = match ending {
            CompletionStatus::Complete => (turn.completed_at(), Ending::Completed),
            CompletionStatus::Interrupted => {
                let at = turn.interruption().and_then(Why::interrupted_at);
                (at, Ending::Stopped(interruption))
            }
        };
        self.push(at, Command::End { ending });
        Ok(())
    }

    /// The name and id of the turn's agent.
    fn agent(&self, turn: AgentTurn<'_>) -> (String, String) {
        let registered = turn.agent_id().and_then(|id| self.document.agent(id));
        let name = registered.and_then(AgentConfig::agent_name);
        let name = name.or(turn.agent_id()).unwrap_or_default().to_owned();
        let id = turn
            .agent_id()
            .map_or_else(|| agent_id(&name), str::to_owned);
        (name, id)
    }

    fn step(
        &mut self,
        cycle: &Cycle<'_>,
        agent_id: &str,
        next: Option<String>,
    ) -> Result<(), serde_json::Error> {
        let written = cycle.written(agent_id)?;
        let mut outcome = outcome(&written.parts, &written.results);
        outcome.continue_loop = Some(next.is_some());
        let at = cycle.responded_at();
        if let Some(response) = written.response {
            let parts = written.parts;
            self.push(at, Command::Respond { parts, response });
        } else {
            for (idx, part) in (0..).zip(written.parts) {
                self.push(None, Command::PutPart { idx, part });
            }
        }
        self.pass(written.last_at.as_deref());
        for (idx, tool) in written.results {
            let part = tool.write()?;
            self.push(None, Command::PutPart { idx, part });
        }
        let next = next.map(Into::into);
        self.push(None, Command::ImportStep { outcome, next });
        Ok(())
    }
}

fn reason(turn: AgentTurn<'_>, key: &str) -> Option<String> {
    let why = turn.interruption()?.object();
    why.get_str(key).map(str::to_owned)
}

/// The outcome of a step in the runtime's format: its calls, and whether each succeeded.
fn outcome(parts: &[Payload], results: &[(u32, ToolPart)]) -> StepOutcome {
    let calls: Vec<_> = parts
        .iter()
        .filter_map(ToolPart::read)
        .map(|tool| json!({"toolCallId": tool.tool_call_id, "toolName": tool.tool_name()}))
        .collect();
    let results: Vec<_> = results
        .iter()
        .map(|(_, tool)| {
            let success = tool.state == ToolState::OutputAvailable;
            json!({"toolCallId": tool.tool_call_id, "success": success})
        })
        .collect();
    let some = |list: Vec<serde_json::Value>| {
        (!list.is_empty()).then(|| serde_json::Value::Array(list).into())
    };
    StepOutcome {
        tool_calls: some(calls),
        tool_execution_results: some(results),
        ..StepOutcome::default()
    }
}
