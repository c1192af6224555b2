//! What a protocol declares about itself: its routes, and for each route who may call it, which thread it touches
//! and how its errors look.
//!
//! A [`Protocol`] is one value, listed once in [`PROTOCOLS`](crate::routes::PROTOCOLS). The guard, the error bodies,
//! CORS, the check of query parameters and the `OpenAPI` document all read the [`RouteTable`] that is built from it.
//! A route that is served without a declaration is refused.

mod table;

use crate::auth::Scope;
use crate::error::ErrorFormat;
use crate::state::Api;
use axum::routing::MethodRouter;
use http::Method;
use interop::ids::IdForm;
pub(crate) use table::{Policy, RouteTable};
use utoipa_axum::router::UtoipaMethodRouter;

/// A protocol that the server speaks.
pub(crate) struct Protocol {
    /// Precedes the paths of its routes.
    pub(crate) base: &'static str,
    /// The form of its errors, where a route has no other.
    pub(crate) errors: ErrorFormat,
    /// Paths below these lead to this protocol also where no route is: errors there have this form. A prefix ends at
    /// a slash.
    pub(crate) prefixes: &'static [(&'static str, ErrorFormat)],
    /// Its entry points, as the index page names them.
    pub(crate) links: &'static [(&'static str, &'static str)],
    /// Rules that hold for all of its routes.
    pub(crate) rules: Rules,
    /// Its routes.
    pub(crate) routes: fn() -> Vec<Route>,
    /// The bodies of requests that its converter reads by hand, as JSON: `bodies` has the schema's name of each operation,
    /// `schemas` the schemas. Empty where all bodies are types of the server.
    pub(crate) bodies: &'static str,
}

/// Rules that hold for all routes of a protocol.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule holds or not, whatever the others are"
)]
pub(crate) struct Rules {
    /// In development mode, pages of other ports of this machine may call it (CORS).
    pub(crate) local_pages: bool,
    /// Pages of origins that are not configured are refused, also with a valid key.
    pub(crate) checks_origin: bool,
    /// A query parameter that the route does not declare is refused.
    pub(crate) declared_query: bool,
    /// An empty body is read as an empty object, so that errors name the missing member.
    pub(crate) empty_body_is_object: bool,
}

impl Rules {
    /// Of routes that are for no pages and have no rules.
    pub(crate) const NONE: Self = Self {
        local_pages: false,
        checks_origin: false,
        declared_query: false,
        empty_body_is_object: false,
    };

    /// Of a protocol whose clients may be pages.
    pub(crate) const CLIENTS: Self = Self {
        local_pages: true,
        ..Self::NONE
    };
}

/// What a caller needs for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing, not even a key.
    Open,
    /// The scope `read`.
    Read,
    /// The scope `write`.
    Write,
    /// The scope `delete`.
    Delete,
    /// The scope `operator`.
    Operator,
    /// The body names the operation (JSON-RPC): the handler checks the scope once it has read which.
    ByBody,
    /// The end of the path names the operation: `read` for this one, `write` for all others.
    ReadAction(&'static str),
    /// The scope that is usual for the method.
    ByMethod,
}

impl Access {
    /// The scope that a request needs; none if no scope is needed or the handler checks it.
    pub(crate) fn scope(self, method: &Method, path: &str) -> Option<Scope> {
        match self {
            Self::Open | Self::ByBody => None,
            Self::Read => Some(Scope::Read),
            Self::Write => Some(Scope::Write),
            Self::Delete => Some(Scope::Delete),
            Self::Operator => Some(Scope::Operator),
            Self::ReadAction(action) => Some(if ends_with_action(path, action) {
                Scope::Read
            } else {
                Scope::Write
            }),
            Self::ByMethod => Some(Scope::of(method)),
        }
    }
}

/// Whether a path ends with an action such as `:subscribe`. Some clients encode the colon; a slash at the end has no
/// meaning.
fn ends_with_action(path: &str, action: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.replace("%3A", ":").replace("%3a", ":");
    path.ends_with(action)
}

/// Where a request names the thread that it touches. A key that is restricted to some threads is checked there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadAt {
    /// The segment of the path with this name is the thread's key: the guard checks it.
    PathKey(&'static str),
    /// The segment with this name is the thread's id in this form, or its key:
    /// [`NamedThread`](crate::threads::NamedThread) finds and checks it.
    PathId(&'static str, IdForm),
    /// The segment with this name is the id of something on a thread. `ThreadRef` is found by it.
    PathPart(&'static str),
    /// The body or the query names it, or a new one is made.
    InBody,
    /// The route lists what the caller may see.
    Visible,
    /// The route touches no thread. What it serves is not restricted to threads, or the handler checks that.
    NoThread,
    /// The route concerns the whole process: a restricted key is refused.
    Process,
}

/// One route, and what it declares.
pub(crate) struct Route {
    /// All methods where absent.
    method: Option<Method>,
    path: &'static str,
    /// Further paths with the same handler and the same policy, absent from the `OpenAPI` document.
    aliases: Vec<String>,
    access: Access,
    thread: ThreadAt,
    /// The form of its errors, if not the protocol's.
    errors: Option<ErrorFormat>,
    /// The `OpenAPI` operation with its types, and the handler.
    handler: UtoipaMethodRouter<Api>,
}

impl Route {
    pub(crate) fn get(
        path: &'static str,
        access: Access,
        thread: ThreadAt,
        handler: UtoipaMethodRouter<Api>,
    ) -> Self {
        Self::new(Some(Method::GET), path, access, thread, handler)
    }

    pub(crate) fn post(
        path: &'static str,
        access: Access,
        thread: ThreadAt,
        handler: UtoipaMethodRouter<Api>,
    ) -> Self {
        Self::new(Some(Method::POST), path, access, thread, handler)
    }

    pub(crate) fn put(
        path: &'static str,
        access: Access,
        thread: ThreadAt,
        handler: UtoipaMethodRouter<Api>,
    ) -> Self {
        Self::new(Some(Method::PUT), path, access, thread, handler)
    }

    pub(crate) fn patch(
        path: &'static str,
        access: Access,
        thread: ThreadAt,
        handler: UtoipaMethodRouter<Api>,
    ) -> Self {
        Self::new(Some(Method::PATCH), path, access, thread, handler)
    }

    pub(crate) fn delete(
        path: &'static str,
        access: Access,
        thread: ThreadAt,
        handler: UtoipaMethodRouter<Api>,
    ) -> Self {
        Self::new(Some(Method::DELETE), path, access, thread, handler)
    }

    /// A route for all methods, absent from the `OpenAPI` document.
    pub(crate) fn any(path: &'static str, thread: ThreadAt, handler: MethodRouter<Api>) -> Self {
        Self::new(None, path, Access::ByMethod, thread, undocumented(handler))
    }

    fn new(
        method: Option<Method>,
        path: &'static str,
        access: Access,
        thread: ThreadAt,
        handler: UtoipaMethodRouter<Api>,
    ) -> Self {
        Self {
            method,
            path,
            aliases: Vec::new(),
            access,
            thread,
            errors: None,
            handler,
        }
    }

    /// Serves the same at further paths, which are absent from the `OpenAPI` document.
    pub(crate) fn also(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.aliases.extend(paths);
        self
    }

    /// Gives its errors another form than the protocol's.
    pub(crate) fn errors(mut self, format: ErrorFormat) -> Self {
        self.errors = Some(format);
        self
    }

    /// The path in the table of the protocol.
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }
}

/// A handler that the `OpenAPI` document does not mention.
pub(crate) fn undocumented(handler: MethodRouter<Api>) -> UtoipaMethodRouter<Api> {
    (Vec::new(), utoipa::openapi::path::Paths::new(), handler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_in_the_path_decides_the_scope() {
        let access = Access::ReadAction(":subscribe");
        for (path, scope) in [
            ("/a2a/v1/tasks/x:subscribe", Scope::Read),
            ("/a2a/v1/tasks/x%3Asubscribe", Scope::Read),
            ("/a2a/v1/tasks/x:subscribe/", Scope::Read),
            ("/a2a/v1/tasks/x%3acancel", Scope::Write),
            ("/a2a/v1/tasks/x:cancel", Scope::Write),
            ("/a2a/v1/tasks/x", Scope::Write),
        ] {
            assert_eq!(access.scope(&Method::POST, path), Some(scope), "{path}");
        }
    }
}
