//! The filters of the inbox. They are in the address of the page.

use super::kind::InboxKind;
use crate::json;
use crate::link::path_segment;
use maud::{Markup, html};

/// For how long something has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxAge {
    /// For an hour at most.
    Recent,
    /// For more than an hour.
    Hour,
    /// For more than a day.
    Day,
}

impl InboxAge {
    const ALL: [Self; 3] = [Self::Recent, Self::Hour, Self::Day];

    /// The age with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|age| age.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Recent => "recent",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Recent => "at most an hour",
            Self::Hour => "more than an hour",
            Self::Day => "more than a day",
        }
    }
}

/// Which entries the inbox shows. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxFilter {
    /// Only this kind.
    pub kind: Option<InboxKind>,
    /// Only calls and requests of this agent.
    pub agent: Option<String>,
    /// Only what has waited for so long.
    pub age: Option<InboxAge>,
}

impl InboxFilter {
    /// Whether it leaves something out.
    pub(super) fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// The path of the inbox with this filter.
    pub fn path(&self) -> String {
        self.path_with(&[])
    }

    /// The path of the inbox with this filter and this entry opened.
    pub(super) fn path_to(&self, entry: &str) -> String {
        self.path_with(&[("open", entry)])
    }

    /// The path of the inbox with this filter and other parameters.
    pub(super) fn path_with(&self, others: &[(&str, &str)]) -> String {
        let own = [
            ("kind", self.kind.map(InboxKind::name)),
            ("agent", self.agent.as_deref()),
            ("age", self.age.map(InboxAge::name)),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let all = own.chain(others.iter().copied());
        let all: Vec<String> = all
            .map(|(name, value)| format!("{name}={}", path_segment(value)))
            .collect();
        if all.is_empty() {
            return "/inbox".to_owned();
        }
        format!("/inbox?{}", all.join("&"))
    }

    /// The filter in words.
    pub(super) fn words(&self) -> String {
        let kind = self.kind.map(|kind| format!("kind {}", kind.label()));
        let agent = self.agent.as_ref();
        let agent = agent.map(|agent| format!("agent {}", json::visible(agent)));
        let age = self.age.map(|age| format!("waits {}", age.label()));
        let all: Vec<String> = [kind, agent, age].into_iter().flatten().collect();
        all.join(", ")
    }

    /// The form of the filter. `agents` are the agents to choose from.
    pub(super) fn form(&self, agents: &[String]) -> Markup {
        let other = self.agent.iter().filter(|agent| !agents.contains(agent));
        html! {
            form class="filters" method="get" action="/inbox" {
                label { "Kind"
                    select name="kind" {
                        option value="" { "all" }
                        @for kind in InboxKind::ALL { option value=(kind.name()) selected[self.kind == Some(kind)] { (kind.label()) } }
                    }
                }
                label { "Agent"
                    select name="agent" {
                        option value="" { "all" }
                        @for agent in agents.iter().chain(other) {
                            option value=(agent) selected[self.agent.as_ref() == Some(agent)] { (json::visible(agent)) }
                        }
                    }
                }
                label { "Waits for"
                    select name="age" {
                        option value="" { "any time" }
                        @for age in InboxAge::ALL { option value=(age.name()) selected[self.age == Some(age)] { (age.label()) } }
                    }
                }
                button type="submit" { "Show" }
                @if self.is_set() { a href="/inbox" { "Clear the filter" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_has_the_filter_and_escapes_what_others_named() {
        let all = InboxFilter::default();
        assert_eq!(all.path(), "/inbox");
        assert_eq!(all.path_to("0f"), "/inbox?open=0f");
        let some = InboxFilter {
            kind: Some(InboxKind::Approval),
            agent: Some("a&b".to_owned()),
            age: Some(InboxAge::Day),
        };
        assert_eq!(some.path(), "/inbox?kind=approval&agent=a%26b&age=day");
    }
}
