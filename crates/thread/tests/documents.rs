//! Whole documents: the fixtures, and real histories when they are at hand.

#[path = "../../../tests/reference.rs"]
mod reference;

use loomline_thread::cycles::pending_tool_calls;
use loomline_thread::{CanonicalOptions, Json, Profile, Rules, Severity, Thread, hash, validate};
use reference::reference;
use std::collections::BTreeSet;
use std::path::Path;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    std::fs::read_to_string(&path).expect(name)
}

fn lines(thread: &Thread, rules: impl Into<Rules>) -> String {
    let mut lines = String::new();
    for violation in validate(thread, rules) {
        lines.push_str(&violation.to_string());
        lines.push('\n');
    }
    lines
}

#[test]
fn valid_documents_have_no_violations_even_for_writing() {
    for name in ["conversation.json", "interrupted.json"] {
        let thread = Thread::decode(&fixture(name)).unwrap();
        assert_eq!(lines(&thread, Profile::Strict), "", "{name}");
        assert!(pending_tool_calls(&thread).is_empty());
    }
}

#[test]
fn a_document_comes_back_as_it_was_but_for_white_space() {
    let text = fixture("conversation.json");
    let encoded = Thread::decode(&text).unwrap().encode();
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(squeeze(&encoded), squeeze(&text));
    assert!(encoded.contains(r#""budget":1.50e3,"note":null"#));
    assert_eq!(Thread::decode(&encoded).unwrap().encode(), encoded);
}

#[test]
fn broken_documents_have_exactly_the_violations_listed() {
    for name in ["broken_shapes", "broken_calls"] {
        let thread = Thread::decode(&fixture(&format!("{name}.json"))).unwrap();
        let found = lines(&thread, Profile::Lenient);
        assert_eq!(
            found,
            fixture(&format!("{name}.expected")),
            "{name}:\n{found}"
        );
    }
}

#[test]
fn strict_finds_the_same_places_and_never_less_severe() {
    for name in ["broken_shapes.json", "broken_calls.json"] {
        let thread = Thread::decode(&fixture(name)).unwrap();
        let lenient = validate(&thread, Profile::Lenient);
        let strict = validate(&thread, Profile::Strict);
        assert_eq!(lenient.len(), strict.len());
        for (lenient, strict) in lenient.iter().zip(&strict) {
            assert_eq!(
                (lenient.rule, &lenient.pointer),
                (strict.rule, &strict.pointer)
            );
            assert!(lenient.severity <= strict.severity);
        }
    }
}

#[test]
fn instants_out_of_order_are_errors_only_when_denied() {
    let thread = Thread::decode(&fixture("broken_calls.json")).unwrap();
    let order = |rules: Rules| -> BTreeSet<Severity> {
        let found = validate(&thread, rules).into_iter();
        let order =
            found.filter(|v| v.rule.id().starts_with("tp-4") || v.rule.id().starts_with("tp-5"));
        order.map(|violation| violation.severity).collect()
    };
    assert_eq!(order(Profile::Strict.into()), [Severity::Warning].into());
    let deny_timestamps = true;
    let rules = Rules {
        deny_timestamps,
        ..Rules::default()
    };
    assert_eq!(order(rules), [Severity::Error].into());
}

#[test]
fn rules_of_0_0_4_do_not_bind_earlier_documents() {
    let text = fixture("broken_calls.json").replace("\"0.0.4\"", "\"2.0.0\"");
    let thread = Thread::decode(&text).unwrap();
    let found: BTreeSet<_> = validate(&thread, Profile::Lenient)
        .iter()
        .map(|v| v.rule.id())
        .collect();
    let later = [
        "tp-completion-status",
        "tp-interruption",
        "tp-complete-cycle",
        "tp-completed-at",
    ];
    assert!(later.iter().all(|id| !found.contains(id)), "{found:?}");
    assert!(found.contains("tp-2-call-unanswered"));
}

#[test]
fn rules_of_0_0_3_bind_from_0_0_3_on() {
    let ids = |version: &str| -> BTreeSet<&'static str> {
        let text = fixture("broken_shapes.json").replace("\"0.0.4\"", version);
        let found = validate(&Thread::decode(&text).unwrap(), Profile::Strict);
        found.iter().map(|violation| violation.rule.id()).collect()
    };
    let added = ["tp-6-client-metadata-key", "tp-8-link-thread-id"];
    assert!(added.iter().all(|id| ids("\"0.0.3\"").contains(id)));
    assert!(added.iter().all(|id| !ids("\"2.0.0\"").contains(id)));
}

#[test]
fn a_reference_to_content_names_a_recognised_place() {
    let found = |uri: &str, rules: Rules| {
        let text = fixture("conversation.json").replace("s3://measurements/east.json", uri);
        lines(&Thread::decode(&text).unwrap(), rules)
    };
    assert!(found("no uri", Rules::default()).starts_with("error tp-7-content-ref-uri"));
    assert!(found("loom:east", Rules::default()).starts_with("warning tp-7-content-ref-scheme"));
    assert!(
        found("loom:east", Profile::Strict.into()).starts_with("error tp-7-content-ref-scheme")
    );
    let schemes = vec!["loom".to_owned()];
    assert_eq!(
        found(
            "loom:east",
            Rules {
                schemes,
                ..Rules::default()
            }
        ),
        ""
    );
}

#[test]
fn the_hash_sees_telemetry_only_when_asked_to() {
    let thread = Thread::decode(&fixture("conversation.json")).unwrap();
    let text = fixture("conversation.json").replace("\"ms\": 812", "\"ms\": 813");
    let slower = Thread::decode(&text).unwrap();
    let hash_of = |thread, keep_sys| hash(thread, CanonicalOptions { keep_sys }).unwrap();
    assert_ne!(hash_of(&thread, true), hash_of(&slower, true));
    assert_eq!(hash_of(&thread, false), hash_of(&slower, false));
}

#[test]
fn real_histories_come_back_byte_for_byte() {
    let Some(shared) = reference("real histories") else {
        return;
    };
    let mut n_files = 0;
    for entry in std::fs::read_dir(shared.join("vectors/pydantic-ai")).unwrap() {
        let path = entry.unwrap().path();
        // The index and the lists of runs and children are made by hand.
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        if name == "index.json"
            || name
                .strip_suffix(".json")
                .is_none_or(|stem| stem.contains('.'))
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let json = Json::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(json.to_text(), text.trim_end(), "{}", path.display());
        n_files += 1;
    }
    assert!(n_files > 20, "only {n_files} histories found");
}

#[test]
fn a_test_without_its_reference_material_says_that_it_is_skipped() {
    let report = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped");
    let _ = std::fs::remove_file(&report);
    let name = "real_histories_come_back_byte_for_byte";
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact"])
        .env_remove("LOOMLINE_SHARED")
        .env("LOOMLINE_SKIPPED", &report)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let line = format!("skipped: {name}: without LOOMLINE_SHARED real histories are not tried\n");
    assert_eq!(String::from_utf8_lossy(&ran.stderr), line);
    assert_eq!(std::fs::read_to_string(report).unwrap(), line);
}
