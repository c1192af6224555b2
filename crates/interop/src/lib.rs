//! Converters between the vocabularies of a thread. Each reports what it could not convert.
//!
//! This is the only crate with two vocabularies at once: the log's (`timeline`), the model's
//! (`upp`) and the document's (`thread`). Each foreign format has a module; its wire types never
//! leave it. Every converter returns [`Converted`]: the value, and the list of losses in the target
//! (architecture rule 10).
//!
//! The crate is pure: no I/O, no clock, no randomness. Ids and times come in as arguments. Without
//! its features `model` (model input and output) and `aitp` (capability messages) it builds for
//! WebAssembly, so that a browser can derive the document that a server derives.
//!
//! Histories are stored in an [`archive`], with their original bytes; [`convert`] reads any format
//! into one and writes one in any format:
//!
//! ```
//! use loomline_interop::archive::Format;
//! use loomline_interop::convert::{SourceForm, ReadOptions, WriteOptions, read, write};
//!
//! let history = r#"[{"parts":[{"content":"You are brief.","part_kind":"system-prompt"},{"content":"Hi","part_kind":"user-prompt"}],"kind":"request"},{"parts":[{"content":"Hello","part_kind":"text"}],"usage":{"input_tokens":9},"kind":"response"}]"#;
//! let archive = read(SourceForm::Of(Format::PydanticAi), history, &ReadOptions::default())?.value;
//!
//! // The same format comes back byte for byte.
//! let again = write(SourceForm::Of(Format::PydanticAi), &archive, &WriteOptions::default());
//! assert_eq!(again.value, history);
//! assert!(again.losses.is_empty());
//!
//! // A document has no place for system prompts, and says so.
//! let document = write(SourceForm::Of(Format::Thread), &archive, &WriteOptions::default());
//! assert!(document.losses.iter().any(|loss| loss.what.contains("system prompt")));
//!
//! // What a client shows.
//! let messages = write(SourceForm::Of(Format::AiSdkUi), &archive, &WriteOptions::default());
//! assert!(messages.value.contains(r#""role":"assistant""#));
//! # Ok::<(), loomline_interop::convert::ConvertError>(())
//! ```

pub mod a2a;
pub mod ag_ui;
pub mod ai_sdk;
#[cfg(feature = "aitp")]
pub mod aitp;
pub mod archive;
mod attribution;
mod canonical;
pub mod chat_completions;
pub mod convert;
pub mod document;
mod fields;
pub mod ids;
mod json_text;
pub mod langgraph;
mod loss;
pub mod mcp;
pub mod metadata;
#[cfg(feature = "model")]
pub mod model;
pub mod options;
mod page;
pub mod parts;
pub mod pydantic_ai;
#[cfg(feature = "model")]
pub mod remote;
mod request;
pub mod responses;
pub mod revision;
pub mod run;
pub mod runs;
pub mod sse;
pub mod threads;
mod truncate;

pub use attribution::AttributionError;
use loss::Losses;
pub use loss::{Converted, Loss};
pub use request::param;
