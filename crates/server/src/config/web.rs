//! The settings of the web interface.

use std::time::Duration;

/// The default duration of a session.
const SESSION: Duration = Duration::from_hours(12);

/// The settings of the web interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebConfig {
    /// Whether there are pages.
    pub is_enabled: bool,
    /// Whether there is a console.
    pub has_console: bool,
    /// The name of the server, in titles and in the menu.
    pub name: String,
    /// First messages that the page of a new thread offers.
    pub starters: Vec<Starter>,
    /// How long a person stays logged in.
    pub session_lifetime: Duration,
    /// The origins whose pages may show the chat of an agent; none means that no page may.
    pub embed_origins: Vec<String>,
}

impl WebConfig {
    /// Whether pages of other sites may show a chat.
    #[cfg(feature = "web")]
    pub(crate) fn has_widget(&self) -> bool {
        self.is_enabled && !self.embed_origins.is_empty()
    }
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            is_enabled: true,
            has_console: true,
            name: "Loomline".to_owned(),
            starters: Vec::new(),
            session_lifetime: SESSION,
            embed_origins: Vec::new(),
        }
    }
}

/// A first message that the page of a new thread offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starter {
    /// Its label: the feature that it shows.
    pub label: String,
    /// The message.
    pub text: String,
    /// The agent that answers it.
    pub agent: String,
}
