//! What vendors other than the first do differently.

use super::{embed, embedding, item, list, small, vectors};
use crate::server::Server;
use loomline_upp::{
    Code, EmbedOptions, EmbeddingCodec, EmbeddingInput, GoogleEmbeddings, Image, InputType,
    Modality, OllamaEmbeddings, OpenAiEmbeddings,
};
use serde_json::json;

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
