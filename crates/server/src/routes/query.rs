//! Query parameters of our own API: those that a route declares, and no others.

use crate::error::ApiError;
use crate::openapi;
use axum::extract::{MatchedPath, Query, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The names of the query parameters of each route, by its path and method.
type Declared = BTreeMap<(String, String), Vec<String>>;

static DECLARED: LazyLock<Declared> = LazyLock::new(|| {
    // The document is built from the same routes, and a test reads it.
    let document = openapi::document().unwrap_or_default();
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().into_iter().flatten();
        operations.map(move |(method, operation)| {
            ((path.clone(), method.to_uppercase()), names(operation))
        })
    });
    operations.collect()
});

fn names(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let of_query = parameters.filter(|it| it["in"] == "query");
    of_query
        .filter_map(|it| it["name"].as_str().map(str::to_owned))
        .collect()
}

/// Refuses a request with a query parameter that its route does not declare.
pub(super) async fn declared(request: Request, next: Next) -> Result<Response, ApiError> {
    if request.uri().query().is_some_and(|query| !query.is_empty()) {
        check(&request)?;
    }
    Ok(next.run(request).await)
}

fn check(request: &Request) -> Result<(), ApiError> {
    let method = match *request.method() {
        Method::HEAD => Method::GET.as_str(),
        ref method => method.as_str(),
    };
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or(request.uri().path(), MatchedPath::as_str);
    let route = (path.to_owned(), method.to_owned());
    let declared = DECLARED.get(&route).map(Vec::as_slice).unwrap_or_default();
    let sent = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let Query(sent) = sent.map_err(|rejection| ApiError::InvalidQuery {
        what: crate::error::told(&rejection),
    })?;
    let Some((name, _)) = sent.iter().find(|(name, _)| !declared.contains(name)) else {
        return Ok(());
    };
    let expected = if declared.is_empty() {
        "no parameters".to_owned()
    } else {
        declared.join(", ")
    };
    let what = format!("unknown parameter {name:?}, expected {expected}");
    Err(ApiError::InvalidQuery { what })
}
