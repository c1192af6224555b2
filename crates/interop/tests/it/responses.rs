//! Open Responses and conversations.

mod answers;
mod brought;
mod client;
mod conversations;
mod copies;
mod endings;
mod events;
mod past;
mod requests;
mod rig;
mod schemas;
mod streams;
mod suite;
mod transforms;
mod wrong;
