//! The optional contents of a response (`include`).

use super::error::RequestError;
use super::fields::invalid;

/// The values of `include` that the protocol defines and this server does not support.
const INCLUDABLE: [&str; 7] = [
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
];

/// The optional contents of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Reasoning includes the encrypted content that its provider needs to accept it as input:
    /// `reasoning.encrypted_content`.
    pub encrypted_reasoning: bool,
    /// Items beyond the specification: `loomline:items`.
    pub extensions: bool,
}

impl ListOptions {
    /// Reads the values of `include` in a query. Values that the protocol defines but this server
    /// does not support are ignored; any other value is an error.
    pub fn read<'a>(include: impl IntoIterator<Item = &'a str>) -> Result<Self, RequestError> {
        let mut options = Self::default();
        for value in include {
            options.include(value, "/include")?;
        }
        Ok(options)
    }

    /// Adds one value of `include`. Returns whether the server supports it.
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
