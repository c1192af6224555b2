//! Documents: what validation says of them, complete cycles, the canonical form.

use super::cases::{Block, Case, compare};
use thread::cycles::{OpenToolCall, complete_cycles, pending_tool_calls};
use thread::document::CompletionStatus;
use thread::{CanonicalOptions, Json, Profile, Severity, Thread, canonical, hash, validate};

/// What a case is about.
enum Subject {
    Document(Thread),
    Messages(Vec<Json>, CompletionStatus),
}

pub(crate) fn check(case: &Case) -> Result<(), String> {
    let (first, rest) = case.blocks.split_first().ok_or("the case checks nothing")?;
    let subject = subject(first)?;
    if rest.is_empty() {
        return Err("the case checks nothing".into());
    }
    rest.iter().try_for_each(|block| holds(&subject, block))
}

fn subject(block: &Block) -> Result<Subject, String> {
    Ok(match block.info().as_slice() {
        ["json", "document"] => Subject::Document(decode(&block.text)?),
        ["json", "turns", version] => Subject::Document(decode(&around(&block.text, version))?),
        ["json", "messages", "complete"] => {
            Subject::Messages(list(&block.text)?, CompletionStatus::Complete)
        }
        ["json", "messages", "interrupted"] => {
            Subject::Messages(list(&block.text)?, CompletionStatus::Interrupted)
        }
        _ => return Err(block.unknown()),
    })
}

fn holds(subject: &Subject, block: &Block) -> Result<(), String> {
    match (subject, block.info().as_slice()) {
        (Subject::Document(document), ["verdict"]) => verdict(document, block),
        (Subject::Document(document), ["pending"]) => pending(document, block),
        (Subject::Document(document), ["canonical", rest @ ..]) => {
            let found = canonical(document, options(block, rest)?).map_err(told)?;
            compare(&block.lines(), &[found])
        }
        (Subject::Document(document), ["json", "same", rest @ ..]) => {
            compare_hashes(document, block, options(block, rest)?, true)
        }
        (Subject::Document(document), ["json", "different", rest @ ..]) => {
            compare_hashes(document, block, options(block, rest)?, false)
        }
        (Subject::Messages(messages, ending), ["json", "kept"]) => {
            let texts = |messages: Vec<Json>| -> Vec<String> {
                messages.iter().map(Json::to_text).collect()
            };
            let expected = texts(list(&block.text)?);
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            compare(
                &expected,
                &texts(complete_cycles(messages.clone(), *ending)),
            )
        }
        _ => Err(block.unknown()),
    }
}

fn verdict(document: &Thread, block: &Block) -> Result<(), String> {
    let lines = block.lines();
    for (name, profile) in [("lenient", Profile::Lenient), ("strict", Profile::Strict)] {
        let mut expected = Vec::new();
        for line in &lines {
            match line.split_once(": ") {
                Some((of, rest)) if of == name || of == "both" => expected.push(rest),
                Some(("lenient" | "strict", _)) => {}
                None if lines == ["valid"] => {}
                Some(_) | None => return Err(format!("the verdict {line:?} is not understood")),
            }
        }
        let found: Vec<String> = validate(document, profile)
            .iter()
            .map(|violation| {
                let severity = match violation.severity {
                    Severity::Warning => "warning",
                    Severity::Error => "error",
                };
                let pointer = match violation.pointer.as_str() {
                    "" => "(document)",
                    pointer => pointer,
                };
                format!("{} {severity} {pointer}", violation.rule)
            })
            .collect();
        compare(&expected, &found).map_err(|why| format!("{name}, {why}"))?;
    }
    Ok(())
}

fn pending(document: &Thread, block: &Block) -> Result<(), String> {
    let calls = pending_tool_calls(document);
    let mut found: Vec<String> = calls.iter().map(OpenToolCall::pointer).collect();
    if found.is_empty() {
        found.push("none".into());
    }
    compare(&block.lines(), &found)
}

fn compare_hashes(
    document: &Thread,
    block: &Block,
    options: CanonicalOptions,
    same: bool,
) -> Result<(), String> {
    let other = decode(&block.text)?;
    let (one, other) = (
        hash(document, options).map_err(told)?,
        hash(&other, options).map_err(told)?,
    );
    let word = if same { "same" } else { "another" };
    if (one == other) == same {
        Ok(())
    } else {
        Err(format!("expected the {word} hash, found {one} and {other}"))
    }
}

fn options(block: &Block, words: &[&str]) -> Result<CanonicalOptions, String> {
    match words {
        [] => Ok(CanonicalOptions { keep_sys: true }),
        ["without-sys"] => Ok(CanonicalOptions { keep_sys: false }),
        _ => Err(block.unknown()),
    }
}

fn decode(text: &str) -> Result<Thread, String> {
    Thread::decode(text).map_err(told)
}

fn list(text: &str) -> Result<Vec<Json>, String> {
    match Json::parse(text).map_err(told)? {
        Json::Array(items) => Ok(items),
        other => Err(format!("the messages are of type {}", other.type_name())),
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The thread that stands around turns.
fn around(turns: &str, version: &str) -> String {
    let agent = |digit: char, name: &str| {
        let part = |n: usize| digit.to_string().repeat(n);
        let id = format!(
            "{}-{}-4{}-8{}-{}",
            part(8),
            part(4),
            part(3),
            part(3),
            part(12)
        );
        format!(
            r#""{id}":{{"agent_id":"{id}","agent_name":"{name}","created_at":"2026-03-01T09:00:00Z"}}"#
        )
    };
    let agents = [agent('a', "Ada"), agent('b', "Ben")].join(",");
    format!(
        r#"{{"version":"{version}","thread_id":"0d0f5f6e-30a5-4d0c-9f6a-3b0c3a9c2f11","created_at":"2026-03-01T09:00:00Z","updated_at":"2026-03-01T12:00:00Z","agents":{{{agents}}},"turns":{turns}}}"#
    )
}
