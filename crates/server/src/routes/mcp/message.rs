//! What must be known of a message before the SDK reads it.

use crate::error::ApiError;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A message of a client.
pub(super) struct Message {
    method: Option<String>,
    /// The call's id; none of a notification.
    pub(super) id: Option<Value>,
    /// The parameters, an object, as they came.
    pub(super) params: Option<Arc<RawValue>>,
    /// The id of the call that this cancels.
    pub(super) cancels: Option<Value>,
}

/// The members of a message, as they came.
struct Members<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cancelled {
    request_id: Option<Value>,
}

/// What makes a body no message.
pub(super) fn no_message(what: impl Into<String>) -> ApiError {
    let what = what.into();
    ApiError::InvalidMessage { what }
}

impl Message {
    /// Reads JSON. What is no single message of JSON-RPC 2.0 is refused; what it says is for the SDK to judge.
    pub(super) fn read(text: &str) -> Result<Self, ApiError> {
        let members = Members::read(text)?;
        if members.value("jsonrpc") != Some("2.0".into()) {
            return Err(no_message("\"jsonrpc\" is \"2.0\""));
        }
        let method = members.method()?;
        let id = members.value("id");
        if !id.as_ref().is_none_or(|id| id.is_string() || id.is_i64()) {
            let what = "an \"id\" is a string or an integer of 64 bits; a notification has none";
            return Err(no_message(what));
        }
        let params = members.params()?;
        let cancels = method.as_deref() == Some("notifications/cancelled");
        let cancelled: Cancelled = params
            .filter(|_| cancels)
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        Ok(Self {
            method,
            id,
            params: params.map(|params| Arc::from(params.to_owned())),
            cancels: cancelled.request_id,
        })
    }

    /// Whether it begins a session.
    pub(super) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// Whether it wants to be told of changes.
    pub(super) fn is_listen(&self) -> bool {
        self.method.as_deref() == Some("subscriptions/listen")
    }
}

impl<'a> Members<'a> {
    fn read(text: &'a str) -> Result<Self, ApiError> {
        if text.trim_start().starts_with('[') {
            let what = "batches are not taken: send each message by itself";
            return Err(no_message(what));
        }
        let members = serde_json::from_str(text);
        members
            .map(Self)
            .map_err(|_| no_message("a message is an object"))
    }

    fn value(&self, name: &str) -> Option<Value> {
        let member = self.0.get(name)?;
        serde_json::from_str(member.get()).ok()
    }

    /// None of an answer to a call of the server's, which it never makes: that is told by the SDK.
    fn method(&self) -> Result<Option<String>, ApiError> {
        let is_answer = self.0.contains_key("result") || self.0.contains_key("error");
        match self.value("method") {
            Some(Value::String(method)) => Ok(Some(method)),
            None if is_answer => Ok(None),
            Some(_) | None => Err(no_message("the \"method\" is a string")),
        }
    }

    /// As they came; none where they are absent or null.
    fn params(&self) -> Result<Option<&'a RawValue>, ApiError> {
        let params = self.0.get("params").copied();
        let params = params.filter(|params| params.get() != "null");
        if params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(no_message("\"params\" are an object"));
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_kept_as_they_came() {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params": {"name":"run","arguments":{"n": 1.0e2}}}"#;
        let message = Message::read(text).unwrap();
        let params = message.params.unwrap();
        assert_eq!(params.get(), r#"{"name":"run","arguments":{"n": 1.0e2}}"#);
        assert_eq!(message.id, Some("a".into()));
        assert_eq!(message.cancels, None);
    }

    #[test]
    fn what_is_cancelled_is_named_by_the_id_of_its_call() {
        let text =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        let message = Message::read(text).unwrap();
        assert_eq!((message.id, message.cancels), (None, Some(7.into())));
    }

    #[test]
    fn what_is_no_single_message_is_refused() {
        for text in [
            "[]",
            "1",
            "null",
            r#"{"jsonrpc":"2.0","method":1}"#,
            r#"[{"jsonrpc":"2.0","method":"ping"}]"#,
            r#"{"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"ping","id":null}"#,
            r#"{"jsonrpc":"2.0","method":"ping","id":1.0}"#,
            r#"{"jsonrpc":"2.0","method":"ping","params":[]}"#,
        ] {
            assert!(Message::read(text).is_err(), "{text}");
        }
    }
}
