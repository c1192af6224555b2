//! A configuration from a few choices: `--model`, and `init`.

use crate::args::{InitOptions, ModelOptions};
use crate::environment::environment;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output};
use crate::sink::Sink;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use server::Config;
use server::config::ProviderKind;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write as _};

/// The model that needs no network and no key.
const OFFLINE: &str = "scripted";
/// The limit of an answer for models whose API requires one, in tokens.
const MAX_TOKENS: u32 = 8192;
/// The default instructions of the agent.
const SYSTEM: &str = "You are a helpful assistant.";

/// A model that the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    /// None for the offline model.
    provider: Option<ProviderKind>,
    /// The id at the provider.
    id: String,
    base_url: Option<String>,
    key_env: Option<String>,
}

impl ModelChoice {
    /// The model of the options; none if they name none.
    pub(crate) fn read(options: &ModelOptions) -> Result<Option<Self>, CliError> {
        let choose = |name: &str| Self::new(name, options);
        options.model.as_deref().map(choose).transpose()
    }

    fn new(name: &str, options: &ModelOptions) -> Result<Self, CliError> {
        let usage = |what: String| CliError::Usage { what };
        let base_url = options.base_url.clone();
        let key_env = options.api_key_env.clone();
        if name == OFFLINE {
            if base_url.is_some() || key_env.is_some() {
                return Err(usage(
                    "the model \"scripted\" is offline: it has no base URL and no API key".into(),
                ));
            }
            return Ok(Self {
                provider: None,
                id: OFFLINE.to_owned(),
                base_url,
                key_env,
            });
        }
        let named = name.split_once('/').and_then(|(provider, id)| {
            let mut all = ProviderKind::ALL.into_iter();
            Some((all.find(|kind| kind.as_str() == provider)?, id))
        });
        let (provider, id) = match named {
            Some(named) => named,
            None if base_url.is_some() => (ProviderKind::ChatCompletions, name),
            None => return Err(usage(no_provider(name))),
        };
        if id.is_empty() {
            return Err(usage(format!(
                "--model {name:?} has no model id after the provider; expected PROVIDER/MODEL, such as openai/gpt-5-mini"
            )));
        }
        if base_url.is_none() && provider.needs_base_url() {
            return Err(usage(format!(
                "the provider {:?} needs --base-url with the URL of the server",
                provider.as_str()
            )));
        }
        Ok(Self {
            provider: Some(provider),
            id: id.to_owned(),
            base_url,
            key_env,
        })
    }

    /// The variables with the API key.
    fn key_envs(&self) -> Vec<&str> {
        match (&self.key_env, self.provider) {
            (Some(own), _) => vec![own],
            (None, Some(provider)) => provider.key_envs().to_vec(),
            (None, None) => Vec::new(),
        }
    }

    /// Refuses a model without a key that its provider requires.
    pub(crate) fn check_key(&self) -> Result<(), CliError> {
        let Some(provider) = self.provider else {
            return Ok(());
        };
        let is_needed = provider.needs_key() && self.base_url.is_none() || self.key_env.is_some();
        let variables = self.key_envs();
        if !is_needed || variables.iter().any(|name| environment(name).is_some()) {
            return Ok(());
        }
        Err(CliError::Usage {
            what: format!(
                "{} is not set: set it to an API key for {}, or name another variable with --api-key-env",
                variables.join(" or "),
                provider.as_str()
            ),
        })
    }

    /// The name for people, such as `openai/gpt-5-mini`.
    pub(crate) fn name(&self) -> String {
        match self.provider {
            Some(provider) => format!("{}/{}", provider.as_str(), self.id),
            None => self.id.clone(),
        }
    }

    /// The configuration with this model and the agent `assistant`.
    pub(crate) fn configuration(&self) -> String {
        ConfigurationText {
            model: self,
            system: SYSTEM,
            tenant: None,
        }
        .text()
    }
}

fn no_provider(name: &str) -> String {
    let known = ProviderKind::ALL.map(ProviderKind::as_str).join(", ");
    format!(
        "--model {name:?} names no provider; expected PROVIDER/MODEL, such as openai/gpt-5-mini, where PROVIDER is one of {known}; \
         a server that is compatible with Chat Completions needs --base-url"
    )
}

/// A commented configuration file.
struct ConfigurationText<'a> {
    model: &'a ModelChoice,
    system: &'a str,
    /// The name of a tenant, and the hash of its key.
    tenant: Option<(&'a str, &'a str)>,
}

impl ConfigurationText<'_> {
    fn text(&self) -> String {
        let mut text = String::from(
            "# The configuration of Loomline. `loomline agents check --config FILE` checks it.\n\
             default_agent = \"assistant\"\n",
        );
        if self.tenant.is_some() {
            text.push_str(
                "\n[server]\n\
                 # Other machines reach the server at this address. Use TLS outside of a trusted network.\n\
                 listen = \"0.0.0.0:8787\"\n\
                 # tls = { cert = \"/etc/loomline/cert.pem\", key = \"/etc/loomline/key.pem\" }\n\
                 # cors_origins = [\"https://app.example.org\"]\n",
            );
        }
        self.model_table(&mut text);
        // Writing to a string can't fail.
        let _ = write!(
            text,
            "\n[agents.assistant]\n\
             model = \"main\"\n\
             description = \"Answers questions and computes.\"\n\
             system = {}\n\
             tools = [\"compute\", \"read_file\"]\n\
             # requires_approval = [\"read_file\"]    # a person approves each call\n\
             # max_tool_rounds = 10\n",
            quoted(self.system)
        );
        if let Some((name, hash)) = self.tenant {
            let _ = write!(
                text,
                "\n[tenants.{}.keys.default]\n\
                 # The SHA-256 hash of the API key. `loomline key` creates further keys.\n\
                 hash = \"{hash}\"\n",
                quoted(name)
            );
        }
        text
    }

    fn model_table(&self, text: &mut String) {
        let model = self.model;
        text.push_str("\n[models.main]\n");
        let Some(provider) = model.provider else {
            text.push_str(
                "# The offline model. For a real one, set provider and model, such as \"openai\" and \"gpt-5-mini\".\n\
                 provider = \"scripted\"\n",
            );
            return;
        };
        let _ = write!(
            text,
            "provider = \"{}\"\nmodel = {}\n",
            provider.as_str(),
            quoted(&model.id)
        );
        if let Some(url) = &model.base_url {
            let _ = writeln!(text, "base_url = {}", quoted(url));
        }
        match (&model.key_env, provider.key_envs()) {
            (Some(own), _) => {
                let _ = writeln!(text, "api_key_env = {}", quoted(own));
            }
            (None, []) => {}
            (None, usual) => {
                let _ = writeln!(
                    text,
                    "# The API key is in the environment variable {}.",
                    usual.join(" or ")
                );
            }
        }
        if provider.needs_max_tokens() {
            let _ = writeln!(text, "default_max_tokens = {MAX_TOKENS}");
        }
    }
}

/// A TOML string.
fn quoted(text: &str) -> Value {
    // The strings of JSON are strings of TOML.
    Value::from(text)
}

/// Writes a configuration file. On a terminal it asks for what the options leave open.
pub(crate) fn init(mut options: InitOptions, output: &Output) -> Result<(), CliError> {
    let file = options.output.display().to_string();
    let is_stdout = options.output == std::path::Path::new("-");
    if !is_stdout && options.output.exists() && !options.force {
        return Err(CliError::Usage {
            what: format!(
                "{file} exists; choose another file with --output, or replace it with --force"
            ),
        });
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if is_terminal && options.model.model.is_none() {
        ask(&mut options, &mut std::io::stdin().lock())?;
    }
    let offline = || ModelChoice::new(OFFLINE, &ModelOptions::default());
    let model = match ModelChoice::read(&options.model)? {
        Some(model) => model,
        None => offline()?,
    };
    let tenant = options.tenant.as_deref();
    let key = tenant.map(|_| server::auth::new_key()).transpose()?;
    let hash = key
        .as_ref()
        .map(|key| server::auth::hash_text(key.expose_secret()));
    let text = ConfigurationText {
        model: &model,
        system: options.system.as_deref().unwrap_or(SYSTEM),
        tenant: tenant.zip(hash.as_deref()),
    }
    .text();
    // Names of tenants have rules, and no file is written that the server refuses.
    let checked = Config::check(&text, &environment);
    checked.map_err(|error| CliError::Usage {
        what: error.message,
    })?;
    let mut sink = Sink::open(Some(&options.output), output)?;
    sink.document(&text)?;
    sink.finish()?;
    if is_stdout {
        report_key(key.as_ref(), output);
        return Ok(());
    }
    output.value(&json!({
        "file": file,
        "model": model.name(),
        "key": key.as_ref().map(ExposeSecret::expose_secret),
    }))?;
    output.line(&format!(
        "{file} is written: agent assistant with {}",
        model.name()
    ))?;
    if let Some(key) = &key {
        output.line(&format!(
            "{DIM}The API key, which is shown only now:{DIM:#}\n{}",
            key.expose_secret()
        ))?;
    }
    output.print(&format!(
        "Next: {BOLD}loomline agents check --config {file}{BOLD:#}, then {BOLD}loomline serve --config {file}{BOLD:#}"
    ));
    Ok(())
}

/// Prints the key where standard output has the configuration.
fn report_key(key: Option<&SecretString>, output: &Output) {
    if let Some(key) = key {
        output.write_stderr(&format!(
            "the API key, which is shown only now: {}\n",
            key.expose_secret()
        ));
    }
}

fn ask(options: &mut InitOptions, answers: &mut impl BufRead) -> Result<(), CliError> {
    let mut question = |text: &str| {
        let asked = std::io::stderr().lock().write_all(text.as_bytes());
        let mut line = String::new();
        asked
            .and_then(|()| answers.read_line(&mut line))
            .map_err(CliError::io("ask for the configuration"))?;
        let line = line.trim();
        Ok::<_, CliError>((!line.is_empty()).then(|| line.to_owned()))
    };
    options.model.model = question("Model, such as openai/gpt-5-mini [the offline model]: ")?;
    if options.system.is_none() {
        options.system = question(&format!("Instructions of the agent [{SYSTEM}]: "))?;
    }
    if options.tenant.is_none() {
        options.tenant =
            question("Name of a tenant, if other machines use the server [this machine only]: ")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(name: &str, base_url: Option<&str>) -> Result<ModelChoice, CliError> {
        let options = ModelOptions {
            model: Some(name.to_owned()),
            base_url: base_url.map(str::to_owned),
            api_key_env: None,
        };
        Ok(ModelChoice::read(&options)?.unwrap())
    }

    #[test]
    fn each_provider_gives_a_valid_configuration() {
        for kind in ProviderKind::ALL {
            let name = format!("{}/a/b:c", kind.as_str());
            let choice = choice(&name, Some("http://localhost:1/v1")).unwrap();
            assert_eq!(choice.name(), name);
            let text = choice.configuration();
            let config = Config::parse(&text, &|_| Some("secret".to_owned()));
            assert!(config.is_ok(), "{text}: {config:?}");
        }
    }

    #[test]
    fn a_model_without_a_provider_needs_a_base_url() {
        let error = choice("gpt-5", None).unwrap_err().to_string();
        assert!(error.contains("names no provider"), "{error}");
        let own = choice("qwen/qwen3", Some("http://localhost:1/v1")).unwrap();
        assert_eq!(own.name(), "chat-completions/qwen/qwen3");
    }

    #[test]
    fn a_provider_without_a_model_is_refused() {
        let error = choice("openai/", None).unwrap_err().to_string();
        assert!(error.contains("no model id"), "{error}");
    }

    #[test]
    fn a_missing_key_is_named() {
        let options = ModelOptions {
            model: Some("openai/gpt-5-mini".to_owned()),
            base_url: None,
            api_key_env: Some("LOOMLINE_TEST_NO_SUCH_KEY".to_owned()),
        };
        let choice = ModelChoice::read(&options).unwrap().unwrap();
        let error = choice.check_key().unwrap_err().to_string();
        assert!(
            error.starts_with("LOOMLINE_TEST_NO_SUCH_KEY is not set"),
            "{error}"
        );
    }

    #[test]
    fn questions_fill_the_options() {
        let mut options = InitOptions {
            model: ModelOptions::default(),
            system: None,
            tenant: None,
            output: "loomline.toml".into(),
            force: false,
        };
        ask(&mut options, &mut "ollama/qwen3\n\nacme\n".as_bytes()).unwrap();
        assert_eq!(options.model.model.as_deref(), Some("ollama/qwen3"));
        assert_eq!(options.system, None);
        assert_eq!(options.tenant.as_deref(), Some("acme"));
    }
}
