//! The pages.

use super::assets::ASSETS;
use super::reading::ReadConversation;
use super::reply::{chat_path, page};
use super::request_view::{read_past_requests, read_requests};
use crate::auth::{Caller, Scope};
use crate::body::{PathOf, Query};
use crate::config::Starter;
use crate::error::ApiError;
use crate::event_id::{EventId, Incarnation};
use crate::routes::waiting::{WaitingFilter, WaitingReader};
use crate::state::Api;
use crate::threads::{ThreadKey, ThreadRef, key_of, listing};
use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use http::{HeaderMap, header};
use interop::aitp::RequestState;
use runtime::{MessageVersion, Position, ThreadRow, ThreadRows};
use serde::Deserialize;
use timeline::{Seq, ThreadStatus};
use web::{
    AgentChoice, Area, ChatPage, ChatThread, CompactedRuns, ConsoleFrame, ConsoleSection, Markup,
    Menu, RailThread, Shell, StarterChoice, VersionEntry, VersionsPage,
};

/// Number of messages on a page.
const MESSAGES: usize = 60;
/// Number of messages that are added when a reader scrolls to the top.
const OLDER: usize = 50;
/// Number of threads in the list.
const THREADS: usize = 40;
/// Maximum number of calls and requests that are counted.
const COUNTED: usize = 100;

/// Which part of a thread a page shows.
#[derive(Deserialize)]
pub(super) struct ChatQuery {
    /// The cursor of an earlier page.
    before: Option<u64>,
    /// The event after which the page shows the thread.
    at: Option<u64>,
}

/// The beginning of a new thread.
#[derive(Deserialize)]
pub(super) struct NewChatQuery {
    /// The agent that the page preselects.
    agent: Option<String>,
}

/// A message or an answer of a thread.
#[derive(Deserialize)]
pub(super) struct VersionsQuery {
    thread: String,
    item: String,
}

/// Earlier messages of a thread.
#[derive(Deserialize)]
pub(super) struct OlderQuery {
    thread: String,
    before: u64,
}

/// Whether a client asks for a page, as browsers do.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// The page of a new thread.
pub(super) async fn new_chat(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<NewChatQuery>,
) -> Result<Response, ApiError> {
    let agent = query.agent.as_deref();
    if let Some(name) = agent.filter(|name| !api.app().has_agent(name)) {
        let what = format!("agent: this server has no agent {name:?}");
        return Err(ApiError::InvalidQuery { what });
    }
    let parts = PageParts::read(&api, &caller).await?;
    Ok(page(parts.page(None, agent, None).html()))
}

/// The page of a thread.
pub(super) async fn chat(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<ChatQuery>,
) -> Result<Response, ApiError> {
    let parts = PageParts::read(&api, &caller).await?;
    let html = draw_chat((&api, &caller), &thread, &query, &parts, Frame::Page);
    Ok(page(html.await?))
}

/// The conversation of a thread without the frame of a page.
pub(super) async fn chat_content(
    (api, caller): (&Api, &Caller),
    thread: &ThreadKey,
    parts: &PageParts,
) -> Result<Markup, ApiError> {
    let query = ChatQuery {
        before: None,
        at: None,
    };
    draw_chat((api, caller), thread, &query, parts, Frame::None).await
}

/// The surroundings of a conversation.
#[derive(Clone, Copy)]
enum Frame {
    /// All of a page.
    Page,
    /// Nothing: the open page has it.
    None,
}

async fn draw_chat(
    (api, caller): (&Api, &Caller),
    thread: &ThreadKey,
    query: &ChatQuery,
    parts: &PageParts,
    frame: Frame,
) -> Result<Markup, ApiError> {
    let found = thread.find().await?;
    let mut read = if let Some(at) = query.at {
        ReadConversation::at((api, thread), Seq(at), MESSAGES).await?
    } else {
        let before = query.before.map_or(Position::END, Position);
        ReadConversation::before((api, thread), before, MESSAGES).await?
    };
    let requests = match query.at {
        Some(at) => read_past_requests(api, &found, Seq(at)).await?,
        None => read_requests(api, &found).await?,
    };
    read.conversation.note_requests(requests);
    let row = found.row();
    let id = EventId {
        position: read.page.transcript.seq.into(),
        incarnation: Some(Incarnation::of(found.id())),
    };
    let (after, parent) = (id.to_string(), parent_key(api, caller, row).await?);
    let current = match query.at {
        Some(_) => None,
        None => thread.current_compaction().await?,
    };
    let compacted = current.map(|it| CompactedRuns {
        n_runs: it.compaction.replaced.executions,
        last: it.through.map(|seq| seq.0),
    });
    let shown = ChatThread {
        key: thread.key(),
        title: row.thread.title.as_deref(),
        conversation: &read.conversation,
        after: &after,
        before: read.earlier(),
        forked_from: parent.as_deref(),
        at: query.at,
        compacted,
    };
    let closed = match row.thread.status {
        _ if query.at.is_some() => Some("This is the past. Fork the thread here to continue."),
        ThreadStatus::Closed => Some("This thread is closed. Fork it to continue."),
        ThreadStatus::Open | ThreadStatus::Streaming | ThreadStatus::Failed => None,
    };
    let page = parts.page(Some(shown), read.agent.as_deref(), closed);
    Ok(match frame {
        Frame::Page => page.html(),
        Frame::None => page.content(),
    })
}

/// The key of the thread that a thread was forked off, if the caller may access that.
async fn parent_key(
    api: &Api,
    caller: &Caller,
    row: &ThreadRow,
) -> Result<Option<String>, ApiError> {
    let Some(fork) = &row.thread.fork else {
        return Ok(None);
    };
    let parent = ThreadRef::find_by_id(api, caller, &fork.thread_id).await?;
    Ok(parent.map(|parent| key_of(parent.row()).to_owned()))
}

/// Earlier messages of a thread, as a fragment for an open page.
pub(super) async fn older(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<OlderQuery>,
) -> Result<Response, ApiError> {
    let thread = ThreadKey::new(&api, &caller, &query.thread)?;
    let mut read = ReadConversation::before((&api, &thread), Position(query.before), OLDER).await?;
    let mut requests = read_requests(&api, &thread.find().await?).await?;
    // The open page shows the others already.
    requests.retain(|request| request.state != RequestState::Open);
    read.conversation.note_requests(requests);
    let html = web::older(thread.key(), &read.conversation, read.earlier());
    Ok(Html(html.into_string()).into_response())
}

/// The page of the thread with this id, such as that of a sub-agent.
pub(super) async fn by_id(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Redirect, ApiError> {
    let found = ThreadRef::find_by_id(&api, &caller, &id.as_str().into()).await?;
    let found = found.ok_or(ApiError::UnknownRoute)?;
    Ok(Redirect::to(&chat_path(key_of(found.row()))))
}

/// The versions of a message or an answer.
pub(super) async fn versions(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<VersionsQuery>,
) -> Result<Response, ApiError> {
    let thread = ThreadKey::new(&api, &caller, &query.thread)?;
    let found = thread.versions(&query.item.as_str().into()).await?;
    let versions: Vec<VersionEntry> = found.list.into_iter().map(version).collect();
    let parts = PageParts::read(&api, &caller).await?;
    let shown = VersionsPage {
        shell: parts.shell("Versions", Some(thread.key())),
        thread_key: thread.key(),
        versions: &versions,
    };
    Ok(page(shown.html()))
}

fn version(version: MessageVersion) -> VersionEntry {
    VersionEntry {
        created_at: version.item.created_at,
        agent: version.run.and_then(|run| run.agent),
        text: version.item.content.as_ref().map(web::message_text),
        last_seq: version.removed.map(|seq| seq.0.saturating_sub(1)),
    }
}

/// The data that all pages show.
pub(super) struct PageParts {
    threads: Vec<RailThread>,
    agents: Vec<AgentChoice>,
    idempotency_key: String,
    may_write: bool,
    may_answer: bool,
    max_file_bytes: usize,
    starters: Vec<StarterChoice>,
    menu: Menu,
    name: String,
}

/// Reads the threads of the list at the side.
pub(super) async fn read_rail(api: &Api, caller: &Caller) -> Result<Vec<RailThread>, ApiError> {
    let rows = ThreadRows {
        limit: THREADS,
        ..ThreadRows::default()
    };
    let (rows, _) = listing::visible(api, caller, rows).await?;
    let own = rows.iter().filter(|row| !runtime::is_subagent(row));
    Ok(own.map(rail_thread).collect())
}

/// Counts all that waits, up to a number from which pages don't show it as it is.
pub(super) async fn read_waiting(reader: &mut WaitingReader) -> Result<usize, ApiError> {
    let all = WaitingFilter::default();
    Ok(reader.page(&all, None, COUNTED).await?.entries.len())
}

impl PageParts {
    pub(super) async fn read(api: &Api, caller: &Caller) -> Result<Self, ApiError> {
        let mut reader = WaitingReader::new(api, caller);
        Self::read_with((api, caller), &mut reader).await
    }

    /// Reads the data with a reader that may know a part of it.
    pub(super) async fn read_with(
        (api, caller): (&Api, &Caller),
        reader: &mut WaitingReader,
    ) -> Result<Self, ApiError> {
        let agents = api.app().agent_names().into_iter();
        let config = api.app().config();
        let waiting = read_waiting(reader).await?;
        Ok(Self {
            threads: read_rail(api, caller).await?,
            agents: agents
                .map(|name| AgentChoice {
                    is_default: name == config.default_agent,
                    name,
                })
                .collect(),
            idempotency_key: api.mint(),
            may_write: caller.check_scope(Scope::Write).is_ok(),
            may_answer: caller.check_scope(Scope::Write).is_ok() && caller.may_answer_calls(),
            max_file_bytes: super::form::max_files(config),
            starters: config.web.starters.iter().map(starter).collect(),
            menu: Menu {
                waiting,
                has_console: config.web.has_console && caller.check_scope(Scope::Inspect).is_ok(),
                has_health: caller.check_scope(Scope::Operator).is_ok()
                    && caller.rights.cover_all(""),
                has_session: caller.has_session(),
            },
            name: config.web.name.clone(),
        })
    }

    /// The number of calls and requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.menu.waiting
    }

    /// The data for a page on which one agent answers.
    pub(super) fn with_agent(mut self, name: &str) -> Self {
        self.agents.retain(|agent| agent.name == name);
        self
    }

    pub(super) fn shell<'a>(&'a self, title: &'a str, current: Option<&'a str>) -> Shell<'a> {
        Shell {
            assets: &ASSETS,
            name: &self.name,
            title,
            threads: &self.threads,
            current,
            area: Area::Chat,
            menu: self.menu,
            is_read_only: !self.may_write,
        }
    }

    /// The frame of a page of the console. `api_path` is the native route with the same data.
    pub(super) fn console<'a>(
        &'a self,
        title: &'a str,
        section: ConsoleSection<'a>,
        api_path: Option<&'a str>,
    ) -> ConsoleFrame<'a> {
        let current = match section {
            ConsoleSection::Thread { key, .. } => Some(key),
            ConsoleSection::Threads | ConsoleSection::Agents | ConsoleSection::Health => None,
        };
        let shell = Shell {
            area: Area::Console,
            ..self.shell(title, current)
        };
        ConsoleFrame {
            shell,
            section,
            api_path,
        }
    }

    fn page<'a>(
        &'a self,
        thread: Option<ChatThread<'a>>,
        agent: Option<&'a str>,
        closed: Option<&'a str>,
    ) -> ChatPage<'a> {
        let read_only = (!self.may_write).then_some("This key may only read.");
        let title = match &thread {
            Some(thread) => thread.title.unwrap_or(thread.key),
            None => "New chat",
        };
        ChatPage {
            shell: self.shell(title, thread.as_ref().map(|thread| thread.key)),
            thread,
            agents: &self.agents,
            agent,
            idempotency_key: &self.idempotency_key,
            starters: &self.starters,
            may_answer: self.may_answer,
            closed: read_only.or(closed),
            max_file_bytes: self.max_file_bytes,
        }
    }
}

fn starter(starter: &Starter) -> StarterChoice {
    StarterChoice {
        label: starter.label.clone(),
        text: starter.text.clone(),
    }
}

fn rail_thread(row: &ThreadRow) -> RailThread {
    RailThread {
        key: key_of(row).to_owned(),
        title: row.thread.title.clone(),
        is_running: row.thread.status == ThreadStatus::Streaming,
        is_fork: row.thread.fork.is_some(),
    }
}
