//! The specifications' own examples, in meaning, and what the rulings say of them.
//!
//! Every document or fragment of 2.0.0 and 0.0.4 stands in `fixtures/spec` in other words, with
//! the mistakes that the texts make; fragments are wrapped into documents. Beside each stands the
//! verdict: for every breach its severity when reading and when writing, its rule and its place.

use loomline_thread::{Profile, Severity, Thread, Version, upgrade, validate};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spec")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect(name)
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// One line for each breach: severity when reading, when writing, rule, place.
fn verdict(thread: &Thread) -> String {
    let lenient = validate(thread, Profile::Lenient);
    let strict = validate(thread, Profile::Strict);
    assert_eq!(lenient.len(), strict.len());
    let mut lines = Vec::new();
    for (lenient, strict) in lenient.iter().zip(&strict) {
        assert_eq!(
            (lenient.rule, &lenient.pointer),
            (strict.rule, &strict.pointer)
        );
        let (reading, writing) = (word(lenient.severity), word(strict.severity));
        let (rule, pointer) = (lenient.rule, &lenient.pointer);
        lines.push(format!(
            "{reading} {writing} {rule} {pointer:?}
"
        ));
    }
    lines.concat()
}

/// The examples, each with the number of its breaches, so that none is lost unseen.
const EXAMPLES: [(&str, usize); 13] = [
    ("0.0.4-calls-never-ran", 3),
    ("0.0.4-calls-pending", 1),
    ("0.0.4-cycle-kept", 1),
    ("0.0.4-cycles-complete", 1),
    ("0.0.4-interrupted-turn", 7),
    ("0.0.4-interruption-alone", 3),
    ("0.0.4-routing", 5),
    ("0.0.4-spawn-and-config", 3),
    ("0.0.4-spawn-tiers", 1),
    ("0.0.4-text-only", 1),
    ("2.0.0-enrichment", 1),
    ("2.0.0-system-prompt", 4),
    ("2.0.0-two-agents", 2),
];

#[test]
fn every_example_of_the_specifications_gets_the_verdict_of_the_rulings() {
    for (name, n_breaches) in EXAMPLES {
        let thread = Thread::decode(&read(&format!("{name}.json"))).unwrap();
        let found = verdict(&thread);
        let expected = read(&format!("{name}.verdict"));
        assert_eq!(found, expected, "{name}:\n{found}");
        assert_eq!(found.lines().count(), n_breaches, "{name}");
    }
}

#[test]
fn every_example_is_in_the_table() {
    let files = std::fs::read_dir(folder()).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let n_files = files
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .count();
    assert_eq!(n_files, EXAMPLES.len());
}

#[test]
fn the_first_example_of_2_0_0_is_read_without_an_error_before_and_after_its_upgrade() {
    let thread = Thread::decode(&read("2.0.0-two-agents.json")).unwrap();
    let upgraded = upgrade(&thread).unwrap();
    assert_eq!(upgraded.thread.version(), Version::V0_0_4);
    for thread in [&thread, &upgraded.thread] {
        let found = validate(thread, Profile::Lenient);
        assert!(
            found
                .iter()
                .all(|breach| breach.severity == Severity::Warning),
            "{found:?}"
        );
    }
    assert_eq!(upgraded.losses().count(), 0);
}
