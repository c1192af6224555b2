//! The page of a thread's actors and requests.

use super::shown_section::ShownSection;
use crate::auth::{Caller, Scope};
use crate::error::ApiError;
use crate::routes::aitp::looked;
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::routes::web::request_view::read_requests;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use interop::aitp::{AitpState, Participant};
use web::{ActorBinding, ActorEntry, RequestsPage, ThreadSection};

/// Shows the actors and the requests.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
) -> Result<Response, ApiError> {
    let words = ("Requests", "requests");
    let section = ShownSection::find(&thread, ThreadSection::Requests, words).await?;
    let actors = looked(&api, &section.thread, |state| actors(state, &caller)).await?;
    let requests = read_requests(&api, &section.thread).await?;
    let parts = PageParts::read(&api, &caller).await?;
    let shown = RequestsPage {
        frame: section.frame(&parts),
        key: thread.key(),
        actors: &actors,
        requests: &requests,
    };
    Ok(page(shown.html()))
}

fn actors(state: &AitpState, caller: &Caller) -> Vec<ActorEntry> {
    let participants = state.participants();
    let entry = |member: &Participant| ActorEntry {
        id: member.actor.id.clone(),
        client: member.actor.client_id.clone(),
        is_initiator: participants.initiator() == Some(member.actor.id.as_str()),
        binding: binding(member.principal.as_deref(), caller),
        capabilities: member
            .actor
            .capabilities
            .iter()
            .map(|capability| capability.schema.clone())
            .collect(),
    };
    participants.present().map(entry).collect()
}

/// The key of an actor. Only operators of the whole server see the names of others' keys.
fn binding(principal: Option<&str>, caller: &Caller) -> ActorBinding {
    let is_operator = caller.check_scope(Scope::Operator).is_ok() && !caller.is_restricted();
    match principal {
        None => ActorBinding::Nobody,
        Some(own) if own == caller.principal() => ActorBinding::Own,
        Some(other) => ActorBinding::Other(is_operator.then(|| {
            let name = other.strip_prefix("key:");
            name.unwrap_or(other).to_owned()
        })),
    }
}
