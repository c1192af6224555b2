//! The AI SDK's UI message stream, its messages and its requests (`ai` 5 to 7).
//!
//! - [`StreamView`] turns the log of one execution into the chunks of its stream, record by record.
//! - [`Reducer`] builds a message from chunks as the client does.
//! - [`to_ui_messages`] returns the messages that a client shows after loading the thread; [`Reducer`]
//!   builds them from the chunks of [`StreamView`].
//! - [`sse`] reads the chunks that another server sends.
//! - [`from_chat_request`] reads the request that the client posts. The server owns the history, so it
//!   takes only what is new. The rest must equal [`stored_messages`].

mod archive;
mod chunk;
mod history;
mod left;
mod messages;
mod partial_json;
mod reduce;
mod request;
pub mod sse;
mod stream;
pub mod subagent;

pub(crate) use archive::model_runs;
pub use archive::{
    AiSdkError, append_messages, append_stream, read_messages, read_stream, ui_messages,
    write_messages, write_stream,
};
pub use chunk::{FieldFault, Major, check_chunk};
pub use history::{Difference, StoredMessage, Streamed, stored_messages};
pub use left::close_open_calls;
pub use messages::{answered_item, continues_message, message_so_far, to_ui_messages};
pub use partial_json::{PartialJson, PartialJsonError, PartialState, parse_partial_json};
pub use reduce::{
    Aborted, Pushed, ReduceError, Reduced, Reducer, StreamError, StreamFacts, reduce,
};
pub use request::{
    ChatAnswer, ChatRequest, ChatRequestError, ChatTrigger, SentMessage, SentRole, UserMessage,
    from_chat_request,
};
pub use stream::{ChunkJson, MessageSoFar, StreamView};
