//! Stopping tasks.

use super::lookup::{Task, Wanted};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use interop::a2a::{ErrorKind, RequestError, TaskId, TaskState};
use runtime::RuntimeError;
use serde_json::{Value, json};
use timeline::Interruption;

/// Stops a running task, or withdraws its questions.
pub(super) async fn cancel(
    api: &Api,
    caller: &Caller,
    request: &TaskId,
) -> Result<Value, ApiError> {
    let task = Task::find(api, caller, &request.id).await?;
    let wanted = Wanted {
        history_length: request.history_length,
    };
    let read = task.read(api, wanted).await?;
    let execution = match read.state {
        TaskState::InputRequired if !read.waiting.requests.is_empty() => {
            return refused("nothing runs: what the task asks can be declined");
        }
        // Never what runs for another task by now.
        TaskState::Working | TaskState::InputRequired => read.execution,
        TaskState::Submitted => None,
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::Rejected
        | TaskState::AuthRequired => return refused("the task is over"),
    };
    let Some(execution) = execution else {
        return refused("the task waits for its turn, and can be stopped once that has come");
    };
    let stopped = task
        .thread
        .cancel(Some(&execution), Interruption::USER_CANCELLED);
    match stopped.await {
        Ok(_) => {}
        // It has ended by itself meanwhile.
        Err(RuntimeError::NotRunning(_)) => return refused("the task is over"),
        Err(error) => return Err(error.into()),
    }
    let task = task.read(api, wanted).await?.json;
    Ok(if caller.may_read() { task } else { bare(&task) })
}

/// The state of a task without its messages and artifacts.
fn bare(task: &Value) -> Value {
    let (id, context, status) = (&task["id"], &task["contextId"], &task["status"]);
    let status = json!({"state": status["state"], "timestamp": status["timestamp"]});
    json!({"id": id, "contextId": context, "status": status})
}

fn refused(why: &str) -> Result<Value, ApiError> {
    Err(RequestError::new(ErrorKind::TaskNotCancelable, why).into())
}
