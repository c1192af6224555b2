//! What must be known of a message before the SDK reads it.

use crate::error::ApiError;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// A message of a client.
pub(super) struct Message {
    method: Option<String>,
    /// The call's id; none of a notification.
    pub(super) id: Option<Value>,
    /// What a tool is called with, as it came.
    pub(super) arguments: Option<Arc<RawValue>>,
    /// The id of the call that this cancels.
    pub(super) cancels: Option<Value>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    arguments: Option<Box<RawValue>>,
    request_id: Option<Value>,
}

impl Message {
    /// Reads JSON. What the SDK refuses is left to it, but for what is no single message.
    pub(super) fn read(text: &str) -> Result<Self, ApiError> {
        let what = "expected one JSON-RPC message: an object with a \"method\" that is a string; there are no batches";
        // A list would be read as the fields in their order.
        let object = Some(text).filter(|text| text.trim_start().starts_with('{'));
        let envelope = object.and_then(|text| serde_json::from_str(text).ok());
        let envelope: Envelope<'_> = envelope.ok_or_else(|| ApiError::field("", what))?;
        let method = envelope.method.map(Cow::into_owned);
        let wanted = matches!(
            method.as_deref(),
            Some("tools/call" | "notifications/cancelled")
        );
        let params = envelope.params.filter(|_| wanted).map(RawValue::get);
        let params: Params = params
            .and_then(|params| serde_json::from_str(params).ok())
            .unwrap_or_default();
        let cancels = method.as_deref() == Some("notifications/cancelled");
        Ok(Self {
            method,
            id: envelope.id.filter(|id| !id.is_null()),
            arguments: params.arguments.map(Arc::from),
            cancels: params.request_id.filter(|_| cancels),
        })
    }

    /// Whether it begins a session.
    pub(super) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_tool_are_kept_as_they_came() {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"run","arguments":{"n": 1.0e2}}}"#;
        let message = Message::read(text).unwrap();
        assert_eq!(message.arguments.unwrap().get(), r#"{"n": 1.0e2}"#);
        assert_eq!(message.id, Some("a".into()));
        assert_eq!(message.cancels, None);
    }

    #[test]
    fn what_is_no_single_message_is_refused() {
        for text in [
            "[]",
            "1",
            "null",
            r#"{"method": 1}"#,
            r#"[{"method":"ping"}]"#,
        ] {
            assert!(Message::read(text).is_err(), "{text}");
        }
    }
}
