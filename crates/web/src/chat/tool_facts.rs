//! The configuration of tools, as the cards of their calls show it.

use maud::{Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The configured tools of each agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolFacts(BTreeMap<String, BTreeMap<String, Arc<ToolFact>>>);

/// The effect of a configured tool and the form of its results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolFact {
    /// The effect of a call: `pure`, `idempotent`, `reconcilable` or `effect`. It decides whether a call
    /// that a crash interrupted runs again.
    pub effect: &'static str,
    /// The JSON Schema of the results that clients send.
    pub result: Option<Arc<Value>>,
}

impl ToolFacts {
    /// Adds a tool of an agent.
    pub fn insert(&mut self, agent: &str, tool: &str, fact: ToolFact) {
        let tools = self.0.entry(agent.to_owned()).or_default();
        tools.insert(tool.to_owned(), Arc::new(fact));
    }

    /// The tool of an agent, if it is configured.
    pub(crate) fn of(&self, agent: &str, tool: &str) -> Option<Arc<ToolFact>> {
        self.0.get(agent)?.get(tool).cloned()
    }
}

impl ToolFact {
    /// The line in the card of a call.
    pub(crate) fn html(&self) -> Markup {
        let words = match self.effect {
            "pure" => "changes nothing",
            "idempotent" => "changes something once, however often it runs",
            "reconcilable" => "changes something, and can check whether it did",
            _ => "changes something each time it runs",
        };
        html! { p class="quiet" { "Effect: " b { (self.effect) } ", " (words) "." } }
    }
}
