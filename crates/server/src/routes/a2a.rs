//! A2A 1.0: threads as contexts, what messages set off as tasks, in both HTTP bindings.
//!
//! `/a2a` is JSON-RPC with the default agent, `/a2a/v1/…` the paths of the other binding; the same stands below
//! `/a2a/{agent}` for each agent. An operation is one function, and the bindings only wrap it. Which agent is
//! spoken to says who answers; a task is found wherever it is asked for.

mod cancel;
mod card;
mod follow;
mod list;
mod pending;
mod replied;
mod rest;
mod rpc;
mod send;
mod tasks;

use crate::error::{ApiError, ErrorFormat};
use crate::protocol::Access::{self, Delete, Open, Read, ReadAction, Write};
use crate::protocol::ThreadAt::{self, InBody, NoThread, Visible};
use crate::protocol::{Protocol, Route, Rules, undocumented};
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::routing::{delete, get};
use http::request::Parts;
use http::{HeaderMap, Uri};
use interop::a2a::{ErrorKind, RequestError, check_version};
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
};

/// The card of the default agent.
const CARD: &str = "/.well-known/agent-card.json";
/// The task that a path names: its id has its thread's.
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

/// Serves a route of the default agent for each agent. A path may end in a slash, and clients may encode its colon.
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

/// The agent that a path names; the default one where it names none.
pub(crate) struct Agent(Option<String>);

impl FromRequestParts<Api> for Agent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let params = parts.extract::<RawPathParams>().await;
        let params = params.map_err(|rejection| ApiError::InvalidPath {
            what: rejection.body_text(),
        })?;
        let mut named = params.iter().filter(|(name, _)| *name == "agent");
        let Some((_, agent)) = named.next() else {
            return Ok(Self(None));
        };
        let agents = api.app().agents();
        if agents.iter().any(|known| known.name == agent) {
            return Ok(Self(Some(agent.to_owned())));
        }
        Err(ApiError::UnknownRoute)
    }
}

/// A body; one that is said to be no JSON is refused in the protocol's words.
pub(crate) struct Body<T>(T);

impl<T: FromRequest<Api, Rejection = ApiError>> FromRequest<Api> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let body = T::from_request(request, api).await;
        if let Err(ApiError::NotJson) = body {
            let message = "expected the content-type application/json or application/a2a+json";
            return Err(RequestError::new(ErrorKind::ContentTypeNotSupported, message).into());
        }
        body.map(Self)
    }
}

/// Refuses clients of another version. They say it in a header, or where they can't set one in the query.
fn version(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    let header = headers.get("a2a-version").and_then(|it| it.to_str().ok());
    let query = || {
        let pairs = uri.query().unwrap_or_default().split('&');
        let mut named = pairs.filter_map(|pair| pair.split_once('='));
        let found = named.find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"));
        found.map(|(_, version)| version)
    };
    Ok(check_version(header.or_else(query))?)
}
