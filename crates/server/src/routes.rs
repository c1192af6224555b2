//! The routes, with one module for each resource.

mod a2a;
pub(crate) mod ag_ui;
pub(crate) mod agents;
pub(crate) mod ai_sdk;
mod aitp;
pub(crate) mod answers;
pub(crate) mod branches;
mod chat_completions;
mod compactions;
pub(crate) mod comparison;
pub(crate) mod content;
pub(crate) mod documents;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod langgraph;
pub(crate) mod mcp;
pub(crate) mod messages;
mod native;
mod objects;
mod page_query;
pub(crate) mod process;
pub(crate) mod public_address;
pub(crate) mod relatives;
mod responses;
mod run_times;
pub(crate) mod runs;
mod steps;
pub(crate) mod thread_feed;
pub(crate) mod thread_list;
pub(crate) mod threads;
mod threads_api;
mod tree;
pub(crate) mod versions;
mod view;
pub(crate) mod waiting;
#[cfg(feature = "web")]
pub(crate) mod web;
#[cfg(feature = "web")]
mod web_tokens;

use crate::protocol::Protocol;

/// The protocols of the server.
pub(crate) const PROTOCOLS: &[&Protocol] = &[
    &health::PROTOCOL,
    &native::PROTOCOL,
    &ai_sdk::PROTOCOL,
    &ag_ui::PROTOCOL,
    &responses::PROTOCOL,
    &chat_completions::PROTOCOL,
    &threads_api::PROTOCOL,
    &a2a::PROTOCOL,
    &mcp::PROTOCOL,
    &langgraph::PROTOCOL,
    #[cfg(feature = "web")]
    &web::PROTOCOL,
];
