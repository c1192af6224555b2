//! The tools.

use super::handler::Handler;
use super::{schema, start};
use crate::auth::Scope;
use crate::error::ApiError;
use crate::routes::messages::accepted_view;
use crate::routes::threads::{self, NewThread};
use crate::routes::view::{MessageView, ThreadView};
use crate::threads::{ThreadRef, listing};
use interop::ag_ui::was_cut_off;
use interop::ids::THREAD;
use rmcp::model::{self, CallToolResult, ToolAnnotations};
use rmcp::service::{RequestContext, RoleServer};
use runtime::{Filter, KeyPattern, PageRequest, Position, RuntimeError, StoreError, ThreadRows};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Number of threads in a list: default and maximum.
const THREADS: (usize, usize) = (50, 200);
/// Number of messages to agents in a page, with their answers: default and maximum.
const MESSAGES: (usize, usize) = (20, 100);

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    CreateThread,
    ListThreads,
    ReadThread,
    PostMessage,
    Run,
    Answer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    prefix: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    key: String,
    limit: Option<usize>,
    before: Option<String>,
}

impl Tool {
    pub(super) const ALL: [Self; 6] = [
        Self::CreateThread,
        Self::ListThreads,
        Self::ReadThread,
        Self::PostMessage,
        Self::Run,
        Self::Answer,
    ];

    /// The tool of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::CreateThread => "create_thread",
            Self::ListThreads => "list_threads",
            Self::ReadThread => "read_thread",
            Self::PostMessage => "post_message",
            Self::Run => "run",
            Self::Answer => "answer",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::CreateThread => "Create a thread",
            Self::ListThreads => "List threads",
            Self::ReadThread => "Read a thread",
            Self::PostMessage => "Post a message",
            Self::Run => "Run an agent",
            Self::Answer => "Answer calls that wait",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::CreateThread => {
                "Makes a thread, or finds the one with that key. A thread is also made by the first thing said on it."
            }
            Self::ListThreads => "Lists the threads, the last changed first, a page at a time.",
            Self::ReadThread => {
                "Reads what was last said on a thread, and what was said before that with the page's `older`."
            }
            Self::PostMessage => {
                "Says something on a thread and does not wait: an agent answers, whether or not anyone waits for it."
            }
            Self::Run => {
                "Says something on a thread and waits for what an agent answers. Progress tells what the agent says and which tools it calls; cancelling the call stops the agent. A `status` of `waiting` means that calls wait for an answer."
            }
            Self::Answer => {
                "Answers calls that wait: whether a tool may run, or what the result is. Waits for what the agent says then."
            }
        }
    }

    /// The scope that a key needs to call it.
    const fn scope(self) -> Scope {
        match self {
            Self::ListThreads | Self::ReadThread => Scope::Read,
            Self::CreateThread | Self::PostMessage | Self::Run | Self::Answer => Scope::Write,
        }
    }

    /// The definition for clients. None of the tools is marked as destructive by itself, but agents may
    /// run their own tools.
    pub(super) fn definition(self, agents: &[&str]) -> model::Tool {
        let hints = ToolAnnotations::with_title(self.title());
        let hints = match self {
            Self::ListThreads | Self::ReadThread => hints.read_only(true).open_world(false),
            Self::CreateThread => hints
                .read_only(false)
                .destructive(false)
                .idempotent(false)
                .open_world(false),
            Self::PostMessage | Self::Run => hints
                .read_only(false)
                .destructive(false)
                .idempotent(false)
                .open_world(true),
            // What is allowed runs.
            Self::Answer => hints
                .read_only(false)
                .destructive(true)
                .idempotent(false)
                .open_world(true),
        };
        model::Tool::new(self.name(), self.description(), schema::input(self, agents))
            .with_title(self.title())
            .with_raw_output_schema(schema::output(self).into())
            .with_annotations(hints)
    }

    pub(super) async fn call(
        self,
        handler: &Handler,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ApiError> {
        handler.caller.check_scope(self.scope())?;
        match self {
            Self::CreateThread => create(handler).await,
            Self::ListThreads => list(handler).await,
            Self::ReadThread => read(handler).await,
            Self::PostMessage => {
                let (thread, accepted) = start::post(handler, handler.arguments()?).await?;
                structured(&accepted_view(thread.key(), accepted))
            }
            Self::Run => start::run(handler, context).await,
            Self::Answer => start::answer(handler, context).await,
        }
    }
}

/// The thread with a key or an id.
pub(super) async fn thread(handler: &Handler, key: &str) -> Result<ThreadRef, ApiError> {
    let found = ThreadRef::find(&handler.api, &handler.caller, THREAD, key).await?;
    let missing = || ApiError::from(RuntimeError::Store(StoreError::NotFound));
    found.ok_or_else(missing)
}

fn structured(result: &impl Serialize) -> Result<CallToolResult, ApiError> {
    let result = serde_json::to_value(result).map_err(RuntimeError::from)?;
    Ok(CallToolResult::structured(result))
}

async fn create(handler: &Handler) -> Result<CallToolResult, ApiError> {
    let new: NewThread = handler.arguments()?;
    let (row, created) = threads::make(&handler.api, &handler.caller, new).await?;
    let view = ThreadView::made(row, created, handler.caller.may_read());
    structured(&json!({"thread": view, "created": created}))
}

async fn list(handler: &Handler) -> Result<CallToolResult, ApiError> {
    let asked: List = handler.arguments()?;
    let page = ThreadRows {
        after: asked
            .cursor
            .as_deref()
            .map(listing::read_cursor)
            .transpose()?,
        key: asked.prefix.map(KeyPattern::Prefix),
        limit: within(asked.limit, THREADS),
        ..ThreadRows::default()
    };
    let (rows, next) = listing::visible(&handler.api, &handler.caller, page).await?;
    let threads: Vec<ThreadView> = rows.into_iter().map(Into::into).collect();
    let mut result = json!({ "threads": threads });
    if let Some(next) = next {
        result["next"] = next.into();
    }
    structured(&result)
}

async fn read(handler: &Handler) -> Result<CallToolResult, ApiError> {
    let asked: Read = handler.arguments()?;
    let found = thread(handler, &asked.key).await?;
    let before = match asked.before.as_deref().map(str::parse) {
        None => Position::END,
        Some(Ok(place)) => Position(place),
        Some(Err(_)) => {
            return Err(ApiError::field(
                "/before",
                "expected the \"older\" of a page",
            ));
        }
    };
    let page = PageRequest::Before {
        before,
        n: within(asked.limit, MESSAGES),
    };
    let mut read = found.page(page.clone(), Filter::Facts).await?;
    if was_cut_off(&read.transcript) {
        read = found.page(page, Filter::All).await?;
    }
    let messages = read.transcript.entries.into_iter();
    let messages: Vec<MessageView> = messages
        .filter_map(|entry| MessageView::of_entry(entry, false))
        .collect();
    let mut result = json!({"thread": ThreadView::from(found.into_row()), "messages": messages});
    if read.more {
        result["older"] = read.first.0.to_string().into();
    }
    structured(&result)
}

/// How many are wanted.
fn within(asked: Option<usize>, (usual, most): (usize, usize)) -> usize {
    asked.unwrap_or(usual).clamp(1, most)
}
