//! JSON Schemas from outside cost little, and are refused before anything is written.

use crate::harness::{Served, Server};
use serde_json::{Map, Value, json};

/// Random numbers that are the same in every run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: usize) -> usize {
        // Knuth's MMIX constants; the high bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn chain(length: usize, last: &Value, link: impl Fn(Value) -> Value) -> Value {
    let next = |n: usize| json!({"$ref": format!("#/$defs/a{n}")});
    let mut definitions: Map<String, Value> = (0..length)
        .map(|n| (format!("a{n}"), link(next(n + 1))))
        .collect();
    definitions.insert(format!("a{length}"), last.clone());
    json!({"type": "object", "required": ["x"], "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/a0"}}})
}

/// Forty schemas of each kind: deep, wide, cyclic, exponential, with large patterns and enums.
fn schemas() -> Vec<Value> {
    let mut random = Seeded(20);
    let mut all = Vec::new();
    for n in 0..40 {
        let size = 1 + random.below(3 * (n + 1));
        let string = json!({"type": "string"});
        all.push(match n % 3 {
            0 => chain(
                size,
                &string,
                |it| json!({"allOf": [{"anyOf": [it, {"const": 0}]}]}),
            ),
            1 => chain(size * 3, &string, |it| json!({"properties": {"x": it}})),
            _ => (0..size.min(50)).fold(
                string,
                |it, _| json!({"type": "object", "properties": {"x": it}}),
            ),
        });
        let names =
            (0..size * 100).map(|n| (format!("p{n}"), json!({"type": "integer", "minimum": n})));
        all.push(json!({"type": "object", "properties": names.collect::<Map<_, _>>()}));
        let back = json!({"$ref": "#/$defs/a0"});
        all.push(match n % 3 {
            0 => chain(
                size.min(20),
                &back,
                |it| json!({"anyOf": [it, {"type": "null"}]}),
            ),
            1 => chain(
                size.min(20),
                &back,
                |it| json!({"type": "array", "items": it}),
            ),
            _ => chain(
                size.min(20),
                &back,
                |it| json!({"oneOf": [{"properties": {"l": it, "r": it}}, {"type": "null"}]}),
            ),
        });
        all.push(match n % 3 {
            0 => chain(
                size,
                &json!({"type": "null"}),
                |it| json!({"anyOf": [{"allOf": [it, {"type": "integer"}]}, it, it]}),
            ),
            1 => chain(
                size,
                &json!({}),
                |it| json!({"if": it, "then": it, "else": it}),
            ),
            _ => chain(size, &json!({}), |it| json!({"items": it, "contains": it})),
        });
        let length = 10 * (1 + random.below(40));
        all.push(match n % 2 {
            0 => json!({"type": "object", "properties": {"x": {"pattern": format!("(a{{{length}}}b){{{size}}}")}}}),
            _ => json!({"type": "object", "properties": {"x": {"enum": (0..size * 50).collect::<Vec<_>>()}}}),
        });
    }
    all
}

/// Every request that brings a schema, and the place of the schema in the words of its protocol.
fn ways_in(schema: &Value, n: usize) -> Vec<(&'static str, Value, &'static str)> {
    let function = json!({"type": "function", "function": {"name": "boom", "parameters": schema}});
    let message = json!([{"role": "user", "content": "hello"}]);
    let named = json!({"type": "json_schema", "name": "n", "schema": schema});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    vec![
        (
            "/v1/responses",
            json!({"model": "demo", "input": "hello",
            "tools": [{"type": "function", "name": "boom", "parameters": schema}]}),
            "/tools/0/parameters",
        ),
        (
            "/v1/responses",
            json!({"model": "demo", "input": "hello", "text": {"format": named}}),
            "/text/format/schema",
        ),
        (
            "/v1/threads/runs",
            json!({"assistant_id": "demo", "tools": [function], "thread": {"messages": message}}),
            "tools[0].function.parameters",
        ),
        (
            "/v1/threads/runs",
            json!({"assistant_id": "demo", "response_format": format, "thread": {"messages": message}}),
            "response_format.json_schema.schema",
        ),
        (
            "/v1/assistants",
            json!({"model": "scripted", "tools": [function]}),
            "tools[0].function.parameters",
        ),
        (
            "/ag-ui",
            json!({"threadId": format!("t{n}"), "runId": "r", "state": {}, "context": [], "forwardedProps": {},
            "tools": [{"name": "boom", "description": "", "parameters": schema}],
            "messages": [{"id": "u", "role": "user", "content": "hello"}]}),
            "/tools/0/parameters",
        ),
    ]
}

async fn n_threads(server: &Server) -> usize {
    let threads = server.get("/api/v1/threads?limit=1000").await.json();
    threads["threads"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_hostile_schemas_are_refused_or_used_over_every_way_in() {
    let server = Server::new("").await;
    let schemas = schemas();
    assert_eq!(schemas.len(), 200);
    let (mut n_refused, mut n_used) = (0, 0);
    for (n, schema) in schemas.iter().enumerate() {
        let refused = upp::schema::check(schema).err();
        let before = n_threads(&server).await;
        for (path, body, place) in ways_in(schema, n) {
            let Some(refused) = &refused else {
                // One run for each way shows that it ends; the schemas are alike.
                if n % 8 == 0 {
                    let answer = server.post(path, body).await;
                    assert!(answer.status.is_success(), "{path} {}", answer.text);
                    n_used += 1;
                }
                continue;
            };
            let answer = server.post(path, body).await;
            let status = if path == "/ag-ui" { 422 } else { 400 };
            assert_eq!(answer.status, status, "{path} {schema}");
            assert!(answer.text.contains(place), "{path} {}", answer.text);
            assert!(
                answer.text.contains(refused.fault.expected()),
                "{}",
                answer.text
            );
            n_refused += 1;
        }
        if refused.is_some() {
            assert_eq!(n_threads(&server).await, before, "{schema}");
        }
    }
    assert!(n_refused > 300 && n_used > 0, "{n_refused} {n_used}");
    let assistants = server.get("/v1/assistants?limit=100").await.json();
    assert_eq!(server.get("/healthz").await.status, 200);
    assert!(assistants["data"].as_array().unwrap().len() <= n_used);
}

#[tokio::test]
async fn a_refused_schema_is_answered_with_invalid_field_and_its_place() {
    let server = Server::new("").await;
    let schema = json!({"type": "object", "properties": {"a/b": {"$ref": "#/none"}}});
    let body = ways_in(&schema, 0).pop().unwrap().1;
    let (status, code, pointer) = server.post("/ag-ui", body).await.error();
    assert_eq!((status, code.as_str()), (422, "invalid_field"));
    let place = "/tools/0/parameters/properties/a~1b/$ref";
    assert_eq!(pointer.as_deref(), Some(place));
    assert_eq!(server.get("/api/v1/threads/t0").await.status, 404);
}

#[tokio::test]
async fn a_refused_schema_over_a_websocket_leaves_the_connection_open() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = crate::responses::socket::Socket::open(&listening).await;
    let body = &ways_in(&json!({"$ref": "#"}), 0)[0].1;
    socket.ask(body.clone()).await;
    assert_eq!(socket.error().await.0, 400);
    socket.ask(json!({"model": "demo", "input": "hello"})).await;
    assert!(!socket.events().await.is_empty());
    assert_eq!(n_threads(&server).await, 1);
    listening.stop().await;
}
