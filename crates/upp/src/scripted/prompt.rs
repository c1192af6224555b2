//! Parses a prompt into the actions of the scripted model.

use super::hint::meant;
use crate::error::Code;
use crate::tool::Tool;
use serde_json::{Map, Value};
use std::ops::Range;
use std::time::Duration;

/// Maximum number of words for `say N words`.
const WORDS: usize = 1_000_000;

/// A failure that the prompt requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: Code,
    /// How many deltas come first.
    pub(super) after: Option<usize>,
}

/// A tool named in a prompt.
#[derive(Debug)]
pub(super) struct Mention<'a> {
    pub(super) tool: &'a Tool,
    /// The text after the name, up to the next name.
    pub(super) rest: &'a str,
}

/// The action of one part of a chain.
#[derive(Debug)]
pub(super) enum Action<'a> {
    Call(Vec<Mention<'a>>),
    Fail(Failure),
}

/// The parts of the text that are quoted or JSON objects; they never match.
pub(super) struct Quoted(Vec<Range<usize>>);

impl Quoted {
    pub(super) fn of(text: &str) -> Self {
        let mut ranges = Vec::new();
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(['"', '{'])) {
            let start = from + found;
            let rest = text.get(start..).unwrap_or_default();
            let length = if rest.starts_with('{') {
                object_at(rest).map(|(_, length)| length)
            } else {
                rest.get(1..)
                    .and_then(|rest| rest.find('"'))
                    .map(|at| at + 2)
            };
            let length = length.unwrap_or(1);
            if length > 1 {
                ranges.push(start..start + length);
            }
            from = start + length;
        }
        Self(ranges)
    }

    pub(super) fn covers(&self, at: usize) -> bool {
        self.0.iter().any(|range| range.contains(&at))
    }
}

/// The JSON object a text starts with, and its length.
pub(super) fn object_at(text: &str) -> Option<(Map<String, Value>, usize)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    let object = stream.next()?.ok()?;
    Some((object, stream.byte_offset()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Whether the whole word at `at` is `word`, without regard to case.
pub(super) fn stands_at(text: &str, at: usize, word: &str) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    text.get(at..at + word.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(word))
        && !before.is_some_and(is_word)
        && !text
            .get(at + word.len()..)
            .and_then(|rest| rest.chars().next())
            .is_some_and(is_word)
}

/// Whether the text has this whole word, without regard to case.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.char_indices().any(|(at, _)| stands_at(text, at, word))
}

/// The words of a text, without punctuation around them, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c| !is_word(c)).to_lowercase())
        .filter(|word| !word.is_empty())
}

/// The actions of a text's parts, which `then` joins, in order. Parts without a tool or a failure are
/// left out. If none has one, the text may still name an external tool.
pub(super) fn actions<'a>(text: &'a str, tools: &'a [Tool]) -> Vec<Action<'a>> {
    let quoted = Quoted::of(text);
    let mut cuts = vec![0];
    for (at, _) in text.char_indices() {
        if stands_at(text, at, "then") && !quoted.covers(at) {
            cuts.extend([at, at + "then".len()]);
        }
    }
    cuts.push(text.len());
    let mut actions: Vec<Action<'a>> = cuts
        .chunks(2)
        .filter_map(|cut| text.get(*cut.first()?..*cut.last()?))
        .filter_map(|part| action(part, tools))
        .collect();
    if actions.is_empty() {
        actions.extend(meant(text, tools).map(|mention| Action::Call(vec![mention])));
    }
    actions
}

fn action<'a>(part: &'a str, tools: &'a [Tool]) -> Option<Action<'a>> {
    if let Some(failure) = failure(part) {
        return Some(Action::Fail(failure));
    }
    let mentions = mentions(part, tools);
    (!mentions.is_empty()).then_some(Action::Call(mentions))
}

/// The tools a text names, in order of appearance.
pub(super) fn mentions<'a>(text: &'a str, tools: &'a [Tool]) -> Vec<Mention<'a>> {
    let quoted = Quoted::of(text);
    let mut found: Vec<(usize, &Tool)> = Vec::new();
    let mut until = 0;
    for (at, _) in text.char_indices() {
        if at < until || quoted.covers(at) {
            continue;
        }
        let named = tools
            .iter()
            .filter(|tool| !tool.name.is_empty() && stands_at(text, at, &tool.name))
            .max_by_key(|tool| tool.name.len());
        if let Some(tool) = named {
            found.push((at, tool));
            until = at + tool.name.len();
        }
    }
    let ends: Vec<usize> = found.iter().map(|(at, _)| *at).skip(1).collect();
    let mut mentions: Vec<Mention<'a>> = Vec::new();
    for (i, (at, tool)) in found.into_iter().enumerate() {
        let end = ends.get(i).copied();
        let rest = text
            .get(at + tool.name.len()..end.unwrap_or(text.len()))
            .unwrap_or_default();
        let rest = trimmed(rest, end.is_some());
        // "use the compute tool to compute 1+1" asks once.
        if let Some(last) = mentions.last_mut()
            && last.tool.name == tool.name
            && last.rest.is_empty()
        {
            last.rest = rest;
        } else {
            mentions.push(Mention { tool, rest });
        }
    }
    mentions
}

/// Removes the words that only join a tool's name to its arguments, or two calls.
fn trimmed(rest: &str, followed: bool) -> &str {
    const BEFORE: &[&str] = &["tool", "with", "on", "for", "to", "using", "about"];
    const AFTER: &[&str] = &[
        "and", "use", "call", "run", "also", "please", "the", "tool", "to",
    ];
    let mut rest = rest.trim_start_matches([' ', ':', ',', '`', '\n', '\t']);
    while let Some(word) = BEFORE.iter().find(|word| stands_at(rest, 0, word)) {
        rest = rest.get(word.len()..).unwrap_or_default();
        rest = rest.trim_start_matches([' ', ':', ',']);
    }
    rest = rest.trim_end_matches(|c: char| c.is_whitespace() || ".,;!?`".contains(c));
    while let Some(word) = AFTER.iter().find(|word| {
        (followed || **word == "and")
            && rest.len() >= word.len()
            && stands_at(rest, rest.len() - word.len(), word)
    }) {
        rest = rest.get(..rest.len() - word.len()).unwrap_or_default();
        rest = rest.trim_end_matches(|c: char| c.is_whitespace() || ".,;!?".contains(c));
    }
    rest
}

/// Reads `slow` (for `usual`) or `slow 20ms` at the start; returns the delay and the rest of the text.
pub(super) fn slow(text: &str, usual: Duration) -> (Option<Duration>, &str) {
    let text = text.trim_start();
    if !stands_at(text, 0, "slow") {
        return (None, text);
    }
    let rest = text.get("slow".len()..).unwrap_or_default();
    let rest = rest.trim_start_matches([' ', ':', ',']);
    let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match duration(word) {
        Some(delay) => (Some(delay), after.trim_start()),
        None => (Some(usual), rest),
    }
}

fn duration(word: &str) -> Option<Duration> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match word.get(digits.len()..)? {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

/// Reads `fail`, `fail <code>`, `fail after N` and `fail <code> after N` at the beginning.
pub(super) fn failure(text: &str) -> Option<Failure> {
    let mut words = words(text);
    if words.next()? != "fail" {
        return None;
    }
    let mut failure = Failure {
        code: Code::ProviderError,
        after: None,
    };
    let mut word = words.next();
    if let Some(code) = word.as_deref().and_then(code) {
        failure.code = code;
        word = words.next();
    }
    if word.as_deref() == Some("after") {
        failure.after = words.next().and_then(|count| count.parse().ok());
    }
    Some(failure)
}

fn code(word: &str) -> Option<Code> {
    Some(match word {
        "auth" | "authentication" | "authentication_failed" => Code::AuthenticationFailed,
        "rate" | "rate_limited" | "rate_limit" => Code::RateLimited,
        "context" | "context_length" | "context_length_exceeded" => Code::ContextLengthExceeded,
        "model" | "model_not_found" => Code::ModelNotFound,
        "invalid" | "invalid_request" => Code::InvalidRequest,
        "invalid_response" => Code::InvalidResponse,
        "filter" | "content_filter" | "content_filtered" => Code::ContentFiltered,
        "quota" | "quota_exceeded" => Code::QuotaExceeded,
        "provider" | "provider_error" => Code::ProviderError,
        "network" | "network_error" => Code::NetworkError,
        "timeout" => Code::Timeout,
        "cancelled" | "canceled" => Code::Cancelled,
        _ => return None,
    })
}

/// Reads `say N words` or `write N words`, anywhere.
pub(super) fn word_count(text: &str) -> Option<usize> {
    let words: Vec<String> = words(text).collect();
    words.windows(3).find_map(|three| match three {
        [verb, count, noun]
            if (verb == "say" || verb == "write") && (noun == "words" || noun == "word") =>
        {
            count.parse().ok().map(|count: usize| count.min(WORDS))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools() -> Vec<Tool> {
        ["read", "read_file", "compute"]
            .map(|name| {
                Tool::new(
                    name,
                    "",
                    json!({}),
                    |_: Value, _| -> futures_util::future::BoxFuture<'static, _> {
                        Box::pin(async { Ok(Value::Null) })
                    },
                )
            })
            .to_vec()
    }

    fn said(text: &str) -> Vec<(String, String)> {
        mentions(text, &tools())
            .into_iter()
            .map(|it| (it.tool.name.clone(), it.rest.to_owned()))
            .collect()
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    #[test]
    fn tools_are_named_as_whole_words() {
        assert_eq!(
            said("Read_File notes.txt"),
            pairs(&[("read_file", "notes.txt")])
        );
        assert_eq!(said("precompute it"), pairs(&[]));
        assert_eq!(
            said("use compute with 1+1 and then call read_file a.txt."),
            pairs(&[("compute", "1+1 and then"), ("read_file", "a.txt")])
        );
        assert_eq!(
            said("Use the compute tool to compute 2+3*4!"),
            pairs(&[("compute", "2+3*4")])
        );
    }

    #[test]
    fn quoted_text_asks_for_nothing() {
        assert_eq!(said(r#"say "compute" and {"a": "read"}"#), pairs(&[]));
        assert_eq!(
            said(r#"read {"task": "compute 1 then read"}"#),
            pairs(&[("read", r#"{"task": "compute 1 then read"}"#)])
        );
        assert_eq!(actions(r#"read "a then b""#, &tools()).len(), 1);
    }

    #[test]
    fn then_makes_a_chain() {
        let tools = tools();
        let chain = actions("think then compute 1 then fail timeout then hello", &tools);
        assert!(matches!(
            chain.as_slice(),
            [
                Action::Call(_),
                Action::Fail(Failure {
                    code: Code::Timeout,
                    after: None
                })
            ]
        ));
    }

    #[test]
    fn commands_are_read() {
        let usual = Duration::from_millis(50);
        assert_eq!(slow("slow hello", usual), (Some(usual), "hello"));
        let (delay, rest) = slow("Slow 20ms fail rate_limited after 3", usual);
        assert_eq!(delay, Some(Duration::from_millis(20)));
        let failure = failure(rest).unwrap();
        assert_eq!((failure.code, failure.after), (Code::RateLimited, Some(3)));
        assert_eq!(word_count("Please say 12 words."), Some(12));
        assert_eq!(word_count("say no words"), None);
        assert!(has_word("Think!", "think") && !has_word("rethink", "think"));
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        for text in [
            "{{{\"",
            "ä\"ö then",
            "",
            "\u{1F600}compute\u{1F600}",
            "fail after",
            "{\"a\":",
        ] {
            let tools = tools();
            let _ = (
                actions(text, &tools),
                slow(text, Duration::ZERO),
                word_count(text),
            );
        }
    }
}
