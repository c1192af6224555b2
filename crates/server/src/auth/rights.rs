//! What a key may do.

use serde::Deserialize;
use std::collections::BTreeSet;

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To look.
    Read,
    /// To say, answer, run, stop, make.
    Write,
    /// To take away.
    Delete,
    /// To read the figures of the process and of all tenants.
    Operator,
}

impl Scope {
    /// All of them: what a key may do that has no list of scopes.
    pub(crate) const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Delete, Self::Operator];

    /// What a request with this method needs, where nothing else tells what it does.
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
        }
    }
}

/// Threads by their keys: one key, or all that begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPattern {
    prefix: String,
    whole: bool,
}

impl ThreadPattern {
    /// Reads `support-*` or `support-7`. A star stands at the end alone; a key that has one
    /// elsewhere can't be meant.
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

    /// What is to be looked for to find those that it means and whose keys begin so as well; none
    /// where there can't be any.
    pub(crate) fn within(&self, prefix: &str) -> Option<Sought> {
        if self.whole {
            let found = self.prefix.starts_with(prefix);
            return found.then(|| Sought::Key(self.prefix.clone()));
        }
        let longer = if self.prefix.starts_with(prefix) {
            self.prefix.as_str()
        } else if prefix.starts_with(&self.prefix) {
            prefix
        } else {
            return None;
        };
        Some(Sought::Prefix(longer.to_owned()))
    }

    /// Whether it means the thread of this key.
    pub fn covers(&self, key: &str) -> bool {
        if self.whole {
            key == self.prefix
        } else {
            key.starts_with(&self.prefix)
        }
    }
}

/// Threads as a store finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    /// The one with this key.
    Key(String),
    /// All whose keys begin so.
    Prefix(String),
}

/// What a key may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// What kinds of requests.
    pub scopes: BTreeSet<Scope>,
    /// On which threads; on all when absent.
    pub threads: Option<Vec<ThreadPattern>>,
    /// As which actors it may speak; as any when absent. As nobody in particular it always may.
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
    /// Whether it may touch the thread of this key.
    pub fn cover(&self, key: &str) -> bool {
        let covers = |patterns: &Vec<ThreadPattern>| patterns.iter().any(|it| it.covers(key));
        self.threads.as_ref().is_none_or(covers)
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
        for wrong in ["", "a*b", "**", "*a*"] {
            assert_eq!(ThreadPattern::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_pattern_and_a_prefix_mean_what_both_mean() {
        let within = |pattern: &str, prefix| ThreadPattern::parse(pattern).unwrap().within(prefix);
        let keys = |prefix: &str| Some(Sought::Prefix(prefix.to_owned()));
        assert_eq!(within("support-*", ""), keys("support-"));
        assert_eq!(within("support-*", "sup"), keys("support-"));
        assert_eq!(within("support-*", "support-7"), keys("support-7"));
        assert_eq!(within("support-*", "sales"), None);
        assert_eq!(within("one", "on"), Some(Sought::Key("one".to_owned())));
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
