//! The OpenAPI document is generated, and kept as a file so that a change of the API is seen.

use std::path::Path;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi.json");

/// Run with `UPDATE_OPENAPI=1` to write the file anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn the_openapi_document_equals_the_golden_file() {
    let document = format!("{}\n", loomline_server::openapi().unwrap());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(Path::new(FILE), &document).unwrap();
    }
    let golden = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        document == golden,
        "the API has changed; run the test with UPDATE_OPENAPI=1 and read the difference"
    );
}

#[tokio::test]
async fn the_document_is_served_and_says_3_1() {
    let server = crate::harness::Server::new("").await;
    let document = server.get("/openapi.json").await.json();
    assert_eq!(
        document["openapi"].as_str().map(|version| &version[..3]),
        Some("3.1")
    );
    assert_eq!(
        document["components"]["securitySchemes"]["key"]["scheme"],
        "bearer"
    );
}

#[test]
fn every_operation_has_an_id_of_its_own() {
    let document: serde_json::Value =
        serde_json::from_str(&loomline_server::openapi().unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let routes = paths.flat_map(|path| path.as_object().unwrap().values());
    let mut ids: Vec<&str> = routes
        .map(|route| route["operationId"].as_str().unwrap())
        .collect();
    let n_routes = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n_routes);
}
