//! How a call is sent, refused and given up.

use super::{item, list, small};
use crate::server::{Server, json as answer, stalled};
use loomline_upp::{
    Code, EmbeddingModel, EmbeddingProvider, EmbeddingRequest, Modality, ProviderConfig,
};
use serde_json::{Map, json};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_silent_provider_is_cancelled_at_once() {
    let server = Server::new(|_| stalled("application/json", "{\"data\":")).await;
    let model = EmbeddingProvider::new(small(), server.config()).unwrap();
    let request = || EmbeddingRequest {
        inputs: vec!["a".into()],
        ..EmbeddingRequest::default()
    };
    let slow = request();
    let signal = slow.signal.clone();
    let watch = async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        signal.cancel();
    };
    let (outcome, ()) = tokio::join!(model.embed(slow), watch);
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::Cancelled, Modality::Embedding)
    );
    let late = request();
    late.signal.cancel();
    assert_eq!(model.embed(late).await.unwrap_err().code, Code::Cancelled);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_silent_provider_times_out_and_a_long_answer_is_refused() {
    let server = Server::new(|_| stalled("application/json", "{\"data\":")).await;
    let mut config = server.config();
    config.timeouts.idle = Duration::from_millis(50);
    let request = EmbeddingRequest {
        inputs: vec!["a".into()],
        ..EmbeddingRequest::default()
    };
    let model = EmbeddingProvider::new(small(), config).unwrap();
    assert_eq!(
        model.embed(request.clone()).await.unwrap_err().code,
        Code::Timeout
    );
    let server = Server::json(200, list(&[item(0, &json!(vec![0.5; 1000]))])).await;
    let mut config = server.config();
    config.max_body_bytes = 1000;
    let model = EmbeddingProvider::new(small(), config).unwrap();
    let error = model.embed(request).await.unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::InvalidResponse, Modality::Embedding)
    );
}

#[tokio::test]
async fn nobody_there_is_a_network_error_and_the_callers_headers_win() {
    let config = ProviderConfig::default().with_base_url("http://127.0.0.1:9/v1");
    let model = EmbeddingProvider::new(small(), config).unwrap();
    let request = EmbeddingRequest {
        inputs: vec!["a".into()],
        params: Arc::new(Map::new()),
        ..EmbeddingRequest::default()
    };
    let error = model.embed(request.clone()).await.unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::NetworkError, Modality::Embedding)
    );
    let server = Server::json(200, list(&[item(0, &json!([1]))])).await;
    let config = server.config().with_header("authorization", "Basic x");
    let model = EmbeddingProvider::new(small(), config).unwrap();
    model.embed(request).await.unwrap();
    assert_eq!(server.seen()[0].headers["authorization"], "Basic x");
}

#[test]
fn bad_configurations_are_refused_and_hide_their_secrets() {
    let made = |url: &str, name: &str| {
        let config = ProviderConfig::default()
            .with_base_url(url)
            .with_api_key("sk-secret".to_owned().into())
            .with_header(name, "hidden");
        EmbeddingProvider::new(small(), config)
    };
    for (url, name) in [("ftp://x", "a"), ("nonsense", "a"), ("http://x", "a b")] {
        let error = made(url, name).unwrap_err();
        assert_eq!(
            (error.code, error.modality),
            (Code::InvalidRequest, Modality::Embedding)
        );
    }
    let shown = format!("{:?}", made("http://user:hidden@x", "a").unwrap());
    assert!(
        !shown.contains("sk-secret") && !shown.contains("hidden"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_vendor_is_not_asked_without_a_key() {
    let request = || EmbeddingRequest {
        inputs: vec!["a".into()],
        ..EmbeddingRequest::default()
    };
    let model = EmbeddingProvider::new(small(), ProviderConfig::default()).unwrap();
    let error = model.embed(request()).await.unwrap_err();
    assert_eq!(
        (error.code, error.status, error.modality),
        (Code::AuthenticationFailed, None, Modality::Embedding)
    );
    // A host of one's own may need none.
    let server = Server::json(200, list(&[item(0, &json!([1]))])).await;
    let config = ProviderConfig::default().with_base_url(&server.url);
    let model = EmbeddingProvider::new(small(), config).unwrap();
    model.embed(request()).await.unwrap();
    assert!(!server.seen()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn a_refused_call_is_sent_again_with_the_same_key() {
    let answers = std::sync::Mutex::new(0);
    let server = Server::new(move |_| {
        let mut n = answers.lock().unwrap();
        *n += 1;
        if *n == 1 {
            return answer(503, &json!({}));
        }
        answer(200, &list(&[item(0, &json!([1]))]))
    })
    .await;
    let keys = ["k-1", "k-2"].map(|key| key.to_owned().into()).to_vec();
    let keys = Arc::new(loomline_upp::RoundRobinKeys::new(keys).unwrap());
    let retry = loomline_upp::LinearBackoff {
        max_attempts: 1,
        delay: Duration::ZERO,
    };
    let config = ProviderConfig::default()
        .with_base_url(&server.url)
        .with_keys(keys)
        .with_retry(Arc::new(retry));
    let model = EmbeddingProvider::new(small(), config).unwrap();
    let request = EmbeddingRequest {
        inputs: vec!["a".into()],
        ..EmbeddingRequest::default()
    };
    model.embed(request.clone()).await.unwrap();
    model.embed(request).await.unwrap();
    let seen = server.seen();
    let keys: Vec<&str> = seen
        .iter()
        .map(|it| it.headers["authorization"].to_str().unwrap())
        .collect();
    assert_eq!(keys, ["Bearer k-1", "Bearer k-1", "Bearer k-2"]);
}

#[tokio::test]
async fn a_key_in_a_header_of_the_callers_is_not_quoted() {
    let body = json!({"error": {"message": "Incorrect API key: hidden-key", "type": "t"}});
    let server = Server::json(401, body).await;
    let config = server
        .config()
        .with_header("authorization", "Bearer hidden-key");
    let model = EmbeddingProvider::new(small(), config).unwrap();
    let request = EmbeddingRequest {
        inputs: vec!["a".into()],
        ..EmbeddingRequest::default()
    };
    let error = model.embed(request).await.unwrap_err();
    assert_eq!(error.code, Code::AuthenticationFailed);
    assert!(error.message.contains("***"), "{error:?}");
    assert!(!format!("{error:?}").contains("hidden-key"), "{error:?}");
}
