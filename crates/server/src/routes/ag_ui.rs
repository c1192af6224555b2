//! AG-UI 1.0: what front-ends that speak the Agent User Interaction Protocol talk to. A thread is a
//! thread, its id the thread's key; a run is an execution.

mod asked;
mod stream;

use super::answers::item;
use super::check_named_key;
use super::piece::PieceQuery;
use crate::aitp::{Place, Speech};
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::guard::Tenant;
use crate::run_events::RunEvents;
use crate::state::Api;
use asked::{Filled, Reader};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use interop::ag_ui::{
    Resume, RunInput, RunInputError, RunView, Said, from_run_input, interrupt_id, to_messages,
};
use interop::aitp::Key;
use runtime::{Accepted, AnswerRequest, Filter, React, Run, RuntimeError, StoreError, TenantId};
use serde::Serialize;
use serde_json::{Value, json};
use stream::Shown;
use timeline::{NewItem, OpenCall, beside};
use utoipa::ToSchema;

/// Who said it, in an item's metadata.
const VIA: &str = "ag-ui";

/// The messages of a thread, as AG-UI has them.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgUiMessages {
    /// The messages.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    /// Where the piece before them ends, for the query; absent where they begin with the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

impl From<RunInputError> for ApiError {
    fn from(error: RunInputError) -> Self {
        Self::field(error.pointer(), error.to_string())
    }
}

/// Runs the default agent: says what the client adds, answers what waits, and streams the run.
///
/// Takes `RunAgentInput`. Of the messages only what the client adds is read, for the server keeps the
/// history: the last one if it is the user's, and results of the client's own tools. Its ids make a
/// repetition harmless. The run goes on whether or not anyone follows it.
#[utoipa::path(post, path = "/ag-ui", operation_id = "agUiRun", tag = "ag-ui", security(("key" = [])), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn run_default(
    state: State<Api>,
    caller: Caller,
    body: JsonBody<Value>,
) -> Result<Response, ApiError> {
    run(state, caller, None, body).await
}

/// Runs this agent: says what the client adds, answers what waits, and streams the run.
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

/// Reads the messages of a thread, or of a piece of it, for a client that opens it anew; the answer that is being written is
/// not among them.
#[utoipa::path(get, path = "/ag-ui/threads/{key}/messages", operation_id = "agUiMessages", tag = "ag-ui", security(("key" = [])),
    params(("key" = String, Path), PieceQuery), responses((status = 200, body = AgUiMessages), (status = "default", body = ErrorBody)))]
pub(crate) async fn messages(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(key): PathOf<String>,
    Query(query): Query<PieceQuery>,
) -> Result<Json<AgUiMessages>, ApiError> {
    // With the chunks: an answer that was cut off keeps what it had said.
    let piece = query.read(&api, (&tenant, &key), Filter::All).await?;
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
    check_named_key(&caller, Some(&input.thread_id), "/threadId")?;
    let open = api.open_stream(&caller)?;
    let run = Run {
        params: Some(serde_json::to_value(&input.options).map_err(RuntimeError::from)?),
        ..Run::default()
    };
    let tenant = caller.tenant.clone();
    let last = body.get("messages").and_then(Value::as_array);
    let last = last.map_or(0, Vec::len).saturating_sub(1);
    let (speech, place) = (
        Speech::new(&api, &caller),
        Place::text(format!("/messages/{last}/content")),
    );
    let reader = Reader {
        api: api.clone(),
        caller: caller.clone(),
        key: input.thread_id.clone(),
    };
    let (calls, requests) = answers(&api, &tenant, &input).await?;
    let filled = reader.filled(&requests).await?;
    let is_filled = !filled.parts.is_empty();
    let said = Saying {
        speech: &speech,
        tenant: &tenant,
        input: &input,
        run: Run {
            agent: agent.or_else(|| filled.agent.clone()),
            ..run
        },
        place,
    };
    let accepted = if calls.is_empty() {
        said.say(filled).await?
    } else {
        said.answer(calls, filled).await?
    };
    let run = RunEvents::of(accepted.item_id.clone());
    let view = RunView::new(&input.thread_id, &input.run_id, accepted.item_id);
    let view = if input.is_answer() {
        view.continuing()
    } else {
        view
    };
    // What was filled in is a message of the user's by now.
    let view = if is_filled { view.telling() } else { view };
    let shown = Shown {
        run,
        view,
        after: accepted.after,
    };
    stream::response(reader, shown, open).await
}

/// The answers to calls that wait, as parts of the log's, and those to requests. None also where a
/// request is repeated whose results have been taken: the runtime knows it by its name.
async fn answers<'a>(
    api: &Api,
    tenant: &TenantId,
    input: &'a RunInput,
) -> Result<(Vec<Value>, Vec<(usize, Key, &'a Resume)>), ApiError> {
    let open = match api.runtime().open_calls(tenant, &input.thread_id).await {
        Err(RuntimeError::Store(StoreError::NotFound)) => Vec::new(),
        found => found?.0.map(|open| open.calls).unwrap_or_default(),
    };
    let results = input.results_for(&open).into_iter();
    let mut answers: Vec<Value> = results.map(|result| result.part.clone()).collect();
    let mut requests = Vec::new();
    for (place, resume) in input.resume.iter().enumerate() {
        let pointer = format!("/resume/{place}");
        let asks = |call: &&OpenCall| interrupt_id(call).as_ref() == Some(&resume.interrupt_id);
        match (open.iter().find(asks), Key::read(&resume.interrupt_id)) {
            (None, Some(key)) => requests.push((place, key, resume)),
            // One that is open no longer: the runtime says what became of it, or repeats its answer.
            (call, _) => {
                let call = call.map_or(resume.interrupt_id.as_str(), |call| &call.tool_call_id);
                answers.push(resume.approval(call, &pointer)?);
            }
        }
    }
    Ok((answers, requests))
}

/// What a client adds to a thread.
struct Saying<'a> {
    speech: &'a Speech<'a>,
    tenant: &'a TenantId,
    input: &'a RunInput,
    run: Run,
    /// Where what the user says stands in the body.
    place: Place,
}

impl Saying<'_> {
    /// Answers calls; what is said besides is said with it.
    async fn answer(self, mut parts: Vec<Value>, filled: Filled) -> Result<Accepted, ApiError> {
        let places = [filled.place(), self.place.clone()];
        let (filled, said) = (self.filled(filled), self.input.said.as_ref().map(user));
        let n_filled = usize::from(filled.is_some());
        let all = filled.into_iter().chain(said);
        parts.extend(all.map(|item| beside(&item).value()));
        let metadata = json!({"tenant": self.tenant.as_str(), "via": VIA});
        let request = AnswerRequest {
            run: Some(self.run),
            tenant: self.tenant.clone(),
            key: self.input.thread_id.clone(),
            item: item(
                self.speech.runtime().mint(),
                Value::Array(parts).into(),
                metadata,
            ),
            token: Some(token(self.input)),
        };
        let place = |n: usize| places[usize::from(n >= n_filled)].clone();
        Ok(self.speech.answer(request, (None, None), place).await?)
    }

    /// Has the agent go on with what is said.
    async fn say(self, filled: Filled) -> Result<Accepted, ApiError> {
        let places = [filled.place(), self.place.clone()];
        let filled = self.filled(filled);
        let n_filled = usize::from(filled.is_some());
        let react = |before, item| React {
            before,
            run: self.run.clone(),
            token: Some(token(self.input)),
            ..React::new(self.tenant.clone(), self.input.thread_id.clone(), item)
        };
        let place = |n: usize| places[usize::from(n >= n_filled)].clone();
        if let Some(said) = &self.input.said {
            let request = react(filled.iter().cloned().collect(), user(said));
            match self.speech.react(request, None, place).await {
                // It was said before: it is nothing new.
                Err(RuntimeError::Store(StoreError::Duplicate(id))) if id == said.id => {}
                done => return Ok(done?),
            }
        }
        // Where nothing is said at all the agent goes on with what there is.
        let mint = || NewItem::reference(self.speech.runtime().mint(), None);
        let request = react(Vec::new(), filled.unwrap_or_else(mint));
        Ok(self.speech.react(request, None, place).await?)
    }

    fn filled(&self, filled: Filled) -> Option<NewItem> {
        let runtime = self.speech.runtime();
        (!filled.parts.is_empty()).then(|| {
            let content = Value::Array(filled.parts);
            channelled(NewItem::user(runtime.mint(), content.into()))
        })
    }
}

/// A client's name of its run is its own: the run that has it is begun once.
fn token(input: &RunInput) -> String {
    format!("ag-ui:{}", input.run_id)
}

fn user(said: &Said) -> NewItem {
    channelled(NewItem::user(said.id.as_str(), said.content.clone()))
}

fn channelled(item: NewItem) -> NewItem {
    NewItem {
        channel: Some("web".into()),
        ..item
    }
}
