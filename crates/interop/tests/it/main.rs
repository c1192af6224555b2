//! The converters from outside: laws over generated conversations, and what real libraries write.

#[cfg(test)]
mod a2a;
#[cfg(test)]
mod ag_ui;
#[cfg(test)]
mod ai_sdk;
#[cfg(test)]
mod ai_sdk_archive;
#[cfg(test)]
mod aitp;
#[cfg(test)]
mod archive;
#[cfg(test)]
mod chat_completions;
#[cfg(test)]
mod chat_history;
mod chat_request;
#[cfg(test)]
mod dice;
#[cfg(test)]
mod document;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod history;
#[cfg(test)]
mod history_laws;
#[cfg(test)]
mod history_vectors;
#[cfg(test)]
mod langgraph;
#[cfg(test)]
mod log;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod native;
#[cfg(test)]
mod partial_json;
#[cfg(test)]
mod pydantic_ai;
#[cfg(test)]
mod recorded_runs;
#[cfg(test)]
mod recorded_streams;
#[cfg(test)]
mod reduce;
#[path = "../../../../tests/reference.rs"]
mod reference;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod removed;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod run;
#[cfg(test)]
mod sse;
#[cfg(test)]
mod threads;
#[cfg(test)]
mod ui_streams;
