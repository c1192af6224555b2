//! The client of all providers, against a local server that speaks Chat Completions.
#![cfg(feature = "http")]

mod retries;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use futures_util::StreamExt;
use loomline_upp::{
    ChatCompletions, Code, Error, Message, Model, ModelEvent, Provider, ProviderConfig, Request,
    StopReason, StreamEvent,
};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Answer = Arc<dyn Fn() -> Response<Body> + Send + Sync>;

#[derive(Clone)]
struct Server {
    answer: Answer,
    seen: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

async fn handle(State(server): State<Server>, headers: HeaderMap, body: String) -> Response<Body> {
    let body = serde_json::from_str(&body).expect("a test server");
    server
        .seen
        .lock()
        .expect("a test server")
        .push((headers, body));
    (server.answer)()
}

async fn serve(answer: impl Fn() -> Response<Body> + Send + Sync + 'static) -> (Server, String) {
    let server = Server {
        answer: Arc::new(answer),
        seen: Arc::default(),
    };
    let router = axum::Router::new()
        .route("/v1/chat/completions", post(handle))
        .with_state(server.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a test server");
    let address = listener.local_addr().expect("a test server");
    #[expect(
        clippy::disallowed_methods,
        reason = "the test's server ends with the test's runtime"
    )]
    tokio::spawn(async move { axum::serve(listener, router).await });
    (server, format!("http://{address}/v1/"))
}

fn sse(body: impl Into<Body>) -> Response<Body> {
    Response::builder()
        .header("content-type", "text/event-stream; charset=utf-8")
        .body(body.into())
        .expect("a test server")
}

fn stream_of(chunks: &[Value]) -> String {
    let events: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    events.concat() + "data: [DONE]\n\n"
}

fn content(text: &str) -> Value {
    json!({"id": "chatcmpl-0123456789", "choices": [{"index": 0, "delta": {"content": text}}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn config(url: &str) -> ProviderConfig {
    ProviderConfig::default()
        .with_base_url(url)
        .with_api_key("sk-secret".to_owned().into())
}

fn model(config: ProviderConfig) -> Result<Provider, Error> {
    Provider::new(ChatCompletions::openai("m-1"), config)
}

fn ask() -> Request {
    Request {
        messages: [Message::from("hi")].into_iter().collect(),
        ..Request::default()
    }
}

async fn complete(url: &str) -> Result<loomline_upp::Response, Error> {
    model(config(url))
        .expect("a test server")
        .complete(ask())
        .await
}

#[tokio::test]
async fn text_is_streamed_and_the_request_is_complete() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let body = stream_of(&[content("Hel"), content("lo"), finish("stop"), usage]);
    let (server, url) = serve(move || sse(body.clone())).await;
    let mut config = config(&url);
    config.headers.push(("x-extra".into(), "1".into()));
    let model = model(config).unwrap();
    let mut stream = model.stream(ask());
    let mut texts = Vec::new();
    let mut response = None;
    while let Some(item) = stream.next().await {
        match item.unwrap() {
            ModelEvent::Event(StreamEvent::TextDelta { text, .. }) => texts.push(text),
            ModelEvent::Event(_) => {}
            ModelEvent::Done(done) => response = Some(done),
        }
    }
    let response = response.unwrap();
    assert_eq!(texts, ["Hel", "lo"]);
    assert_eq!(response.message.joined_text(), "Hello");
    assert_eq!(
        (response.usage.input_tokens, response.usage.output_tokens),
        (3, 2)
    );
    let seen = server.seen.lock().unwrap();
    let (headers, body) = &seen[0];
    assert_eq!(headers["authorization"], "Bearer sk-secret");
    assert_eq!(headers["accept"], "text/event-stream");
    assert_eq!(headers["x-extra"], "1");
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
}

#[tokio::test]
async fn parallel_calls_are_put_together() {
    let call = |index: u32, id: &str, text: &str| {
        let call = json!({"index": index, "id": id, "function": {"name": "f", "arguments": text}});
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    };
    let body = stream_of(&[
        call(0, "a", "{}"),
        call(1, "b", "{\"x\": 1}"),
        finish("tool_calls"),
    ]);
    let (_, url) = serve(move || sse(body.clone())).await;
    let response = complete(&url).await.unwrap();
    let ids: Vec<&str> = response
        .message
        .tool_calls
        .iter()
        .map(|call| call.tool_call_id.as_str())
        .collect();
    assert_eq!(
        (ids, response.stop_reason),
        (vec!["a", "b"], StopReason::ToolUse)
    );
}

#[tokio::test]
async fn a_provider_that_does_not_stream_is_understood() {
    let (_, url) = serve(|| {
        let body = json!({"id": "chatcmpl-0123456789", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
        Response::builder()
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap()
    })
    .await;
    assert_eq!(complete(&url).await.unwrap().message.joined_text(), "Hello");
}

#[tokio::test]
async fn refused_requests_have_code_status_and_wait() {
    let refuse = |status: u16, body: Value| {
        move || {
            Response::builder()
                .status(StatusCode::from_u16(status).unwrap())
                .header("retry-after", "7")
                .body(Body::from(body.to_string()))
                .unwrap()
        }
    };
    for (status, body, code) in [
        (
            401,
            json!({"error": {"message": "bad key sk-secret"}}),
            Code::AuthenticationFailed,
        ),
        (
            429,
            json!({"error": {"message": "slow down"}}),
            Code::RateLimited,
        ),
        (
            429,
            json!({"error": {"message": "pay", "code": "insufficient_quota"}}),
            Code::QuotaExceeded,
        ),
        (
            400,
            json!({"error": {"message": "long", "code": "context_length_exceeded"}}),
            Code::ContextLengthExceeded,
        ),
        (503, json!({}), Code::ProviderError),
        (302, json!({}), Code::ProviderError),
    ] {
        let (_, url) = serve(refuse(status, body)).await;
        let error = complete(&url).await.unwrap_err();
        assert_eq!((error.code, error.status), (code, Some(status)));
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        assert!(!format!("{error:?}").contains("sk-secret"));
    }
}

#[tokio::test]
async fn an_error_in_the_stream_ends_it_with_what_it_says() {
    let error = json!({"error": {"message": "overloaded"}});
    let body = stream_of(&[content("Hel"), error]);
    let (_, url) = serve(move || sse(body.clone())).await;
    let error = complete(&url).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::ProviderError, "overloaded")
    );
}

#[tokio::test]
async fn a_truncated_stream_is_an_error() {
    let (_, url) = serve(|| sse(format!("data: {}\n\n", content("Hel")))).await;
    assert_eq!(complete(&url).await.unwrap_err().code, Code::NetworkError);
    let (_, url) = serve(|| sse("")).await;
    assert_eq!(
        complete(&url).await.unwrap_err().code,
        Code::InvalidResponse
    );
    let (_, url) = serve(|| sse("data: {oops\n\n")).await;
    assert_eq!(
        complete(&url).await.unwrap_err().code,
        Code::InvalidResponse
    );
}

/// Sends one chunk and then nothing, for ever.
fn stalled() -> Response<Body> {
    let first =
        futures_util::stream::iter([Ok::<_, Infallible>(format!("data: {}\n\n", content("x")))]);
    sse(Body::from_stream(
        first.chain(futures_util::stream::pending()),
    ))
}

#[tokio::test]
async fn a_stalled_stream_is_cancelled_at_once() {
    let (_, url) = serve(stalled).await;
    let request = ask();
    let signal = request.signal.clone();
    let mut stream = model(config(&url)).unwrap().stream(request);
    while let Some(item) = stream.next().await {
        match item {
            Ok(ModelEvent::Event(StreamEvent::TextDelta { .. })) => signal.cancel(),
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code, Code::Cancelled);
                return;
            }
        }
    }
    panic!("it ended");
}

#[tokio::test]
async fn a_stalled_stream_times_out() {
    let (_, url) = serve(stalled).await;
    let mut config = config(&url);
    config.timeouts.idle = Duration::from_millis(50);
    let error = model(config).unwrap().complete(ask()).await.unwrap_err();
    assert_eq!(error.code, Code::Timeout);
}

#[tokio::test]
async fn a_cancelled_request_is_not_sent() {
    let (server, url) = serve(|| sse("")).await;
    let request = ask();
    request.signal.cancel();
    let error = model(config(&url))
        .unwrap()
        .complete(request)
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    assert!(server.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused() {
    let (_, url) = serve(|| sse(format!("data: {}\n\n", content(&"x".repeat(100_000))))).await;
    let mut config = config(&url);
    config.max_event_bytes = 10_000;
    let error = model(config).unwrap().complete(ask()).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
}

#[tokio::test]
async fn a_stream_that_is_too_long_in_all_ends_with_an_error() {
    let answer = || {
        let said: Vec<Value> = (0..50).map(|_| content(&"x".repeat(100))).collect();
        sse(stream_of(&[&said[..], &[finish("stop")]].concat()))
    };
    let (_, url) = serve(answer).await;
    let mut config = config(&url);
    config.max_stream_bytes = 5_000;
    let mut stream = model(config.clone()).unwrap().stream(ask());
    let mut n_deltas = 0;
    let error = loop {
        match stream.next().await.expect("an end") {
            Ok(ModelEvent::Event(StreamEvent::TextDelta { .. })) => n_deltas += 1,
            Ok(ModelEvent::Event(_)) => {}
            Ok(ModelEvent::Done(_)) => panic!("it ended well"),
            Err(error) => break error,
        }
    };
    assert!(n_deltas < 50, "{n_deltas} deltas");
    assert_eq!(error.code, Code::InvalidResponse);
    assert_eq!(
        error.message,
        "the streamed answer is longer than 5000 bytes"
    );
    assert!(stream.next().await.is_none());
    // An answer within the limit is whole.
    config.max_stream_bytes = 50_000;
    let response = model(config).unwrap().complete(ask()).await.unwrap();
    assert_eq!(response.message.joined_text().len(), 5_000);
}

#[tokio::test]
async fn nobody_there_is_a_network_error() {
    let error = complete("http://127.0.0.1:9/v1").await.unwrap_err();
    assert_eq!(error.code, Code::NetworkError);
    assert!(error.is_retryable());
}

#[test]
fn bad_configurations_are_refused_and_hide_their_secrets() {
    let refused = |config| model(config).unwrap_err().code;
    assert_eq!(refused(config("ftp://x")), Code::InvalidRequest);
    assert_eq!(refused(config("nonsense")), Code::InvalidRequest);
    let mut bad = config("http://x");
    bad.headers.push(("a b".into(), "1".into()));
    assert_eq!(refused(bad), Code::InvalidRequest);
    let mut fine = config("http://user:hidden@x/v1");
    fine.headers.push(("x-key".into(), "hidden".into()));
    let shown = format!("{:?} {:?}", fine, model(fine.clone()).unwrap());
    assert!(
        !shown.contains("sk-secret") && !shown.contains("hidden"),
        "{shown}"
    );
}
