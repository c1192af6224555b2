//! The declaration of a protocol: its routes, and for each route the access it needs, the thread it
//! concerns and the form of its errors.
//!
//! A [`Protocol`] is one value, listed once in [`PROTOCOLS`](crate::routes::PROTOCOLS). The
//! [`RouteTable`] is built from it. The guard, the error bodies, CORS, the check of query parameters and
//! the `OpenAPI` document read the table. A served route without a declaration is refused.

mod table;

use crate::auth::Scope;
use crate::error::ErrorFormat;
use crate::state::Api;
use axum::routing::MethodRouter;
use http::Method;
use interop::ids::IdForm;
pub(crate) use table::{Policy, RouteTable};
use utoipa_axum::router::UtoipaMethodRouter;

/// A protocol of the server.
pub(crate) struct Protocol {
    /// The prefix of its routes' paths.
    pub(crate) base: &'static str,
    /// The form of its errors, for routes without another one.
    pub(crate) errors: ErrorFormat,
    /// Prefixes of paths that belong to this protocol even if no route matches, with the form of errors
    /// there. A prefix ends at a slash.
    pub(crate) prefixes: &'static [(&'static str, ErrorFormat)],
    /// Its entry points on the index page.
    pub(crate) links: &'static [(&'static str, &'static str)],
    /// The rules for all of its routes.
    pub(crate) rules: Rules,
    /// Its routes.
    pub(crate) routes: fn() -> Vec<Route>,
    /// The bodies of requests that its converter parses, as JSON: `bodies` has the schema's name of each
    /// operation, `schemas` the schemas. Empty if all bodies are types of the server.
    pub(crate) bodies: &'static str,
}

/// Rules for all routes of a protocol.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule holds or not, whatever the others are"
)]
pub(crate) struct Rules {
    /// In development mode, web pages from other ports of this machine may call it (CORS).
    pub(crate) local_pages: bool,
    /// Web pages of origins that are not configured are refused, even with a valid key.
    pub(crate) checks_origin: bool,
    /// The routes are the server's own pages: a session's cookie counts, and forms of other origins are
    /// refused.
    pub(crate) own_pages: bool,
    /// A query parameter without a declaration in the route is refused.
    pub(crate) declared_query: bool,
    /// An empty body is read as an empty object, so that errors name the missing member.
    pub(crate) empty_body_is_object: bool,
}

impl Rules {
    /// The rules for routes that are not for web pages.
    pub(crate) const NONE: Self = Self {
        local_pages: false,
        checks_origin: false,
        own_pages: false,
        declared_query: false,
        empty_body_is_object: false,
    };

    /// The rules for a protocol whose clients may be web pages.
    pub(crate) const CLIENTS: Self = Self {
        local_pages: true,
        ..Self::NONE
    };
}

/// The access that a route needs.
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
    /// The scope `work`.
    Work,
    /// The scope `operator`.
    Operator,
    /// The scopes `inspect` and `read`: a page of the console.
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages need it"))]
    Inspect,
    /// The scopes `inspect` and `operator`: the page of the console about the process.
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages need it"))]
    InspectProcess,
    /// The body names the operation (JSON-RPC): the handler checks the scope after reading it.
    ByBody,
    /// The end of the path names the operation: scope `read` for this one, `write` for all others.
    ReadAction(&'static str),
    /// The usual scope of the method.
    ByMethod,
}

impl Access {
    /// The scopes that a request needs; none if it needs no scope, or if the handler checks it.
    pub(crate) fn scopes(self, method: &Method, path: &str) -> impl Iterator<Item = Scope> {
        let inspect = self.is_console().then_some(Scope::Inspect);
        inspect.into_iter().chain(self.scope(method, path))
    }

    /// Whether the route is a page of the console.
    pub(crate) fn is_console(self) -> bool {
        matches!(self, Self::Inspect | Self::InspectProcess)
    }

    fn scope(self, method: &Method, path: &str) -> Option<Scope> {
        match self {
            Self::Open | Self::ByBody => None,
            Self::Read | Self::Inspect => Some(Scope::Read),
            Self::Write => Some(Scope::Write),
            Self::Delete => Some(Scope::Delete),
            Self::Work => Some(Scope::Work),
            Self::Operator | Self::InspectProcess => Some(Scope::Operator),
            Self::ReadAction(action) => Some(if ends_with_action(path, action) {
                Scope::Read
            } else {
                Scope::Write
            }),
            Self::ByMethod => Some(Scope::of(method)),
        }
    }
}

/// Whether a path ends with an action such as `:subscribe`. Some clients encode the colon; a slash at
/// the end is ignored.
fn ends_with_action(path: &str, action: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.replace("%3A", ":").replace("%3a", ":");
    path.ends_with(action)
}

/// The place of the thread's name in a request. If the key is restricted to some threads, the name there
/// is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadAt {
    /// The segment of the path with this name is the thread's key: the guard checks it.
    PathKey(&'static str),
    /// The path segment with this name is the thread's id in this form, or its key.
    /// [`NamedThread`](crate::threads::NamedThread) finds the thread and checks it.
    PathId(&'static str, IdForm),
    /// The path segment with this name is the id of an object of a thread. `ThreadRef` finds the thread
    /// by it.
    PathPart(&'static str),
    /// The body or the query names it, or the route creates a new one.
    InBody,
    /// The route lists the threads that the caller may see.
    Visible,
    /// The route concerns no thread. Its data is not restricted to threads, or the handler checks the
    /// access.
    NoThread,
    /// The route concerns the whole process: a restricted key is refused.
    Process,
}

/// A route and its declaration.
pub(crate) struct Route {
    /// All methods where absent.
    method: Option<Method>,
    path: &'static str,
    /// Further paths with the same handler and the same policy, absent from the `OpenAPI` document.
    aliases: Vec<String>,
    access: Access,
    thread: ThreadAt,
    /// Whether it brings runs to their end.
    ends_runs: bool,
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
            ends_runs: access == Access::Work,
            access,
            thread,
            errors: None,
            handler,
        }
    }

    /// Adds paths to the route, which are absent from the `OpenAPI` document.
    pub(crate) fn also(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.aliases.extend(paths);
        self
    }

    /// Lets it be used while its tenant is paused, because it brings runs to their end. Those of workers are such routes.
    pub(crate) fn ends_runs(mut self) -> Self {
        self.ends_runs = true;
        self
    }

    /// Sets the form of its errors, instead of the protocol's.
    pub(crate) fn errors(mut self, format: ErrorFormat) -> Self {
        self.errors = Some(format);
        self
    }

    /// The path, as the protocol's table has it.
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }
}

/// A handler that is absent from the `OpenAPI` document.
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
