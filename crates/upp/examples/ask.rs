//! Asks a model one question and prints what comes of it.
//!
//! ```text
//! ask --provider openai-chat|openai|anthropic --base-url URL --model NAME --prompt TEXT
//!     [--tool add] [--max-tokens N] [--json]
//! ```
//!
//! `openai-chat` speaks Chat Completions, `openai` the Responses format, `anthropic` the Messages
//! format; the base URL ends before `/chat/completions`, `/responses` or `/messages`. The key is
//! read from the environment variable `ASK_API_KEY` and shown nowhere; without it the request has
//! none. `--tool add` gives the model a tool that adds two numbers, and runs until the model has
//! answered. `--max-tokens` goes to `anthropic` only, which takes no request without; it is 1024
//! there.
//!
//! The answer's text is printed as it comes. With `--json`, each event is a line `{"event": …}`, and
//! the last line is `{"turn": …}` or `{"error": …}`. Ends with 1 if the model call failed, and with
//! 2 if the options are wrong.

use futures_util::StreamExt;
use loomline_upp::{
    Anthropic, ChatCompletions, Code, Error, Llm, LlmOptions, Messages, Model, Provider,
    ProviderConfig, Responses, StreamEvent, Tool, ToolFailure, TurnEvent,
};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    provider: String,
    base_url: String,
    model: String,
    prompt: String,
    tool: Option<String>,
    max_tokens: Option<u64>,
    json: bool,
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            if name == "--json" {
                options.json = true;
                continue;
            }
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "--provider" => options.provider = value()?,
                "--base-url" => options.base_url = value()?,
                "--model" => options.model = value()?,
                "--prompt" => options.prompt = value()?,
                "--tool" => options.tool = Some(value()?),
                "--max-tokens" => {
                    let value = value()?;
                    let tokens = value.parse().map_err(|_| format!("no number: {value}"))?;
                    options.max_tokens = Some(tokens);
                }
                _ => return Err(format!("unknown option: {name}")),
            }
        }
        for (name, value) in [
            ("--provider", &options.provider),
            ("--base-url", &options.base_url),
            ("--model", &options.model),
            ("--prompt", &options.prompt),
        ] {
            if value.is_empty() {
                return Err(format!("{name} is missing"));
            }
        }
        Ok(options)
    }

    fn tools(&self) -> Result<Vec<Tool>, String> {
        match self.tool.as_deref() {
            None => Ok(Vec::new()),
            Some("add") => Ok(vec![add()]),
            Some(other) => Err(format!("unknown tool: {other}; there is 'add'")),
        }
    }

    fn model(&self) -> Result<Arc<dyn Model>, String> {
        let mut config = ProviderConfig::default().with_base_url(&self.base_url);
        #[expect(
            clippy::disallowed_methods,
            reason = "an example is an application of its own"
        )]
        if let Ok(key) = std::env::var("ASK_API_KEY") {
            config = config.with_api_key(key.into());
        }
        let model = self.model.as_str();
        let made: Result<Arc<dyn Model>, Error> = match self.provider.as_str() {
            "openai-chat" => provider(Provider::new(ChatCompletions::openai(model), config)),
            "openai" => provider(Provider::new(Responses::openai(model), config)),
            "anthropic" => {
                let tokens = self.max_tokens.unwrap_or(1024);
                let codec = Anthropic::new(model).with_default_max_tokens(tokens);
                provider(Provider::new(codec, config))
            }
            other => {
                return Err(format!(
                    "unknown provider: {other}; there are openai-chat, openai and anthropic"
                ));
            }
        };
        made.map_err(|error| error.to_string())
    }
}

fn provider(made: Result<Provider, Error>) -> Result<Arc<dyn Model>, Error> {
    Ok(Arc::new(made?))
}

/// A tool that adds two numbers.
fn add() -> Tool {
    let number = json!({"type": "integer"});
    let parameters = json!({
        "type": "object", "properties": {"a": number, "b": number},
        "required": ["a", "b"], "additionalProperties": false,
    });
    Tool::simple(
        "add",
        "Adds two integers.",
        parameters,
        |arguments: Value| async move {
            let number = |name: &str| arguments.get(name).and_then(Value::as_i64);
            number("a")
                .zip(number("b"))
                .and_then(|(a, b)| a.checked_add(b))
                .map(Value::from)
                .ok_or_else(|| ToolFailure::new("a and b must be integers whose sum is one"))
        },
    )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => return misused(&text),
    };
    let (model, tools) = match options
        .model()
        .and_then(|model| Ok((model, options.tools()?)))
    {
        Ok(made) => made,
        Err(text) => return misused(&text),
    };
    match ask(&options, model, tools).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if options.json => {
            say(&format!("{}\n", json!({ "error": error })));
            ExitCode::FAILURE
        }
        Err(error) => {
            complain(&error.line());
            ExitCode::FAILURE
        }
    }
}

async fn ask(options: &Options, model: Arc<dyn Model>, tools: Vec<Tool>) -> Result<(), Error> {
    let llm = Llm::new(LlmOptions {
        tools,
        ..LlmOptions::new(Arc::clone(&model))
    })?;
    let mut stream = llm.stream(Messages::new(), [options.prompt.as_str()]);
    while let Some(item) = stream.next().await {
        match item? {
            TurnEvent::Event(event) if options.json => {
                say(&format!("{}\n", json!({ "event": event })));
            }
            TurnEvent::Event(StreamEvent::TextDelta { text, .. }) => say(&text),
            TurnEvent::Event(_) => {}
            TurnEvent::Done(turn) if options.json => {
                say(&format!("{}\n", json!({ "turn": turn })));
                return Ok(());
            }
            TurnEvent::Done(_) => {
                say("\n");
                return Ok(());
            }
        }
    }
    let text = "the stream ended without a turn";
    Err(Error::new(Code::InvalidResponse, model.provider(), text))
}

/// Writes to standard output. A reader that closed it gets no more.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn misused(text: &str) -> ExitCode {
    complain(&format!(
        "{text}\nusage: ask --provider openai-chat|openai|anthropic --base-url URL --model NAME \
         --prompt TEXT [--tool add] [--max-tokens N] [--json]"
    ));
    ExitCode::from(2)
}
