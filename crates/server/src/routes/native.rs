//! The native API, below `/api/v1`.

use super::aitp::{actors, answer, requests};
#[cfg(feature = "web")]
use super::web_tokens;
use super::{
    agents, answers, branches, compactions, comparison, content, documents, events, messages,
    objects, process, relatives, runs, steps, thread_feed, thread_list, threads, versions, waiting,
};
use crate::error::ErrorFormat;
use crate::protocol::Access::{Delete, Operator, Read, Work, Write};
use crate::protocol::ThreadAt::{InBody, NoThread, PathKey, Process, Visible};
use crate::protocol::{Protocol, Route, Rules};
use utoipa_axum::routes;

/// This server's own API.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "/api/v1",
    errors: ErrorFormat::Own,
    prefixes: &[("/api/", ErrorFormat::Own)],
    links: &[("threads", "/api/v1/threads")],
    rules: Rules {
        declared_query: true,
        ..Rules::CLIENTS
    },
    routes,
    bodies: "",
};

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    let all = vec![
        Route::get("/threads", Read, Visible, routes!(thread_list::list)),
        Route::post("/threads", Write, InBody, routes!(threads::create)),
        Route::get("/threads/{key}", Read, PathKey("key"), routes!(threads::read)),
        Route::patch("/threads/{key}", Write, PathKey("key"), routes!(threads::change)),
        Route::delete("/threads/{key}", Delete, PathKey("key"), routes!(threads::delete)),
        Route::post("/threads/{key}/fork", Write, PathKey("key"), routes!(threads::fork)),
        Route::get("/threads/{key}/branches", Read, PathKey("key"), routes!(branches::list)),
        Route::get("/threads/{key}/tree", Read, PathKey("key"), routes!(relatives::read)),
        Route::post("/threads/{key}/close", Write, PathKey("key"), routes!(threads::close)),
        Route::post("/threads/{key}/reopen", Write, PathKey("key"), routes!(threads::reopen)),
        Route::post("/threads/{key}/cancel", Write, PathKey("key"), routes!(threads::cancel)).ends_runs(),
        Route::get("/threads/{key}/compactions", Read, PathKey("key"), routes!(compactions::list)),
        Route::post("/threads/{key}/compactions", Write, PathKey("key"), routes!(compactions::create)),
        Route::delete("/threads/{key}/compactions/{id}", Write, PathKey("key"), routes!(compactions::withdraw)),
        Route::get("/threads/{key}/messages", Read, PathKey("key"), routes!(messages::list)),
        Route::post("/threads/{key}/messages", Write, PathKey("key"), routes!(messages::post)),
        Route::post("/threads/{key}/messages/{id}/replace", Write, PathKey("key"), routes!(versions::replace)),
        Route::post("/threads/{key}/messages/{id}/regenerate", Write, PathKey("key"), routes!(versions::regenerate)),
        Route::get("/threads/{key}/messages/{id}/versions", Read, PathKey("key"), routes!(versions::list)),
        Route::get("/threads/{key}/messages/{id}/parts/{index}/content", Read, PathKey("key"), routes!(content::read)),
        Route::get("/threads/{key}/pending", Read, PathKey("key"), routes!(answers::pending)),
        Route::post("/threads/{key}/answers", Write, PathKey("key"), routes!(answers::post)),
        Route::get("/threads/{key}/runs", Read, PathKey("key"), routes!(runs::list)),
        Route::get("/threads/{key}/runs/{executionId}", Read, PathKey("key"), routes!(runs::read)),
        Route::post("/threads/{key}/runs/{executionId}/cancel", Write, PathKey("key"), routes!(runs::cancel)).ends_runs(),
        Route::get("/threads/{key}/events", Read, PathKey("key"), routes!(events::follow)),
        Route::get("/threads/{key}/document", Read, PathKey("key"), routes!(documents::export)),
        Route::get("/threads/{key}/diff", Read, PathKey("key"), routes!(comparison::diff)),
        Route::post("/threads/{key}/import", Write, PathKey("key"), routes!(documents::append)),
        Route::get("/threads/{key}/objects/{kind}", Read, PathKey("key"), routes!(objects::list)),
        Route::get("/threads/{key}/objects/{kind}/{id}", Read, PathKey("key"), routes!(objects::read)),
        Route::put("/threads/{key}/objects/{kind}/{id}", Write, PathKey("key"), routes!(objects::put)),
        Route::delete("/threads/{key}/objects/{kind}/{id}", Delete, PathKey("key"), routes!(objects::delete)),
        Route::get("/waiting", Read, Visible, routes!(waiting::list)),
        Route::get("/events", Read, Visible, routes!(thread_feed::follow)),
        Route::post("/import", Write, InBody, routes!(documents::import)),
        Route::post("/steps/lease", Work, NoThread, routes!(steps::lease)),
        Route::post("/steps/{step}/heartbeat", Work, NoThread, routes!(steps::heartbeat)),
        Route::post("/steps/{step}/deltas", Work, NoThread, routes!(steps::stream)),
        Route::post("/steps/{step}/complete", Work, NoThread, routes!(steps::complete)),
        Route::post("/steps/{step}/fail", Work, NoThread, routes!(steps::fail)),
        Route::get("/agents", Read, NoThread, routes!(agents::list)),
        Route::get("/health", Operator, Process, routes!(process::read)),
        // AITP
        Route::get("/threads/{key}/actors", Read, PathKey("key"), routes!(actors::list)),
        Route::post("/threads/{key}/actors", Write, PathKey("key"), routes!(actors::join)),
        Route::patch("/threads/{key}/actors/{actor}", Write, PathKey("key"), routes!(actors::declare)),
        Route::delete("/threads/{key}/actors/{actor}", Delete, PathKey("key"), routes!(actors::leave)),
        Route::get("/threads/{key}/requests", Read, PathKey("key"), routes!(requests::list)),
        Route::get("/threads/{key}/requests/{request}", Read, PathKey("key"), routes!(requests::read)),
        Route::post("/threads/{key}/requests/{request}/answer", Write, PathKey("key"), routes!(answer::answer)),
        Route::post("/threads/{key}/requests/{request}/decline", Write, PathKey("key"), routes!(answer::decline)),
        Route::post("/threads/{key}/requests/{request}/cancel", Write, PathKey("key"), routes!(answer::cancel)),
    ];
    #[cfg(feature = "web")]
    let of_pages = [Route::post("/web/tokens", Write, InBody, routes!(web_tokens::create))];
    #[cfg(not(feature = "web"))]
    let of_pages = [];
    all.into_iter().chain(of_pages).collect()
}
