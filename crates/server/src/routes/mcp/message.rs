//! The parts of a message that the server must read before the SDK does.

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
    /// The call's id; none for a notification.
    pub(super) id: Option<Value>,
    /// The parameters, an object, as JSON text.
    pub(super) params: Option<Arc<RawValue>>,
    /// The id of the call that this message cancels.
    pub(super) cancels: Option<Value>,
}

/// The members of a message, as JSON texts.
struct Members<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cancelled {
    request_id: Option<Value>,
}

/// The error of a body that is not a message.
pub(super) fn no_message(what: impl Into<String>) -> ApiError {
    let what = what.into();
    ApiError::InvalidMessage { what }
}

impl Message {
    /// Parses JSON, and refuses anything but one JSON-RPC 2.0 message. The SDK checks the contents.
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

    /// Whether it starts a session.
    pub(super) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// Whether it subscribes to changes.
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

    /// The method. None for a response to a server call: the server makes none, and the SDK reports the
    /// error.
    fn method(&self) -> Result<Option<String>, ApiError> {
        let is_answer = self.0.contains_key("result") || self.0.contains_key("error");
        match self.value("method") {
            Some(Value::String(method)) => Ok(Some(method)),
            None if is_answer => Ok(None),
            Some(_) | None => Err(no_message("the \"method\" is a string")),
        }
    }

    /// The parameters as JSON text; none if they are absent or null.
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
