//! The settings of the web interface.

use super::super::file::{StarterTable, Web};
use super::super::{Config, Starter};
use super::{Checker, ConfigError};
use std::time::Duration;
use toml::Spanned;

/// The longest session, in hours: a year.
const MAX_SESSION_HOURS: u64 = 8_760;

impl Checker<'_> {
    /// Reads the settings, once the agents are known.
    pub(super) fn web(&self, file: Web, config: &mut Config) -> Result<(), ConfigError> {
        config.web.is_enabled = file.enabled.unwrap_or(config.web.is_enabled);
        config.web.has_console = file.console.unwrap_or(config.web.has_console);
        if let Some(name) = file.name {
            if name.get_ref().trim().is_empty() {
                let message = "the name is empty, expected one such as \"Loomline\"";
                return Err(self.wrong(&name, message));
            }
            config.web.name = name.into_inner();
        }
        if let Some(hours) = file.session_hours {
            let n_hours = hours.get_ref().get();
            if n_hours > MAX_SESSION_HOURS {
                let message = format!("expected at most {MAX_SESSION_HOURS} hours");
                return Err(self.wrong(&hours, message));
            }
            config.web.session_lifetime = Duration::from_secs(n_hours * 3_600);
        }
        for origin in &file.embed_origins {
            if !is_origin(origin.get_ref()) {
                let expected =
                    "expected an origin such as \"https://shop.example\", without a path";
                let message = format!("{:?} is no origin, {expected}", origin.get_ref());
                return Err(self.wrong(origin, message));
            }
        }
        let origins = file.embed_origins.into_iter();
        config.web.embed_origins = origins.map(Spanned::into_inner).collect();
        if let Some(starters) = file.starters {
            let starters = starters.iter().map(|starter| self.starter(starter, config));
            config.web.starters = starters.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// A first message: its text, or a table.
    fn starter(
        &self,
        place: &Spanned<toml::Value>,
        config: &Config,
    ) -> Result<Starter, ConfigError> {
        let StarterTable { text, label, agent } = self.tagged(place, "text")?;
        if text.trim().is_empty() {
            let message = "the text is empty, expected a message such as \"What can you do?\"";
            return Err(self.wrong(place, message));
        }
        let agent = agent.unwrap_or_else(|| config.default_agent.clone());
        let named = Spanned::new(place.span(), agent);
        self.known("agent", &named, config.agents.keys())?;
        Ok(Starter {
            label: label.unwrap_or_else(|| text.clone()),
            text,
            agent: named.into_inner(),
        })
    }
}

/// Whether a text is one origin, as browsers write it.
fn is_origin(text: &str) -> bool {
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let is_part = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
    };
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_part))
}
