//! The routes of the web interface: for each its method, path, scope, and the place of the thread's key.

use crate::error::ErrorFormat;
use crate::protocol::Access::{Open, Operator, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread, PathKey, Process, Visible};
use crate::protocol::{Protocol, Route, Rules, undocumented};
use axum::routing::{get, post};

/// The web interface.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::Page,
    prefixes: &[
        ("/chat", ErrorFormat::Page),
        ("/console", ErrorFormat::Page),
        ("/inbox", ErrorFormat::Page),
        ("/ui", ErrorFormat::Page),
        ("/assets", ErrorFormat::Page),
    ],
    links: &[("chat", "/chat"), ("inbox", "/inbox")],
    rules: Rules {
        checks_origin: true,
        ..Rules::NONE
    },
    routes,
    bodies: "",
};

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    use super::console::{agents, branches, connect, diff, document, events, health, live_events, requests as thread_requests, run, threads, timeline};
    use super::{actions, assets, files, inbox, live, pages, requests};
    vec![
        Route::get("/chat", Read, NoThread, undocumented(get(pages::new_chat))),
        Route::get("/chat/{key}", Read, PathKey("key"), undocumented(get(pages::chat))),
        Route::get("/inbox", Read, Visible, undocumented(get(inbox::inbox))),
        Route::get("/ui/thread/{id}", Read, InBody, undocumented(get(pages::by_id))),
        Route::get("/ui/older", Read, InBody, undocumented(get(pages::older))),
        Route::get("/ui/file", Read, InBody, undocumented(get(files::read))),
        Route::get("/ui/text", Read, InBody, undocumented(get(files::text))),
        Route::get("/ui/live", Read, InBody, undocumented(get(live::live))),
        Route::post("/ui/send", Write, InBody, undocumented(post(actions::send))),
        Route::post("/ui/stop", Write, InBody, undocumented(post(actions::stop))),
        Route::post("/ui/answer", Write, InBody, undocumented(post(actions::answer))),
        Route::post("/ui/request", Write, InBody, undocumented(post(requests::answer))),
        Route::post("/ui/decline", Write, InBody, undocumented(post(requests::decline))),
        Route::post("/ui/fork", Write, InBody, undocumented(post(actions::fork))),
        Route::post("/ui/edit", Write, InBody, undocumented(post(actions::edit))),
        Route::post("/ui/regenerate", Write, InBody, undocumented(post(actions::regenerate))),
        Route::get("/ui/versions", Read, InBody, undocumented(get(pages::versions))),
        Route::get("/console/t/{key}/branches", Read, PathKey("key"), undocumented(get(branches::read))),
        Route::get("/console/t/{key}/diff", Read, PathKey("key"), undocumented(get(diff::read))),
        Route::get("/ui/compare", Read, InBody, undocumented(get(diff::choose))),
        Route::get("/console/t/{key}/document", Read, PathKey("key"), undocumented(get(document::read))),
        Route::get("/console/t/{key}/requests", Read, PathKey("key"), undocumented(get(thread_requests::read))),
        Route::get("/console/t/{key}/connect", Read, PathKey("key"), undocumented(get(connect::read))),
        Route::get("/console/agents", Read, NoThread, undocumented(get(agents::read))),
        Route::get("/console/health", Operator, Process, undocumented(get(health::read))),
        Route::get("/console", Read, Visible, undocumented(get(threads::list))),
        Route::get("/console/t/{key}", Read, PathKey("key"), undocumented(get(timeline::timeline))),
        Route::get("/console/t/{key}/run/{executionId}", Read, PathKey("key"), undocumented(get(run::run))),
        Route::get("/console/t/{key}/events", Read, PathKey("key"), undocumented(get(events::events))),
        Route::get("/ui/console/{id}", Read, InBody, undocumented(get(run::by_id))),
        Route::get("/ui/events", Read, InBody, undocumented(get(live_events::live))),
        Route::get("/assets/{hash}/{name}", Open, NoThread, undocumented(get(assets::read))),
    ]
}
