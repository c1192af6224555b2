//! Images that come as a stream.

use super::{CAT, HALF, MORE, bytes, completed, events, gpt, made, partial, sse};
use crate::server::{Server, stalled};
use axum::response::Response;
use futures_util::StreamExt;
use loomline_upp::{
    Code, ImageEvent, ImageModel, ImageProvider, ImageRequest, ImageStreamEvent, Modality,
};
use serde_json::json;

#[tokio::test]
async fn unfinished_images_are_shown_before_the_finished_one() {
    let server = Server::new(|_| sse(&[partial(0, HALF), partial(1, MORE), completed(CAT)])).await;
    let events = events(&server, &json!({"partial_images": 2})).await;
    let events: Vec<ImageEvent> = events.into_iter().map(Result::unwrap).collect();
    assert_eq!(events.len(), 4);
    for (at, expected) in [(0, b"half"), (1, b"more")] {
        let ImageEvent::Event(ImageStreamEvent::Preview {
            image,
            index,
            metadata,
        }) = &events[at]
        else {
            panic!("{events:?}")
        };
        assert_eq!((bytes(image), *index), (expected.to_vec(), 0));
        assert_eq!(metadata["openai"]["partial_image_index"], at);
    }
    let ImageEvent::Event(ImageStreamEvent::Complete { image, index: 0 }) = &events[2] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (bytes(image), image.mime_type()),
        (b"cat".to_vec(), "image/png")
    );
    let ImageEvent::Done(result) = &events[3] else {
        panic!("{events:?}")
    };
    assert_eq!(result.images.len(), 1);
    let usage = result.usage.unwrap();
    assert_eq!(
        (
            usage.images_generated,
            usage.input_tokens,
            usage.output_tokens
        ),
        (Some(1), Some(40), Some(60))
    );
    let seen = &server.seen()[0];
    assert_eq!(seen.headers["accept"], "text/event-stream");
    assert_eq!(
        seen.json(),
        json!({"partial_images": 2, "model": "gpt-image-1", "prompt": "a cat", "stream": true})
    );
}

#[tokio::test]
async fn several_streamed_images_are_counted_and_summed() {
    let server = Server::new(|_| sse(&[partial(0, HALF), completed(CAT), completed(MORE)])).await;
    let events = events(&server, &json!({"n": 2})).await;
    let Some(Ok(ImageEvent::Done(result))) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(result.images.len(), 2);
    let usage = result.usage.unwrap();
    assert_eq!(
        (usage.images_generated, usage.output_tokens),
        (Some(2), Some(120))
    );
    assert!(matches!(
        &events[2],
        Ok(ImageEvent::Event(ImageStreamEvent::Complete {
            index: 1,
            ..
        }))
    ));
}

#[tokio::test]
async fn a_provider_that_does_not_stream_is_understood() {
    let server = Server::json(200, made()).await;
    let events = events(&server, &json!({})).await;
    assert!(matches!(
        &events[..],
        [
            Ok(ImageEvent::Event(ImageStreamEvent::Complete {
                index: 0,
                ..
            })),
            Ok(ImageEvent::Done(_))
        ]
    ));
}

#[tokio::test]
async fn an_error_in_the_stream_ends_it_with_what_it_says() {
    let error = json!({"type": "error", "error": {"type": "image_generation_user_error", "code": "content_policy_violation",
        "message": "sk-secret was blocked", "param": null}});
    let server = Server::new(move |_| sse(&[partial(0, HALF), error.clone()])).await;
    let events = events(&server, &json!({"partial_images": 1})).await;
    assert_eq!(events.len(), 2);
    let error = events[1].as_ref().unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::ContentFiltered, Modality::Image)
    );
    assert_eq!(error.message, "*** was blocked");
}

#[tokio::test]
async fn a_stream_that_is_cut_off_or_malformed_is_an_error() {
    let cut = format!("data: {}\n\ndata: {{\"type\": \"ima", partial(0, HALF));
    for (body, code) in [
        (cut, Code::NetworkError),
        (String::new(), Code::InvalidResponse),
        ("data: <html>\n\n".to_owned(), Code::InvalidResponse),
        (
            format!("data: {}\n\n", completed("%%%")),
            Code::InvalidResponse,
        ),
        (
            format!(
                "data: {}\n\n",
                json!({"type": "image_generation.completed"})
            ),
            Code::InvalidResponse,
        ),
    ] {
        let sent = body.clone();
        let server = Server::new(move |_| {
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(sent.clone().into())
                .unwrap()
        })
        .await;
        let events = events(&server, &json!({})).await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!(
            (error.code, error.modality),
            (code, Modality::Image),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_silent_stream_is_cancelled_at_once() {
    let begin = format!("data: {}\n\n", partial(0, HALF));
    let server = Server::new(move |_| stalled("text/event-stream", begin.clone())).await;
    let model = ImageProvider::new(gpt(), server.config()).unwrap();
    let request = ImageRequest {
        prompt: "a cat".into(),
        ..ImageRequest::default()
    };
    let signal = request.signal.clone();
    let mut stream = model.stream(request);
    assert!(matches!(
        stream.next().await,
        Some(Ok(ImageEvent::Event(ImageStreamEvent::Preview { .. })))
    ));
    signal.cancel();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::Cancelled, Modality::Image)
    );
    assert!(stream.next().await.is_none());
}
