//! The Chat Completions format of `OpenAI`, which most other providers speak too (UPP §17.3).
//!
//! [`Encoding`] writes requests and [`Decoder`] reads answers; both are pure. With the feature
//! `http`, [`ChatCompletions`] is the model that sends them.
//!
//! Blocks appear in the order the model wrote them; `reasoning_content` and `reasoning` become
//! reasoning blocks. The message's metadata keeps model, finish reason, fingerprint and tier
//! under the provider's name; the usage keeps the provider's own object. A refusal is text with
//! the stop reason `content_filter`.

mod calls;
mod decode;
mod encode;
mod failure;
#[cfg(feature = "http")]
mod model;

pub use decode::Decoder;
pub use encode::Encoding;
pub use failure::{of_status, retry_after};
#[cfg(feature = "http")]
pub use model::{ChatCompletions, ChatCompletionsConfig};

#[cfg(test)]
mod tests;
