//! What a client wants to see beside what everybody sees.

use super::error::RequestError;
use super::fields::invalid;

/// What the protocol has as `include` beside what can be shown.
const INCLUDABLE: [&str; 7] = [
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
];

/// What a list shows beside what every list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Reasoning with what its provider needs to take it back: `reasoning.encrypted_content`.
    pub encrypted_reasoning: bool,
    /// Items beyond the specification: `loomline:items`.
    pub extensions: bool,
}

impl ListOptions {
    /// What the values of `include` in a query ask for; what the protocol has and can't be shown is left
    /// out.
    pub fn read<'a>(include: impl IntoIterator<Item = &'a str>) -> Result<Self, RequestError> {
        let mut options = Self::default();
        for value in include {
            options.include(value, "/include")?;
        }
        Ok(options)
    }

    /// Adds one value of `include`. Returns whether it can be shown.
    pub(super) fn include(&mut self, value: &str, pointer: &str) -> Result<bool, RequestError> {
        match value {
            "reasoning.encrypted_content" => self.encrypted_reasoning = true,
            super::EXTENSIONS => self.extensions = true,
            value if INCLUDABLE.contains(&value) => return Ok(false),
            _ => {
                let known = INCLUDABLE.join("\", \"");
                let message = format!(
                    "expected \"reasoning.encrypted_content\", \"{}\" or one of \"{known}\"",
                    super::EXTENSIONS
                );
                return Err(invalid(pointer, &message));
            }
        }
        Ok(true)
    }
}
