//! The parameters of A2A operations.

use super::VERSION;
use super::error::{ErrorKind, RequestError};
use super::fields::{Fields, MAX_ID};
use super::message::Incoming;
use super::state::TaskState;
use jiff::Timestamp;
use serde_json::Value;

/// Default number of tasks on a page.
const PAGE: usize = 50;
/// The most tasks of a page.
const MAX_PAGE: usize = 100;

/// Checks the protocol version from the client's header or parameter. Without one the client uses
/// version 0.3.
///
/// # Errors
///
/// The client uses another version.
pub fn check_version(said: Option<&str>) -> Result<(), RequestError> {
    let said = said.map(str::trim).filter(|said| !said.is_empty());
    let said = said.unwrap_or("0.3");
    if said == VERSION || said.strip_prefix("1.0.").is_some_and(is_patch) {
        return Ok(());
    }
    let shown: String = said.chars().take(20).collect();
    let message =
        format!("A2A {shown:?} is not spoken here: send the header A2A-Version: {VERSION}");
    Err(RequestError::new(ErrorKind::VersionNotSupported, message))
}

fn is_patch(rest: &str) -> bool {
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// The message.
    pub message: Incoming,
    /// Maximum number of messages of the task's history. All of them when absent.
    pub history_length: Option<usize>,
    /// Whether the answer is not waited for.
    pub return_immediately: bool,
}

impl SendMessage {
    /// Reads a `SendMessageRequest` at `pointer`.
    ///
    /// # Errors
    ///
    /// A parameter is wrong; the error names its place. A request for push notifications has an error
    /// kind of its own.
    pub fn read(params: &Value, pointer: &str) -> Result<Self, RequestError> {
        let fields = Fields::of(params, pointer)?;
        let message = Incoming::read(&fields.inner("message")?)?;
        let configuration = fields.object("configuration")?;
        let (mut history_length, mut return_immediately) = (None, false);
        if let Some(configuration) = &configuration {
            if configuration.get("taskPushNotificationConfig").is_some() {
                return Err(RequestError::no_push());
            }
            history_length = configuration.whole("historyLength")?;
            return_immediately = configuration.flag("returnImmediately")?.unwrap_or_default();
        }
        Ok(Self {
            message,
            history_length,
            return_immediately,
        })
    }
}

/// The parameters that get, stop or follow a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskId {
    /// The task.
    pub id: String,
    /// Maximum number of messages of the task's history. All of them when absent.
    pub history_length: Option<usize>,
}

impl TaskId {
    /// Reads a `GetTaskRequest`, `CancelTaskRequest` or `SubscribeToTaskRequest` at `pointer`.
    ///
    /// # Errors
    ///
    /// A parameter is wrong; the error names its place.
    pub fn read(params: &Value, pointer: &str) -> Result<Self, RequestError> {
        let fields = Fields::of(params, pointer)?;
        let id = fields.bounded_text("id", usize::MAX)?;
        Ok(Self {
            id: id.ok_or_else(|| fields.missing("id"))?.to_owned(),
            history_length: fields.whole("historyLength")?,
        })
    }
}

/// Which tasks are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTasks {
    /// Only those of this context.
    pub context_id: Option<String>,
    /// Only those in this state.
    pub status: Option<TaskState>,
    /// Only those whose state is not older.
    pub after: Option<Timestamp>,
    /// Maximum number of tasks on the page.
    pub page_size: usize,
    /// The `nextPageToken` of the previous page.
    pub page_token: Option<String>,
    /// Maximum number of messages of each task's history. All of them when absent.
    pub history_length: Option<usize>,
    /// Whether tasks are returned with artifacts.
    pub include_artifacts: bool,
}

impl ListTasks {
    /// Reads a `ListTasksRequest` at `pointer`.
    ///
    /// # Errors
    ///
    /// A parameter is wrong; the error names its place.
    pub fn read(params: &Value, pointer: &str) -> Result<Self, RequestError> {
        let fields = Fields::of(params, pointer)?;
        let text = |key: &str, max| Ok(fields.bounded_text(key, max)?.map(str::to_owned));
        let page_size = fields.whole("pageSize")?.filter(|size| *size > 0);
        if page_size.is_some_and(|size| size > MAX_PAGE) {
            let what = format!("expected 1 to {MAX_PAGE}");
            return Err(RequestError::param(fields.at("pageSize"), what));
        }
        let after = fields.bounded_text("statusTimestampAfter", MAX_ID)?;
        let after = after.map(|text| {
            text.parse().map_err(|_| {
                let what = "expected a time such as 2026-01-31T12:00:00Z";
                RequestError::param(fields.at("statusTimestampAfter"), what)
            })
        });
        Ok(Self {
            context_id: text("contextId", MAX_ID)?,
            status: state(&fields)?,
            after: after.transpose()?,
            page_size: page_size.unwrap_or(PAGE),
            page_token: text("pageToken", 4 * MAX_ID)?,
            history_length: fields.whole("historyLength")?,
            include_artifacts: fields.flag("includeArtifacts")?.unwrap_or_default(),
        })
    }
}

/// The state to filter by, from its name or its number.
fn state(fields: &Fields<'_>) -> Result<Option<TaskState>, RequestError> {
    let named = match fields.get("status") {
        None => return Ok(None),
        Some(Value::String(name)) if name.is_empty() || name == "TASK_STATE_UNSPECIFIED" => {
            return Ok(None);
        }
        Some(Value::String(name)) => TaskState::ALL.into_iter().find(|it| it.name() == name),
        Some(number) if *number == 0 => return Ok(None),
        Some(number) => number
            .as_u64()
            .and_then(|number| usize::try_from(number).ok()?.checked_sub(1))
            .and_then(|place| TaskState::ALL.get(place).copied()),
    };
    let what = "expected a state such as \"TASK_STATE_WORKING\"";
    let named = named.ok_or_else(|| RequestError::param(fields.at("status"), what));
    named.map(Some)
}
