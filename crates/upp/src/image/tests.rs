use super::*;
use std::sync::Mutex;

#[derive(Default)]
struct Painter {
    can: ImageCapabilities,
    signals: Mutex<Vec<CancellationToken>>,
}

fn picture(text: &str) -> Image {
    Image::from_bytes(text.as_bytes().to_vec(), "image/png")
}

fn result(text: &str) -> ImageResult {
    ImageResult {
        images: vec![GeneratedImage {
            image: picture(text),
            metadata: Metadata::new(),
        }],
        ..ImageResult::default()
    }
}

impl ImageModel for Painter {
    fn model_id(&self) -> &'static str {
        "painter"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> ImageCapabilities {
        self.can
    }

    fn generate(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageResult, Error>> {
        self.signals.lock().unwrap().push(request.signal);
        Box::pin(async move {
            if request.prompt == "forever" {
                std::future::pending::<()>().await;
            }
            Ok(result(&request.prompt))
        })
    }

    fn stream(&self, request: ImageRequest) -> ImageStream {
        self.signals.lock().unwrap().push(request.signal);
        let preview = ImageStreamEvent::Preview {
            image: picture("half"),
            index: 0,
            metadata: Metadata::new(),
        };
        let whole = ImageStreamEvent::Complete {
            image: picture(&request.prompt),
            index: 0,
        };
        let done = ImageEvent::Done(result(&request.prompt));
        stream::iter([ImageEvent::Event(preview), ImageEvent::Event(whole), done])
            .map(Ok)
            .boxed()
    }
}

fn generator(can: ImageCapabilities) -> (ImageGenerator, Arc<Painter>) {
    let model = Arc::new(Painter {
        can,
        ..Painter::default()
    });
    let options = ImageOptions::new(Arc::clone(&model) as _);
    (ImageGenerator::new(options), model)
}

fn all() -> ImageCapabilities {
    ImageCapabilities {
        generate: true,
        streaming: true,
        edit: true,
        max_images: None,
    }
}

#[tokio::test]
async fn images_are_made_and_shown_as_they_come() {
    let (images, _) = generator(all());
    let signal = CancellationToken::new();
    let made = images.generate("a cat", signal.clone()).await.unwrap();
    assert_eq!(made.images[0].image.to_bytes().unwrap(), "a cat");
    let events: Vec<ImageEvent> = images
        .stream("a dog", signal)
        .map(Result::unwrap)
        .collect()
        .await;
    assert!(matches!(
        &events[0],
        ImageEvent::Event(ImageStreamEvent::Preview { .. })
    ));
    assert!(matches!(
        &events[1],
        ImageEvent::Event(ImageStreamEvent::Complete { .. })
    ));
    assert_eq!(events[2], ImageEvent::Done(result("a dog")));
}

#[tokio::test]
async fn what_an_image_model_can_not_do_is_refused() {
    let (images, model) = generator(ImageCapabilities::default());
    let signal = CancellationToken::new;
    let generated = images.generate("x", signal()).await;
    let streamed = images.stream("x", signal()).next().await.unwrap();
    let edited = images.edit(picture("x"), None, "y", signal()).await;
    for error in [
        generated.unwrap_err(),
        streamed.unwrap_err(),
        edited.unwrap_err(),
    ] {
        assert_eq!(
            (error.code, error.modality),
            (Code::InvalidRequest, Modality::Image)
        );
    }
    assert!(model.signals.lock().unwrap().is_empty());
    // A model that claims what it has not still refuses.
    let (images, _) = generator(all());
    let edited = images.edit(picture("x"), None, "y", signal()).await;
    assert_eq!(edited.unwrap_err().code, Code::InvalidRequest);
}

#[tokio::test]
async fn aborting_an_image_call_ends_it_as_cancelled_and_reaches_the_model() {
    let (images, model) = generator(all());
    let signal = CancellationToken::new();
    let (outcome, ()) = tokio::join!(images.generate("forever", signal.clone()), async {
        signal.cancel();
    });
    assert_eq!(outcome.unwrap_err().code, Code::Cancelled);
    assert!(model.signals.lock().unwrap()[0].is_cancelled());
    let mut stream = images.stream("x", CancellationToken::new());
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    assert!(model.signals.lock().unwrap()[1].is_cancelled());
}

#[test]
fn usage_leaves_out_what_is_unknown() {
    let usage = ImageUsage {
        images_generated: Some(2),
        cost: Some(0.5),
        ..ImageUsage::default()
    };
    assert_eq!(
        serde_json::to_value(usage).unwrap(),
        serde_json::json!({"imagesGenerated": 2, "cost": 0.5})
    );
}
