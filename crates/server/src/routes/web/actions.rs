//! The actions of forms. Each does what the native route does, and answers a page.

use super::VIA;
use super::form::PageForm;
use super::reply::{Done, chat_path};
use crate::auth::{Caller, Scope};
use crate::config::Starter;
use crate::error::ApiError;
use crate::routes::answers::SubmittedAnswers;
use crate::routes::messages::NewMessage;
use crate::routes::versions::{Regeneration, answer_again, replace_message};
use crate::state::Api;
use crate::threads::{ThreadKey, key_of};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use runtime::{Filter, NewThreadRequest, PageRequest, Policy, RequestToken};
use serde_json::{Map, Value, json};
use timeline::{ExecutionId, Interruption, Seq};

/// Maximum length of a title that is made of a message, in characters.
const TITLE: usize = 60;

/// Sends a message; begins a thread if the form names none.
pub(super) async fn send(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let starter = form.optional("starter").map(|index| starter(&api, index));
    let starter = starter.transpose()?;
    let text = starter.map_or_else(|| form.text("text"), |starter| &starter.text);
    let agent = match starter {
        Some(starter) => Some(starter.agent.as_str()),
        None => form.optional("agent"),
    };
    let content = content(text, &form)?;
    let named = form.optional("thread");
    let token = form.optional("idempotency_key");
    let key = match named {
        Some(key) => key.to_owned(),
        None => begin(&api, &caller, (text, token)).await?,
    };
    let thread = ThreadKey::new(&api, &caller, &key)?;
    let policy = match form.text("policy") {
        "interrupt" => Policy::Interrupt,
        _ => Policy::Queue,
    };
    let message = message(&caller, content, (agent, policy));
    let token = token.map(|token| RequestToken::from(format!("{VIA}:{token}")));
    message.read(&api)?.post(&api, &thread, token).await?;
    let location = chat_path(&key);
    let done = match named {
        Some(_) => Done::here(),
        None => Done::at(location.clone()),
    };
    Ok(done
        .then(api.runtime().mint())
        .response(&headers, &location))
}

/// The first message with this index.
fn starter<'a>(api: &'a Api, index: &str) -> Result<&'a Starter, ApiError> {
    let starters = &api.app().config().web.starters;
    let found = index
        .parse()
        .ok()
        .and_then(|index: usize| starters.get(index));
    found.ok_or_else(|| ApiError::field("/starter", "there is no such first message"))
}

/// Replaces a message and what follows it; or keeps both, which posts the new message in a fork.
pub(super) async fn edit(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let thread = thread(&api, &caller, &form)?;
    let item = form.required("item")?;
    let content = content(form.required("text")?, &form)?;
    let message = message(&caller, content, (None, Policy::Queue));
    if form.text("keep") != "both" {
        let new = (message.read(&api)?, None);
        replace_message(&api, &thread, item, new).await?;
        return Ok(Done::here().response(&headers, &chat_path(thread.key())));
    }
    let position = thread.item_position(item).await?;
    let position = position.ok_or_else(|| ApiError::field("/item", "there is no such message"))?;
    let before = own_seq(&thread, position.before().0).await?;
    let row = thread.fork(None, Some(before)).await?;
    let copy = thread.forked(key_of(&row))?;
    message.read(&api)?.post(&api, &copy, None).await?;
    let location = chat_path(copy.key());
    Ok(Done::at(location.clone()).response(&headers, &location))
}

/// Answers a message again, in place of its answer.
pub(super) async fn regenerate(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let thread = thread(&api, &caller, &form)?;
    let item = form.required("item")?.into();
    answer_again(&api, &thread, item, (Regeneration::default(), None)).await?;
    Ok(Done::here().response(&headers, &chat_path(thread.key())))
}

/// A message with the defaults of this interface.
fn message(caller: &Caller, content: Value, (agent, policy): (Option<&str>, Policy)) -> NewMessage {
    let actor = caller.speaks_as().map(|actor| json!({ "actor": actor }));
    NewMessage {
        content: content.into(),
        agent: agent.map(str::to_owned),
        policy,
        max_steps: None,
        timeout_ms: None,
        metadata: actor.map(Into::into),
        channel: Some(VIA.to_owned()),
        stream: false,
    }
}

/// Begins a thread, whose title is the beginning of its first message. The same form begins one thread.
async fn begin(
    api: &Api,
    caller: &Caller,
    (text, token): (&str, Option<&str>),
) -> Result<String, ApiError> {
    let name = match token {
        Some(token) => token.to_owned(),
        None => api.runtime().mint(),
    };
    let key = format!("{}{name}", caller.rights.new_key_prefix());
    crate::threads::check_new_key(caller, Some(&key), "/thread")?;
    let line = text.lines().find(|line| !line.trim().is_empty());
    let title: String = line
        .unwrap_or_default()
        .trim()
        .chars()
        .take(TITLE)
        .collect();
    let title = Some(title).filter(|title| !title.is_empty());
    create(api, caller, (&key, title)).await?;
    Ok(key)
}

/// Begins the thread with this key, if it does not exist and the caller may write.
pub(super) async fn begin_empty(api: &Api, caller: &Caller, key: &str) -> Result<(), ApiError> {
    if caller.check_scope(Scope::Write).is_err() {
        return Ok(());
    }
    crate::threads::check_new_key(caller, Some(key), "/thread")?;
    create(api, caller, (key, None)).await
}

async fn create(
    api: &Api,
    caller: &Caller,
    (key, title): (&str, Option<String>),
) -> Result<(), ApiError> {
    let new = NewThreadRequest {
        key: Some(key.to_owned()),
        title,
        metadata: None,
        fork: None,
    };
    api.runtime().get_or_create(&caller.tenant, new).await?;
    Ok(())
}

/// The parts of a message: its text, and its files as data URLs.
fn content(text: &str, form: &PageForm) -> Result<Value, ApiError> {
    let mut parts = Vec::new();
    if !text.trim().is_empty() {
        parts.push(json!({"type": "input_text", "text": text}));
    }
    for file in form.files() {
        let media_type = file.media_type.as_str();
        let url = format!(
            "data:{media_type};base64,{}",
            STANDARD.encode(&file.content)
        );
        parts.push(if media_type.starts_with("image/") {
            json!({"type": "input_image", "image_url": url, "filename": file.name})
        } else {
            json!({"type": "input_file", "file_data": url, "filename": file.name})
        });
    }
    if parts.is_empty() {
        return Err(ApiError::field("/text", "a message has a text or a file"));
    }
    Ok(Value::Array(parts))
}

/// Stops the running execution. Its text so far stays.
pub(super) async fn stop(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let thread = thread(&api, &caller, &form)?;
    thread.cancel(None, Interruption::USER_CANCELLED).await?;
    Ok(Done::here().response(&headers, &chat_path(thread.key())))
}

/// Answers a pending call of the thread or of one of its sub-agents.
pub(super) async fn answer(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let thread = thread(&api, &caller, &form)?;
    let mut answer = verdict(&form)?;
    answer.insert("toolCallId".to_owned(), form.required("call")?.into());
    if let Some(key) = form.optional("call_thread") {
        answer.insert("threadKey".to_owned(), key.into());
    }
    let answers = SubmittedAnswers::read(&caller, vec![answer], caller.speaks_as(), VIA)?;
    answers.answer(&api, &thread, None).await?;
    Ok(Done::here().response(&headers, &chat_path(thread.key())))
}

/// The members of an answer that the pressed button means.
fn verdict(form: &PageForm) -> Result<Map<String, Value>, ApiError> {
    let mut members = Map::new();
    let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
    match form.text("verdict") {
        "allow" => drop(set("approved", true.into())),
        "edit" => {
            let arguments: Value =
                serde_json::from_str(form.text("arguments")).map_err(|error| {
                    ApiError::field("/arguments", format!("the arguments are not JSON: {error}"))
                })?;
            set("approved", true.into());
            set("arguments", arguments);
        }
        "deny" => {
            set("approved", false.into());
            if let Some(message) = form.optional("message") {
                set("message", message.into());
            }
        }
        "result" => {
            let text = form.text("output");
            let output = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            set("output", output);
        }
        "failed" => {
            let text = form.optional("output").unwrap_or("the call failed");
            set("errorText", text.into());
        }
        _ => {
            let expected = "expected allow, edit, deny, result or failed";
            return Err(ApiError::field("/verdict", expected));
        }
    }
    Ok(members)
}

/// Forks the thread behind an answer, or behind an event.
pub(super) async fn fork(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, ApiError> {
    let thread = thread(&api, &caller, &form)?;
    let at = match (form.optional("at"), form.optional("execution")) {
        (Some(at), _) => {
            let at = at
                .parse()
                .map_err(|_| ApiError::field("/at", "expected a number"))?;
            Some(Seq(at))
        }
        (None, None) => None,
        (None, Some(execution)) => {
            let request = PageRequest::Execution(ExecutionId::from(execution));
            let page = thread.page(request, Filter::Facts).await?;
            Some(own_seq(&thread, page.last.0).await?)
        }
    };
    let row = thread.fork(None, at).await?;
    let location = chat_path(key_of(&row));
    Ok(Done::at(location.clone()).response(&headers, &location))
}

/// The position of an event in the thread's own log. A fork's own log begins with 1, behind the events
/// that it shares.
async fn own_seq(thread: &ThreadKey, position: u64) -> Result<Seq, ApiError> {
    let last = PageRequest::Before {
        before: runtime::Position::END,
        n: 1,
    };
    let end = thread.page(last, Filter::Facts).await?;
    let shared = end.last.0.saturating_sub(end.transcript.seq.0);
    match position.checked_sub(shared) {
        Some(own) if own > 0 => Ok(Seq(own)),
        Some(_) | None => Err(ApiError::field(
            "/execution",
            "this answer belongs to the thread that this one was forked off: fork that one",
        )),
    }
}

/// The thread that a form names.
pub(super) fn thread(api: &Api, caller: &Caller, form: &PageForm) -> Result<ThreadKey, ApiError> {
    ThreadKey::named(api, caller, form.required("thread")?, "/thread")
}
