//! The actions of forms. Each does what the native route does, and answers a page.

use super::VIA;
use super::form::{Action, LongAction, PageForm, max_files};
use super::inherited::own_seq;
use super::reply::{Done, chat_path};
use super::requests::violation;
use crate::auth::{Caller, Scope};
use crate::config::Starter;
use crate::error::ApiError;
use crate::routes::answers::SubmittedAnswers;
use crate::routes::messages::NewMessage;
use crate::routes::versions::{Regeneration, answer_again, replace_message};
use crate::state::Api;
use crate::threads::{ThreadKey, key_of};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::{Filter, NewThreadRequest, PageRequest, Policy, Position};
use serde_json::{Map, Value, json};
use timeline::{ExecutionId, Interruption, Seq};
use web::SchemaForm;

/// Maximum length of a title that is made of a message, in characters.
const TITLE: usize = 60;

/// Sends a message; begins a thread if the form names none.
pub(super) async fn send(action: Action) -> Result<Response, ApiError> {
    let (api, form) = (&action.api, &action.form);
    let starter = form.optional("starter").map(|index| starter(api, index));
    let starter = starter.transpose()?;
    let text = starter.map_or_else(|| form.text("text"), |starter| &starter.text);
    let agent = match starter {
        Some(starter) => Some(starter.agent.as_str()),
        None => form.optional("agent"),
    };
    let content = content(text, &action)?;
    let named = form.optional("thread");
    let key = match named {
        Some(key) => key.to_owned(),
        None => begin(&action, text).await?,
    };
    let thread = ThreadKey::named(api, &action.caller, &key, "/thread")?;
    let policy = match form.text("policy") {
        "interrupt" => Policy::Interrupt,
        _ => Policy::Queue,
    };
    let message = message(&action.caller, content, (agent, policy));
    message
        .read(api)?
        .post(api, &thread, action.token(""))
        .await?;
    let location = chat_path(&key);
    let done = match named {
        Some(_) => Done::here(),
        None => Done::at(location.clone()),
    };
    Ok(done.then(api.mint()).response(&action.headers, &location))
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
pub(super) async fn edit(action: Action) -> Result<Response, ApiError> {
    let (api, form) = (&action.api, &action.form);
    let thread = action.thread()?;
    let item = form.required("item")?;
    let content = content(form.required("text")?, &action)?;
    let message = message(&action.caller, content, (None, Policy::Queue));
    if form.text("keep") != "both" {
        let new = (message.read(api)?, None);
        replace_message(api, &thread, item, new).await?;
        return Ok(action.shown_at(&chat_path(thread.key())));
    }
    let position = thread.item_position(item).await?;
    let position = position.ok_or_else(|| ApiError::field("/item", "there is no such message"))?;
    let before = own_event(&thread, position.before()).await?;
    let message = message.read(api)?;
    let row = thread.fork(fork_key(&action)?, Some(before)).await?;
    let copy = thread.forked(key_of(&row))?;
    message.post(api, &copy, None).await?;
    Ok(action.moved_to(&chat_path(copy.key())))
}

/// Answers a message again, in place of its answer.
pub(super) async fn regenerate(action: Action) -> Result<Response, ApiError> {
    let thread = action.thread()?;
    let item = action.form.required("item")?.into();
    let by = Regeneration::by(action.caller.only_agent());
    answer_again(&action.api, &thread, item, (by, None)).await?;
    Ok(action.shown_at(&chat_path(thread.key())))
}

/// A message with the defaults of this interface.
fn message(caller: &Caller, content: Value, (agent, policy): (Option<&str>, Policy)) -> NewMessage {
    let actor = caller.speaks_as().map(|actor| json!({ "actor": actor }));
    NewMessage {
        content: content.into(),
        agent: caller.only_agent().or(agent).map(str::to_owned),
        policy,
        max_steps: None,
        timeout_ms: None,
        metadata: actor.map(Into::into),
        channel: Some(VIA.to_owned()),
        stream: false,
    }
}

/// Begins a thread, whose title is the beginning of its first message. The same form begins one thread.
async fn begin(action: &Action, text: &str) -> Result<String, ApiError> {
    let (api, caller) = (&action.api, &action.caller);
    let name = match action.form.optional("idempotency_key") {
        Some(token) => token.to_owned(),
        None => api.mint(),
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
    api.runtime(&caller.tenant)
        .get_or_create(&caller.tenant, new)
        .await?;
    Ok(())
}

/// The parts of a message: its text, and its files as data URLs.
fn content(text: &str, action: &Action) -> Result<Value, ApiError> {
    let files = action.form.files();
    let size: usize = files.iter().map(|file| file.content.len()).sum();
    let max = max_files(action.api.app().config());
    if size > max {
        let what = format!("the files have {size} bytes, expected at most {max}");
        return Err(ApiError::field("/file", what));
    }
    let mut parts = Vec::new();
    if !text.trim().is_empty() {
        parts.push(json!({"type": "input_text", "text": text}));
    }
    for file in files {
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
pub(super) async fn stop(action: Action) -> Result<Response, ApiError> {
    let thread = action.thread()?;
    thread.cancel(None, Interruption::USER_CANCELLED).await?;
    Ok(action.shown_at(&chat_path(thread.key())))
}

/// Answers a pending call of the thread or of one of its sub-agents.
pub(super) async fn answer(action: LongAction) -> Result<Response, ApiError> {
    let (form, thread) = (&action.form, action.thread()?);
    if !action.caller.may_answer_calls() {
        return Err(ApiError::ForbiddenAnswer);
    }
    let mut answer = verdict(&action.api, form)?;
    answer.insert("toolCallId".to_owned(), form.required("call")?.into());
    if let Some(key) = form.optional("call_thread") {
        answer.insert("threadKey".to_owned(), key.into());
    }
    let answers = vec![answer];
    let actor = action.caller.speaks_as();
    let answers = SubmittedAnswers::read(&action.caller, answers, actor, VIA)?;
    answers.answer(&action.api, &thread, None).await?;
    let back = form.back().map(str::to_owned);
    let back = back.unwrap_or_else(|| chat_path(thread.key()));
    Ok(action.shown_at(&back))
}

/// The members of an answer that the pressed button means.
fn verdict(api: &Api, form: &PageForm) -> Result<Map<String, Value>, ApiError> {
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
            set("output", result(api, form)?);
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

/// The result of an external call: the fields of the tool's schema, else a text or JSON.
fn result(api: &Api, form: &PageForm) -> Result<Value, ApiError> {
    let tool = form
        .optional("tool")
        .and_then(|tool| api.app().tool_of(form.optional("agent"), tool));
    let Some(schema) = tool.and_then(|tool| tool.result) else {
        let text = form.text("output");
        return Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
    };
    let value = SchemaForm::of(&schema).value(form.fields());
    value.map_err(|errors| ApiError::InvalidRequestAnswer {
        pointer: String::new(),
        wrong: errors.into_iter().map(violation).collect(),
    })
}

/// Forks the thread behind an answer, or behind an event.
pub(super) async fn fork(action: Action) -> Result<Response, ApiError> {
    let (form, thread) = (&action.form, action.thread()?);
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
            Some(own_event(&thread, page.last).await?)
        }
    };
    let row = thread.fork(fork_key(&action)?, at).await?;
    Ok(action.moved_to(&chat_path(key_of(&row))))
}

/// The key of a new fork; none if the caller may have any. A restricted key gets one that it may use.
fn fork_key(action: &Action) -> Result<Option<String>, ApiError> {
    let caller = &action.caller;
    let own = caller.is_restricted().then(|| {
        let name = action.api.mint();
        format!("{}{name}", caller.rights.new_key_prefix())
    });
    crate::threads::check_new_key(caller, own.as_deref(), "/thread")?;
    Ok(own)
}

/// The position of an event in the thread's own log.
async fn own_event(thread: &ThreadKey, position: Position) -> Result<Seq, ApiError> {
    let own = own_seq(position, thread.inherited_events().await?);
    own.map(Seq).ok_or_else(|| {
        ApiError::field(
            "/execution",
            "this answer belongs to the parent of this fork; fork the parent instead",
        )
    })
}
