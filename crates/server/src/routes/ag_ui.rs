//! AG-UI 1.0: the endpoints for front-ends that speak the Agent User Interaction Protocol. A thread's id
//! is its key; a run is an execution.

mod answers;
mod descendants;
mod lookup;
mod routes;
mod stream;

use super::answers::item;
use super::page_query::PieceQuery;
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadKey;
use answers::{Filled, Reader};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use descendants::DescendantCall;
use interop::ag_ui::{
    InterruptAnswer, NewMessage, RunInput, RunInputError, RunView, from_run_input, interrupt_id,
    to_messages, was_cut_off,
};
use interop::ai_sdk::subagent;
use interop::aitp::Key;
pub(crate) use routes::PROTOCOL;
use runtime::{
    Accepted, AnswerRequest, Filter, ReactRequest, Run, RuntimeError, StoreError, TenantId,
};
use serde::Serialize;
use serde_json::{Value, json};
use stream::RunEventsView;
use timeline::{NewItem, OpenCall, OpenKind, attached_message};
use utoipa::ToSchema;

/// The value of `via` in an item's metadata: the protocol that the message came through.
const VIA: &str = "ag-ui";

/// The messages of a thread, in AG-UI's form.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgUiMessages {
    /// The messages.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    /// The cursor of the previous page, for `before`; absent if this page begins with the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

impl From<RunInputError> for ApiError {
    fn from(error: RunInputError) -> Self {
        Self::field(error.pointer(), error.to_string())
    }
}

/// Runs the default agent: posts the client's new messages, answers pending calls, and streams the run.
///
/// Takes `RunAgentInput`. The server stores the history, so it reads only the messages at the end that
/// no agent wrote: the user's messages and the results of the client's own tools. Earlier messages must
/// equal the stored ones. The message ids and the run id make a repetition harmless. The run continues
/// if the client disconnects.
#[utoipa::path(post, path = "/ag-ui", operation_id = "agUiRun", tag = "ag-ui", security(("key" = [])), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn run_default(
    state: State<Api>,
    caller: Caller,
    body: JsonBody<Value>,
) -> Result<Response, ApiError> {
    run(state, caller, None, body).await
}

/// Runs this agent: posts the client's new messages, answers pending calls, and streams the run.
#[utoipa::path(post, path = "/ag-ui/agents/{agent}", operation_id = "agUiRunAgent", tag = "ag-ui", security(("key" = [])),
    params(("agent" = String, Path)), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn run_agent(
    state: State<Api>,
    caller: Caller,
    PathOf(agent): PathOf<String>,
    body: JsonBody<Value>,
) -> Result<Response, ApiError> {
    run(state, caller, Some(agent), body).await
}

/// Reads the messages of a thread, or of one page of it; an answer that is being written is left out.
#[utoipa::path(get, path = "/ag-ui/threads/{key}/messages", operation_id = "agUiMessages", tag = "ag-ui", security(("key" = [])),
    params(("key" = String, Path), PieceQuery), responses((status = 200, body = AgUiMessages), (status = "default", body = ErrorBody)))]
pub(crate) async fn messages(
    thread: ThreadKey,
    Query(query): Query<PieceQuery>,
) -> Result<Json<AgUiMessages>, ApiError> {
    let mut piece = query.read(&thread, Filter::Facts).await?;
    if was_cut_off(&piece.transcript) {
        piece = query.read(&thread, Filter::All).await?;
    }
    Ok(Json(AgUiMessages {
        messages: to_messages(&piece.transcript).value,
        before: piece.before,
    }))
}

async fn run(
    State(api): State<Api>,
    caller: Caller,
    agent: Option<String>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let input = from_run_input(&body)?;
    let thread = ThreadKey::named(&api, &caller, &input.thread_id, "/threadId")?;
    let open = api.open_stream(&caller)?;
    let run = Run {
        params: Some(serde_json::to_value(&input.options).map_err(RuntimeError::from)?),
        ..Run::default()
    };
    let tenant = caller.tenant.clone();
    let speech = MessagePost::new(&api, &caller);
    let reader = Reader {
        api: api.clone(),
        thread,
    };
    let given = answers(&reader.thread, &input).await?;
    reader.check_results(&input, &given.open).await?;
    let new = reader.added(&input).await?;
    let filled = reader.filled(&given.requests).await?;
    let is_filled = !filled.parts.is_empty();
    let says_more = is_filled || !new.is_empty();
    reader.check_descendants(&given.beneath, says_more).await?;
    let said = Saying {
        speech: &speech,
        tenant: &tenant,
        input: &input,
        new,
        run: Run {
            agent: agent.or_else(|| filled.agent.clone()),
            ..run
        },
    };
    if !given.beneath.is_empty() {
        let taken = reader.answer_descendants(&input, given.beneath).await?;
        let own = if given.own.is_empty() {
            None
        } else {
            Some(said.answer(given.own, filled).await?)
        };
        let shown = reader.answer_target(&input, own, &taken).await?;
        return stream::response(reader, shown, open).await;
    }
    let accepted = if given.own.is_empty() {
        said.say_once(&reader, filled).await?
    } else if given.leaves_some && !said.new.is_empty() && input.resume.is_empty() {
        said.answer_first(given.own).await?;
        said.say_once(&reader, filled).await?
    } else {
        said.answer(given.own, filled).await?
    };
    let view = RunView::new(&input.thread_id, &input.run_id, accepted.item_id);
    // The values that were filled in are a message of the user's.
    let view = if is_filled {
        view.with_user_message()
    } else {
        view
    };
    let after = accepted.after;
    let shown = RunEventsView { view, after };
    stream::response(reader, shown, open).await
}

/// The answers in a client's request.
struct Given<'a> {
    /// The thread's pending calls.
    open: Vec<OpenCall>,
    /// The answers to them, as parts of an item. Empty if a repeated request's results were already
    /// accepted; the runtime recognizes it by its run id.
    own: Vec<Value>,
    /// Whether some pending calls have no answer.
    leaves_some: bool,
    /// The answers to calls of sub-agents.
    beneath: Vec<DescendantCall>,
    /// The answers to AITP requests.
    requests: Vec<(usize, Key, &'a InterruptAnswer)>,
}

async fn answers<'a>(thread: &ThreadKey, input: &'a RunInput) -> Result<Given<'a>, ApiError> {
    let open = match thread.open_calls().await {
        Err(RuntimeError::Store(StoreError::NotFound)) => Vec::new(),
        found => found?.0.map(|open| open.calls).unwrap_or_default(),
    };
    let results = input.results_for(&open).into_iter();
    let mut own: Vec<Value> = results.map(|result| result.part.clone()).collect();
    let (mut beneath, mut requests) = (Vec::new(), Vec::new());
    for (place, resume) in input.resume.iter().enumerate() {
        let pointer = format!("/resume/{place}");
        let id = resume.interrupt_id.as_str();
        let asks = |call: &&OpenCall| interrupt_id(call).as_deref() == Some(id);
        let asks = open.iter().find(asks);
        match (asks, subagent::read_call(id), Key::read(id)) {
            (None, Some((key, call)), _) => {
                let is_result =
                    resume.gives_result() || wants_result(&thread.descendant(key), call).await?;
                beneath.push(DescendantCall {
                    key: key.to_owned(),
                    call: call.to_owned(),
                    part: if is_result {
                        resume.result(call, &pointer)?
                    } else {
                        resume.approval(call, &pointer)?
                    },
                    index: place,
                });
            }
            (None, None, Some(key)) => requests.push((place, key, resume)),
            // One that is open no longer: the runtime says what became of it, or repeats its answer.
            (asks, _, _) => {
                let call = asks.map_or(id, |call| &call.tool_call_id);
                own.push(resume.approval(call, &pointer)?);
            }
        }
    }
    let asked = open.iter().filter(|call| call.kind != OpenKind::Others);
    Ok(Given {
        leaves_some: own.len() < asked.count(),
        open,
        own,
        beneath,
        requests,
    })
}

/// Whether a sub-agent's call, on the sub-agent's thread, waits for a result.
async fn wants_result(thread: &ThreadKey, call: &str) -> Result<bool, ApiError> {
    let open = match thread.open_calls().await {
        Err(RuntimeError::Store(StoreError::NotFound)) => return Ok(false),
        found => found?.0.map(|open| open.calls).unwrap_or_default(),
    };
    let is_it = |open: &OpenCall| open.tool_call_id == call && open.kind == OpenKind::External;
    Ok(open.iter().any(is_it))
}

/// A client's contribution to a thread.
struct Saying<'a> {
    speech: &'a MessagePost<'a>,
    tenant: &'a TenantId,
    input: &'a RunInput,
    /// The user's messages that are not stored yet.
    new: Vec<&'a NewMessage>,
    run: Run,
}

impl Saying<'_> {
    /// Answers calls; the new messages are attached to the answers.
    async fn answer(&self, mut parts: Vec<Value>, filled: Filled) -> Result<Accepted, ApiError> {
        let (places, said) = self.new_items(filled);
        parts.extend(said.iter().map(|item| attached_message(item).value()));
        self.take(parts, token(self.input), &places).await
    }

    /// Answers calls only. The new messages are posted after this, which abandons the calls without an
    /// answer.
    async fn answer_first(&self, parts: Vec<Value>) -> Result<Accepted, ApiError> {
        let token = format!("{}:answers", token(self.input));
        self.take(parts, token, &[]).await
    }

    async fn take(
        &self,
        parts: Vec<Value>,
        token: String,
        places: &[BodyPointers],
    ) -> Result<Accepted, ApiError> {
        let metadata = json!({"tenant": self.tenant.as_str(), "via": VIA});
        let request = AnswerRequest {
            run: Some(self.run.clone()),
            tenant: self.tenant.clone(),
            key: self.input.thread_id.clone(),
            item: item(
                self.speech.runtime().mint(),
                Value::Array(parts).into(),
                metadata,
            ),
            token: Some(token.into()),
        };
        let place = |n: usize| place_of(places, n);
        Ok(self.speech.answer(request, (None, None), place).await?)
    }

    /// Posts messages that another request may be posting now. Stored messages are not posted again.
    async fn say_once(mut self, reader: &Reader, filled: Filled) -> Result<Accepted, ApiError> {
        loop {
            match self.say(filled.clone()).await {
                Err(RuntimeError::Store(StoreError::Duplicate(id)))
                    if self.new.iter().any(|said| said.id == id) =>
                {
                    let n_new = self.new.len();
                    self.new = reader.added(self.input).await?;
                    if self.new.len() == n_new {
                        return Err(RuntimeError::Store(StoreError::Duplicate(id)).into());
                    }
                }
                said => return Ok(said?),
            }
        }
    }

    /// Posts the new messages and starts the agent. Without a new message the agent responds to the
    /// thread as it is.
    async fn say(&self, filled: Filled) -> Result<Accepted, RuntimeError> {
        let (places, mut said) = self.new_items(filled);
        let item = said.pop();
        let mint = || NewItem::reference(self.speech.runtime().mint(), None);
        let request = ReactRequest {
            before: said,
            run: self.run.clone(),
            token: Some(token(self.input).into()),
            ..ReactRequest::new(
                self.tenant.clone(),
                self.input.thread_id.clone(),
                item.unwrap_or_else(mint),
            )
        };
        let place = |n: usize| place_of(&places, n);
        self.speech.react(request, None, place).await
    }

    /// The items to post, each with the JSON pointer of its message in the body.
    fn new_items(&self, filled: Filled) -> (Vec<BodyPointers>, Vec<NewItem>) {
        let place = filled.position();
        let filled = self.filled(filled).map(|item| (place, item));
        let new = self.new.iter().map(|said| {
            let place = BodyPointers::text(format!("/messages/{}/content", said.index));
            (place, user(said))
        });
        filled.into_iter().chain(new).unzip()
    }

    fn filled(&self, filled: Filled) -> Option<NewItem> {
        let runtime = self.speech.runtime();
        (!filled.parts.is_empty()).then(|| {
            let content = Value::Array(filled.parts);
            channelled(NewItem::user(runtime.mint(), content.into()))
        })
    }
}

fn place_of(places: &[BodyPointers], n: usize) -> BodyPointers {
    let place = places.get(n).cloned();
    place.unwrap_or_else(|| BodyPointers::text("/messages"))
}

/// The idempotency token of a run id: a run with this id starts once.
fn token(input: &RunInput) -> String {
    format!("ag-ui:{}", input.run_id)
}

fn user(said: &NewMessage) -> NewItem {
    channelled(NewItem::user(said.id.as_str(), said.content.clone()))
}

fn channelled(item: NewItem) -> NewItem {
    NewItem {
        channel: Some("web".into()),
        ..item
    }
}
