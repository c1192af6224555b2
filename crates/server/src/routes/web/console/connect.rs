//! The page of the ways to reach a thread.

use super::shown_section::ShownSection;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::openapi::Description;
use crate::routes::public_address::public_address;
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Uri};
use interop::ids::THREAD;
use std::sync::Arc;
use web::{ConnectPage, ConnectTarget, ThreadSection};

/// Shows an address and samples for each protocol.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    headers: HeaderMap,
    uri: Uri,
    Extension(description): Extension<Arc<Description>>,
) -> Result<Response, ApiError> {
    let words = ("Connect", "events?until=rest");
    let section = ShownSection::find(&thread, ThreadSection::Connect, words).await?;
    let base = public_address(&api, &headers, &uri)?;
    let config = api.app().config();
    let id = section.thread.id().as_str();
    let parts = PageParts::read(&api, &caller).await?;
    let shown = ConnectPage {
        frame: section.frame(&parts),
        target: ConnectTarget {
            base: &base,
            key: thread.key(),
            id,
            thread_id: &THREAD.write(id),
            agent: &config.default_agent,
            links: &description.links,
            needs_key: !config.is_development(),
        },
    };
    Ok(page(shown.html()))
}
