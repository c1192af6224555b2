//! What must hold in each situation, whoever the provider is.

mod events;
mod tools;

use crate::fixtures;
use crate::server::Server;
use crate::vendor::{Scenario, Vendor};
use events::{in_order, same};
use futures_util::StreamExt;
use loomline_upp::{
    Code, Error, Media, MediaSource, Message, MessageOptions, Modality, Model, ModelEvent, Request,
    Response, StopReason, StreamEvent, UserContent, UserMessage,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tools::tools;

/// A grid test never waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A picture of one pixel, and a document of one line.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
pub(crate) const PDF: &str = "JVBERi0xLjQKJSVFT0YK";

/// Plays a scenario with a vendor whose tests stand in this module.
pub(crate) async fn run(vendor: impl Vendor, module: &str, scenario: Scenario) {
    let vendor: Arc<dyn Vendor> = Arc::new(vendor);
    if let Some(reason) = vendor.skip(scenario) {
        eprintln!("{scenario:?} does not apply: {reason}");
        fixtures::save_skipped(module, scenario, reason);
        return;
    }
    let (server, url) = Server::start(Arc::clone(&vendor), scenario).await;
    let play = Play {
        model: vendor.model(&url),
        server: server.clone(),
        read: Mutex::default(),
    };
    tokio::time::timeout(PATIENCE, play.play(scenario))
        .await
        .expect("it takes too long");
    for (n, seen) in server.seen().iter().enumerate() {
        vendor.check(scenario, n, seen);
    }
    fixtures::save(&*vendor, module, scenario, &server.seen(), &play.read());
}

/// A structure is asked for, and what comes is the text of [`Scenario::Text`].
pub(crate) async fn plain_text_for_a_structure(vendor: impl Vendor) {
    let vendor: Arc<dyn Vendor> = Arc::new(vendor);
    let (server, url) = Server::start(Arc::clone(&vendor), Scenario::Text).await;
    let play = Play {
        model: vendor.model(&url),
        server,
        read: Mutex::default(),
    };
    let mut asked = request("How warm is Oslo?");
    asked.structure = Some(Arc::new(structure()));
    let error = play.ask(asked).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse, "{error}");
    // Without one, no answer is taken for data, whatever it looks like.
    let (_, response) = play.ask(request("hi")).await.unwrap();
    assert_eq!(response.data, None);
}

struct Play {
    model: Arc<dyn Model>,
    server: Server,
    /// What came of each request, in order.
    read: Mutex<Vec<Value>>,
}

impl Play {
    fn read(&self) -> Vec<Value> {
        self.read.lock().unwrap().clone()
    }

    /// Notes what came of a request.
    fn note(&self, outcome: Result<&Response, &Error>) {
        let outcome = fixtures::outcome(outcome);
        self.read.lock().unwrap().push(outcome);
    }

    async fn play(&self, scenario: Scenario) {
        match scenario {
            Scenario::Text => self.text().await,
            Scenario::Conversation => self.conversation().await,
            Scenario::ParallelTools => self.parallel_tools().await,
            Scenario::ToolError => self.tool_error().await,
            Scenario::CutCall => self.cut_call().await,
            Scenario::Image => self.image().await,
            Scenario::Document => self.document().await,
            Scenario::ReasoningRoundTrip => self.reasoning().await,
            Scenario::StructuredOutput => self.structured().await,
            Scenario::StopMaxTokens => {
                let (_, response) = self.ask(request("hi")).await.unwrap();
                assert_eq!(response.stop_reason, StopReason::MaxTokens);
                assert_eq!(response.message.joined_text(), "Hel");
            }
            Scenario::StopContentFilter => {
                let (_, response) = self.ask(request("hi")).await.unwrap();
                assert_eq!(response.stop_reason, StopReason::ContentFilter);
            }
            Scenario::MidStreamError => {
                let error = self.ask(request("hi")).await.unwrap_err();
                assert!(
                    matches!(error.code, Code::ProviderError | Code::RateLimited),
                    "{error}"
                );
                assert!(error.is_retryable());
            }
            Scenario::Truncated => {
                let error = self.ask(request("hi")).await.unwrap_err();
                assert!(
                    matches!(error.code, Code::NetworkError | Code::InvalidResponse),
                    "{error}"
                );
            }
            Scenario::RateLimited => {
                let error = self.ask(request("hi")).await.unwrap_err();
                assert_eq!((error.code, error.status), (Code::RateLimited, Some(429)));
                assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
            }
            Scenario::ContextOverflow => {
                let error = self.ask(request("hi")).await.unwrap_err();
                assert_eq!(error.code, Code::ContextLengthExceeded, "{error}");
                assert!(!error.is_retryable());
            }
            Scenario::BadKey => {
                let error = self.ask(request("hi")).await.unwrap_err();
                assert_eq!(error.code, Code::AuthenticationFailed, "{error}");
                assert!(!format!("{error:?} {error}").contains("sk-secret"));
            }
            Scenario::Cancellation => self.cancellation().await,
            Scenario::MalformedBody => {
                let error = self.ask(request("hi")).await.unwrap_err();
                assert_eq!(error.code, Code::InvalidResponse, "{error}");
            }
            Scenario::CachedTokens => {
                let (_, response) = self.ask(request("hi")).await.unwrap();
                let usage = response.usage;
                assert_eq!((usage.input_tokens, usage.output_tokens), (20, 5));
                assert_eq!(usage.cache_read_tokens, 12);
                assert!(usage.raw.is_some());
            }
        }
    }

    /// Sends a request; checks that the events are in order and say what the response says.
    async fn ask(&self, request: Request) -> Result<(Vec<StreamEvent>, Response), Error> {
        let mut stream = self.model.stream(request);
        let mut events = Vec::new();
        while let Some(item) = stream.next().await {
            let item = item.inspect_err(|error| {
                self.note(Err(error));
                self.names_itself(error);
            });
            match item? {
                ModelEvent::Event(event) => events.push(event),
                ModelEvent::Done(response) => {
                    assert!(stream.next().await.is_none());
                    let mut namespaces = response.message.metadata.keys();
                    assert!(namespaces.all(|name| name == self.model.provider()));
                    in_order(&events);
                    same(&events, &response);
                    assert_eq!(*response.provider, *self.model.provider());
                    assert!(response.request.is_some());
                    self.note(Ok(&response));
                    // What goes to the store and comes back is the same.
                    let message = Message::from(response.message.clone());
                    let text = serde_json::to_string(&message).unwrap();
                    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
                    return Ok((events, *response));
                }
            }
        }
        panic!("the stream ended without a response");
    }

    fn names_itself(&self, error: &Error) {
        assert_eq!(error.provider, self.model.provider());
        assert_eq!(error.modality, Modality::Llm);
    }

    async fn text(&self) {
        let (events, response) = self.ask(request("hi")).await.unwrap();
        assert_eq!(response.message.joined_text(), "Hello, world");
        assert_eq!(response.stop_reason, StopReason::EndTurn);
        assert!(response.usage.input_tokens > 0 && response.usage.output_tokens > 0);
        let n_deltas = events
            .iter()
            .filter(|event| matches!(event, StreamEvent::TextDelta { .. }))
            .count();
        assert!(n_deltas >= 3, "{n_deltas} deltas");
    }

    async fn conversation(&self) {
        let mut next = request("count");
        next.system = Some("Count.".into());
        next.tools = tools();
        for said in ["one", "two", "three"] {
            let (_, response) = self.ask(next.clone()).await.unwrap();
            assert_eq!(response.message.joined_text(), said);
            let sent = response.request.clone().unwrap();
            if next.previous.is_some() {
                assert_eq!(sent.report.cache_break, None);
                assert!(sent.report.common_prefix_bytes.unwrap() > 0);
            }
            next.previous = Some(sent.prefix);
            next.messages.push_back_mut(response.message.into());
            next.messages.push_back_mut("go on".into());
        }
        let seen = self.server.seen();
        for pair in seen.windows(2) {
            let [earlier, later] = pair else { panic!() };
            let closing = earlier.text.len() - earlier.text.trim_end_matches(['}', ']']).len();
            // The closing brackets of the last message are its own.
            let common = earlier
                .text
                .bytes()
                .zip(later.text.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            assert!(
                common + closing >= earlier.text.len(),
                "the requests part at byte {common} of {}",
                earlier.text.len()
            );
        }
    }

    async fn image(&self) {
        let bytes = Media::new(MediaSource::Base64 { data: PNG.into() }, "image/png");
        self.look(UserContent::Image(bytes)).await;
    }

    async fn document(&self) {
        let mut bytes = Media::new(MediaSource::Base64 { data: PDF.into() }, "application/pdf");
        bytes.title = Some("notes.pdf".into());
        self.look(UserContent::Document(bytes)).await;
    }

    async fn look(&self, block: UserContent) {
        let text = UserContent::Text {
            text: "What is this?".into(),
        };
        let message = UserMessage::new(vec![text, block], MessageOptions::default());
        let asked = Request {
            messages: [Message::from(message)].into_iter().collect(),
            ..Request::default()
        };
        self.ask(asked).await.unwrap();
    }

    async fn structured(&self) {
        let mut next = request("How warm is Oslo?");
        next.structure = Some(Arc::new(structure()));
        let (_, response) = self.ask(next).await.unwrap();
        assert_eq!(
            response.data,
            Some(json!({"city": "Oslo", "degrees": 7})),
            "{:?}",
            response.message
        );
    }

    async fn cancellation(&self) {
        let asked = request("hi");
        let signal = asked.signal.clone();
        let mut stream = self.model.stream(asked);
        while let Some(item) = stream.next().await {
            match item {
                Ok(ModelEvent::Event(StreamEvent::TextDelta { .. })) => signal.cancel(),
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.code, Code::Cancelled);
                    self.note(Err(&error));
                    return;
                }
            }
        }
        panic!("it ended");
    }
}

/// The structure of [`Scenario::StructuredOutput`].
pub(crate) fn structure() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
        "required": ["city", "degrees"],
        "additionalProperties": false,
    })
}

fn request(text: &str) -> Request {
    Request {
        messages: [Message::from(text)].into_iter().collect(),
        ..Request::default()
    }
}
