//! The settings that models share, written as each provider's parameters.

use serde_json::{Map, Value};

/// Provider-independent settings for an answer. An absent setting is the provider's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How freely the next token is chosen, from 0.
    pub temperature: Option<f64>,
    /// The share of likely tokens that is chosen from, 0 to 1.
    pub top_p: Option<f64>,
    /// How much tokens that have come are avoided, -2 to 2.
    pub presence_penalty: Option<f64>,
    /// How much tokens that have come often are avoided, -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// How many tokens an answer may have.
    pub max_output_tokens: Option<u64>,
    /// Whether the model may make several tool calls in parallel.
    pub parallel_tool_calls: Option<bool>,
    /// How much the model reasons: `none`, `low`, `medium`, `high`, or a word the provider has.
    pub reasoning_effort: Option<String>,
    /// Whether reasoning is summarised: `auto`, `concise`, `detailed`.
    pub reasoning_summary: Option<String>,
}

/// Settings as a provider's parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeSettings {
    /// Parameters of a [`Request`](crate::Request), to be laid over others by [`merge`].
    pub params: Map<String, Value>,
    /// The settings that the provider has no word for: names of members of [`Settings`].
    pub left_out: Vec<&'static str>,
}

impl NativeSettings {
    /// Puts one under the provider's name for it: the members on the way to it, separated by dots.
    pub(crate) fn put(&mut self, path: &str, value: Option<impl Into<Value>>) {
        let Some(value) = value else { return };
        let nested = path.rsplit('.').fold(value.into(), |inner, member| {
            Value::Object(Map::from_iter([(member.to_owned(), inner)]))
        });
        if let Value::Object(over) = nested {
            merge(&mut self.params, &over);
        }
    }

    /// Notes a setting that the provider can't express.
    pub(crate) fn leave_out<T>(&mut self, name: &'static str, value: Option<&T>) {
        if value.is_some() {
            self.left_out.push(name);
        }
    }
}

impl Settings {
    /// All settings as left out, for a model without parameters.
    pub fn left_out(&self) -> NativeSettings {
        let mut native = NativeSettings::default();
        native.leave_out("temperature", self.temperature.as_ref());
        native.leave_out("top_p", self.top_p.as_ref());
        native.leave_out("presence_penalty", self.presence_penalty.as_ref());
        native.leave_out("frequency_penalty", self.frequency_penalty.as_ref());
        native.leave_out("max_output_tokens", self.max_output_tokens.as_ref());
        native.leave_out("parallel_tool_calls", self.parallel_tool_calls.as_ref());
        native.leave_out("reasoning_effort", self.reasoning_effort.as_ref());
        native.leave_out("reasoning_summary", self.reasoning_summary.as_ref());
        native
    }

    /// Those that have the same name everywhere, or a prefix of it.
    pub(crate) fn sampling(&self, prefix: &str, names: [&str; 4]) -> NativeSettings {
        let mut native = NativeSettings::default();
        let values = [
            self.temperature,
            self.top_p,
            self.presence_penalty,
            self.frequency_penalty,
        ];
        for (name, value) in names.into_iter().zip(values) {
            native.put(&format!("{prefix}{name}"), value);
        }
        native
    }
}

/// The usual names of what [`Settings::sampling`] writes.
pub(crate) const SAMPLING: [&str; 4] = [
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
];

/// Merges `over` into parameters: objects are merged, anything else is replaced.
pub fn merge(params: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (params.get_mut(name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            (Some(below), above) => *below = above.clone(),
            (None, above) => {
                params.insert(name.clone(), above.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::{Anthropic, ChatCompletions, Dialect, Gemini, Ollama, Responses};
    use serde_json::json;

    fn all() -> Settings {
        Settings {
            temperature: Some(0.5),
            top_p: Some(0.9),
            presence_penalty: Some(0.1),
            frequency_penalty: Some(0.2),
            max_output_tokens: Some(64),
            parallel_tool_calls: Some(false),
            reasoning_effort: Some("low".into()),
            reasoning_summary: Some("auto".into()),
        }
    }

    fn check(codec: &dyn Codec, params: &Value, left_out: &[&str]) {
        let native = codec.settings(&all());
        assert_eq!(
            &Value::Object(native.params),
            params,
            "{}",
            codec.provider()
        );
        assert_eq!(native.left_out, left_out, "{}", codec.provider());
        assert_eq!(
            codec.settings(&Settings::default()),
            NativeSettings::default()
        );
    }

    #[test]
    fn each_provider_has_its_own_words_for_the_same_settings() {
        check(
            &Responses::openai("m"),
            &json!({"temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.2,
                "max_output_tokens": 64, "parallel_tool_calls": false, "reasoning": {"effort": "low", "summary": "auto"}}),
            &[],
        );
        check(
            &ChatCompletions::new(Dialect::openai(), "m"),
            &json!({"temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.2,
                "max_completion_tokens": 64, "parallel_tool_calls": false, "reasoning_effort": "low"}),
            &["reasoning_summary"],
        );
        check(
            &ChatCompletions::new(Dialect::openrouter(), "m"),
            &json!({"temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.2,
                "max_tokens": 64, "parallel_tool_calls": false, "reasoning": {"effort": "low"}}),
            &["reasoning_summary"],
        );
        check(
            &Anthropic::new("m"),
            &json!({"temperature": 0.5, "top_p": 0.9, "max_tokens": 64,
                "tool_choice": {"disable_parallel_tool_use": true}}),
            &[
                "presence_penalty",
                "frequency_penalty",
                "reasoning_effort",
                "reasoning_summary",
            ],
        );
        check(
            &Gemini::new("m"),
            &json!({"generationConfig": {"temperature": 0.5, "topP": 0.9, "presencePenalty": 0.1,
                "frequencyPenalty": 0.2, "maxOutputTokens": 64}}),
            &[
                "parallel_tool_calls",
                "reasoning_effort",
                "reasoning_summary",
            ],
        );
        check(
            &Ollama::new("m"),
            &json!({"options": {"temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1,
                "frequency_penalty": 0.2, "num_predict": 64}, "think": "low"}),
            &["parallel_tool_calls", "reasoning_summary"],
        );
    }

    #[test]
    fn what_is_laid_over_replaces_values_and_keeps_the_rest_of_objects() {
        let mut params = Map::from_iter([
            ("a".to_owned(), json!({"x": 1, "y": {"z": [1]}})),
            ("b".to_owned(), json!(1)),
        ]);
        let over = Map::from_iter([
            ("a".to_owned(), json!({"y": {"z": [2], "w": 3}})),
            ("b".to_owned(), json!({"c": 1})),
        ]);
        merge(&mut params, &over);
        assert_eq!(
            Value::Object(params),
            json!({"a": {"x": 1, "y": {"z": [2], "w": 3}}, "b": {"c": 1}})
        );
    }
}
