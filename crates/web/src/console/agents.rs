//! The configured agents.

use super::frame::ConsoleFrame;
use crate::elements::{badge, fact};
use crate::json;
use crate::link::path_segment;
use maud::{Markup, html};

/// The effect of a tool, which decides about a call with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// It changes nothing.
    Pure,
    /// It changes something once for each idempotency key.
    Idempotent,
    /// It can report whether it changed something.
    Reconcilable,
    /// It changes something each time.
    Each,
}

/// A tool of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolEntry {
    /// Its name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The effect of a call.
    pub effect: ToolEffect,
    /// Whether each call needs an approval.
    pub needs_approval: bool,
    /// Whether the client executes the calls.
    pub is_external: bool,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentEntry {
    /// Its name.
    pub name: String,
    /// The configured description.
    pub description: Option<String>,
    /// The name of its provider, or the protocol of a remote agent.
    pub provider: String,
    /// The name of its model, or of the remote agent.
    pub model: String,
    /// The address of the server of a remote agent.
    pub remote: Option<String>,
    /// Whether it answers messages that name no agent.
    pub is_default: bool,
    /// The names of the agents that it can hand over to.
    pub handoffs: Vec<String>,
    /// The names of the agents that it calls as tools.
    pub subagents: Vec<String>,
    /// Its tools.
    pub tools: Vec<ToolEntry>,
}

/// The page of the agents.
#[derive(Debug)]
pub struct AgentsPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The agents, by name.
    pub agents: &'a [AgentEntry],
    /// Whether the reader may begin threads.
    pub may_write: bool,
}

impl ToolEffect {
    /// The name in the configuration, and what it means for a call that a crash interrupted.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pure => ("pure", "changes nothing, runs again after a crash"),
            Self::Idempotent => (
                "idempotent",
                "changes something once, runs again after a crash",
            ),
            Self::Reconcilable => (
                "reconcilable",
                "is checked after a crash, and runs again if needed",
            ),
            Self::Each => ("effect", "changes something each time, never runs twice"),
        }
    }
}

impl AgentsPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            @if self.agents.is_empty() {
                p { "No agent is configured. Add a table " code { "[agents.NAME]" } " to the configuration file." }
            }
            @for (index, agent) in self.agents.iter().enumerate() { (self.agent(index, agent)) }
        })
    }

    fn agent(&self, index: usize, agent: &AgentEntry) -> Markup {
        let id = format!("agent-{index}");
        let name = json::visible(&agent.name);
        html! {
            section class="card agent" aria-labelledby=(id) {
                h2 id=(id) { bdi { (name) } @if agent.is_default { " " span class="badge" { "default" } } }
                @if let Some(description) = &agent.description { p class="plain" dir="auto" { (json::visible(description)) } }
                dl class="facts" {
                    @if let Some(address) = &agent.remote {
                        (fact("Runs at", &html! { "another server, " code { (json::visible(address)) } }))
                        (fact("Protocol", &html! { bdi { (json::visible(&agent.provider)) } }))
                        (fact("Name there", &html! { bdi { (json::visible(&agent.model)) } }))
                    } @else {
                        (fact("Model", &html! { bdi { (json::visible(&agent.model)) } " of " bdi { (json::visible(&agent.provider)) } }))
                    }
                    (fact("Hands over to", &self.names(&agent.handoffs)))
                    (fact("Sub-agents", &self.names(&agent.subagents)))
                }
                @if !agent.tools.is_empty() { (tools(&agent.name, &agent.tools)) }
                @else if agent.remote.is_none() { p class="quiet" { "It has no tools." } }
                @if self.may_write {
                    p { a class="button" href={ "/chat?agent=" (path_segment(&agent.name)) } { "Start a chat" span class="hidden" { " with " (name) } } }
                }
            }
        }
    }

    /// Names of agents, as links to them.
    fn names(&self, names: &[String]) -> Markup {
        let index = |name: &String| self.agents.iter().position(|agent| agent.name == *name);
        html! {
            @if names.is_empty() { "nobody" }
            @for (at, name) in names.iter().enumerate() {
                @if at > 0 { ", " }
                @match index(name) {
                    Some(index) => a href={ "#agent-" (index) } dir="auto" { (json::visible(name)) },
                    None => bdi { (json::visible(name)) },
                }
            }
        }
    }
}

fn tools(agent: &str, tools: &[ToolEntry]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "Tools of " (json::visible(agent)) } {
            table {
                thead { tr {
                    th scope="col" { "Tool" }
                    th scope="col" { "Description" }
                    th scope="col" { "Effect" }
                    th scope="col" { "Approval" }
                    th scope="col" { "Runs" }
                } }
                tbody {
                    @for tool in tools {
                        @let (effect, words) = tool.effect.words();
                        tr {
                            th scope="row" { code dir="auto" { (json::visible(&tool.name)) } }
                            td dir="auto" { (json::visible(&tool.description)) }
                            td { b { (effect) } ": " (words) }
                            td { @if tool.needs_approval { (badge(("waits", "needed"))) } @else { "not needed" } }
                            td { @if tool.is_external { "at the client" } @else { "on this server" } }
                        }
                    }
                }
            }
        }
    }
}
