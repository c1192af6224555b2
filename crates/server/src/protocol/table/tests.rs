use super::*;
use crate::openapi::Document;
use crate::protocol::undocumented;
use crate::routes::PROTOCOLS;
use axum::routing::get;
use std::collections::BTreeSet;
use utoipa::OpenApi as _;

fn table() -> RouteTable {
    RouteTable::assemble(PROTOCOLS, Document::openapi()).1
}

#[test]
fn every_documented_operation_is_declared_with_its_path_and_method() {
    for protocol in PROTOCOLS {
        for route in (protocol.routes)() {
            for (path, item) in &route.handler.1.paths {
                assert_eq!(*path, route.path);
                let methods = [
                    (Method::GET, &item.get),
                    (Method::POST, &item.post),
                    (Method::PUT, &item.put),
                    (Method::PATCH, &item.patch),
                    (Method::DELETE, &item.delete),
                ];
                let documented = methods.into_iter().filter(|(_, it)| it.is_some());
                let documented: Vec<_> = documented.map(|(method, _)| method).collect();
                assert_eq!(documented.as_slice(), route.method.as_slice(), "{path}");
            }
        }
    }
}

#[test]
fn a_documented_operation_names_a_key_unless_it_is_open() {
    for protocol in PROTOCOLS {
        for route in (protocol.routes)() {
            let operations = route.handler.1.paths.values().flat_map(operations);
            for operation in operations {
                let is_open = operation.security.is_none();
                assert_eq!(is_open, route.access == Access::Open, "{}", route.path);
            }
        }
    }
}

#[test]
fn a_declared_thread_is_a_segment_of_the_path() {
    for protocol in PROTOCOLS {
        for route in (protocol.routes)() {
            match route.thread {
                ThreadAt::PathKey(name) | ThreadAt::PathId(name, _) | ThreadAt::PathPart(name) => {
                    assert!(
                        route.path.contains(&format!("{{{name}}}")),
                        "{}",
                        route.path
                    );
                }
                ThreadAt::InBody | ThreadAt::Visible | ThreadAt::NoThread | ThreadAt::Process => {
                    let names = ["{key}", "{thread_id}", "{conversation_id}"];
                    let is_refused = route.method.is_none();
                    let names_thread = names.iter().any(|name| route.path.contains(name));
                    assert!(is_refused || !names_thread, "{}", route.path);
                }
            }
        }
    }
}

#[test]
fn each_method_of_a_path_is_declared_once() {
    let mut seen = BTreeSet::new();
    for protocol in PROTOCOLS {
        for route in (protocol.routes)() {
            let method = route.method.as_ref().map(ToString::to_string);
            assert!(
                seen.insert((protocol.base, route.path, method)),
                "{}",
                route.path
            );
        }
    }
}

#[test]
fn an_undeclared_path_has_no_policy() {
    let table = table();
    for path in ["/threads/{thread_id}/unknown", "/api/v1/threads/x", "/"] {
        let policy = table.policy(path, &Method::POST);
        assert_eq!(policy.is_some(), path == "/", "{path}");
    }
}

#[test]
fn an_undeclared_method_is_not_served_and_needs_its_usual_scope() {
    let table = table();
    for (path, method, access) in [
        (
            "/threads/{thread_id}/history",
            Method::PATCH,
            Access::ByMethod,
        ),
        ("/v1/responses/{response_id}", Method::PUT, Access::ByMethod),
        ("/mcp", Method::GET, Access::ByBody),
        ("/metrics", Method::POST, Access::Operator),
        ("/healthz", Method::POST, Access::Open),
    ] {
        let policy = table.policy(path, &method).unwrap();
        assert_eq!((policy.is_served, policy.access), (false, access), "{path}");
    }
    assert!(table.policy("/metrics", &Method::HEAD).unwrap().is_served);
}

#[test]
fn a_socket_whose_messages_change_data_needs_write() {
    let policy = table().policy("/v1/responses", &Method::GET).unwrap();
    assert_eq!(policy.access, Access::Write);
}

#[test]
fn the_form_of_errors_follows_the_route_and_else_the_longest_prefix() {
    let table = table();
    for path in ["/a2a", "/a2a/", "/a2a/{agent}", "/a2a/{agent}/"] {
        assert_eq!(
            table.errors(Some(path), path),
            ErrorFormat::A2aRpc,
            "{path}"
        );
    }
    for (path, format) in [
        ("/a2a/x/y", ErrorFormat::A2a),
        ("/.well-known/other", ErrorFormat::Own),
        ("/v1", ErrorFormat::OpenAi),
        ("/v1/other", ErrorFormat::OpenAi),
        ("/v10", ErrorFormat::Own),
        ("/mcp/other", ErrorFormat::Own),
        ("/threads/x/y/z", ErrorFormat::LangGraph),
        ("/api/other", ErrorFormat::Own),
        ("/other", ErrorFormat::Own),
    ] {
        assert_eq!(table.errors(None, path), format, "{path}");
    }
}

#[test]
fn pages_of_this_machine_may_call_the_protocols_alone() {
    let table = table();
    for (template, path, may) in [
        (Some("/mcp"), "/mcp", true),
        (None, "/mcp/other", false),
        (Some("/metrics"), "/metrics", false),
        (None, "/other", false),
        (None, "/api/other", true),
        (None, "/.well-known/other", true),
        (None, "/ag-ui/other", true),
        (None, "/store/other", true),
    ] {
        assert_eq!(table.rules(template, path).local_pages, may, "{path}");
    }
}

/// A protocol with one route that needs `read`.
fn declared() -> Vec<Route> {
    let handler = undocumented(get(|| async { "answered" }));
    vec![Route::get("/x", Access::Read, ThreadAt::NoThread, handler)]
}

#[test]
fn a_protocol_declares_its_base_for_its_routes() {
    let protocol = Protocol {
        base: "/base",
        errors: ErrorFormat::Own,
        prefixes: &[],
        links: &[],
        rules: Rules::NONE,
        routes: declared,
        bodies: "",
    };
    let (_, table) = RouteTable::assemble(&[&protocol], Document::openapi());
    assert!(table.policy("/base/x", &Method::GET).unwrap().is_served);
    assert!(table.policy("/x", &Method::GET).is_none());
}
