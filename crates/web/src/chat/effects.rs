//! The effects of tools' calls, as the cards of calls name them.

use maud::{Markup, html};
use std::collections::BTreeMap;

/// The configured effect of each agent's tools: `pure`, `idempotent`, `reconcilable` or `effect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolEffects(BTreeMap<String, BTreeMap<String, String>>);

impl ToolEffects {
    /// Adds the effect of an agent's tool.
    pub fn insert(&mut self, agent: &str, tool: &str, effect: &str) {
        let tools = self.0.entry(agent.to_owned()).or_default();
        tools.insert(tool.to_owned(), effect.to_owned());
    }

    /// The effect of an agent's tool, if it is configured.
    pub(crate) fn of(&self, agent: &str, tool: &str) -> Option<ToolEffect> {
        let effect = self.0.get(agent)?.get(tool)?;
        ToolEffect::ALL.into_iter().find(|it| it.name() == effect)
    }
}

/// The effect of a tool's calls. It decides whether a call that a crash interrupted runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    Pure,
    Idempotent,
    Reconcilable,
    Effect,
}

impl ToolEffect {
    const ALL: [Self; 4] = [
        Self::Pure,
        Self::Idempotent,
        Self::Reconcilable,
        Self::Effect,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Reconcilable => "reconcilable",
            Self::Effect => "effect",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Pure => "changes nothing",
            Self::Idempotent => "changes something once, however often it runs",
            Self::Reconcilable => "changes something, and can check whether it did",
            Self::Effect => "changes something each time it runs",
        }
    }

    /// The line in the card of a call.
    pub(crate) fn html(self) -> Markup {
        html! { p class="quiet" { "Effect: " b { (self.name()) } ", " (self.words()) "." } }
    }
}
