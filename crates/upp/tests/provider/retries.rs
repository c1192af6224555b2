//! What is sent again, and with which key.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use super::{Server, ask, content, finish, model, serve, sse, stream_of};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use loomline_upp::{
    Anthropic, ChatCompletions, Code, DynamicKey, Error, Gemini, KeyStrategy, LinearBackoff, Model,
    Provider, ProviderConfig, RetryAfter, RetryStrategy, RoundRobinKeys, Signal,
};
use secrecy::SecretString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn refusal(status: u16, retry_after: Option<&str>, text: &str) -> Response<Body> {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    if let Some(wait) = retry_after {
        response = response.header("retry-after", wait);
    }
    let body = serde_json::json!({"error": {"message": text}});
    response.body(Body::from(body.to_string())).unwrap()
}

fn hello() -> Response<Body> {
    sse(stream_of(&[content("Hello"), finish("stop")]))
}

/// A server that gives the first so many requests this answer, and the others a good one.
async fn failing(
    times: usize,
    answer: impl Fn() -> Response<Body> + Send + Sync + 'static,
) -> (Server, String) {
    let n_seen = AtomicUsize::new(0);
    serve(move || {
        if n_seen.fetch_add(1, Ordering::Relaxed) < times {
            answer()
        } else {
            hello()
        }
    })
    .await
}

fn n_requests(server: &Server) -> usize {
    server.seen.lock().unwrap().len()
}

/// The keys of the requests, in order.
fn keys_of(server: &Server) -> Vec<String> {
    let seen = server.seen.lock().unwrap();
    let key = |headers: &axum::http::HeaderMap| {
        let value = headers["authorization"].to_str().unwrap();
        value.strip_prefix("Bearer ").unwrap().to_owned()
    };
    seen.iter().map(|(headers, _)| key(headers)).collect()
}

fn at_once(max_attempts: u32) -> Arc<dyn RetryStrategy> {
    Arc::new(LinearBackoff {
        max_attempts,
        delay: Duration::ZERO,
    })
}

async fn said(config: ProviderConfig) -> Result<String, Error> {
    let response = model(config).unwrap().complete(ask()).await?;
    Ok(response.message.joined_text())
}

#[tokio::test]
async fn without_a_strategy_a_request_is_sent_once() {
    let (server, url) = failing(1, || refusal(503, None, "busy")).await;
    let error = said(super::config(&url)).await.unwrap_err();
    assert_eq!((error.code, n_requests(&server)), (Code::ProviderError, 1));
}

#[tokio::test]
async fn a_refused_request_is_sent_again_as_often_as_the_strategy_says() {
    let (server, url) = failing(2, || refusal(503, None, "busy")).await;
    let config = super::config(&url).with_retry(at_once(2));
    assert_eq!(said(config).await.unwrap(), "Hello");
    assert_eq!(n_requests(&server), 3);
    let bodies: Vec<_> = {
        let seen = server.seen.lock().unwrap();
        seen.iter().map(|(_, body)| body.clone()).collect()
    };
    assert!(bodies.iter().all(|body| *body == bodies[0]));

    let (server, url) = failing(9, || refusal(503, None, "busy")).await;
    let config = super::config(&url).with_retry(at_once(2));
    let error = said(config).await.unwrap_err();
    assert_eq!((error.status, n_requests(&server)), (Some(503), 3));
}

#[tokio::test]
async fn what_will_not_succeed_is_not_sent_again() {
    let (server, url) = failing(1, || refusal(400, None, "no")).await;
    let config = super::config(&url).with_retry(at_once(5));
    let error = said(config).await.unwrap_err();
    assert_eq!((error.code, n_requests(&server)), (Code::InvalidRequest, 1));
}

/// Waits an hour where the provider does not say: a test that forgets the header does not end.
fn patient() -> Arc<dyn RetryStrategy> {
    Arc::new(RetryAfter {
        fallback_delay: Duration::from_hours(1),
        ..RetryAfter::default()
    })
}

#[tokio::test]
async fn the_wait_is_the_one_the_provider_asks_for() {
    let (server, url) = failing(2, || refusal(429, Some("0"), "slow down")).await;
    let config = super::config(&url).with_retry(patient());
    assert_eq!(said(config).await.unwrap(), "Hello");
    assert_eq!(n_requests(&server), 3);
    // What it asks for is bounded.
    let (server, url) = failing(1, || refusal(429, Some("86400"), "slow down")).await;
    let mut config = super::config(&url).with_retry(patient());
    config.retry_after_max = Duration::ZERO;
    assert_eq!(said(config).await.unwrap(), "Hello");
    assert_eq!(n_requests(&server), 2);
}

#[tokio::test]
async fn nothing_is_sent_again_once_something_was_shown() {
    let cut = || sse(format!("data: {}\n\n", content("Hel")));
    let (server, url) = failing(1, cut).await;
    let config = super::config(&url).with_retry(at_once(5));
    let items: Vec<_> = model(config).unwrap().stream(ask()).collect().await;
    assert!(items.first().unwrap().is_ok());
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!((error.code, n_requests(&server)), (Code::NetworkError, 1));
}

#[tokio::test]
async fn cancelling_ends_the_wait_for_the_next_attempt() {
    struct Cancels(Signal);
    impl RetryStrategy for Cancels {
        fn on_retry(&self, _: &Error, _: u32) -> Option<Duration> {
            self.0.cancel();
            Some(Duration::from_hours(1))
        }
        fn fork(&self) -> Arc<dyn RetryStrategy> {
            Arc::new(Self(self.0.clone()))
        }
    }
    let (server, url) = failing(1, || refusal(429, None, "slow down")).await;
    let request = ask();
    let strategy = Cancels(request.signal.clone());
    let config = super::config(&url).with_retry(Arc::new(strategy));
    let error = model(config).unwrap().complete(request).await.unwrap_err();
    assert_eq!((error.code, n_requests(&server)), (Code::Cancelled, 1));
}

fn two_keys() -> Arc<dyn KeyStrategy> {
    let keys = ["sk-first", "sk-second"].map(SecretString::from);
    Arc::new(RoundRobinKeys::new(keys.into()).unwrap())
}

fn without_key(url: &str) -> ProviderConfig {
    ProviderConfig::default().with_base_url(url)
}

#[tokio::test]
async fn a_key_is_chosen_once_a_call_and_not_once_an_attempt() {
    let (server, url) = failing(1, || refusal(503, None, "busy")).await;
    let config = without_key(&url)
        .with_keys(two_keys())
        .with_retry(at_once(1));
    let model = model(config).unwrap();
    for _ in 0..3 {
        model.complete(ask()).await.unwrap();
    }
    let expected = ["sk-first", "sk-first", "sk-second", "sk-first"];
    assert_eq!(keys_of(&server), expected);
}

#[tokio::test]
async fn a_given_key_comes_before_the_strategy() {
    let (server, url) = failing(0, hello).await;
    let config = super::config(&url).with_keys(two_keys());
    said(config).await.unwrap();
    assert_eq!(keys_of(&server), ["sk-secret"]);
}

#[tokio::test]
async fn a_key_of_a_strategy_is_in_no_error() {
    let quotes = || refusal(401, None, "the key sk-first is bad");
    let (_, url) = failing(1, quotes).await;
    let error = said(without_key(&url).with_keys(two_keys()))
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::AuthenticationFailed);
    assert!(!format!("{error:?}").contains("sk-first"), "{error:?}");
    let stream = || sse("data: {\"error\": {\"message\": \"sk-first again\"}}\n\n");
    let (_, url) = failing(1, stream).await;
    let error = said(without_key(&url).with_keys(two_keys()))
        .await
        .unwrap_err();
    assert_eq!(error.message, "*** again");
}

#[tokio::test]
async fn a_strategy_without_a_key_is_an_error_and_sends_nothing() {
    let (server, url) = failing(0, hello).await;
    let fails = DynamicKey::new(|| -> BoxFuture<'static, _> {
        let error = Error::new(Code::AuthenticationFailed, "vault", "sealed");
        Box::pin(std::future::ready(Err(error)))
    });
    let config = without_key(&url).with_keys(Arc::new(fails));
    let error = said(config).await.unwrap_err();
    assert_eq!((error.message.as_str(), n_requests(&server)), ("sealed", 0));
    // What is no header is refused when it comes, too.
    let bad = DynamicKey::new(|| Box::pin(std::future::ready(Ok("a\nb".into()))));
    let config = without_key(&url).with_keys(Arc::new(bad));
    let error = said(config).await.unwrap_err();
    assert_eq!((error.code, n_requests(&server)), (Code::InvalidRequest, 0));
}

#[tokio::test]
async fn cancelling_ends_the_wait_for_a_key() {
    let (server, url) = failing(0, hello).await;
    let never = DynamicKey::new(|| Box::pin(std::future::pending()));
    let request = ask();
    let signal = request.signal.clone();
    let model = model(without_key(&url).with_keys(Arc::new(never))).unwrap();
    let (outcome, ()) = tokio::join!(model.complete(request), async { signal.cancel() });
    assert_eq!(
        (outcome.unwrap_err().code, n_requests(&server)),
        (Code::Cancelled, 0)
    );
}

#[tokio::test]
async fn without_a_key_nothing_is_sent_to_a_vendor() {
    // A client that can reach nobody: whatever is sent is a network error.
    let nowhere = || {
        let mut config = ProviderConfig::default();
        let proxy = reqwest::Proxy::all("http://127.0.0.1:9").unwrap();
        let builder = loomline_upp::http_client_builder("test").unwrap();
        config.client = Some(builder.proxy(proxy).build().unwrap());
        config
    };
    let models = [
        Provider::new(ChatCompletions::openai("m"), nowhere()).unwrap(),
        Provider::new(Gemini::new("m"), nowhere()).unwrap(),
    ];
    for model in models {
        let error = model.complete(ask()).await.unwrap_err();
        assert_eq!(error.code, Code::AuthenticationFailed, "{error:?}");
    }
    // A header of the caller's may be what authenticates.
    let config = nowhere().with_header("X-Api-Key", "k");
    let anthropic = Anthropic::new("m").with_default_max_tokens(9);
    let model = Provider::new(anthropic, config).unwrap();
    let error = model.complete(ask()).await.unwrap_err();
    assert_eq!(error.code, Code::NetworkError, "{error:?}");
    // Another address may want no key.
    let (server, url) = failing(0, hello).await;
    said(without_key(&url)).await.unwrap();
    assert_eq!(n_requests(&server), 1);
}
