//! What every provider owes, whatever its wire format (UPP §12–§14, §20, §21).

mod capabilities;
mod configuration;
mod failures;

use crate::scenarios::structure;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use futures_util::future::BoxFuture;
use loomline_upp::{
    Anthropic, ChatCompletions, Codec, Dialect, Gemini, Message, Ollama, Provider, ProviderConfig,
    Request, Responses, Tool, ToolContext, ToolOutput,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const KEY: &str = "sk-secret-0123456789";

/// A provider in one of its modes, made anew for each question.
struct Entry {
    name: &'static str,
    codec: Box<dyn Fn() -> Box<dyn Codec>>,
    provider: Box<dyn Fn(ProviderConfig) -> Provider>,
}

fn entry<C: Codec>(name: &'static str, make: impl Fn() -> C + Clone + 'static) -> Entry {
    let codec = make.clone();
    Entry {
        name,
        codec: Box::new(move || Box::new(codec())),
        provider: Box::new(move |config| Provider::new(make(), config).unwrap()),
    }
}

fn chat(name: &'static str, dialect: fn() -> Dialect) -> Entry {
    entry(name, move || ChatCompletions::new(dialect(), "m-1"))
}

/// All providers in all their modes.
fn all() -> Vec<Entry> {
    let anthropic = || Anthropic::new("m-1").with_default_max_tokens(64);
    let messages =
        || Anthropic::compatible("xai", "https://api.x.ai/v1", "m-1").with_default_max_tokens(64);
    vec![
        entry("anthropic", anthropic),
        entry("xai messages", messages),
        entry("openai responses", || Responses::openai("m-1")),
        entry("xai responses", || Responses::xai("m-1")),
        entry("openrouter responses", || Responses::openrouter("m-1")),
        entry("host responses", || {
            Responses::host("acme", "https://acme.example/v1", "m-1")
        }),
        chat("openai completions", Dialect::openai),
        chat("openrouter completions", Dialect::openrouter),
        chat("xai completions", Dialect::xai),
        chat("groq", Dialect::groq),
        chat("cerebras", Dialect::cerebras),
        chat("moonshot", Dialect::moonshot),
        chat("mistral", Dialect::mistral),
        chat("compatible completions", || {
            Dialect::compatible("acme", "https://acme.example/v1")
        }),
        entry("google", || Gemini::new("m-1")),
        entry("ollama", || Ollama::new("m-1")),
    ]
}

fn ask(message: impl Into<Message>) -> Request {
    Request {
        messages: [message.into()].into_iter().collect(),
        ..Request::default()
    }
}

fn tool() -> Tool {
    let schema = json!({"type": "object", "properties": {"town": {"type": "string"}},
        "required": ["town"], "additionalProperties": false});
    Tool::new(
        "weather",
        "Tells the weather.",
        schema,
        |_: Value, _: ToolContext| -> BoxFuture<'static, ToolOutput> {
            Box::pin(async { Ok(Value::Null) })
        },
    )
}

/// A request as a server saw it.
#[derive(Clone, Debug)]
struct Arrived {
    path: String,
    headers: HeaderMap,
    body: String,
}

/// A server that refuses whatever comes with this status and body.
#[derive(Clone)]
struct Refusing {
    status: u16,
    body: &'static str,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

async fn refuse(
    State(server): State<Refusing>,
    path: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, &'static str) {
    let path = path.to_string();
    server.arrived.lock().unwrap().push(Arrived {
        path,
        headers,
        body,
    });
    (StatusCode::from_u16(server.status).unwrap(), server.body)
}

impl Refusing {
    async fn start(status: u16, body: &'static str) -> (Self, String) {
        let server = Self {
            status,
            body,
            arrived: Arc::default(),
        };
        let router = axum::Router::new()
            .fallback(refuse)
            .with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "the test's server ends with the test's runtime"
        )]
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, format!("http://{address}"))
    }

    /// What came since the last time.
    fn take(&self) -> Vec<Arrived> {
        std::mem::take(&mut self.arrived.lock().unwrap())
    }
}

fn config(url: &str) -> ProviderConfig {
    ProviderConfig::default()
        .with_base_url(url)
        .with_api_key(KEY.to_owned().into())
}
