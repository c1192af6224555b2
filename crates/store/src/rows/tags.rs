//! Fields that are extracted from parts and responses.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use timeline::Payload;

/// The extracted fields of a part; values of unexpected types are absent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartTag<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool_call_id: Option<Cow<'a, str>>,
}

impl<'a> PartTag<'a> {
    pub(super) fn of(part: &'a Payload) -> Self {
        part.read().unwrap_or_default()
    }
}

/// The extracted fields of a model's response; values of unexpected types are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTag<'a> {
    /// The model.
    pub model: Option<Cow<'a, str>>,
    /// Its provider.
    pub provider: Option<Cow<'a, str>>,
    /// The tokens it read.
    pub input_tokens: Option<u64>,
    /// The tokens it wrote.
    pub output_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResponse<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawUsage<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
}

impl<'a> ResponseTag<'a> {
    pub(super) fn of(response: &'a Payload) -> Self {
        let said: RawResponse<'a> = response.read().unwrap_or_default();
        let usage: RawUsage<'a> = plain(said.usage).unwrap_or_default();
        Self {
            model: plain(said.model),
            provider: plain(said.provider),
            input_tokens: plain(usage.input_tokens),
            output_tokens: plain(usage.output_tokens),
        }
    }
}

/// A value that is of this type.
fn plain<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_odd_in_a_response_is_absent_and_the_rest_is_not() {
        let odd = json!({
            "model": 7, "provider": "p", "other": [{"model": "no"}],
            "usage": {"inputTokens": 12, "outputTokens": 3.5},
        });
        let response = Payload::from(odd);
        let tag = ResponseTag::of(&response);
        assert_eq!(tag.model, None);
        assert_eq!(tag.provider.as_deref(), Some("p"));
        assert_eq!((tag.input_tokens, tag.output_tokens), (Some(12), None));
        let response = Payload::from(json!({"model": "m", "usage": "much"}));
        let tag = ResponseTag::of(&response);
        assert_eq!(tag.model.as_deref(), Some("m"));
        assert_eq!((tag.input_tokens, tag.output_tokens), (None, None));
    }
}
