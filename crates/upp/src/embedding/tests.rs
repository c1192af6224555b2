use super::*;
use crate::content::MediaSource;
use crate::error::{Code, Modality};
use futures_util::StreamExt;
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

/// Gives each text's length, at most three texts a call. A text `slow` takes a second, `fail`
/// fails, `odd` gets no vector.
#[derive(Default)]
struct Lengths {
    calls: Mutex<Vec<usize>>,
    signals: Mutex<Vec<CancellationToken>>,
}

impl EmbeddingModel for Lengths {
    fn model_id(&self) -> &'static str {
        "lengths"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn max_batch_size(&self) -> usize {
        3
    }

    fn max_input_length(&self) -> Option<u64> {
        None
    }

    fn dimensions(&self) -> Option<usize> {
        Some(1)
    }

    fn embed(
        &self,
        request: EmbeddingRequest,
    ) -> BoxFuture<'static, Result<EmbeddingResult, Error>> {
        self.calls.lock().unwrap().push(request.inputs.len());
        self.signals.lock().unwrap().push(request.signal.clone());
        Box::pin(async move {
            let texts: Vec<String> = request
                .inputs
                .into_iter()
                .map(|input| match input {
                    EmbeddingInput::Text(text) => text,
                    EmbeddingInput::Image(_) => String::new(),
                })
                .collect();
            if texts.iter().any(|text| text == "slow") {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if texts.iter().any(|text| text == "fail") {
                return Err(Error::new(Code::RateLimited, "test", "no"));
            }
            let vectors = texts.iter().enumerate().filter(|(_, text)| *text != "odd");
            #[expect(clippy::cast_precision_loss, reason = "short texts")]
            let vectors =
                vectors.map(|(at, text)| EmbeddingVector::new(at, vec![text.len() as f64]));
            Ok(EmbeddingResult {
                // The order of the answer does not matter.
                embeddings: vectors.rev().collect(),
                usage: EmbeddingUsage {
                    total_tokens: texts.len() as u64,
                },
                metadata: Metadata::from_iter([("test".to_owned(), json!({}))]),
            })
        })
    }
}

fn embedding() -> (Embedding, Arc<Lengths>) {
    let model = Arc::new(Lengths::default());
    (
        Embedding::new(EmbeddingOptions::new(Arc::clone(&model) as _)),
        model,
    )
}

fn at_once(concurrency: usize) -> EmbedOptions {
    EmbedOptions {
        concurrency: NonZeroUsize::new(concurrency),
        ..EmbedOptions::default()
    }
}

fn lengths(result: &EmbeddingResult) -> Vec<f64> {
    result.embeddings.iter().map(|it| it.vector[0]).collect()
}

#[tokio::test]
async fn inputs_are_sent_in_batches_and_come_back_in_order() {
    let (embedding, model) = embedding();
    let inputs = ["", "1", "22", "333", "4444", "55555", "666666"];
    let result = embedding
        .embed(inputs, EmbedOptions::default())
        .await
        .unwrap();
    assert_eq!(lengths(&result), [0., 1., 2., 3., 4., 5., 6.]);
    assert!(
        result
            .embeddings
            .iter()
            .enumerate()
            .all(|(at, it)| it.index == at)
    );
    assert_eq!(result.usage.total_tokens, 7);
    assert!(result.metadata.contains_key("test"));
    assert_eq!(*model.calls.lock().unwrap(), [3, 3, 1]);
}

#[tokio::test]
async fn a_batch_is_never_larger_than_the_model_takes() {
    let (embedding, model) = embedding();
    for (size, calls) in [(2, vec![2, 2]), (100, vec![3, 1])] {
        let options = EmbedOptions {
            batch_size: NonZeroUsize::new(size),
            ..EmbedOptions::default()
        };
        embedding.embed(["a"; 4], options).await.unwrap();
        assert_eq!(std::mem::take(&mut *model.calls.lock().unwrap()), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_batch_by_batch_as_they_end() {
    let (embedding, _) = embedding();
    let inputs = ["slow", "b", "c", "d", "e", "f", "g"];
    let events: Vec<EmbeddingEvent> = embedding
        .stream(inputs, at_once(2))
        .map(Result::unwrap)
        .collect()
        .await;
    let seen: Vec<(usize, usize, usize)> = events
        .iter()
        .filter_map(|event| match event {
            EmbeddingEvent::Progress {
                embeddings,
                completed,
                total,
                ..
            } => Some((embeddings[0].index, *completed, *total)),
            EmbeddingEvent::Done(_) => None,
        })
        .collect();
    // The first batch is slow; two run at once.
    assert_eq!(seen, [(3, 3, 7), (6, 4, 7), (0, 7, 7)]);
    assert!(
        matches!(&events[2], EmbeddingEvent::Progress { percent, .. } if (*percent - 100.0).abs() < 1e-9)
    );
    let EmbeddingEvent::Done(result) = &events[3] else {
        panic!()
    };
    assert_eq!(result.embeddings.len(), 7);
}

#[tokio::test]
async fn nothing_to_embed_is_an_empty_result() {
    let (embedding, model) = embedding();
    let result = embedding
        .embed(Vec::<String>::new(), EmbedOptions::default())
        .await;
    assert!(result.unwrap().embeddings.is_empty());
    assert!(model.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_input_the_model_does_not_take_is_refused_before_anything_is_sent() {
    let (embedding, model) = embedding();
    let source = MediaSource::Url { url: "u".into() };
    let inputs = [
        EmbeddingInput::from("a"),
        EmbeddingInput::Image(Media::new(source, "image/png")),
    ];
    let error = embedding
        .embed(inputs, EmbedOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::InvalidRequest, Modality::Embedding)
    );
    assert!(error.message.contains("inputs[1]"), "{error}");
    assert!(model.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_without_a_vector_for_each_input_is_invalid() {
    let (embedding, _) = embedding();
    let error = embedding
        .embed(["a", "odd"], EmbedOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
}

#[tokio::test]
async fn the_first_batch_that_fails_ends_it() {
    let (embedding, model) = embedding();
    let error = embedding
        .embed(["fail", "b", "c", "d"], EmbedOptions::default())
        .await;
    assert_eq!(error.unwrap_err().code, Code::RateLimited);
    assert_eq!(*model.calls.lock().unwrap(), [3]);
}

#[tokio::test(start_paused = true)]
async fn aborting_an_embedding_ends_it_as_cancelled_and_reaches_the_model() {
    let (embedding, model) = embedding();
    let options = EmbedOptions::default();
    let signal = options.signal.clone();
    let (outcome, ()) = tokio::join!(embedding.embed(["slow"], options), async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        signal.cancel();
    });
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.code, error.modality),
        (Code::Cancelled, Modality::Embedding)
    );
    assert!(model.signals.lock().unwrap()[0].is_cancelled());
    let mut stream = embedding.stream(["a", "b", "c", "slow"], EmbedOptions::default());
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    assert!(
        model
            .signals
            .lock()
            .unwrap()
            .iter()
            .all(CancellationToken::is_cancelled)
    );
}

#[test]
fn packed_vectors_are_little_endian_floats() {
    let text = crate::content::BASE64;
    let packed = base64::Engine::encode(&text, [0, 0, 128, 63, 0, 0, 0, 192]);
    assert_eq!(vector_from_base64("p", &packed).unwrap(), [1.0, -2.0]);
    for bad in ["%", "AAAA", "AADAfw=="] {
        let error = vector_from_base64("p", bad).unwrap_err();
        assert_eq!(
            (error.code, error.modality),
            (Code::InvalidResponse, Modality::Embedding)
        );
    }
}

#[test]
fn only_text_and_images_can_be_embedded() {
    let media = || Media::new(MediaSource::Url { url: "u".into() }, "a/b");
    assert!(EmbeddingInput::try_from(UserContent::Image(media())).is_ok());
    assert_eq!(
        EmbeddingInput::try_from(UserContent::Audio(media())),
        Err(NotEmbeddable)
    );
}
