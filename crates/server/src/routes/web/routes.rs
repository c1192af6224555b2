//! The routes of the web interface: for each its method, path, scope, and the place of the thread's key.

use crate::error::ErrorFormat;
use crate::protocol::Access::{Inspect, InspectProcess, Open, Read, Write};
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
        ("/login", ErrorFormat::Page),
        ("/logout", ErrorFormat::Page),
    ],
    links: &[("chat", "/chat"), ("inbox", "/inbox")],
    rules: Rules {
        own_pages: true,
        ..Rules::NONE
    },
    routes,
    bodies: "",
};

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    use crate::routes::documents;
    use super::console::{agents, branches, connect, diff, document, events, health, live_events, requests as thread_requests, run, threads, timeline};
    use super::{actions, assets, embed, files, inbox, live, login, pages, requests};
    vec![
        Route::get("/login", Open, NoThread, undocumented(get(login::form))),
        Route::post("/login", Open, NoThread, undocumented(post(login::log_in))),
        Route::post("/logout", Open, NoThread, undocumented(post(login::log_out))),
        Route::get("/embed.js", Open, NoThread, undocumented(get(embed::script))),
        Route::get("/embed/{agent}", Open, NoThread, undocumented(get(embed::frame))),
        Route::post("/ui/embedded", Read, InBody, undocumented(post(embed::content))),
        Route::get("/chat", Read, NoThread, undocumented(get(pages::new_chat))),
        Route::get("/chat/{key}", Read, PathKey("key"), undocumented(get(pages::chat))),
        Route::get("/inbox", Read, Visible, undocumented(get(inbox::inbox))),
        Route::get("/ui/thread/{id}", Read, InBody, undocumented(get(pages::by_id))),
        Route::get("/ui/older", Read, InBody, undocumented(get(pages::older))),
        Route::get("/ui/file", Read, InBody, undocumented(get(files::read))),
        Route::get("/ui/text", Read, InBody, undocumented(get(files::text))),
        Route::get("/ui/document/{key}", Inspect, PathKey("key"), undocumented(get(documents::export))),
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
        Route::get("/console/t/{key}/branches", Inspect, PathKey("key"), undocumented(get(branches::read))),
        Route::get("/console/t/{key}/diff", Inspect, PathKey("key"), undocumented(get(diff::read))),
        Route::get("/ui/compare", Inspect, InBody, undocumented(get(diff::choose))),
        Route::get("/console/t/{key}/document", Inspect, PathKey("key"), undocumented(get(document::read))),
        Route::get("/console/t/{key}/requests", Inspect, PathKey("key"), undocumented(get(thread_requests::read))),
        Route::get("/console/t/{key}/connect", Inspect, PathKey("key"), undocumented(get(connect::read))),
        Route::get("/console/agents", Inspect, NoThread, undocumented(get(agents::read))),
        Route::get("/console/health", InspectProcess, Process, undocumented(get(health::read))),
        Route::get("/console", Inspect, Visible, undocumented(get(threads::list))),
        Route::get("/console/t/{key}", Inspect, PathKey("key"), undocumented(get(timeline::timeline))),
        Route::get("/console/t/{key}/run/{executionId}", Inspect, PathKey("key"), undocumented(get(run::run))),
        Route::get("/console/t/{key}/events", Inspect, PathKey("key"), undocumented(get(events::events))),
        Route::get("/ui/console/{id}", Inspect, InBody, undocumented(get(run::by_id))),
        Route::get("/ui/events", Inspect, InBody, undocumented(get(live_events::live))),
        Route::get("/assets/{hash}/{name}", Open, NoThread, undocumented(get(assets::read))),
    ]
}
