//! The rights of a key.

use runtime::KeyPattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To look.
    Read,
    /// Posting, answering, running, stopping, creating.
    Write,
    /// To take away.
    Delete,
    /// Reading the metrics of the process and of all tenants.
    Operator,
    /// Opening the console of the web interface.
    Inspect,
    /// Answering the steps of agents that have workers.
    Work,
}

impl Scope {
    /// All scopes: those of a key without a list.
    pub(crate) const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Operator,
        Self::Inspect,
        Self::Work,
    ];

    /// The scope that a request with this method needs, unless its operation needs another one.
    pub(crate) fn of(method: &http::Method) -> Self {
        match method.as_str() {
            "GET" | "HEAD" | "OPTIONS" => Self::Read,
            "DELETE" => Self::Delete,
            _ => Self::Write,
        }
    }

    /// Its name in configurations and tokens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Operator => "operator",
            Self::Inspect => "inspect",
            Self::Work => "work",
        }
    }
}

/// A pattern for thread keys: one key, or all with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPattern {
    prefix: String,
    whole: bool,
}

impl ThreadPattern {
    /// Parses `support-*` or `support-7`. None for a star at any other place than the end, or for an
    /// empty text.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, whole) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, false),
            None => (text, true),
        };
        let nonsense = prefix.contains('*') || (whole && prefix.is_empty());
        (!nonsense).then(|| Self {
            prefix: prefix.to_owned(),
            whole,
        })
    }

    /// The pattern in the store for keys that match this pattern and begin with `prefix`; none if no key can match
    /// both.
    pub(crate) fn within(&self, prefix: &str) -> Option<KeyPattern> {
        if self.whole {
            let found = self.prefix.starts_with(prefix);
            return found.then(|| KeyPattern::Key(self.prefix.clone()));
        }
        let longer = if self.prefix.starts_with(prefix) {
            self.prefix.as_str()
        } else if prefix.starts_with(&self.prefix) {
            prefix
        } else {
            return None;
        };
        Some(KeyPattern::Prefix(longer.to_owned()))
    }

    /// The text that [`ThreadPattern::parse`] reads.
    #[cfg(any(test, feature = "web"))]
    pub(crate) fn text(&self) -> String {
        let star = if self.whole { "" } else { "*" };
        format!("{}{star}", self.prefix)
    }

    /// Whether the pattern matches this key.
    pub fn covers(&self, key: &str) -> bool {
        if self.whole {
            key == self.prefix
        } else {
            key.starts_with(&self.prefix)
        }
    }
}

/// The rights of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The kinds of requests it may make.
    pub scopes: BTreeSet<Scope>,
    /// The threads it may access; all when absent.
    pub threads: Option<Vec<ThreadPattern>>,
    /// The actors it may speak as; all when absent. It may always speak without an actor.
    pub actors: Option<BTreeSet<String>>,
}

impl Default for Rights {
    /// Everything.
    fn default() -> Self {
        Self {
            scopes: Scope::ALL.into(),
            threads: None,
            actors: None,
        }
    }
}

impl Rights {
    /// Whether it may access the thread with this key.
    pub fn cover(&self, key: &str) -> bool {
        let covers = |patterns: &Vec<ThreadPattern>| patterns.iter().any(|it| it.covers(key));
        self.threads.as_ref().is_none_or(covers)
    }

    /// Whether it may access all threads whose keys begin so.
    #[cfg(feature = "web")]
    pub(crate) fn cover_all(&self, prefix: &str) -> bool {
        let covers =
            |pattern: &ThreadPattern| !pattern.whole && prefix.starts_with(&pattern.prefix);
        let threads = self.threads.as_ref();
        threads.is_none_or(|patterns| patterns.iter().any(covers))
    }

    /// How the keys of new threads begin: as the first pattern for several threads says.
    #[cfg(feature = "web")]
    pub(crate) fn new_key_prefix(&self) -> &str {
        let mut patterns = self.threads.iter().flatten();
        let pattern = patterns.find(|pattern| !pattern.whole);
        pattern.map_or("", |pattern| &pattern.prefix)
    }

    /// Whether it may speak as this actor.
    pub fn may_speak_as(&self, actor: &str) -> bool {
        let actors = self.actors.as_ref();
        actors.is_none_or(|actors| actors.contains(actor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_one_key_or_all_that_begin_alike() {
        let all = ThreadPattern::parse("support-*").unwrap();
        assert!(all.covers("support-") && all.covers("support-7") && !all.covers("sales-7"));
        let one = ThreadPattern::parse("support-7").unwrap();
        assert!(one.covers("support-7") && !one.covers("support-77"));
        assert!(ThreadPattern::parse("*").unwrap().covers("anything"));
        for text in ["support-*", "support-7", "*"] {
            assert_eq!(ThreadPattern::parse(text).unwrap().text(), text);
        }
        for wrong in ["", "a*b", "**", "*a*"] {
            assert_eq!(ThreadPattern::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_pattern_and_a_prefix_mean_what_both_mean() {
        let within = |pattern: &str, prefix| ThreadPattern::parse(pattern).unwrap().within(prefix);
        let keys = |prefix: &str| Some(KeyPattern::Prefix(prefix.to_owned()));
        assert_eq!(within("support-*", ""), keys("support-"));
        assert_eq!(within("support-*", "sup"), keys("support-"));
        assert_eq!(within("support-*", "support-7"), keys("support-7"));
        assert_eq!(within("support-*", "sales"), None);
        assert_eq!(within("one", "on"), Some(KeyPattern::Key("one".to_owned())));
        assert_eq!(within("one", "once"), None);
    }

    #[test]
    fn without_a_list_all_threads_are_meant_and_an_empty_list_means_none() {
        assert!(Rights::default().cover("any"));
        let none = Rights {
            threads: Some(Vec::new()),
            ..Rights::default()
        };
        assert!(!none.cover("any"));
    }

    #[test]
    fn what_changes_something_needs_more_than_reading() {
        use http::Method as M;
        for (method, scope) in [
            (M::GET, Scope::Read),
            (M::HEAD, Scope::Read),
            (M::POST, Scope::Write),
            (M::PATCH, Scope::Write),
            (M::PUT, Scope::Write),
            (M::DELETE, Scope::Delete),
        ] {
            assert_eq!(Scope::of(&method), scope, "{method}");
        }
    }
}
