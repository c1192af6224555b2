//! The routes of A2A: for each its method, path, scope, and the place of the thread id.

use super::{card, rest, rpc};
use crate::error::ErrorFormat;
use crate::protocol::Access::{self, Delete, Open, Read, ReadAction, Write};
use crate::protocol::ThreadAt::{self, InBody, NoThread, Visible};
use crate::protocol::{Protocol, Route, Rules, undocumented};
use axum::routing::{delete, get};
use utoipa_axum::routes;

/// A2A 1.0.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::A2a,
    prefixes: &[
        ("/a2a", ErrorFormat::A2a),
        ("/.well-known/", ErrorFormat::Own),
    ],
    links: &[("a2a", CARD)],
    rules: Rules::CLIENTS,
    routes,
    bodies: include_str!("bodies.json"),
};

/// The card of the default agent.
const CARD: &str = "/.well-known/agent-card.json";

/// The task that a path names: its id contains the thread's id.
const TASK: ThreadAt = ThreadAt::PathPart("id");

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    let tasks = "/a2a/v1/tasks";
    let task = "/a2a/v1/tasks/{id}";
    let push = "/a2a/v1/tasks/{id}/pushNotificationConfigs";
    let pushed = "/a2a/v1/tasks/{id}/pushNotificationConfigs/{config}";
    vec![
        Route::get(CARD, Open, NoThread, routes!(card::public)).also([format!("{CARD}/")]).errors(ErrorFormat::Own),
        Route::get("/a2a/{agent}/.well-known/agent-card.json", Open, NoThread, undocumented(get(card::public)))
            .also([format!("/a2a/{{agent}}{CARD}/")]),
        for_each_agent(Route::post("/a2a", Access::ByBody, InBody, routes!(rpc::call))).errors(ErrorFormat::A2aRpc),
        for_each_agent(Route::post("/a2a/v1/message:send", Write, InBody, routes!(rest::send))),
        for_each_agent(Route::post("/a2a/v1/message:stream", Write, InBody, routes!(rest::stream))),
        for_each_agent(Route::get(tasks, Read, Visible, routes!(rest::list))),
        for_each_agent(Route::get(task, Read, TASK, routes!(rest::read))),
        for_each_agent(Route::post(task, ReadAction(":subscribe"), TASK, routes!(rest::act))),
        for_each_agent(Route::get(push, Read, NoThread, routes!(rest::push))),
        for_each_agent(Route::post(push, Write, NoThread, routes!(rest::push_made))),
        for_each_agent(Route::get(pushed, Read, NoThread, undocumented(get(rest::push)))),
        for_each_agent(Route::delete(pushed, Delete, NoThread, undocumented(delete(rest::push)))),
        for_each_agent(Route::get("/a2a/v1/extendedAgentCard", Read, NoThread, routes!(rest::card))),
    ]
}

/// Serves a route of the default agent for each agent too. A path may end with a slash, and clients may
/// encode its colon.
fn for_each_agent(route: Route) -> Route {
    let own = route.path();
    let rest = own.strip_prefix("/a2a").unwrap_or(own);
    let mut spellings = vec![rest.to_owned()];
    if rest.contains(':') {
        spellings.extend(["%3A", "%3a"].map(|colon| rest.replace(':', colon)));
    }
    let paths = spellings.iter().flat_map(|rest| {
        let bases = ["/a2a", "/a2a/{agent}"];
        bases.map(|base| format!("{base}{rest}"))
    });
    let paths: Vec<String> = paths.flat_map(|path| [format!("{path}/"), path]).collect();
    route.also(paths.into_iter().filter(|path| path != own))
}
