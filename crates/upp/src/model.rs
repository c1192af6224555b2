//! The interface of a provider: a model that turns a request into a stream (UPP §12).

use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, Messages};
use crate::prefix::{Prefix, RequestReport};
use crate::settings::{NativeSettings, Settings};
use crate::signal::Signal;
use crate::tool::Tool;
use crate::usage::CycleUsage;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The capabilities of a model (UPP §12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the protocol lists these flags"
)]
pub struct Capabilities {
    /// It can stream.
    pub streaming: bool,
    /// It can call tools.
    pub tools: bool,
    /// It can answer according to a JSON Schema.
    pub structured_output: bool,
    /// It accepts images.
    pub image_input: bool,
    /// It accepts documents.
    pub document_input: bool,
    /// It accepts video.
    pub video_input: bool,
    /// It accepts audio.
    pub audio_input: bool,
}

impl Capabilities {
    /// A model that can do everything.
    pub const ALL: Self = Self {
        streaming: true,
        tools: true,
        structured_output: true,
        image_input: true,
        document_input: true,
        video_input: true,
        audio_input: true,
    };
}

/// Whether the model must call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model may not.
    None,
    /// The model must call some tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

/// One call of a model.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// History, new input, and the tool rounds so far. Shared with earlier calls, not copied.
    pub messages: Messages,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools the model may call.
    pub tools: Arc<[Tool]>,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// Provider-native parameters, passed unchanged.
    pub params: Arc<Map<String, Value>>,
    /// The JSON Schema of the answer.
    pub structure: Option<Arc<Value>>,
    /// The request before this one in the conversation, for the report of what they have in common.
    pub previous: Option<Arc<Prefix>>,
    /// Cancel it to abandon the answer; this closes the connection.
    pub signal: Signal,
    /// The durable note of this call, if the call can continue after a crash.
    pub call_record: Option<Arc<dyn CallRecord>>,
}

/// A durable note of a model call. After a crash, the repeated call can use it instead of sending a new
/// request.
pub trait CallRecord: Send + Sync + std::fmt::Debug {
    /// Identifies the call: equal whenever this call is made again, different for every other call.
    fn key(&self) -> &str;

    /// The conversation of the call; a fork is another conversation.
    fn conversation(&self) -> &str;

    /// The last note of this call.
    fn noted(&self) -> Option<Value>;

    /// Replaces the note; durable when this returns.
    ///
    /// # Errors
    ///
    /// [`Code::Cancelled`](crate::Code) if the answer is no longer needed.
    fn note(&self, note: Value) -> BoxFuture<'_, Result<(), Error>>;
}

/// Why the model stopped (UPP §12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It ran out of tokens.
    MaxTokens,
    /// It made tool calls.
    ToolUse,
    /// The provider's policy stopped it.
    ContentFilter,
    /// It failed.
    Error,
    /// The provider's own word.
    #[serde(untagged)]
    Other(String),
}

/// The whole answer of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The model's message.
    pub message: AssistantMessage,
    /// The usage of the call.
    pub usage: CycleUsage,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// The parsed answer, if the request demanded a structure.
    pub data: Option<Value>,
    /// The model that answered, as the provider names it.
    pub model_id: Arc<str>,
    /// The provider's name.
    pub provider: Arc<str>,
    /// The provider's id of the response, if it has one.
    pub response_id: Option<Arc<str>>,
    /// The sent request, if one was sent.
    pub request: Option<Sent>,
}

/// A request that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// For the next request's [`Request::previous`].
    pub prefix: Arc<Prefix>,
    /// The prefix that it shares with the previous request, and the content that it leaves out.
    pub report: RequestReport,
}

/// An item of a model's stream: events, then the response as the last item.
#[derive(Clone, Debug)]
pub enum ModelEvent {
    /// Something to show.
    Event(StreamEvent),
    /// The end: the whole answer.
    Done(Box<Response>),
}

/// A stream of a model's answer. Dropping it closes the connection.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, Error>>;

/// A model of a provider.
///
/// A stream yields events in the order of UPP §9 and then exactly one [`ModelEvent::Done`], or one
/// error as its last item. Nothing happens until it is polled.
pub trait Model: Send + Sync {
    /// The model's name at its provider.
    fn model_id(&self) -> &str;

    /// The provider's name, which is also the namespace of its metadata.
    fn provider(&self) -> &str;

    /// The model's capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Settings in its provider's words, as parameters of a request.
    fn settings(&self, settings: &Settings) -> NativeSettings {
        settings.left_out()
    }

    /// Starts one call.
    fn stream(&self, request: Request) -> ModelStream;

    /// Abandons the call that stored this note ([`CallRecord`]), because its answer is no longer needed.
    /// Work that the call started on another server is stopped if possible.
    fn abandon(&self, note: Value) -> BoxFuture<'static, ()> {
        drop(note);
        Box::pin(std::future::ready(()))
    }

    /// One call, unobserved: the stream drained.
    fn complete(&self, request: Request) -> BoxFuture<'static, Result<Response, Error>> {
        let provider = self.provider().to_owned();
        Box::pin(drained(self.stream(request), provider))
    }
}

/// A model around another one. Methods without an implementation call the wrapped model.
pub trait ModelLayer: Send + Sync {
    /// The wrapped model.
    fn inner(&self) -> &dyn Model;

    /// Starts one call.
    fn stream(&self, request: Request) -> ModelStream;

    /// One call, unobserved: the stream drained.
    fn complete(&self, request: Request) -> BoxFuture<'static, Result<Response, Error>> {
        let provider = self.inner().provider().to_owned();
        Box::pin(drained(self.stream(request), provider))
    }
}

impl<L: ModelLayer> Model for L {
    fn model_id(&self) -> &str {
        self.inner().model_id()
    }

    fn provider(&self) -> &str {
        self.inner().provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        self.inner().settings(settings)
    }

    fn stream(&self, request: Request) -> ModelStream {
        ModelLayer::stream(self, request)
    }

    fn abandon(&self, note: Value) -> BoxFuture<'static, ()> {
        self.inner().abandon(note)
    }

    fn complete(&self, request: Request) -> BoxFuture<'static, Result<Response, Error>> {
        ModelLayer::complete(self, request)
    }
}

/// The response at the end of a stream.
pub(crate) async fn drained(mut stream: ModelStream, provider: String) -> Result<Response, Error> {
    while let Some(item) = stream.next().await {
        if let ModelEvent::Done(response) = item? {
            return Ok(*response);
        }
    }
    Err(Error::new(
        Code::InvalidResponse,
        provider,
        "the stream ended without a response",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Mutex;

    /// Records the notes passed to `abandon`, and answers nothing.
    struct Inner(Mutex<Vec<Value>>);

    impl Model for Inner {
        fn model_id(&self) -> &'static str {
            "m"
        }

        fn provider(&self) -> &'static str {
            "p"
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }

        fn settings(&self, settings: &Settings) -> NativeSettings {
            let mut native = NativeSettings::default();
            let n = settings.max_output_tokens;
            native.params.insert("n".into(), n.into());
            native
        }

        fn stream(&self, _: Request) -> ModelStream {
            Box::pin(futures_util::stream::empty())
        }

        fn abandon(&self, note: Value) -> BoxFuture<'static, ()> {
            self.0.lock().unwrap().push(note);
            Box::pin(std::future::ready(()))
        }
    }

    struct Refusing(Inner);

    impl ModelLayer for Refusing {
        fn inner(&self) -> &dyn Model {
            &self.0
        }

        fn stream(&self, _: Request) -> ModelStream {
            let error = Error::new(Code::QuotaExceeded, "p", "enough");
            Box::pin(futures_util::stream::iter([Err(error)]))
        }
    }

    #[tokio::test]
    async fn a_layer_answers_calls_itself_and_is_the_model_inside_in_everything_else() {
        let layer = Refusing(Inner(Mutex::default()));
        let model: &dyn Model = &layer;
        assert_eq!((model.model_id(), model.provider()), ("m", "p"));
        let settings = Settings {
            max_output_tokens: Some(7),
            ..Settings::default()
        };
        assert_eq!(model.settings(&settings).params["n"], 7);
        model.abandon(json!("note")).await;
        assert_eq!(*layer.0.0.lock().unwrap(), ["note"]);
        let refused = model.complete(Request::default()).await.unwrap_err();
        assert_eq!(refused.code, Code::QuotaExceeded);
    }
}
