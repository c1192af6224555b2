//! Which scope a request needs: told by the operation, and not by the method alone.

use crate::auth::Scope;
use http::Method;

/// Routes that only look although they are asked with `POST`, for what is sought stands in the body. A route that
/// is not among them changes something.
const LOOKED_AT_WITH_POST: [&str; 12] = [
    "/agents/search",
    "/assistants/count",
    "/assistants/search",
    "/runs/search",
    "/store/items/search",
    "/store/namespaces",
    "/threads/count",
    "/threads/search",
    "/threads/{thread_id}/history",
    "/threads/{thread_id}/state/checkpoint",
    "/threads/{thread_id}/stream/events",
    "/v1/responses/input_tokens",
];

/// Routes on which what is done stands in the path behind a colon, and what of it only looks.
const LOOKED_AT_BEHIND_A_COLON: [(&str, &str); 2] = [
    ("/a2a/v1/tasks/{id}", ":subscribe"),
    ("/a2a/{agent}/v1/tasks/{id}", ":subscribe"),
];

/// Routes that are asked with `GET` and change something: sockets whose messages do.
const CHANGED_WITH_GET: [&str; 1] = ["/v1/responses"];

/// Routes whose bodies say what is done: calls of JSON-RPC. They ask [`check_scope`](crate::auth::Caller::check_scope)
/// themselves once they have read which.
const TOLD_BY_THE_BODY: [&str; 3] = ["/a2a", "/a2a/{agent}", "/mcp"];

/// The figures of the process and of all tenants.
const FIGURES: &str = "/metrics";

/// What a request needs; none where its route checks itself. A path that leads nowhere has no route.
pub(super) fn needed(method: &Method, route: Option<&str>, path: &str) -> Option<Scope> {
    let route = without_slash(route.unwrap_or_default());
    let path = without_slash(path);
    if TOLD_BY_THE_BODY.contains(&route) {
        return None;
    }
    if route == FIGURES {
        return Some(Scope::Operator);
    }
    let path = || path.replace("%3A", ":").replace("%3a", ":");
    let looks = LOOKED_AT_WITH_POST.contains(&route)
        || LOOKED_AT_BEHIND_A_COLON
            .iter()
            .any(|(known, end)| *known == route && path().ends_with(end));
    if looks && method == Method::POST {
        return Some(Scope::Read);
    }
    if CHANGED_WITH_GET.contains(&route) && method == Method::GET {
        return Some(Scope::Write);
    }
    Some(Scope::of(method))
}

/// A path without the slash at its end, which means nothing.
fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_to_look_changes_something() {
        let post = |route, path| needed(&Method::POST, route, path);
        assert_eq!(post(None, "/threads/search"), Some(Scope::Write));
        for route in [
            "/threads",
            "/threads/{thread_id}/search",
            "/a2a/v1/message:send",
        ] {
            assert_eq!(post(Some(route), route), Some(Scope::Write), "{route}");
        }
        for (path, scope) in [
            ("/a2a/v1/tasks/x:subscribe", Scope::Read),
            ("/a2a/v1/tasks/x%3Asubscribe", Scope::Read),
            ("/a2a/v1/tasks/x%3acancel", Scope::Write),
            ("/a2a/v1/tasks/x:cancel", Scope::Write),
            ("/a2a/v1/tasks/x", Scope::Write),
            ("/a2a/v1/tasks/x:subscribe/", Scope::Read),
        ] {
            assert_eq!(
                post(Some("/a2a/v1/tasks/{id}"), path),
                Some(scope),
                "{path}"
            );
        }
    }

    #[test]
    fn a_socket_whose_messages_change_data_needs_write() {
        let get = |route| needed(&Method::GET, Some(route), route);
        assert_eq!(get("/v1/responses"), Some(Scope::Write));
        assert_eq!(get("/v1/responses/{response_id}"), Some(Scope::Read));
    }

    #[test]
    fn a_route_that_is_looked_at_with_post_is_not_with_other_methods() {
        let route = "/threads/{thread_id}/history";
        for (method, scope) in [
            (Method::POST, Scope::Read),
            (Method::GET, Scope::Read),
            (Method::PATCH, Scope::Write),
            (Method::DELETE, Scope::Delete),
        ] {
            assert_eq!(needed(&method, Some(route), route), Some(scope), "{method}");
        }
    }
}
