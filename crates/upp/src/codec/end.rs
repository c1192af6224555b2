//! The end of an answer, for all formats.

use crate::content::AssistantContent;
use crate::error::{Code, Error};
use crate::message::AssistantMessage;
use crate::model::StopReason;
use serde_json::Value;

/// The error for an answer that is not in the provider's format, or not what the request demanded.
pub(crate) fn invalid(provider: &str, text: &str) -> Error {
    Error::new(Code::InvalidResponse, provider, text)
}

/// A stream that is over before its answer is.
pub(crate) fn ended_early(provider: &str) -> Error {
    let text = "the stream ended before the answer did";
    Error::new(Code::NetworkError, provider, text)
}

/// Parses the text of a structured answer.
pub(crate) fn structured(provider: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text)
        .map_err(|cause| invalid(provider, "the structured answer is not JSON").caused_by(cause))
}

/// The data of a message whose text is the structured answer. `None` if no structure was requested, or
/// the answer is incomplete.
pub(crate) fn data(
    provider: &str,
    asked: bool,
    message: &AssistantMessage,
    stop: &StopReason,
) -> Result<Option<Value>, Error> {
    if !asked || *stop != StopReason::EndTurn || !message.tool_calls.is_empty() {
        return Ok(None);
    }
    // What stands between two blocks of text, such as reasoning, is no part of the answer.
    let texts = message.content.iter().filter_map(text);
    structured(provider, &texts.collect::<String>()).map(Some)
}

/// The text of a block of text.
pub(crate) fn text(block: &AssistantContent) -> Option<&str> {
    match block {
        AssistantContent::Text { text } => Some(text),
        AssistantContent::Reasoning { .. }
        | AssistantContent::Image(_)
        | AssistantContent::Audio(_)
        | AssistantContent::Video(_) => None,
    }
}

/// Whether the answer was cut off by something other than the model, so that its last call may be
/// incomplete.
pub(crate) fn is_truncated(stop: &StopReason) -> bool {
    match stop {
        StopReason::MaxTokens | StopReason::ContentFilter | StopReason::Error => true,
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageOptions;
    use serde_json::json;

    #[test]
    fn data_is_the_whole_text_of_an_answer_that_the_model_ended() {
        let text = |text: &str| AssistantContent::Text { text: text.into() };
        let thought = AssistantContent::Reasoning {
            text: "hm".into(),
            signature: None,
        };
        let content = vec![text("{\"a\":"), thought, text("1}")];
        let message = AssistantMessage::new(content, Vec::new(), MessageOptions::default());
        let of = |stop| data("p", true, &message, &stop).unwrap();
        assert_eq!(of(StopReason::EndTurn), Some(json!({"a": 1})));
        assert_eq!(of(StopReason::MaxTokens), None);
        assert_eq!(
            data("p", false, &message, &StopReason::EndTurn).unwrap(),
            None
        );
        let plain = AssistantMessage::new(vec![text("hi")], Vec::new(), MessageOptions::default());
        let error = data("p", true, &plain, &StopReason::EndTurn).unwrap_err();
        assert_eq!(error.code, Code::InvalidResponse);
    }
}
