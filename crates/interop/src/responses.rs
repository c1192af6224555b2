//! Open Responses (2026-04-24), with the additions of `OpenAI`'s API: conversations, stored
//! responses, token counts.
//!
//! A response is an execution, with those its agents have handed over to; a conversation is a
//! thread. For input, [`CreateRequest::read`] checks a request, and [`CreateRequest::thread_input`]
//! converts it for the thread. For output, [`ResponseStream`] turns the log into the events of a
//! response, record by record, and [`response`], [`input_items`] and [`conversation_items`] turn a
//! transcript into objects. All of them use one builder, so an item has the same form and id
//! everywhere.
//!
//! Calls of server-side tools appear with their results, as `function_call` and
//! `function_call_output`; a call without a result waits for its client. Items without a place in
//! the specification appear only for clients that put [`EXTENSIONS`] into `include`.
//!
//! ```
//! use loomline_interop::responses::{Continues, CreateRequest, Last};
//! use serde_json::json;
//! use std::collections::BTreeMap;
//!
//! let body = json!({"model": "small", "input": "Hello", "temperature": 0.5});
//! let request = CreateRequest::read(&body)?.value;
//! assert_eq!(request.continues, Continues::Nothing);
//! assert_eq!(request.options.temperature, Some(0.5));
//!
//! let mut last = 0;
//! let mut ids = || { last += 1; format!("id_{last}") };
//! let input = request.thread_input(&BTreeMap::new(), None, jiff::Timestamp::UNIX_EPOCH, &mut ids)?;
//! assert!(input.past.is_empty());
//! assert!(matches!(input.last, Last::Item(_)));
//! # Ok::<(), loomline_interop::responses::RequestError>(())
//! ```

mod compact;
pub(crate) mod content;
mod conversation;
mod draft;
mod echo;
pub(crate) mod ending;
mod error;
mod extension;
pub(crate) mod fields;
mod include;
pub(crate) mod item;
mod items;
mod named;
mod output;
mod page;
mod past;
mod removed;
mod request;
mod resource;
mod sealed;
mod slot;
mod stream;
mod thread_input;
pub(crate) mod tools;
mod usage;
mod wire;

pub use compact::{CompactRequest, compaction, input_tokens, n_tokens, outcome, read_input_tokens};
pub use conversation::{
    CreateConversation, NewItems, conversation, deleted_conversation, deleted_response,
    read_conversation_update, stored_calls, stored_items, updated_metadata,
};
pub use echo::Echo;
pub use ending::Status;
pub use error::{ErrorKind, RequestError, socket_frame};
pub use include::ListOptions;
pub use item::{InputContent, InputItem};
pub use items::{
    ListedItem, conversation_item, conversation_items, input_items, list_before, walk_items,
};
pub use named::{Origin, origins};
pub use page::{ListPage, Listing};
pub use past::{is_alone, is_brought, transcript_until};
pub use removed::removal;
pub use request::{Continues, CreateRequest, EXTENSIONS};
pub use resource::{ResponseObject, response};
pub use stream::{ResponseOf, ResponseStream};
pub use thread_input::{Last, ThreadInput};
pub use usage::Tokens;
pub use wire::EventFraming;
