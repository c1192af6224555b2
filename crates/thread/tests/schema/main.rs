//! The schemas, and that they say what validation says.

#![allow(
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure, and few kinds are of interest"
)]

mod agreement;
mod damage;
mod generate;
mod judge;

use judge::Judge;
use loomline_thread::{Json, Profile, Thread, Version, schema};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const PROFILES: [Profile; 2] = [Profile::Lenient, Profile::Strict];

/// A value for the schema; a number that no double carries becomes another that is no integer.
fn value(json: &Json) -> Value {
    match json {
        Json::Array(items) => items.iter().map(value).collect(),
        Json::Object(object) => object
            .iter()
            .map(|(key, item)| (key.to_owned(), value(item)))
            .collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            json.to_value().unwrap_or(json!(0.5))
        }
    }
}

/// Every JSON file below the fixtures.
fn fixtures() -> Vec<PathBuf> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")];
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("fixtures") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn each_schema_is_one_by_the_metaschema_of_2020_12() {
    for version in Version::KNOWN {
        for profile in PROFILES {
            let schema = value(&schema(&version, profile).expect("a known version"));
            assert_eq!(
                schema["$schema"],
                "https://json-schema.org/draft/2020-12/schema"
            );
            if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
                panic!(
                    "{version} {profile:?}: {error} at {}",
                    error.instance_path()
                );
            }
        }
    }
}

#[test]
fn a_kind_is_never_a_matter_of_trial_and_error() {
    for version in Version::KNOWN {
        for profile in PROFILES {
            let text = schema(&version, profile).expect("a version").to_text();
            assert!(
                !text.contains("\"oneOf\"") && !text.contains("\"anyOf\""),
                "{version}"
            );
            assert!(!text.contains("\"unevaluated"), "{version}");
        }
    }
}

#[test]
fn the_strict_schema_has_another_name_than_the_lenient() {
    let id = |profile| {
        let schema = schema(&Version::V0_0_3, profile).expect("a version");
        schema.get("$id").and_then(Json::as_str).map(str::to_owned)
    };
    let base = "https://loomline.dev/schemas/threadprotocol-0.0.3";
    assert_eq!(id(Profile::Lenient), Some(format!("{base}.json")));
    assert_eq!(id(Profile::Strict), Some(format!("{base}.strict.json")));
}

#[test]
fn a_version_that_is_not_known_has_no_schema() {
    assert_eq!(schema(&Version::from("0.0.5"), Profile::Lenient), None);
}

#[test]
fn schema_and_validation_agree_on_every_fixture() {
    let mut n_compared = 0;
    for path in fixtures() {
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let thread = Thread::decode(&text).expect("a document");
        if !Version::KNOWN.contains(&thread.version()) {
            continue;
        }
        for profile in PROFILES {
            let judge = Judge::new(&thread.version(), profile);
            let document = value(&Json::Object(thread.root().clone()));
            if let Err(difference) = judge.compare(&document) {
                panic!("{}: {difference}", path.display());
            }
            n_compared += 1;
        }
    }
    assert!(n_compared >= 8, "{n_compared}");
}

#[test]
fn an_error_points_into_the_member_that_is_wrong() {
    let judge = Judge::new(&Version::V0_0_4, Profile::Lenient);
    let mut document = generate::rich(&Version::V0_0_4);
    assert_eq!(judge.schema_errors(&document), Vec::<String>::new());
    document["turns"][1]["messages"][0]["parts"][2]["tool_name"] = json!(7);
    document["turns"][0]["parts"][0]["content"][1]["url"] = json!(null);
    assert_eq!(
        judge.schema_errors(&document),
        [
            "/turns/0/parts/0/content/1/url",
            "/turns/1/messages/0/parts/2/tool_name"
        ]
    );
}

#[test]
fn unknown_members_and_part_kinds_are_allowed_everywhere() {
    for version in Version::KNOWN {
        let mut document = generate::rich(&version);
        damage::add_members(&mut document);
        for profile in PROFILES {
            let judge = Judge::new(&version, profile);
            assert_eq!(
                judge.schema_errors(&document),
                Vec::<String>::new(),
                "{version} {profile:?}"
            );
        }
    }
}

const URI: &str = "/turns/0/parts/0/content_ref/uri";
const HASH: &str = "/turns/0/parts/0/content_ref/hash";

/// The judges of the newest version, for reading and for writing.
static NEWEST: LazyLock<[Judge; 2]> =
    LazyLock::new(|| PROFILES.map(|profile| Judge::new(&Version::V0_0_4, profile)));

fn is_judged_alike(place: &str, text: &str) -> Result<(), String> {
    let mut document = json!({"version": "0.0.4", "thread_id": "t", "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "agents": {}, "relationships": {"links": [{"thread_id": "", "relation": "x"}]},
        "turns": [{"turn_type": "user", "submitted_at": "2026-01-01T00:00:00Z", "parts": [{"part_kind": "tool-return",
            "tool_name": "t", "tool_call_id": "c", "status": "success", "content_ref": {"uri": "s3://b", "hash": ""}}]}]});
    *document.pointer_mut(place).expect("a member") = json!(text);
    NEWEST.iter().try_for_each(|judge| judge.compare(&document))
}

proptest! {
    /// But for days that a month has not, of which no regular expression should speak.
    #[test]
    fn instants_are_judged_alike(
        text in "([+-][0-9]{2})?[0-9]{4}-?(0[0-9]|1[0-3])-?([01][0-9]|2[0-8])[T ]([01][0-9]|2[0-5])(:?[0-6][0-9](:?[0-6][0-9]([.,][0-9]{0,10})?)?)?(Z|z|[+-][0-2][0-9](:?[0-6][0-9](:?[0-6][0-9])?)?|)",
    ) {
        prop_assert_eq!(is_judged_alike("/created_at", &text), Ok(()));
    }

    #[test]
    fn uris_are_judged_alike(
        text in "(https?|HTTPS|s3|gs|file|urn|azure|1x|a\\+b)?:?(//?/?)?[a-z%0-9A-F @\\[é]{0,6}[/?#]?[a-z]?",
    ) {
        prop_assert_eq!(is_judged_alike(URI, &text), Ok(()));
    }

    #[test]
    fn hashes_and_ids_are_judged_alike(
        hash in "(sha256:|sha512:)?[0-9a-fA-Fg]{63,65}",
        id in "[0-9a-f]{8}-[0-9A-F]{4}-[0-9a-f]{4}-?[0-9a-f]{4}-[0-9a-f]{11,12}g?",
    ) {
        prop_assert_eq!(is_judged_alike(HASH, &hash), Ok(()));
        prop_assert_eq!(is_judged_alike("/relationships/links/0/thread_id", &id), Ok(()));
    }
}
