//! What the views of other protocols share: how their paths are told, and which thread an id means.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use interop::ids::IdForm;
use runtime::{Runtime, RuntimeError, StoreError, ThreadRow};
use timeline::ThreadId;

/// In which shape a path's clients read errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// This server's own.
    Own,
    /// `OpenAI`'s, with Open Responses.
    OpenAi,
    /// A2A's.
    A2a,
    /// The Model Context Protocol's.
    Mcp,
    /// `LangGraph`'s, with the Agent Protocol.
    LangGraph,
}

/// What the paths of `LangGraph` and the Agent Protocol begin with.
const LANGGRAPH: [&str; 8] = [
    "/threads",
    "/runs",
    "/agents",
    "/assistants",
    "/store",
    "/crons",
    "/info",
    "/ok",
];

impl Dialect {
    /// By what the path begins with, so that a path that leads nowhere is answered in it too.
    pub(crate) fn of(path: &str) -> Self {
        if path == "/v1" || path.starts_with("/v1/") {
            Self::OpenAi
        } else if path == "/a2a" || path.starts_with("/a2a/") {
            Self::A2a
        } else if path == "/mcp" {
            Self::Mcp
        } else if LANGGRAPH.iter().any(|first| {
            let rest = path.strip_prefix(first);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }) {
            Self::LangGraph
        } else {
            Self::Own
        }
    }

    /// Whether pages of other ports of this machine may call a path in development mode: where clients of a protocol are
    /// served. Pages that the server has itself, and what they alone call, are for no other pages.
    pub(crate) fn is_for_local_pages(path: &str) -> bool {
        match Self::of(path) {
            Self::OpenAi | Self::A2a | Self::Mcp | Self::LangGraph => true,
            Self::Own => ["/api/", "/ag-ui", "/.well-known/"]
                .iter()
                .any(|first| path.starts_with(first)),
        }
    }

    /// The name of what its refusals look like, in the `OpenAPI` document.
    pub(crate) fn error_schema(self) -> &'static str {
        match self {
            Self::Own => "ErrorBody",
            Self::OpenAi => "OpenAiErrorBody",
            Self::A2a => "A2aErrorBody",
            Self::Mcp => "McpErrorBody",
            Self::LangGraph => "LangGraphErrorBody",
        }
    }

    /// Whether the routes of this dialect name threads in their own spelling, and check themselves
    /// who may touch one: by [`thread_of`].
    pub(crate) fn checks_threads(self) -> bool {
        match self {
            Self::Own => false,
            Self::OpenAi | Self::A2a | Self::Mcp | Self::LangGraph => true,
        }
    }

    /// Whether foreign pages are refused, whoever has a key.
    pub(crate) fn checks_origins(self) -> bool {
        match self {
            Self::Own | Self::OpenAi | Self::A2a | Self::LangGraph => false,
            Self::Mcp => true,
        }
    }
}

/// The thread that an id of a protocol means: an id of ours in the protocol's spelling, or a key. None
/// where there is none that the caller may touch.
pub(crate) async fn thread_of(
    api: &Api,
    caller: &Caller,
    form: IdForm,
    id: &str,
) -> Result<Option<ThreadRow>, ApiError> {
    thread_in(api.runtime(), caller, form, id).await
}

/// Finds a thread by a protocol's id among the threads of one runtime.
pub(crate) async fn thread_in(
    runtime: &Runtime,
    caller: &Caller,
    form: IdForm,
    id: &str,
) -> Result<Option<ThreadRow>, ApiError> {
    let own = ThreadId::from(form.read(id).as_ref());
    let mut found = runtime.find_by_id(&caller.tenant, &own).await;
    // A key that is a UUID is spelled like an id, too.
    let spelled = Some(own.as_str()).filter(|own| *own != id);
    for key in [Some(id), spelled].into_iter().flatten() {
        if let Err(RuntimeError::Store(StoreError::NotFound)) = found {
            found = runtime.find(&caller.tenant, key).await;
        }
    }
    match found {
        Ok(row) => Ok(Some(row).filter(|row| caller.check(key_of(row)).is_ok())),
        Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The key of a thread.
pub(crate) fn key_of(row: &ThreadRow) -> &str {
    let key = row.thread.key.as_deref();
    key.unwrap_or_else(|| row.thread.id.as_str())
}
