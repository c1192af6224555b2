//! Spans as a collector gets them.

use crate::harness::Server;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::HeaderMap;
use loomline_server::telemetry::{TelemetryConfig, TelemetryGuard, install};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;

type Received = Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>;

/// A collector on a thread of its own, for sending the last spans blocks the test's.
struct Collector {
    addr: SocketAddr,
    received: Received,
    _stop: DropGuard,
}

impl Collector {
    fn new() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let addr = listener.local_addr().unwrap();
        let received = Received::default();
        let stop = CancellationToken::new();
        let router = Router::new()
            .route("/v1/traces", post(receive))
            .with_state(Arc::clone(&received));
        let stopped = stop.clone().cancelled_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let serve = axum::serve(listener, router).with_graceful_shutdown(stopped);
                serve.await.unwrap();
            });
        });
        Self {
            addr,
            received,
            _stop: stop.drop_guard(),
        }
    }

    fn config(&self) -> TelemetryConfig {
        TelemetryConfig::new(format!("http://{}", self.addr))
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        received
            .iter()
            .flat_map(|(_, request)| &request.resource_spans)
            .flat_map(|of_resource| &of_resource.scope_spans)
            .flat_map(|of_scope| of_scope.spans.clone())
            .collect()
    }
}

async fn receive(State(received): State<Received>, headers: HeaderMap, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    received.lock().unwrap().push((headers, request));
}

/// Spans of this thread, on which the server of the test runs too, go to the collector.
fn export(config: &TelemetryConfig) -> (TelemetryGuard, DefaultGuard) {
    let guard = install(config).unwrap();
    let subscriber = tracing_subscriber::registry().with(guard.layer());
    (guard, tracing::subscriber::set_default(subscriber))
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|it| it.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn text(span: &Span, key: &str) -> String {
    match attribute(&span.attributes, key) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{key} is {other:?}"),
    }
}

fn count(span: &Span, key: &str) -> i64 {
    match attribute(&span.attributes, key) {
        Some(Value::IntValue(n)) => *n,
        other => panic!("{key} is {other:?}"),
    }
}

fn ended(guard: TelemetryGuard) {
    guard.shutdown(Duration::from_secs(20)).unwrap();
}

#[tokio::test]
async fn a_run_of_the_demo_agent_reaches_the_collector() {
    let collector = Collector::new();
    let (guard, _subscriber) = export(&collector.config());
    let server = Server::new("").await;
    server.say("hello", "compute 2+3*4").await;
    ended(guard);

    let mut spans = collector.spans();
    spans.sort_by_key(|span| span.start_time_unix_nano);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let expected = [
        "invoke_agent demo",
        "chat scripted-1",
        "execute_tool compute",
        "invoke_agent demo",
        "chat scripted-1",
    ];
    assert_eq!(names, expected);
    let [first, call, tool, second, _] = spans.as_slice() else {
        panic!("five spans");
    };
    assert_eq!(call.parent_span_id, first.span_id);
    assert_eq!(tool.parent_span_id, first.span_id);
    assert_eq!(call.trace_id, first.trace_id);
    for step in [first, second] {
        assert!(step.parent_span_id.is_empty());
        assert_eq!(text(step, "gen_ai.conversation.id"), "hello");
        assert_eq!(text(step, "gen_ai.agent.name"), "demo");
    }
    assert_eq!(text(call, "gen_ai.operation.name"), "chat");
    assert_eq!(text(call, "gen_ai.provider.name"), "scripted");
    assert_eq!(call.kind, 3, "a client's span");
    assert!(count(call, "gen_ai.usage.input_tokens") > 0);
    assert!(count(call, "gen_ai.usage.output_tokens") > 0);
    let reasons = attribute(&call.attributes, "gen_ai.response.finish_reasons");
    let Some(Value::ArrayValue(reasons)) = reasons else {
        panic!("{reasons:?}");
    };
    let reason = AnyValue {
        value: Some(Value::StringValue("tool_call".to_owned())),
    };
    assert_eq!(reasons.values, [reason]);
    assert_eq!(text(tool, "gen_ai.tool.name"), "compute");
    assert_eq!(text(tool, "gen_ai.tool.type"), "function");
}

#[tokio::test]
async fn the_collector_gets_the_name_of_the_service_and_the_headers_and_no_content() {
    let collector = Collector::new();
    let mut config = collector.config();
    config.service_name = "loom-7".to_owned();
    config.headers.insert("x-key".to_owned(), "k".into());
    let (guard, _subscriber) = export(&config);
    let server = Server::new("").await;
    server.say("hello", "canary-91c2").await;
    ended(guard);

    let received = collector.received.lock().unwrap();
    let (headers, request) = received.first().unwrap();
    assert_eq!(headers["x-key"], "k");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    let name = attribute(&resource.attributes, "service.name");
    assert_eq!(name, Some(&Value::StringValue("loom-7".to_owned())));
    for (_, request) in received.iter() {
        assert!(!format!("{request:?}").contains("canary-91c2"));
    }
}

#[tokio::test]
async fn a_failed_tool_has_the_status_of_an_error() {
    let collector = Collector::new();
    let (guard, _subscriber) = export(&collector.config());
    let server = Server::new("").await;
    server.say("hello", "compute 1/0").await;
    guard.flush().unwrap();

    let spans = collector.spans();
    let mut tools = spans.iter().filter(|it| it.name == "execute_tool compute");
    let tool = tools.next().unwrap();
    assert_eq!(text(tool, "error.type"), "tool_error");
    let status = tool.status.as_ref().unwrap();
    assert_eq!(status.code, 2, "an error");
    assert_eq!(status.message, "");
}

#[tokio::test]
async fn dropping_the_guard_sends_the_last_spans() {
    let collector = Collector::new();
    let (guard, _subscriber) = export(&collector.config());
    let server = Server::new("").await;
    server.say("hello", "Hi").await;
    drop(guard);
    assert_eq!(collector.spans().len(), 2);
}

#[tokio::test]
async fn no_trace_is_sent_at_a_ratio_of_zero() {
    let collector = Collector::new();
    let mut config = collector.config();
    config.sample_ratio = 0.0;
    let (guard, _subscriber) = export(&config);
    let server = Server::new("").await;
    server.say("hello", "Hi").await;
    ended(guard);
    assert!(collector.spans().is_empty());
}

#[tokio::test]
async fn the_server_goes_on_when_the_collector_is_down() {
    let config = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        TelemetryConfig::new(format!("http://{}", listener.local_addr().unwrap()))
    };
    let (guard, _subscriber) = export(&config);
    let server = Server::new("").await;
    server.say("hello", "compute 1+1").await;
    guard.flush().unwrap_err();
    let answer = server.say("hello", "compute 2+2").await;
    assert!(answer.text.contains('4'), "{}", answer.text);
}
