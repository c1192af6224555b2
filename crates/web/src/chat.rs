//! The chat: a thread as a conversation, whole and live.

mod answer;
mod block;
mod composer;
mod conversation;
mod interruption;
mod noted_requests;
mod page;
mod pending;
mod request_page;
mod tool;
mod tool_facts;
mod user;
mod versions;

pub(crate) use interruption::interruption_words;

pub use composer::AgentChoice;
pub use conversation::Conversation;
pub use page::{ChatPage, ChatThread, CompactedRuns, StarterChoice, older};
pub use pending::WaitingCall;
pub use request_page::RequestPage;
pub use tool::{call_facts, call_form};
pub use tool_facts::{ToolFact, ToolFacts};
pub use user::message_text;
pub use versions::{VersionEntry, VersionsPage};
