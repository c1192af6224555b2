//! What vendors other than the first do differently.

use super::{CAT, bytes, generate, gpt, images, made};
use crate::server::{Server, json as answer};
use futures_util::StreamExt;
use loomline_upp::{
    Code, GoogleImages, Image, ImageCodec, ImageModel, ImageProvider, ImageRequest, Modality,
    OpenAiImages, XaiImages,
};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn google_predicts_images_and_says_which_it_withheld() {
    let body = json!({"predictions": [
        {"mimeType": "image/jpeg", "bytesBase64Encoded": CAT, "prompt": "a grey cat"},
        {"raiFilteredReason": "a person"}]});
    let server = Server::json(200, body).await;
    let codec = GoogleImages::new("imagen-4.0-generate-001");
    let params = json!({"sampleCount": 2, "aspectRatio": "1:1"});
    let result = generate(codec, &server, &params).await.unwrap();
    assert_eq!(result.images.len(), 1);
    assert_eq!(bytes(&result.images[0].image), b"cat");
    assert_eq!(result.images[0].image.mime_type(), "image/jpeg");
    assert_eq!(result.images[0].metadata["google"]["prompt"], "a grey cat");
    assert_eq!(
        result.metadata["google"]["raiFilteredReasons"],
        json!(["a person"])
    );
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/v1/models/imagen-4.0-generate-001:predict");
    assert_eq!(seen.headers["x-goog-api-key"], "sk-secret");
    assert_eq!(
        seen.json(),
        json!({"instances": [{"prompt": "a cat"}], "parameters": params})
    );
}

#[tokio::test]
async fn google_withholding_all_images_is_a_stop_by_policy() {
    for body in [
        json!({}),
        json!({"predictions": []}),
        json!({"predictions": [{"raiFilteredReason": "a person"}]}),
    ] {
        let server = Server::json(200, body).await;
        let codec = GoogleImages::new("imagen-4.0-generate-001");
        let error = generate(codec, &server, &json!({})).await.unwrap_err();
        assert_eq!(
            (error.code, error.modality),
            (Code::ContentFiltered, Modality::Image)
        );
    }
}

#[tokio::test]
async fn google_says_in_its_own_words_why_it_refuses() {
    let body = json!({"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "9s"}]}});
    let server = Server::new(move |_| {
        let mut refusal = answer(429, &body);
        refusal.headers_mut().remove("retry-after");
        refusal
    })
    .await;
    let codec = GoogleImages::new("imagen-4.0-generate-001");
    let error = generate(codec, &server, &json!({})).await.unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::RateLimited, Modality::Image)
    );
    assert_eq!(error.retry_after, Some(Duration::from_secs(9)));
}

#[tokio::test]
async fn xai_makes_images_and_edits_them_as_json() {
    let body = json!({"data": [{"b64_json": format!("data:image/png;base64,{CAT}"), "revised_prompt": "r"},
        {"url": "https://x.test/1"}], "usage": {"cost_in_usd_ticks": 200_000_000}});
    let server = Server::json(200, body).await;
    let params = json!({"n": 2, "response_format": "b64_json"});
    let images = images(XaiImages::new("grok-imagine-image"), &server, &params);
    let result = images
        .generate("a cat", CancellationToken::new())
        .await
        .unwrap();
    let [first, second] = &result.images[..] else {
        panic!("{result:?}")
    };
    assert_eq!(
        (bytes(&first.image), first.image.mime_type()),
        (b"cat".to_vec(), "image/png")
    );
    assert_eq!(second.image.to_url().unwrap(), "https://x.test/1");
    assert_eq!(second.image.mime_type(), "image/jpeg");
    assert_eq!(result.usage.unwrap().cost, Some(200_000_000.0));
    let image = Image::from_bytes(b"cat".to_vec(), "image/png");
    images
        .edit(image, None, "a hat", CancellationToken::new())
        .await
        .unwrap();
    let seen = server.seen();
    assert_eq!(
        (seen[0].path.as_str(), seen[1].path.as_str()),
        ("/v1/images/generations", "/v1/images/edits")
    );
    assert_eq!(
        seen[1].json(),
        json!({"n": 2, "response_format": "b64_json", "model": "grok-imagine-image", "prompt": "a hat",
            "image": {"type": "image_url", "url": format!("data:image/png;base64,{CAT}")}})
    );
}

#[test]
fn models_say_what_they_can_do() {
    let can = |codec: &dyn ImageCodec| {
        let can = codec.capabilities();
        (can.generate, can.streaming, can.edit, can.max_images)
    };
    assert_eq!(can(&gpt()), (true, true, true, Some(10)));
    assert_eq!(
        can(&OpenAiImages::new("dall-e-2")),
        (true, false, true, Some(10))
    );
    assert_eq!(
        can(&OpenAiImages::new("dall-e-3")),
        (true, false, false, Some(1))
    );
    assert_eq!(
        can(&GoogleImages::new("imagen-4.0-generate-001")),
        (true, false, false, Some(4))
    );
    assert_eq!(
        can(&XaiImages::new("grok-imagine-image")),
        (true, false, true, Some(10))
    );
    assert_eq!(
        can(&XaiImages::new("grok-2-image-1212")),
        (true, false, false, Some(10))
    );
}

#[tokio::test]
async fn what_a_model_can_not_do_is_refused_before_anything_is_sent() {
    let server = Server::json(200, made()).await;
    let model = ImageProvider::new(OpenAiImages::new("dall-e-3"), server.config()).unwrap();
    let error = model
        .stream(ImageRequest::default())
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::InvalidRequest, Modality::Image)
    );
    let google = images(
        GoogleImages::new("imagen-4.0-generate-001"),
        &server,
        &json!({}),
    );
    let image = Image::from_bytes(vec![1], "image/png");
    let error = google
        .edit(image, None, "x", CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidRequest);
    assert!(server.seen().is_empty());
}
