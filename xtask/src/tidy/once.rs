//! Decisions that the code takes in one place: strings that may stand there and nowhere else.

use super::exceptions::Counts;
use crate::sources::{Source, code, production_lines, without_comments};

/// A string of production code and where it may be.
struct Once {
    rule: &'static str,
    needle: &'static str,
    /// Files, or folders with `/` at the end.
    homes: &'static [&'static str],
}

const ONCE: [Once; 3] = [
    // Whether another agent takes over a run is decided by the run model.
    Once {
        rule: "handoff rule",
        needle: "== EventPart::AGENT_HANDOFF",
        homes: &["crates/interop/src/run/"],
    },
    // Chunks of text are decoded by `timeline::Chunk`. Two wires have a member of this name of their own.
    Once {
        rule: "chunk decoding",
        needle: "\"text-delta\"",
        homes: &[
            "crates/timeline/src/chunk.rs",
            "crates/interop/src/ai_sdk/",
            "crates/interop/src/langgraph/protocol/",
        ],
    },
    // Which executions form a run is decided by the run model's selector.
    Once {
        rule: "run selection",
        needle: "RunEvents",
        homes: &[],
    },
];

/// Counts the strings outside of their homes.
pub(super) fn count(source: &Source, is_test: bool, counts: &mut Counts) {
    let path = source.path.as_str();
    let is_suite = path.contains("/suite/") || path.ends_with("/suite.rs");
    if is_test || is_suite || source.crate_name().is_none() || !source.is("rs") {
        return;
    }
    let flags = production_lines(&code(&source.text));
    let text = without_comments(&source.text);
    for it in &ONCE {
        let is_home = |home: &&str| path == *home || home.ends_with('/') && path.starts_with(*home);
        if it.homes.iter().any(is_home) {
            continue;
        }
        for ((line, text), counted) in (1..).zip(text.lines()).zip(&flags) {
            if *counted && text.contains(it.needle) {
                counts.add(it.rule, path, format!("line {line}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Counts {
        let mut counts = Counts::default();
        let source = Source {
            path: path.into(),
            text: text.into(),
        };
        count(&source, false, &mut counts);
        counts
    }

    #[test]
    fn a_second_decoder_of_chunks_is_counted() {
        let text = "let a = kind == \"text-delta\"; // \"text-delta\"\n// \"text-delta\"\n";
        let mut expected = Counts::default();
        expected.add(
            "chunk decoding",
            "crates/interop/src/a2a/a.rs",
            "line 1".into(),
        );
        assert_eq!(found("crates/interop/src/a2a/a.rs", text), expected);
    }

    #[test]
    fn the_home_of_a_decision_and_tests_are_free() {
        let text = "let a = \"text-delta\";\n";
        for path in [
            "crates/timeline/src/chunk.rs",
            "crates/interop/src/ai_sdk/a.rs",
        ] {
            assert_eq!(found(path, text), Counts::default(), "{path}");
        }
        let text = "#[cfg(test)]\nmod tests {\n    const A: &str = \"text-delta\";\n}\n";
        assert_eq!(found("crates/cli/src/run.rs", text), Counts::default());
    }
}
