//! The providers' embeddings, against a local server that speaks their formats.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

#[path = "endpoints/server.rs"]
mod server;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loomline_upp::{
    Code, EmbedOptions, Embedding, EmbeddingCodec, EmbeddingInput, EmbeddingModel,
    EmbeddingOptions, EmbeddingProvider, EmbeddingRequest, EmbeddingResult, Error,
    GoogleEmbeddings, Image, InputType, Modality, OllamaEmbeddings, OpenAiEmbeddings,
    ProviderConfig,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use server::{Seen, Server, json as answer, stalled};
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

#[tokio::test]
async fn google_says_in_its_own_words_why_it_refuses() {
    let body = json!({"error": {"code": 400, "message": "API key not valid: sk-secret", "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}});
    let server = Server::json(400, body).await;
    let codec = GoogleEmbeddings::new("gemini-embedding-001");
    let error = embed(codec, &server, &json!({}), &["a"]).await.unwrap_err();
    assert_eq!(error.code, Code::AuthenticationFailed);
    assert!(!format!("{error:?}").contains("sk-secret"));
}

#[tokio::test]
async fn google_is_asked_for_one_content_an_input() {
    let body = json!({"embeddings": [{"values": [0.1, 0.2]}, {"values": [0.3, 0.4]}],
        "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}});
    let server = Server::json(200, body).await;
    let codec = GoogleEmbeddings::new("gemini-embedding-001").with_dimensions(2);
    assert_eq!(codec.dimensions(), Some(2));
    let embedding = embedding(codec, &server, &json!({}));
    let options = EmbedOptions {
        input_type: Some(InputType::Query),
        ..EmbedOptions::default()
    };
    let result = embedding.embed(["a", "b"], options).await.unwrap();
    assert_eq!(vectors(&result), [[0.1, 0.2], [0.3, 0.4]]);
    assert_eq!(result.usage.total_tokens, 5);
    let seen = &server.seen()[0];
    assert_eq!(
        seen.path,
        "/v1/models/gemini-embedding-001:batchEmbedContents"
    );
    assert_eq!(seen.headers["x-goog-api-key"], "sk-secret");
    let one = |text: &str| {
        json!({"outputDimensionality": 2, "taskType": "RETRIEVAL_QUERY",
        "model": "models/gemini-embedding-001", "content": {"parts": [{"text": text}]}})
    };
    assert_eq!(seen.json(), json!({"requests": [one("a"), one("b")]}));
}

#[tokio::test]
async fn ollama_is_asked_and_read() {
    let body = json!({"model": "all-minilm", "embeddings": [[0.5, 0.25]], "total_duration": 14_143_917,
        "load_duration": 1_019_500, "prompt_eval_count": 8});
    let server = Server::json(200, body).await;
    let params = json!({"truncate": false, "keep_alive": "5m"});
    let codec = OllamaEmbeddings::new("all-minilm");
    let result = embed(codec, &server, &params, &["a"]).await.unwrap();
    assert_eq!(vectors(&result), [[0.5, 0.25]]);
    assert_eq!(result.usage.total_tokens, 8);
    assert_eq!(result.metadata["ollama"]["load_duration"], 1_019_500);
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/v1/api/embed");
    assert_eq!(
        seen.json(),
        json!({"truncate": false, "keep_alive": "5m", "model": "all-minilm", "input": ["a"]})
    );
}

#[tokio::test]
async fn openrouter_is_told_the_purpose_and_its_errors_with_status_200_are_errors() {
    let server = Server::json(200, list(&[item(0, &json!([1.0]))])).await;
    let codec = || OpenAiEmbeddings::openrouter("openai/text-embedding-3-small");
    assert_eq!(codec().dimensions(), Some(1536));
    let options = EmbedOptions {
        input_type: Some(InputType::Document),
        ..EmbedOptions::default()
    };
    let result = embedding(codec(), &server, &json!({}))
        .embed(["a"], options)
        .await;
    assert!(result.unwrap().metadata.contains_key("openrouter"));
    assert_eq!(server.seen()[0].json()["input_type"], "search_document");
    let body =
        json!({"error": {"message": "Rate limited: sk-secret", "code": "rate_limit_exceeded"}});
    let server = Server::json(200, body).await;
    let error = embed(codec(), &server, &json!({}), &["a"])
        .await
        .unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::RateLimited, Modality::Embedding)
    );
    assert!(!format!("{error:?}").contains("sk-secret"));
}

#[tokio::test]
async fn images_are_embedded_by_the_models_that_take_them() {
    let inputs = || {
        let image = Image::from_bytes(vec![1, 2, 3], "image/png").into_media();
        [EmbeddingInput::from("a"), EmbeddingInput::Image(image)]
    };
    let options = EmbedOptions::default;
    let server = Server::json(200, list(&[item(0, &json!([1])), item(1, &json!([2]))])).await;
    let plain = embedding(OpenAiEmbeddings::openrouter("m"), &server, &json!({}));
    let error = plain.embed(inputs(), options()).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
    assert!(server.seen().is_empty());
    let codec = OpenAiEmbeddings::openrouter("m").with_image_input();
    let both = embedding(codec, &server, &json!({}));
    both.embed(inputs(), options()).await.unwrap();
    assert_eq!(
        server.seen()[0].json()["input"],
        json!([{"content": [{"type": "text", "text": "a"}]},
            {"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}]}])
    );
    let body = json!({"embeddings": [{"values": [1]}, {"values": [2]}]});
    let server = Server::json(200, body).await;
    let codec = GoogleEmbeddings::new("gemini-embedding-2").with_image_input();
    let google = embedding(codec, &server, &json!({}));
    google.embed(inputs(), options()).await.unwrap();
    assert_eq!(
        server.seen()[0].json()["requests"][1]["content"],
        json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": "AQID"}}]})
    );
}

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

#[test]
fn models_say_their_limits() {
    assert_eq!(small().max_input_length(), Some(8191));
    assert_eq!(small().dimensions(), Some(1536));
    assert_eq!(
        OpenAiEmbeddings::new("text-embedding-3-large").dimensions(),
        Some(3072)
    );
    let google = GoogleEmbeddings::new("gemini-embedding-001");
    assert_eq!(
        (google.max_input_length(), google.dimensions()),
        (Some(2048), Some(3072))
    );
    let ollama = OllamaEmbeddings::new("m");
    assert_eq!(
        (ollama.max_input_length(), ollama.dimensions()),
        (None, None)
    );
}
