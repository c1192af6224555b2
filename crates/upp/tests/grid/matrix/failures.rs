//! What goes wrong has one name, whoever the provider is, and no key in it (UPP §14, §21).

use super::*;
use loomline_upp::{Code, Modality, Model};
use std::fmt::Write as _;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

const CODES: [(u16, Code); 17] = [
    (400, Code::InvalidRequest),
    (401, Code::AuthenticationFailed),
    (402, Code::QuotaExceeded),
    (403, Code::AuthenticationFailed),
    (404, Code::ModelNotFound),
    (408, Code::Timeout),
    (409, Code::InvalidRequest),
    (413, Code::ContextLengthExceeded),
    (422, Code::InvalidRequest),
    (429, Code::RateLimited),
    (451, Code::ContentFiltered),
    (500, Code::ProviderError),
    (502, Code::ProviderError),
    (503, Code::ProviderError),
    (504, Code::ProviderError),
    (529, Code::ProviderError),
    (302, Code::ProviderError),
];

#[test]
fn every_provider_gives_a_status_its_code() {
    for entry in all() {
        let codec = (entry.codec)();
        for (status, code) in CODES {
            for body in ["", "{}", "<html>"] {
                let error = codec.refusal(status, body);
                let what = format!("{}: {status} {body:?}", entry.name);
                assert_eq!((error.code, error.status), (code, Some(status)), "{what}");
                assert_eq!(error.provider, codec.provider(), "{what}");
                assert_eq!(error.modality, Modality::Llm, "{what}");
                assert!(!error.message.is_empty(), "{what}");
            }
        }
    }
}

#[test]
fn every_provider_tells_a_message_from_wherever_the_body_has_it() {
    for entry in all() {
        let codec = (entry.codec)();
        for body in [
            json!({"error": {"message": "out of order"}}),
            json!({"message": "out of order"}),
            json!({"error": {"error": {"message": "out of order"}}}),
            json!({"detail": "out of order"}),
        ] {
            let error = codec.refusal(500, &body.to_string());
            assert_eq!(error.message, "out of order", "{}: {body}", entry.name);
        }
        assert_eq!(codec.refusal(500, "out of order").message, "out of order");
        let long = "x".repeat(10_000);
        let quoted = codec.refusal(500, &json!({"error": {"message": long}}).to_string());
        assert!(quoted.message.len() <= 2_000, "{}", entry.name);
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_named_with_the_cause() {
    for entry in all() {
        let model = (entry.provider)(config("http://127.0.0.1:9"));
        let error = model.complete(ask("hi")).await.unwrap_err();
        assert_eq!(error.code, Code::NetworkError, "{}", entry.name);
        assert_eq!(error.provider, model.provider());
        assert_eq!((error.modality, error.status), (Modality::Llm, None));
        assert!(error.cause.is_some());
    }
}

/// Writes down all that is logged, at every level.
#[derive(Clone, Default)]
struct Everything(Arc<Mutex<String>>);

impl Visit for Everything {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut self.clone());
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn no_providers_key_is_logged_or_shown() {
    let quotes = r#"{"error": {"message": "the key sk-secret-0123456789 is unknown"}}"#;
    let (server, url) = Refusing::start(401, quotes).await;
    let logged = Everything::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    tracing::info!(heard = "this");
    for entry in all() {
        let mut config = config(&url);
        config.headers = vec![("x-token".to_owned(), KEY.to_owned())];
        let model = (entry.provider)(config.clone());
        let error = model.complete(ask("hi")).await.unwrap_err();
        let json = serde_json::to_string(&error).unwrap();
        let shown = format!(
            "{config:?} {model:?} {error:?} {error} {} {json}",
            error.line()
        );
        assert!(!shown.contains(KEY), "{}: {shown}", entry.name);
        assert!(shown.contains("***"), "what it quotes is struck out");
        assert_eq!(server.take().len(), 1);
    }
    let logged = logged.0.lock().unwrap();
    assert!(logged.contains("this"), "it is heard at all");
    assert!(!logged.contains(KEY), "{logged}");
}
