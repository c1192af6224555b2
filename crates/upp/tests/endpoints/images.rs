//! The providers' images, against a local server that speaks their formats.

mod streams;
mod vendors;

use crate::server::Server;
use axum::body::Body;
use axum::response::Response;
use futures_util::StreamExt;
use loomline_upp::{
    Code, Error, GoogleImages, Image, ImageCodec, ImageEvent, ImageGenerator, ImageOptions,
    ImageProvider, ImageResult, Modality, OpenAiImages, XaiImages,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// `cat`, `half` and `more` as base64.
const CAT: &str = "Y2F0";
const HALF: &str = "aGFsZg==";
const MORE: &str = "bW9yZQ==";

fn gpt() -> OpenAiImages {
    OpenAiImages::new("gpt-image-1")
}

fn images(codec: impl ImageCodec, server: &Server, params: &Value) -> ImageGenerator {
    let model = ImageProvider::new(codec, server.config()).unwrap();
    let mut options = ImageOptions::new(Arc::new(model));
    options.params = params.as_object().cloned().unwrap_or_default();
    ImageGenerator::new(options)
}

async fn generate(
    codec: impl ImageCodec,
    server: &Server,
    params: &Value,
) -> Result<ImageResult, Error> {
    let images = images(codec, server, params);
    images.generate("a cat", CancellationToken::new()).await
}

async fn events(server: &Server, params: &Value) -> Vec<Result<ImageEvent, Error>> {
    let images = images(gpt(), server, params);
    images
        .stream("a cat", CancellationToken::new())
        .collect()
        .await
}

fn bytes(image: &Image) -> Vec<u8> {
    image.to_bytes().unwrap().to_vec()
}

fn made() -> Value {
    json!({"created": 1_713_833_628, "data": [{"b64_json": CAT}], "background": "opaque", "output_format": "webp",
        "size": "1024x1024", "quality": "high", "usage": {"total_tokens": 100, "input_tokens": 50, "output_tokens": 50,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 40}}})
}

fn sse(events: &[Value]) -> Response<Body> {
    let events = events.iter().map(|event| {
        let kind = event["type"].as_str().unwrap_or("error");
        format!("event: {kind}\ndata: {event}\n\n")
    });
    let body: String = events.collect();
    Response::builder()
        .header("content-type", "text/event-stream; charset=utf-8")
        .body(body.into())
        .unwrap()
}

fn partial(at: u32, data: &str) -> Value {
    json!({"type": "image_generation.partial_image", "b64_json": data, "created_at": 1_620_000_000, "size": "1024x1024",
        "quality": "high", "background": "transparent", "output_format": "png", "partial_image_index": at})
}

fn completed(data: &str) -> Value {
    json!({"type": "image_generation.completed", "b64_json": data, "created_at": 1_620_000_000, "size": "1024x1024",
        "quality": "high", "background": "transparent", "output_format": "png", "usage": {"total_tokens": 100,
        "input_tokens": 40, "output_tokens": 60, "input_tokens_details": {"text_tokens": 40, "image_tokens": 0}}})
}

#[tokio::test]
async fn an_image_is_made_in_the_format_that_the_answer_names() {
    let server = Server::json(200, made()).await;
    let params =
        json!({"size": "1024x1024", "output_format": "webp", "stream": true, "prompt": "x"});
    let result = generate(gpt(), &server, &params).await.unwrap();
    assert_eq!(bytes(&result.images[0].image), b"cat");
    assert_eq!(result.images[0].image.mime_type(), "image/webp");
    let usage = result.usage.unwrap();
    assert_eq!(
        (
            usage.images_generated,
            usage.input_tokens,
            usage.output_tokens
        ),
        (Some(1), Some(50), Some(50))
    );
    assert_eq!(result.metadata["openai"]["quality"], "high");
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/v1/images/generations");
    assert_eq!(seen.headers["authorization"], "Bearer sk-secret");
    assert_eq!(
        seen.json(),
        json!({"size": "1024x1024", "output_format": "webp", "prompt": "a cat", "model": "gpt-image-1"})
    );
}

#[tokio::test]
async fn an_image_at_an_address_is_kept_as_an_address() {
    let body = json!({"created": 1, "data": [{"url": "https://x.test/1.png?sig=a", "revised_prompt": "a grey cat"}]});
    let server = Server::json(200, body).await;
    let result = generate(OpenAiImages::new("dall-e-3"), &server, &json!({}))
        .await
        .unwrap();
    let image = &result.images[0];
    assert_eq!(image.image.to_url().unwrap(), "https://x.test/1.png?sig=a");
    assert_eq!(image.image.mime_type(), "image/png");
    assert_eq!(image.metadata["openai"]["revised_prompt"], "a grey cat");
}

#[tokio::test]
async fn the_mime_type_follows_the_parameters_where_the_answer_names_none() {
    let server = Server::json(200, json!({"data": [{"b64_json": CAT}]})).await;
    for (format, mime_type) in [
        ("jpeg", "image/jpeg"),
        ("jpg", "image/jpeg"),
        ("png", "image/png"),
    ] {
        let params = json!({"output_format": format});
        let result = generate(gpt(), &server, &params).await.unwrap();
        assert_eq!(result.images[0].image.mime_type(), mime_type);
    }
    let result = generate(gpt(), &server, &json!({})).await.unwrap();
    assert_eq!(result.images[0].image.mime_type(), "image/png");
}

#[tokio::test]
async fn an_image_and_its_mask_are_edited_as_a_form() {
    let server = Server::json(200, made()).await;
    let images = images(
        gpt(),
        &server,
        &json!({"n": 1, "size": "auto", "model": "other"}),
    );
    let image = Image::from_bytes(b"the-image".to_vec(), "image/png");
    let mask = Image::from_bytes(b"the-mask".to_vec(), "image/webp");
    let signal = CancellationToken::new();
    let result = images
        .edit(image, Some(mask), "add a hat", signal)
        .await
        .unwrap();
    assert_eq!(bytes(&result.images[0].image), b"cat");
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/v1/images/edits");
    let content_type = seen.headers["content-type"].to_str().unwrap();
    let boundary = content_type
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let text = seen.text();
    let parts: Vec<(&str, &str)> = text
        .split(&format!("--{boundary}"))
        .filter_map(|part| part.trim().split_once("\r\n\r\n"))
        .collect();
    let field = |name: &str| {
        let name = format!("name=\"{name}\"");
        let found: Vec<_> = parts
            .iter()
            .filter(|(head, _)| head.contains(&name))
            .collect();
        assert_eq!(found.len(), 1, "{name}");
        *found[0]
    };
    assert_eq!(field("model").1, "gpt-image-1");
    assert_eq!(field("prompt").1, "add a hat");
    assert_eq!((field("n").1, field("size").1), ("1", "auto"));
    let (head, data) = field("image");
    assert!(
        head.contains("filename=\"image.png\"") && head.contains("image/png"),
        "{head}"
    );
    assert_eq!(data, "the-image");
    let (head, data) = field("mask");
    assert!(
        head.contains("filename=\"mask.webp\"") && head.contains("image/webp"),
        "{head}"
    );
    assert_eq!(data, "the-mask");
}

#[tokio::test]
async fn an_image_that_can_not_be_sent_is_refused_before_anything_is() {
    let server = Server::json(200, made()).await;
    let openai = images(gpt(), &server, &json!({}));
    for image in [
        Image::from_url("https://x.test/a.png", None),
        Image::from_bytes(vec![1], "no type"),
    ] {
        let error = openai
            .edit(image, None, "x", CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!(
            (error.code, error.modality),
            (Code::InvalidRequest, Modality::Image)
        );
    }
    let image = || Image::from_bytes(vec![1], "image/png");
    let xai = images(XaiImages::new("grok-imagine-image"), &server, &json!({}));
    let masked = xai
        .edit(image(), Some(image()), "x", CancellationToken::new())
        .await;
    assert_eq!(masked.unwrap_err().code, Code::InvalidRequest);
    assert!(server.seen().is_empty());
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
            401,
            openai("Incorrect API key: sk-secret", "invalid_api_key"),
            Code::AuthenticationFailed,
        ),
        (
            400,
            openai("no", "content_policy_violation"),
            Code::ContentFiltered,
        ),
        (
            400,
            openai("bad size", "invalid_value"),
            Code::InvalidRequest,
        ),
        (500, json!("<html>"), Code::ProviderError),
    ] {
        let server = Server::json(status, body).await;
        let generated = generate(gpt(), &server, &json!({})).await.unwrap_err();
        let streamed = events(&server, &json!({})).await.remove(0).unwrap_err();
        for error in [generated, streamed] {
            assert_eq!((error.code, error.status), (code, Some(status)));
            assert_eq!(
                (error.provider.as_str(), error.modality),
                ("openai", Modality::Image)
            );
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
            assert!(!format!("{error:?}").contains("sk-secret"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn what_is_not_the_format_is_invalid() {
    for body in [
        json!("<html>"),
        json!([]),
        json!({"created": 1}),
        json!({"data": []}),
        json!({"data": [{"revised_prompt": "x"}]}),
        json!({"data": [{"b64_json": "%%%"}]}),
        json!({"predictions": 7}),
        json!({"predictions": [{"mimeType": "image/png"}]}),
        json!({"predictions": [{"bytesBase64Encoded": "%%%"}]}),
    ] {
        let server = Server::json(200, body.clone()).await;
        let none = json!({});
        for outcome in [
            generate(gpt(), &server, &none).await,
            generate(XaiImages::new("grok-imagine-image"), &server, &none).await,
            generate(GoogleImages::new("imagen-4.0-generate-001"), &server, &none).await,
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(
                (error.code, error.modality),
                (Code::InvalidResponse, Modality::Image),
                "{body}"
            );
        }
    }
    let server = Server::new(|_| Response::new("<html>".into())).await;
    let error = generate(gpt(), &server, &json!({})).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
}
