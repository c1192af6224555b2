//! All routes with their policies, by the path template that the router matched.

use super::{Access, Protocol, Route, Rules, ThreadAt};
use crate::error::{ApiError, ErrorFormat};
use crate::state::Api;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, header};
use std::collections::BTreeMap;
use std::sync::Arc;
use tower_http::csrf::{CsrfLayer, ProtectionError};
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem, Paths};
use utoipa::openapi::{OpenApi, RefOr};
use utoipa_axum::router::OpenApiRouter;

/// The declaration of a route.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// All methods where absent.
    method: Option<Method>,
    pub(crate) access: Access,
    pub(crate) thread: ThreadAt,
    pub(crate) errors: ErrorFormat,
    pub(crate) rules: Rules,
    /// The names of its query parameters.
    pub(crate) query: Vec<String>,
    /// Whether the route brings runs to their end: workers answer steps, and clients cancel. A pause allows it.
    pub(crate) ends_runs: bool,
    /// Whether a handler exists. If not, the path does not have the method.
    pub(crate) is_served: bool,
}

/// The policies of all routes.
#[derive(Default)]
pub(crate) struct RouteTable {
    paths: BTreeMap<String, Vec<Arc<Policy>>>,
    /// The error forms and the rules of paths without a route, by prefix.
    prefixes: Vec<(&'static str, ErrorFormat, Rules)>,
}

impl RouteTable {
    /// The router of all routes of these protocols, and the table of their policies.
    pub(crate) fn assemble(
        protocols: &[&Protocol],
        document: OpenApi,
    ) -> (OpenApiRouter<Api>, Self) {
        let (mut router, mut table) = (OpenApiRouter::new(), Self::default());
        for protocol in protocols {
            let prefixes = protocol.prefixes.iter();
            let prefixes = prefixes.map(|(prefix, errors)| (*prefix, *errors, protocol.rules));
            table.prefixes.extend(prefixes);
            let mut own = OpenApiRouter::new();
            for route in (protocol.routes)() {
                own = table.add(protocol, route, own);
            }
            if protocol.rules.own_pages {
                own = own.layer(refuse_foreign_forms()).layer(no_store());
            }
            router = if protocol.base.is_empty() {
                router.merge(own)
            } else {
                router.nest(protocol.base, own)
            };
        }
        (OpenApiRouter::with_openapi(document).merge(router), table)
    }

    fn add(
        &mut self,
        protocol: &Protocol,
        route: Route,
        mut router: OpenApiRouter<Api>,
    ) -> OpenApiRouter<Api> {
        let policy = Arc::new(Policy {
            method: route.method,
            access: route.access,
            thread: route.thread,
            errors: route.errors.unwrap_or(protocol.errors),
            rules: protocol.rules,
            query: query_names(&route.handler.1),
            ends_runs: route.ends_runs,
            is_served: true,
        });
        let paths = route.aliases.iter().map(String::as_str);
        for path in paths.chain([route.path]) {
            let full = format!("{}{path}", protocol.base);
            let policies = self.paths.entry(full).or_default();
            policies.push(Arc::clone(&policy));
        }
        let (schemas, documented, methods) = route.handler;
        for path in &route.aliases {
            router = router.route(path, methods.clone());
        }
        if documented.paths.is_empty() {
            router.route(route.path, methods)
        } else {
            router.routes((schemas, documented, methods))
        }
    }

    /// The policy of a request, by its path template. None if the template is not declared: such a
    /// request is refused.
    pub(crate) fn policy(&self, template: &str, method: &Method) -> Option<Arc<Policy>> {
        let policies = self.paths.get(template)?;
        let of = |method: &Method| {
            let mut policies = policies.iter();
            policies.find(|it| it.method.as_ref().is_none_or(|own| own == method))
        };
        let as_get = || of(&Method::GET).filter(|_| method == Method::HEAD);
        if let Some(policy) = of(method).or_else(as_get) {
            return Some(Arc::clone(policy));
        }
        Some(Arc::new(policies.first()?.without_handler()))
    }

    /// The error form of a path, with or without a route.
    pub(crate) fn errors(&self, template: Option<&str>, path: &str) -> ErrorFormat {
        match self.first(template) {
            Some(policy) => policy.errors,
            None => self.prefix(path).map_or(ErrorFormat::Own, |it| it.1),
        }
    }

    /// The rules of a path, with or without a route.
    pub(crate) fn rules(&self, template: Option<&str>, path: &str) -> Rules {
        match self.first(template) {
            Some(policy) => policy.rules,
            None => self.prefix(path).map_or(Rules::NONE, |it| it.2),
        }
    }

    fn first(&self, template: Option<&str>) -> Option<&Policy> {
        let policies = self.paths.get(template?)?;
        policies.first().map(AsRef::as_ref)
    }

    /// The longest matching prefix of a path.
    fn prefix(&self, path: &str) -> Option<&(&'static str, ErrorFormat, Rules)> {
        let fits = |(prefix, ..): &&(&str, ErrorFormat, Rules)| {
            let rest = path.strip_prefix(prefix);
            let ends_at_slash =
                |rest: &str| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/');
            rest.is_some_and(ends_at_slash)
        };
        let prefixes = self.prefixes.iter().filter(fits);
        prefixes.max_by_key(|(prefix, ..)| prefix.len())
    }
}

impl Policy {
    /// The policy for the methods that the path does not have.
    fn without_handler(&self) -> Self {
        let access = match self.access {
            Access::Open
            | Access::ByBody
            | Access::Work
            | Access::Operator
            | Access::Inspect
            | Access::InspectProcess => self.access,
            Access::Read
            | Access::Write
            | Access::Delete
            | Access::ReadAction(_)
            | Access::ByMethod => Access::ByMethod,
        };
        Self {
            method: None,
            access,
            query: Vec::new(),
            is_served: false,
            ..self.clone()
        }
    }
}

/// Refuses requests of other origins that change something: browsers send them with the person's cookie.
fn refuse_foreign_forms() -> CsrfLayer<fn(ProtectionError) -> Response> {
    CsrfLayer::new().with_rejection_response(|_| ApiError::ForeignForm.into_response())
}

/// Adds `Cache-Control: no-store` to responses without that header.
fn no_store() -> SetResponseHeaderLayer<HeaderValue> {
    let value = HeaderValue::from_static("no-store");
    SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, value)
}

/// The names of a documented route's query parameters.
fn query_names(documented: &Paths) -> Vec<String> {
    let operations = documented.paths.values().flat_map(operations);
    let parameters = operations.flat_map(|it| it.parameters.iter().flatten());
    let of_query = parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
            Some(parameter.name.clone())
        }
        RefOr::T(_) | RefOr::Ref(_) => None,
    });
    of_query.collect()
}

fn operations(item: &PathItem) -> impl Iterator<Item = &Operation> {
    let all = [&item.get, &item.post, &item.put, &item.patch, &item.delete];
    all.into_iter().filter_map(Option::as_ref)
}

#[cfg(test)]
mod tests;
