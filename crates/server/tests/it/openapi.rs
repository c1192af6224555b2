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
    let served = server.get("/openapi.json").await.json();
    assert_eq!(
        served["openapi"].as_str().map(|version| &version[..3]),
        Some("3.1")
    );
    assert_eq!(
        served["components"]["securitySchemes"]["key"]["scheme"],
        "bearer"
    );
}
