//! The envelope of JSON-RPC 2.0.

use super::error::{ErrorKind, RequestError};
use serde_json::{Map, Value, json};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Posts a message and waits for the result.
    SendMessage,
    /// Posts a message and streams the result.
    SendStreamingMessage,
    /// Reads a task.
    GetTask,
    /// Lists tasks.
    ListTasks,
    /// Stops a task.
    CancelTask,
    /// Streams what becomes of a task.
    SubscribeToTask,
    /// The four about push notifications, which there are none of.
    PushNotifications,
    /// Reads the agent card for clients with a key.
    GetExtendedAgentCard,
}

impl Method {
    /// Whether the operation only reads. An operation that would write does not count, even if it is
    /// refused.
    pub const fn only_looks(self) -> bool {
        match self {
            Self::GetTask
            | Self::ListTasks
            | Self::SubscribeToTask
            | Self::GetExtendedAgentCard => true,
            Self::SendMessage
            | Self::SendStreamingMessage
            | Self::CancelTask
            | Self::PushNotifications => false,
        }
    }

    fn of(name: &str) -> Option<Self> {
        match name {
            "SendMessage" => Some(Self::SendMessage),
            "SendStreamingMessage" => Some(Self::SendStreamingMessage),
            "GetTask" => Some(Self::GetTask),
            "ListTasks" => Some(Self::ListTasks),
            "CancelTask" => Some(Self::CancelTask),
            "SubscribeToTask" => Some(Self::SubscribeToTask),
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => Some(Self::PushNotifications),
            "GetExtendedAgentCard" => Some(Self::GetExtendedAgentCard),
            _ => None,
        }
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// With what; an object.
    pub params: Value,
}

impl Call {
    /// Where the parameters stand.
    pub const PARAMS: &str = "/params";

    /// Reads the body of a request: the id that the answer must repeat, null where it can't be known,
    /// and the call. There are no batches and no notifications: every operation answers.
    pub fn read(body: &Value) -> (Value, Result<Self, RequestError>) {
        let invalid = |what: &str| Err(RequestError::new(ErrorKind::InvalidRequest, what));
        let Some(body) = body.as_object() else {
            return (
                Value::Null,
                invalid("a request is an object; there are no batches"),
            );
        };
        let id = match body.get("id") {
            Some(id @ (Value::String(_) | Value::Null)) => id.clone(),
            Some(id @ Value::Number(number)) if !number.is_f64() => id.clone(),
            _ => {
                return (
                    Value::Null,
                    invalid("id: expected a string or a whole number"),
                );
            }
        };
        if body.get("jsonrpc").is_none_or(|version| version != "2.0") {
            return (id, invalid("jsonrpc: expected \"2.0\""));
        }
        let Some(name) = body.get("method").and_then(Value::as_str) else {
            return (id, invalid("method: expected a string"));
        };
        let Some(method) = Method::of(name) else {
            let name: String = name.chars().take(100).collect();
            let message = format!("there is no method {name:?}");
            return (
                id,
                Err(RequestError::new(ErrorKind::MethodNotFound, message)),
            );
        };
        let params = match body.get("params") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(params @ Value::Object(_)) => params.clone(),
            Some(_) => {
                let error = RequestError::param(Self::PARAMS, "expected an object");
                return (id, Err(error));
            }
        };
        (id, Ok(Self { method, params }))
    }
}

/// An answer.
pub fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A refusal; `error` is an error object.
pub fn failure(id: &Value, error: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_with_the_id_that_its_answer_repeats() {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": {"id": "x"}});
        let (id, call) = Call::read(&body);
        assert_eq!(id, 7);
        let call = call.unwrap();
        assert_eq!(
            (call.method, call.params),
            (Method::GetTask, json!({"id": "x"}))
        );
    }

    #[test]
    fn what_is_no_call_is_refused_under_its_id_where_that_is_known() {
        use ErrorKind as K;
        let base = json!({"jsonrpc": "2.0", "id": "a", "method": "GetTask", "params": {}});
        let with = |key: &str, value: Value| {
            let mut body = base.clone();
            body[key] = value;
            body
        };
        for (body, id, kind) in [
            (json!([base.clone()]), Value::Null, K::InvalidRequest),
            (
                json!({"jsonrpc": "2.0", "method": "GetTask"}),
                Value::Null,
                K::InvalidRequest,
            ),
            (with("id", json!(true)), Value::Null, K::InvalidRequest),
            (with("id", json!(1.5)), Value::Null, K::InvalidRequest),
            (with("jsonrpc", json!("1.0")), json!("a"), K::InvalidRequest),
            (with("method", json!(1)), json!("a"), K::InvalidRequest),
            (
                with("method", json!("tasks/get")),
                json!("a"),
                K::MethodNotFound,
            ),
            (with("params", json!([1])), json!("a"), K::InvalidParams),
        ] {
            let (read, call) = Call::read(&body);
            assert_eq!((read, call.unwrap_err().kind), (id, kind), "{body}");
        }
    }
}
