//! An embedding model with parameters: batches, progress, cancelling (UPP §19).

use super::codec::in_order;
use super::{
    EmbeddingInput, EmbeddingModel, EmbeddingRequest, EmbeddingResult, EmbeddingUsage,
    EmbeddingVector, InputType,
};
use crate::error::{Code, Error, Modality};
use crate::message::Metadata;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::{Map, Value};
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The options of an [`Embedding`].
#[derive(Clone)]
pub struct EmbeddingOptions {
    /// The model.
    pub model: Arc<dyn EmbeddingModel>,
    /// Provider-native parameters, passed unchanged.
    pub params: Map<String, Value>,
}

impl EmbeddingOptions {
    /// Options with only a model.
    pub fn new(model: Arc<dyn EmbeddingModel>) -> Self {
        Self {
            model,
            params: Map::new(),
        }
    }
}

impl std::fmt::Debug for EmbeddingOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddingOptions")
            .field("model", &self.model.model_id())
            .finish_non_exhaustive()
    }
}

/// How one list of inputs is embedded.
#[derive(Clone, Debug, Default)]
pub struct EmbedOptions {
    /// Inputs a call; the model's limit unless set, and never more than that.
    pub batch_size: Option<NonZeroUsize>,
    /// Maximum number of concurrent calls; one unless set.
    pub concurrency: Option<NonZeroUsize>,
    /// The purpose of the vectors.
    pub input_type: Option<InputType>,
    /// Ends it with `CANCELLED`.
    pub signal: CancellationToken,
}

/// An item of an embedding's stream: each batch as it completes, then the whole result.
#[derive(Clone, Debug, PartialEq)]
pub enum EmbeddingEvent {
    /// A batch is done.
    Progress {
        /// Its vectors; the indices are positions in the whole list.
        embeddings: Vec<EmbeddingVector>,
        /// Inputs done so far.
        completed: usize,
        /// All inputs.
        total: usize,
        /// `completed` of `total`, from 0 to 100.
        percent: f64,
    },
    /// The end: all vectors, in the order of the inputs.
    Done(EmbeddingResult),
}

/// A stream of vectors. Nothing happens until it is polled; dropping it cancels.
pub type EmbeddingStream = BoxStream<'static, Result<EmbeddingEvent, Error>>;

/// An embedding model with parameters; cloning shares it.
#[derive(Clone, Debug)]
pub struct Embedding {
    options: Arc<EmbeddingOptions>,
    params: Arc<Map<String, Value>>,
}

impl Embedding {
    /// Creates it from the options.
    pub fn new(options: EmbeddingOptions) -> Self {
        Self {
            params: Arc::new(options.params.clone()),
            options: Arc::new(options),
        }
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn EmbeddingModel> {
        &self.options.model
    }

    /// The vectors of all inputs, in their order. More inputs than the model accepts per call are sent
    /// in several calls.
    pub async fn embed(
        &self,
        inputs: impl IntoIterator<Item = impl Into<EmbeddingInput>>,
        options: EmbedOptions,
    ) -> Result<EmbeddingResult, Error> {
        let mut stream = self.stream(inputs, options);
        while let Some(event) = stream.next().await {
            if let EmbeddingEvent::Done(result) = event? {
                return Ok(result);
            }
        }
        Err(self.error(
            Code::InvalidResponse,
            "the embedding ended without a result",
        ))
    }

    /// The vectors batch by batch (`chunked`, UPP §19). The first batch that fails ends the stream.
    pub fn stream(
        &self,
        inputs: impl IntoIterator<Item = impl Into<EmbeddingInput>>,
        options: EmbedOptions,
    ) -> EmbeddingStream {
        let inputs: Vec<EmbeddingInput> = inputs.into_iter().map(Into::into).collect();
        self.clone().run(inputs, options)
    }

    fn run(self, inputs: Vec<EmbeddingInput>, options: EmbedOptions) -> EmbeddingStream {
        async_stream::try_stream! {
            self.check(&inputs)?;
            let total = inputs.len();
            let signal = options.signal.child_token();
            let guard = signal.clone().drop_guard();
            let concurrency = options.concurrency.map_or(1, NonZeroUsize::get);
            let batches = self.batches(inputs, &options);
            let calls = batches.into_iter().map(|(from, inputs)| self.call(from, inputs, &options, &signal));
            let mut running = stream::iter(calls).buffer_unordered(concurrency);
            let mut slots: Vec<Option<EmbeddingVector>> = vec![None; total];
            let (mut usage, mut metadata) = (EmbeddingUsage::default(), Metadata::new());
            let mut completed = 0_usize;
            loop {
                let next = signal.run_until_cancelled(running.next()).await;
                let next = next.ok_or_else(|| self.error(Code::Cancelled, "the embedding was cancelled"))?;
                let Some(batch) = next else { break };
                let batch = batch?;
                usage.total_tokens = usage.total_tokens.saturating_add(batch.usage.total_tokens);
                if !batch.metadata.is_empty() {
                    metadata = batch.metadata;
                }
                completed = completed.saturating_add(batch.embeddings.len());
                for embedding in &batch.embeddings {
                    if let Some(slot) = slots.get_mut(embedding.index) {
                        *slot = Some(embedding.clone());
                    }
                }
                yield EmbeddingEvent::Progress {
                    embeddings: batch.embeddings,
                    completed,
                    total,
                    percent: percent(completed, total),
                };
            }
            drop(running);
            guard.disarm();
            let embeddings = slots.into_iter().flatten().collect();
            yield EmbeddingEvent::Done(EmbeddingResult { embeddings, usage, metadata });
        }
        .boxed()
    }

    fn check(&self, inputs: &[EmbeddingInput]) -> Result<(), Error> {
        let takes = self.options.model.supported_inputs();
        for (at, input) in inputs.iter().enumerate() {
            let what = match input {
                EmbeddingInput::Text(_) if !takes.text => "text",
                EmbeddingInput::Image(_) if !takes.image => "images",
                EmbeddingInput::Text(_) | EmbeddingInput::Image(_) => continue,
            };
            let text = format!("inputs[{at}]: the model can't embed {what}");
            return Err(self.error(Code::InvalidRequest, text));
        }
        Ok(())
    }

    /// The inputs in batches, each with the position of its first.
    fn batches(
        &self,
        inputs: Vec<EmbeddingInput>,
        options: &EmbedOptions,
    ) -> Vec<(usize, Vec<EmbeddingInput>)> {
        let most = self.options.model.max_batch_size().max(1);
        let size = options.batch_size.map_or(most, |size| size.get().min(most));
        let mut batches = Vec::new();
        let mut inputs = inputs.into_iter();
        loop {
            let batch: Vec<EmbeddingInput> = inputs.by_ref().take(size).collect();
            if batch.is_empty() {
                return batches;
            }
            batches.push((batches.len().saturating_mul(size), batch));
        }
    }

    async fn call(
        &self,
        from: usize,
        inputs: Vec<EmbeddingInput>,
        options: &EmbedOptions,
        signal: &CancellationToken,
    ) -> Result<EmbeddingResult, Error> {
        let count = inputs.len();
        let request = EmbeddingRequest {
            inputs,
            input_type: options.input_type,
            params: Arc::clone(&self.params),
            signal: signal.child_token(),
        };
        let mut result = self.options.model.embed(request).await?;
        in_order(self.options.model.provider(), &mut result.embeddings, count)?;
        for embedding in &mut result.embeddings {
            embedding.index = embedding.index.saturating_add(from);
        }
        Ok(result)
    }

    fn error(&self, code: Code, text: impl Into<String>) -> Error {
        Error::new(code, self.options.model.provider(), text).with_modality(Modality::Embedding)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share of a list that is in memory"
)]
fn percent(completed: usize, total: usize) -> f64 {
    completed as f64 / total as f64 * 100.0
}
