//! How a provider is reached (UPP §13, §20).

use super::*;
use loomline_upp::{Code, Model};
use std::time::Duration;

#[tokio::test]
async fn every_provider_is_reached_where_and_how_its_configuration_says() {
    let (server, url) = Refusing::start(503, "").await;
    for entry in all() {
        let mut config = config(&format!("{url}/gate/"));
        config.headers = vec![
            ("x-extra".to_owned(), "1".to_owned()),
            (
                "content-type".to_owned(),
                "application/json; v=2".to_owned(),
            ),
        ];
        let own = loomline_upp::http_client_builder("test").unwrap();
        config.client = Some(own.user_agent("my-client/1").build().unwrap());
        let model = (entry.provider)(config);
        model.complete(ask("hi")).await.unwrap_err();
        let [arrived] = server.take().try_into().unwrap();
        let path = (entry.codec)().path();
        assert_eq!(arrived.path, format!("/gate{path}"), "{}", entry.name);
        let header = |name: &str| arrived.headers[name].to_str().unwrap();
        assert_eq!(header("x-extra"), "1");
        assert_eq!(
            header("content-type"),
            "application/json; v=2",
            "ours loses"
        );
        assert_eq!(header("user-agent"), "my-client/1");
        let keys = ["authorization", "x-api-key", "x-goog-api-key"];
        let keys = keys.iter().filter_map(|name| arrived.headers.get(*name));
        let keys: Vec<&str> = keys.map(|value| value.to_str().unwrap()).collect();
        let [key] = keys.try_into().unwrap();
        assert!(key.ends_with(KEY), "{}", entry.name);
    }
}

#[test]
fn every_provider_has_an_address_of_its_own_over_tls() {
    for entry in all() {
        let codec = (entry.codec)();
        let local = codec.base_url().starts_with("http://localhost");
        let safe = codec.base_url().starts_with("https://");
        assert!(safe || (local && entry.name == "ollama"), "{}", entry.name);
        assert!(codec.path().starts_with('/'));
    }
}

#[tokio::test]
async fn every_provider_is_given_up_after_the_time_it_was_given() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // Connections are made and nobody ever answers.
    for entry in all() {
        let mut config = config(&url);
        config.timeouts.headers = Duration::from_millis(20);
        let model = (entry.provider)(config);
        let error = model.complete(ask("hi")).await.unwrap_err();
        assert_eq!(error.code, Code::Timeout, "{}", entry.name);
        assert_eq!(error.provider, model.provider());
    }
}

#[tokio::test]
async fn every_providers_request_can_be_sent_again_as_a_strategy_says() {
    let (server, url) = Refusing::start(503, "").await;
    for entry in all() {
        let model = (entry.provider)(config(&url));
        let request = ask("hi");
        let cancelled = || loomline_upp::Error::new(Code::Cancelled, "test", "cancelled");
        let strategy = Twice;
        let signal = request.signal.clone();
        let run = loomline_upp::with_retries(&strategy, &signal, cancelled, || {
            model.complete(request.clone())
        });
        assert_eq!(run.await.unwrap_err().code, Code::ProviderError);
        let bodies: Vec<String> = server.take().into_iter().map(|it| it.body).collect();
        assert_eq!(bodies.len(), 3, "{}", entry.name);
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

/// Two retries at once.
struct Twice;

impl loomline_upp::RetryStrategy for Twice {
    fn on_retry(&self, error: &loomline_upp::Error, attempt: u32) -> Option<Duration> {
        (error.is_retryable() && attempt <= 2).then_some(Duration::ZERO)
    }

    fn fork(&self) -> Arc<dyn loomline_upp::RetryStrategy> {
        Arc::new(Self)
    }
}
