//! A tool that a prompt does not name, but means.

use super::prompt::{Mention, Quoted, stands_at};
use crate::tool::Tool;

/// Parts of names that are generic verbs.
const VERBS: &[&str] = &["get", "set", "read", "list", "find"];
/// Minimum length of a name's part; shorter words occur in too many texts.
const MIN_LENGTH: usize = 4;
/// Words between the tool's name and the values of its arguments.
const JOINING: &[&str] = &[
    "like", "in", "at", "of", "for", "on", "about", "is", "the", "to",
];

/// The first external tool with a part of its name in the text as a word. The text after that word
/// offers the values of its arguments.
pub(super) fn meant<'a>(text: &'a str, tools: &'a [Tool]) -> Option<Mention<'a>> {
    let quoted = Quoted::of(text);
    tools.iter().filter(|tool| tool.external).find_map(|tool| {
        let end = tool
            .name
            .split(['_', '-'])
            .filter(|part| part.len() >= MIN_LENGTH && !is_verb(part))
            .find_map(|part| {
                let mut places = text.char_indices().map(|(at, _)| at);
                let at = places.find(|at| stands_at(text, *at, part) && !quoted.covers(*at))?;
                Some(at + part.len())
            })?;
        let rest = asked(text.get(end..).unwrap_or_default());
        Some(Mention { tool, rest })
    })
}

fn is_verb(part: &str) -> bool {
    VERBS.iter().any(|verb| part.eq_ignore_ascii_case(verb))
}

fn asked(rest: &str) -> &str {
    let start = |rest: &'_ str| rest.len() - rest.trim_start_matches([' ', ':', ',', '\n']).len();
    let mut rest = rest.get(start(rest)..).unwrap_or_default();
    while let Some(word) = JOINING.iter().find(|word| stands_at(rest, 0, word)) {
        rest = rest.get(word.len()..).unwrap_or_default();
        rest = rest.get(start(rest)..).unwrap_or_default();
    }
    rest.trim_end_matches(|c: char| c.is_whitespace() || ".,;!?".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meant_in(text: &str) -> Option<(String, String)> {
        let elsewhere = ["get_weather", "find-flight", "set_day"];
        let mut tools: Vec<Tool> = elsewhere
            .map(|name| Tool::external(name, "", json!({})))
            .into();
        let mut own = Tool::external("read_report", "", json!({}));
        own.external = false;
        tools.push(own);
        let found = meant(text, &tools);
        found.map(|it| (it.tool.name.clone(), it.rest.to_owned()))
    }

    #[test]
    fn a_part_of_a_name_that_stands_as_a_word_means_the_tool() {
        for (text, tool, rest) in [
            (
                "What's the weather like in San Francisco?",
                "get_weather",
                "San Francisco",
            ),
            ("WEATHER", "get_weather", ""),
            (
                "Is there a flight to Oslo today",
                "find-flight",
                "Oslo today",
            ),
        ] {
            let expected = Some((tool.to_owned(), rest.to_owned()));
            assert_eq!(meant_in(text), expected, "{text}");
        }
        for text in [
            "",
            "the weatherman",
            "say \"weather\" {\"weather\": 1}",
            // Verbs, short parts, and what is executed here.
            "find the day",
            "get a report",
            "\u{1F600}ä",
        ] {
            assert_eq!(meant_in(text), None, "{text}");
        }
    }
}
