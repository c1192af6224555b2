//! Queries, and bodies that are little more.

use super::run::StreamMode;
use super::thread::MAX_OFFSET;
use super::{checkpoint_of, uuid};
use crate::langgraph::error::RequestError;
use crate::langgraph::fields::{Fields, MAX_ID, choose, within};
use crate::langgraph::run::RunStatus;
use crate::langgraph::select::Select;
use serde_json::Value;

/// The pairs of a query.
type Pairs<'a> = &'a [(String, String)];

/// The last value of a member of a query.
fn last<'a>(pairs: Pairs<'a>, key: &str) -> Option<&'a str> {
    let mut found = pairs.iter().rev().filter(|(name, _)| name == key);
    found.next().map(|(_, value)| value.as_str())
}

fn flag(pairs: Pairs<'_>, key: &str) -> Result<bool, RequestError> {
    match last(pairs, key) {
        None | Some("" | "0" | "false" | "False") => Ok(false),
        Some("1" | "true" | "True") => Ok(true),
        Some(_) => Err(RequestError::at(
            format!("/{key}"),
            "expected true or false",
        )),
    }
}

fn whole(
    pairs: Pairs<'_>,
    key: &str,
    bounds: (u64, u64),
    default: u64,
) -> Result<usize, RequestError> {
    let number = match last(pairs, key) {
        None => default,
        Some(text) => within(text.parse().ok(), bounds, || format!("/{key}"))?,
    };
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

fn word<T: Copy>(
    pairs: Pairs<'_>,
    key: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, RequestError> {
    let word = last(pairs, key);
    word.map(|word| choose(Some(word), words, || format!("/{key}")))
        .transpose()
}

/// All values of a member, whether it is repeated or has commas.
fn all(pairs: Pairs<'_>, key: &str) -> Vec<String> {
    let found = pairs.iter().filter(|(name, _)| name == key);
    let found = found.flat_map(|(_, value)| value.split(','));
    found
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Reads the query of a cancel. Returns whether the run is also removed from its thread. `wait` has no
/// effect, because a stopped run ends immediately.
pub fn read_cancel(pairs: &[(String, String)]) -> Result<bool, RequestError> {
    flag(pairs, "wait")?;
    let actions = [("interrupt", false), ("rollback", true)];
    Ok(word(pairs, "action", &actions)?.unwrap_or_default())
}

/// The query of a client that joins a run's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinQuery {
    /// The stream modes; empty if the query names none.
    pub modes: Vec<StreamMode>,
    /// Whether the run stops when the client disconnects.
    pub cancels_on_disconnect: bool,
}

impl JoinQuery {
    /// Reads a query.
    pub fn read(pairs: &[(String, String)]) -> Result<Self, RequestError> {
        let names = all(pairs, "stream_mode");
        let modes = names
            .iter()
            .map(|name| StreamMode::read(name, "/stream_mode"));
        Ok(Self {
            modes: modes.collect::<Result<_, _>>()?,
            cancels_on_disconnect: flag(pairs, "cancel_on_disconnect")?,
        })
    }
}

/// The query of a list of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsQuery {
    /// Maximum number of runs.
    pub limit: usize,
    /// Number of runs to skip.
    pub offset: usize,
    /// Only runs in this state.
    pub status: Option<RunStatus>,
    /// Which members are shown.
    pub select: Select,
}

impl RunsQuery {
    /// Reads a query.
    pub fn read(pairs: &[(String, String)]) -> Result<Self, RequestError> {
        Ok(Self {
            limit: whole(pairs, "limit", (1, 1_000), 10)?,
            offset: whole(pairs, "offset", (0, MAX_OFFSET), 0)?,
            status: word(pairs, "status", &RunStatus::NAMES)?,
            select: Select::new(all(pairs, "select")),
        })
    }
}

/// The Agent Protocol's search of runs: those of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsSearch {
    /// The thread.
    pub thread_id: String,
    /// The filter on the thread's runs.
    pub query: RunsQuery,
}

impl RunsSearch {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &[
        "metadata",
        "status",
        "thread_id",
        "agent_id",
        "limit",
        "offset",
    ];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        for key in ["metadata", "agent_id"] {
            fields.refuse(key, "runs are found by their thread and their status here")?;
        }
        let wrong = || {
            RequestError::at(
                "/thread_id",
                "expected the thread whose runs are looked for",
            )
        };
        let (limit, offset) = super::ThreadSearch::bounds(&fields)?;
        Ok(Self {
            thread_id: uuid(&fields, "thread_id")?.ok_or_else(wrong)?,
            query: RunsQuery {
                limit,
                offset,
                status: fields.word("status", &RunStatus::NAMES)?,
                select: Select::default(),
            },
        })
    }
}

/// The range of a thread's states to return.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryQuery {
    /// Maximum number of states.
    pub limit: usize,
    /// Only states before this one.
    pub before: Option<String>,
    /// Which members are shown.
    pub select: Select,
}

impl HistoryQuery {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] =
        &["limit", "before", "metadata", "checkpoint", "select"];

    /// Reads a query.
    pub fn read(pairs: &[(String, String)]) -> Result<Self, RequestError> {
        Ok(Self {
            limit: whole(pairs, "limit", (1, 1_000), 10)?,
            before: last(pairs, "before").map(str::to_owned),
            select: Select::new(all(pairs, "select")),
        })
    }

    /// Reads a body.
    pub fn read_body(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        let by_metadata = fields.get("metadata").and_then(Value::as_object);
        if by_metadata.is_none_or(|it| !it.is_empty()) {
            fields.refuse("metadata", "states are not found by their metadata here")?;
        }
        if let Some(named) = fields.get("checkpoint")
            && checkpoint_of(named, &fields.at("checkpoint"))?.is_some()
        {
            let what = "expected no checkpoint: say before which state";
            return Err(fields.wrong("checkpoint", what));
        }
        let before = match fields.get("before") {
            Some(Value::Object(named)) => {
                let inner = named.get("configurable").cloned();
                let named = inner.unwrap_or_else(|| Value::Object(named.clone()));
                checkpoint_of(&named, &fields.at("before"))?
            }
            _ => fields.text("before", MAX_ID)?.map(str::to_owned),
        };
        let limit = fields.whole("limit", 1, 1_000)?.unwrap_or(10);
        Ok(Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            before,
            select: Select::read(&fields)?,
        })
    }
}

/// Which state is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct StateQuery {
    /// The checkpoint; the last one when absent.
    pub checkpoint: Option<String>,
    /// Which members are shown.
    pub select: Select,
}

impl StateQuery {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &["checkpoint", "subgraphs", "select"];

    /// Reads a query. `subgraphs` has no effect, because there are none.
    pub fn read(pairs: &[(String, String)]) -> Result<Self, RequestError> {
        flag(pairs, "subgraphs")?;
        Ok(Self {
            checkpoint: None,
            select: Select::new(all(pairs, "select")),
        })
    }

    /// Reads a body.
    pub fn read_body(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        fields.flag("subgraphs")?;
        let named = fields.get("checkpoint");
        let named = named.map(|it| checkpoint_of(it, &fields.at("checkpoint")));
        Ok(Self {
            checkpoint: named.transpose()?.flatten(),
            select: Select::read(&fields)?,
        })
    }
}
