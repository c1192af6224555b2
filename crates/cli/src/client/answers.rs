//! A server's answers.

use crate::error::CliError;
use interop::Loss;
use interop::convert::AttributedFields;
use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use runtime::search::FoundThread;
use runtime::{Logged, ThreadCompaction, ThreadRow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use timeline::{
    Event, Fork, ItemId, Payload, Record, Replaced, Role, Seq, SummaryAuthor, ThreadId,
    ThreadStatus,
};

/// Reads an answer.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, CliError> {
    serde_json::from_str(text).map_err(|source| unreadable(source.into()))
}

fn unreadable(source: Box<dyn std::error::Error + Send + Sync>) -> CliError {
    CliError::Unreadable {
        spot: "the answer of the server".to_owned(),
        what: "one of this version",
        source,
    }
}

/// Reads an event as streams and pages have it.
pub(super) fn logged(text: String) -> Result<Logged, CliError> {
    #[derive(Deserialize)]
    struct Place {
        seq: Seq,
        at: Timestamp,
    }
    let Place { seq, at } = read(&text)?;
    let event = Event::decode(&text).map_err(|source| unreadable(source.into()))?;
    let head = format!("{{\"seq\":{seq},\"at\":\"{at}\",");
    let text = match text.strip_prefix(&head) {
        Some(rest) => format!("{{{rest}"),
        None => text,
    };
    Ok(Logged {
        record: Record { seq, at, event },
        text: text.into(),
        large: None,
    })
}

/// An accepted message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    pub(crate) item_id: ItemId,
    pub(crate) after: Seq,
    pub(crate) queued: bool,
}

/// A page of events.
#[derive(Deserialize)]
pub(super) struct EventPage {
    pub(super) events: Vec<Payload>,
    pub(super) more: bool,
}

/// A page of threads.
#[derive(Deserialize)]
pub(super) struct ThreadPage {
    pub(super) threads: Vec<Listed>,
    pub(super) next: Option<String>,
}

/// A thread in a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub(crate) key: Option<String>,
    id: ThreadId,
    pub(crate) status: ThreadStatus,
    title: Option<String>,
    created_at: Timestamp,
    updated_at: Option<Timestamp>,
    pub(crate) seq: Seq,
    bytes: u64,
}

impl From<ThreadRow> for Listed {
    fn from(row: ThreadRow) -> Self {
        let thread = row.thread;
        Self {
            key: thread.key,
            id: thread.id,
            status: thread.status,
            title: thread.title,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            seq: row.tail,
            bytes: row.bytes,
        }
    }
}

impl Listed {
    /// When it last changed.
    pub(crate) fn changed_at(&self) -> Timestamp {
        self.updated_at.unwrap_or(self.created_at)
    }

    /// For scripts.
    pub(crate) fn value(&self) -> Value {
        json!({
            "key": self.key, "id": self.id, "status": self.status, "title": self.title,
            "createdAt": self.created_at, "updatedAt": self.changed_at(), "seq": self.seq, "bytes": self.bytes,
        })
    }
}

/// A page of found threads.
#[derive(Deserialize)]
pub(super) struct FoundPage {
    pub(super) threads: Vec<FoundRow>,
    pub(super) next: Option<String>,
}

/// A found thread.
#[derive(Deserialize)]
pub(crate) struct FoundRow {
    #[serde(flatten)]
    pub(crate) thread: Listed,
    pub(crate) snippets: Vec<Snippet>,
}

/// A piece of a text that has the words.
#[derive(Deserialize, Serialize)]
pub(crate) struct Snippet {
    /// Absent for the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    pub(crate) text: String,
    /// The words, in UTF-16 code units.
    pub(crate) matches: Vec<[usize; 2]>,
}

impl From<FoundThread> for FoundRow {
    fn from(found: FoundThread) -> Self {
        let snippets = found.hits.into_iter().map(|hit| Snippet {
            seq: hit.seq,
            role: hit.role,
            matches: hit.excerpt.utf16_matches(),
            text: hit.excerpt.text,
        });
        Self {
            thread: found.row.into(),
            snippets: snippets.collect(),
        }
    }
}

impl FoundRow {
    /// For scripts.
    pub(crate) fn value(&self) -> Value {
        let mut value = self.thread.value();
        value["snippets"] = json!(self.snippets);
        value
    }
}

/// The origin of a thread.
#[derive(Deserialize)]
pub(super) struct Thread {
    pub(super) fork: Option<Fork>,
}

/// A thread that was made.
#[derive(Deserialize)]
pub(super) struct Key {
    pub(super) key: String,
}

/// The branches of a conversation.
#[derive(Deserialize)]
pub(super) struct Branches {
    pub(super) branches: Vec<Branch>,
}

/// A branch of a conversation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Branch {
    pub(crate) key: String,
    pub(crate) id: ThreadId,
    node: String,
    pub(crate) name: Option<String>,
    pub(crate) parent: Option<String>,
    forked_at: Option<Seq>,
    pub(crate) current: bool,
    status: ThreadStatus,
    pub(crate) seq: Seq,
}

impl Branch {
    /// A branch in the store; `parent` is the key of the thread that it was forked from.
    pub(crate) fn of(branch: &runtime::tree::Branch, parent: Option<String>) -> Self {
        let thread = &branch.row.thread;
        Self {
            key: thread.key.clone().unwrap_or_default(),
            id: thread.id.clone(),
            node: branch.node_id.to_string(),
            name: branch.name().map(str::to_owned),
            parent,
            forked_at: thread.fork.as_ref().map(|fork| fork.seq),
            current: branch.is_current,
            status: thread.status,
            seq: branch.row.tail,
        }
    }

    /// For scripts.
    pub(crate) fn value(&self) -> Value {
        json!({
            "key": self.key, "id": self.id, "node": self.node, "name": self.name, "parent": self.parent,
            "forkedAt": self.forked_at, "current": self.current, "status": self.status, "seq": self.seq,
        })
    }
}

/// An imported conversation.
#[derive(Deserialize)]
pub(crate) struct Imported {
    pub(crate) thread: Listed,
    #[serde(deserialize_with = "read_losses")]
    pub(crate) losses: Vec<Loss>,
}

impl From<(ThreadRow, Vec<Loss>)> for Imported {
    fn from((row, losses): (ThreadRow, Vec<Loss>)) -> Self {
        Self {
            thread: row.into(),
            losses,
        }
    }
}

fn read_losses<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Loss>, D::Error> {
    #[derive(Deserialize)]
    struct Told {
        pointer: String,
        what: String,
    }
    let told = Vec::<Told>::deserialize(from)?.into_iter();
    let losses = told.map(|Told { pointer, what }| Loss { pointer, what });
    Ok(losses.collect())
}

/// The conversion losses in an answer's headers.
pub(super) fn losses(headers: &HeaderMap) -> Vec<Loss> {
    let named = headers.get_all("loomline-loss").iter();
    let mut losses: Vec<Loss> = named
        .filter_map(|value| value.to_str().ok()?.split_once(' '))
        .map(|(pointer, what)| Loss {
            pointer: pointer.to_owned(),
            what: what.to_owned(),
        })
        .collect();
    let all = headers.get("loomline-losses");
    let all = all.and_then(|value| value.to_str().ok()?.parse().ok());
    let n_more = all.unwrap_or(0_usize).saturating_sub(losses.len());
    if n_more > 0 {
        losses.push(Loss {
            pointer: String::new(),
            what: format!("{n_more} more, which the server does not name"),
        });
    }
    losses
}

/// The agents of the runs, as the query of an import.
pub(super) fn attribution(list: &[AttributedFields]) -> Option<String> {
    let one = |who: &AttributedFields| {
        let members = [
            ("agent", Some(json!(who.agent))),
            ("agent_id", who.agent_id.as_ref().map(|id| json!(id))),
            ("run_id", who.run_id.as_ref().map(|id| json!(id))),
            ("n_messages", who.n_messages.map(|n| json!(n))),
        ];
        let given = members
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect())
    };
    let list: Vec<Value> = list.iter().map(one).collect();
    (!list.is_empty()).then(|| Value::Array(list).to_string())
}

/// A refusal.
#[derive(Deserialize)]
pub(super) struct Failure {
    error: Told,
}

#[derive(Deserialize)]
struct Told {
    code: String,
    message: String,
    pointer: Option<String>,
}

impl Failure {
    /// The refusal of something between this program and the server.
    pub(super) fn of_status(status: StatusCode) -> Self {
        Self {
            error: Told {
                code: String::new(),
                message: format!("it answers {status}, and not as Loomline does"),
                pointer: None,
            },
        }
    }

    /// Converts into an error of the program; `thread` is the requested key.
    pub(super) fn into_error(self, thread: &str) -> CliError {
        let Told {
            code,
            message,
            pointer,
        } = self.error;
        match code.as_str() {
            "thread_not_found" => CliError::NotFound {
                key: thread.to_owned(),
            },
            "unclear_tenant" => CliError::Usage { what: message },
            "unauthorized" => CliError::NoKey,
            "body_too_large" => CliError::Refused {
                message: format!(
                    "{message}; raise max_body_bytes of the server, or stop the server and try again"
                ),
                code,
            },
            _ => CliError::Refused {
                message: match pointer.filter(|pointer| !pointer.is_empty()) {
                    Some(pointer) => format!("{message} (at {pointer})"),
                    None => message,
                },
                code,
            },
        }
    }
}

/// A compaction of a thread, as the server answers it.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compaction {
    pub(crate) id: String,
    pub(crate) execution_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Seq>,
    pub(crate) summary: String,
    author: SummaryAuthor,
    pub(crate) replaced: Replaced,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    pub(crate) withdrawn: bool,
    pub(crate) counts: bool,
}

impl From<ThreadCompaction> for Compaction {
    fn from(found: ThreadCompaction) -> Self {
        let compaction = found.compaction;
        Self {
            id: compaction.id.as_str().to_owned(),
            execution_id: compaction.execution_id.as_str().to_owned(),
            event: found.through,
            summary: compaction.summary,
            author: compaction.author,
            replaced: compaction.replaced,
            created_at: found.at,
            seq: found.seq,
            withdrawn: found.is_withdrawn,
            counts: found.counts,
        }
    }
}

/// A page of compactions.
#[derive(Deserialize)]
pub(crate) struct Compactions {
    pub(crate) compactions: Vec<Compaction>,
    /// The cursor of the next page.
    pub(crate) before: Option<u64>,
}
