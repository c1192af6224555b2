//! The providers' embeddings, against a local server that speaks their formats.

mod sending;
mod vendors;

use crate::server::{Seen, Server, json as answer};
use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loomline_upp::{
    Code, EmbedOptions, Embedding, EmbeddingCodec, EmbeddingInput, EmbeddingModel,
    EmbeddingOptions, EmbeddingProvider, EmbeddingRequest, EmbeddingResult, Error,
    GoogleEmbeddings, Modality, OllamaEmbeddings, OpenAiEmbeddings,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

fn small() -> OpenAiEmbeddings {
    OpenAiEmbeddings::new("text-embedding-3-small")
}

fn embedding(codec: impl EmbeddingCodec, server: &Server, params: &Value) -> Embedding {
    let model = EmbeddingProvider::new(codec, server.config()).unwrap();
    let mut options = EmbeddingOptions::new(Arc::new(model));
    options.params = params.as_object().cloned().unwrap_or_default();
    Embedding::new(options)
}

async fn embed(
    codec: impl EmbeddingCodec,
    server: &Server,
    params: &Value,
    inputs: &[&str],
) -> Result<EmbeddingResult, Error> {
    let embedding = embedding(codec, server, params);
    let inputs = inputs.iter().copied();
    embedding.embed(inputs, EmbedOptions::default()).await
}

fn vectors(result: &EmbeddingResult) -> Vec<Vec<f64>> {
    let vectors = result.embeddings.iter();
    vectors.map(|vector| vector.vector.clone()).collect()
}

fn item(index: usize, embedding: &Value) -> Value {
    json!({"object": "embedding", "index": index, "embedding": embedding})
}

fn list(items: &[Value]) -> Value {
    json!({"object": "list", "data": items, "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": 8, "total_tokens": 8}})
}

/// The texts of a request in OpenAI's format.
fn inputs(seen: &Seen) -> Vec<String> {
    serde_json::from_value(seen.json()["input"].clone()).unwrap()
}

/// Answers each text, which is a number, with that number; the last text first.
fn numbers(seen: &Seen) -> Response<Body> {
    let items = inputs(seen).into_iter().enumerate().rev();
    let items = items.map(|(at, text)| item(at, &json!([text.parse::<f64>().unwrap()])));
    answer(200, &list(&items.collect::<Vec<_>>()))
}

#[tokio::test]
async fn texts_become_vectors_in_the_order_of_the_inputs() {
    let items = [item(1, &json!([0.25, -0.5])), item(0, &json!([1.0, 2.0]))];
    let server = Server::json(200, list(&items)).await;
    let params = json!({"dimensions": 2, "user": "u", "model": "other"});
    let result = embed(small(), &server, &params, &["a", "b"]).await.unwrap();
    assert_eq!(vectors(&result), [vec![1.0, 2.0], vec![0.25, -0.5]]);
    assert_eq!(
        (result.embeddings[1].index, result.embeddings[1].dimensions),
        (1, 2)
    );
    assert_eq!(result.usage.total_tokens, 8);
    assert_eq!(result.metadata["openai"]["model"], "text-embedding-3-small");
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/v1/embeddings");
    assert_eq!(seen.headers["authorization"], "Bearer sk-secret");
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(
        seen.json(),
        json!({"dimensions": 2, "user": "u", "model": "text-embedding-3-small", "input": ["a", "b"]})
    );
}

#[tokio::test]
async fn packed_vectors_are_read_as_little_endian_floats() {
    let packed = STANDARD.encode([0, 0, 128, 63, 0, 0, 0, 192]);
    let server = Server::json(200, list(&[item(0, &json!(packed))])).await;
    let params = json!({"encoding_format": "base64"});
    let result = embed(small(), &server, &params, &["a"]).await.unwrap();
    assert_eq!(vectors(&result), [[1.0, -2.0]]);
    assert_eq!(server.seen()[0].json()["encoding_format"], "base64");
}

#[tokio::test]
async fn more_inputs_than_a_call_takes_are_sent_in_batches() {
    for (most, provider) in [(2048, "openai"), (100, "google"), (512, "ollama")] {
        let server = Server::new(|seen| {
            let body = seen.json();
            let count = |key: &str| Some(body.get(key)?.as_array()?.len());
            if let Some(n) = count("requests") {
                return answer(200, &json!({"embeddings": vec![json!({"values": [1]}); n]}));
            }
            let n = count("input").unwrap();
            if seen.path.ends_with("/api/embed") {
                return answer(200, &json!({"embeddings": vec![[1]; n]}));
            }
            let items: Vec<Value> = (0..n).map(|at| item(at, &json!([1]))).collect();
            answer(200, &list(&items))
        })
        .await;
        let none = json!({});
        let embedding = match provider {
            "openai" => embedding(small(), &server, &none),
            "google" => embedding(
                GoogleEmbeddings::new("gemini-embedding-001"),
                &server,
                &none,
            ),
            _ => embedding(OllamaEmbeddings::new("all-minilm"), &server, &none),
        };
        assert_eq!(embedding.model().max_batch_size(), most);
        let texts = vec!["a"; most + 1];
        let result = embedding
            .embed(texts, EmbedOptions::default())
            .await
            .unwrap();
        assert_eq!(result.embeddings.len(), most + 1);
        assert_eq!(server.seen().len(), 2, "{provider}");
    }
}

#[tokio::test]
async fn a_call_with_too_many_inputs_is_refused_before_it_is_sent() {
    let server = Server::json(200, list(&[])).await;
    let model = EmbeddingProvider::new(small(), server.config()).unwrap();
    let request = |n: usize| EmbeddingRequest {
        inputs: vec![EmbeddingInput::from("a"); n],
        ..EmbeddingRequest::default()
    };
    let error = model.embed(request(2049)).await.unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::InvalidRequest, Modality::Embedding)
    );
    assert!(model.embed(request(0)).await.unwrap().embeddings.is_empty());
    assert!(server.seen().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn batches_keep_the_order_of_the_inputs(
        texts in prop::collection::vec(0u16..1000, 0..40),
        size in 1usize..9,
        concurrency in 1usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::new(numbers).await;
            let options = EmbedOptions {
                batch_size: NonZeroUsize::new(size),
                concurrency: NonZeroUsize::new(concurrency),
                ..EmbedOptions::default()
            };
            let embedding = embedding(small(), &server, &json!({}));
            let result = embedding.embed(texts.iter().map(u16::to_string), options).await.unwrap();
            let expected: Vec<Vec<f64>> = texts.iter().map(|text| vec![f64::from(*text)]).collect();
            prop_assert_eq!(vectors(&result), expected);
            prop_assert!(result.embeddings.iter().enumerate().all(|(at, it)| it.index == at));
            prop_assert_eq!(server.seen().len(), texts.len().div_ceil(size));
            Ok(())
        })?;
    }

    #[test]
    fn packed_vectors_say_the_same_as_numbers(floats in prop::collection::vec(-1e6f32..1e6, 1..50)) {
        let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
        let plain: Vec<f64> = floats.iter().copied().map(f64::from).collect();
        let read = |embedding: Value| small().decode(&list(&[item(0, &embedding)]).to_string()).unwrap();
        let packed = read(json!(STANDARD.encode(bytes)));
        prop_assert_eq!(vectors(&packed), vectors(&read(json!(plain))));
    }
}

#[tokio::test]
async fn an_answer_without_one_vector_for_each_input_is_invalid() {
    let one = json!([1.0, 2.0]);
    for items in [
        vec![item(0, &one)],
        vec![item(0, &one), item(0, &one)],
        vec![item(0, &one), item(2, &one)],
        vec![item(0, &one), item(1, &one), item(2, &one)],
        vec![item(0, &one), item(1, &json!([1.0]))],
        vec![item(0, &json!([])), item(1, &json!([]))],
    ] {
        let server = Server::json(200, list(&items)).await;
        let error = embed(small(), &server, &json!({}), &["a", "b"])
            .await
            .unwrap_err();
        assert_eq!(
            (error.code, error.modality),
            (Code::InvalidResponse, Modality::Embedding),
            "{items:?}"
        );
    }
}

#[tokio::test]
async fn what_is_not_the_format_is_invalid() {
    let bad = [
        json!("<html>"),
        json!({"data": "x"}),
        json!({"object": "list"}),
        list(&[item(0, &Value::Null)]),
        list(&[item(0, &json!("%%%"))]),
        list(&[item(0, &json!(["a"]))]),
        json!({"embeddings": 7}),
        json!({"embeddings": [{}]}),
    ];
    for body in bad {
        let server = Server::json(200, body.clone()).await;
        let none = json!({});
        for outcome in [
            embed(small(), &server, &none, &["a"]).await,
            embed(GoogleEmbeddings::new("m"), &server, &none, &["a"]).await,
            embed(OllamaEmbeddings::new("m"), &server, &none, &["a"]).await,
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.code, Code::InvalidResponse, "{body}");
            assert_eq!(error.modality, Modality::Embedding);
        }
    }
}

#[tokio::test]
async fn refusals_have_code_status_wait_and_modality_and_no_key() {
    let openai = |message: &str, code: &str| json!({"error": {"message": message, "type": "t", "param": null, "code": code}});
    for (status, body, code) in [
        (
            429,
            openai("slow down", "rate_limit_exceeded"),
            Code::RateLimited,
        ),
        (
            429,
            openai("pay", "insufficient_quota"),
            Code::QuotaExceeded,
        ),
        (
            401,
            openai("Incorrect API key provided: sk-secret.", "invalid_api_key"),
            Code::AuthenticationFailed,
        ),
        (
            404,
            openai("no such model", "model_not_found"),
            Code::ModelNotFound,
        ),
        (
            400,
            openai("This model's maximum context length is 8192 tokens", "x"),
            Code::ContextLengthExceeded,
        ),
        (503, json!({}), Code::ProviderError),
    ] {
        let server = Server::json(status, body).await;
        let error = embed(small(), &server, &json!({}), &["a"])
            .await
            .unwrap_err();
        assert_eq!((error.code, error.status), (code, Some(status)));
        assert_eq!(error.modality, Modality::Embedding);
        assert_eq!(error.provider, "openai");
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        assert!(!format!("{error:?}").contains("sk-secret"), "{error:?}");
    }
}
