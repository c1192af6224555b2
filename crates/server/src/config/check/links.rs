//! The calls between agents: sub-agents and handoffs.

use super::Checker;
use crate::config::ConfigError;
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum depth of nested sub-agent calls.
const DEEPEST: usize = 16;

/// A reference from one agent to another, and its place in the file.
pub(super) struct Link {
    pub(super) to: String,
    pub(super) span: Range<usize>,
}

type Links = BTreeMap<String, Vec<Link>>;

/// The walk through the calls.
struct Walk<'a> {
    checker: &'a Checker<'a>,
    links: &'a Links,
    /// The depth of the calls below each agent, where known.
    depths: BTreeMap<&'a str, usize>,
    path: Vec<&'a str>,
}

impl Checker<'_> {
    /// Refuses cycles of sub-agents: each call starts a new conversation, so the recursion would not
    /// end. Cycles of handoffs are allowed, because a handoff continues the conversation.
    pub(super) fn links(&self, links: &Links) -> Result<(), ConfigError> {
        let mut walk = Walk {
            checker: self,
            links,
            depths: BTreeMap::new(),
            path: Vec::new(),
        };
        links
            .keys()
            .try_for_each(|agent| walk.visit(agent).map(|_| ()))
    }
}

impl<'a> Walk<'a> {
    fn visit(&mut self, agent: &'a str) -> Result<usize, ConfigError> {
        if let Some(depth) = self.depths.get(agent) {
            return Ok(*depth);
        }
        self.path.push(agent);
        let links = self.links;
        let mut depth = 0;
        for link in links.get(agent).into_iter().flatten() {
            if let Some(at) = self.path.iter().position(|name| *name == link.to) {
                let circle = self.path.iter().skip(at).copied();
                let circle: Vec<&str> = circle.chain([link.to.as_str()]).collect();
                let message = format!(
                    "these agents would call each other without end: {}",
                    circle.join(" → ")
                );
                return Err(self.wrong(link, message));
            }
            let below = if self.path.len() > DEEPEST {
                DEEPEST
            } else {
                self.visit(&link.to)?
            };
            depth = depth.max(below + 1);
            if depth > DEEPEST {
                let message =
                    format!("sub-agents have sub-agents more than {DEEPEST} deep, expected fewer");
                return Err(self.wrong(link, message));
            }
        }
        self.path.pop();
        self.depths.insert(agent, depth);
        Ok(depth)
    }

    fn wrong(&self, link: &Link, message: String) -> ConfigError {
        ConfigError::at(self.checker.text, link.span.clone(), message)
    }
}
