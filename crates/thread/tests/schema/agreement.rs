//! A schema takes a document exactly if validation finds no error that a schema can say.

use crate::PROFILES;
use crate::damage::{damaged, damages, places, remove};
use crate::generate::{document, rich};
use crate::judge::{Judge, SAID};
use loomline_thread::validate::Rule;
use loomline_thread::{Profile, Severity, Thread, Version, validate};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn a_valid_document_is_valid_by_its_schema() {
    for version in Version::KNOWN {
        let judges = PROFILES.map(|profile| Judge::new(&version, profile));
        let mut runner = TestRunner::new(Config::with_cases(64));
        let property = |document: serde_json::Value| {
            let thread = Thread::decode(&document.to_string()).expect("a document");
            let errors: Vec<_> = validate(&thread, Profile::Strict)
                .into_iter()
                .filter(|it| it.severity == Severity::Error && it.rule != Rule::Version)
                .collect();
            prop_assert!(errors.is_empty(), "{:?}", errors);
            for judge in &judges {
                prop_assert_eq!(judge.schema_errors(&document), Vec::<String>::new());
            }
            Ok(())
        };
        if let Err(error) = runner.run(&document(version.clone()), property) {
            panic!("{version}: {error}");
        }
    }
}

#[test]
fn schema_and_validation_agree_on_damaged_documents() {
    for version in Version::KNOWN {
        let judges = PROFILES.map(|profile| Judge::new(&version, profile));
        let mut runner = TestRunner::new(Config::with_cases(128));
        let property = |document: serde_json::Value| {
            for judge in &judges {
                prop_assert_eq!(judge.compare(&document), Ok(()));
            }
            Ok(())
        };
        if let Err(error) = runner.run(&damaged(version.clone()), property) {
            panic!("{version}: {error}");
        }
    }
}

/// Each value of a document that has them all is taken out, and replaced by a few others.
#[test]
fn schema_and_validation_agree_wherever_a_document_is_damaged() {
    let mut damages = damages().into_iter().cycle();
    let mut seen = BTreeSet::new();
    for version in Version::KNOWN {
        let judges = PROFILES.map(|profile| Judge::new(&version, profile));
        let whole = rich(&version);
        for place in places(&whole) {
            let mut without = whole.clone();
            remove(&mut without, &place);
            let others = damages.by_ref().take(4).map(|damage| {
                let mut document = whole.clone();
                *document.pointer_mut(&place).expect("a place") = damage;
                document
            });
            let documents = std::iter::once(without).chain(others);
            for (document, judge) in documents.zip(judges.iter().rev().cycle()) {
                if let Err(difference) = judge.compare(&document) {
                    panic!("{place}: {difference}\n{document}");
                }
                let errors = judge.validation_errors(&document);
                seen.extend(errors.into_iter().map(|(_, rule)| rule));
            }
        }
    }
    let newest = Judge::new(&Version::V0_0_4, Profile::Strict);
    let aimed = [
        ("/turns/0/client_metadata", json!({"plain": 1, "web:x": 2})),
        (
            "/turns/1/messages/1/parts/1/content_ref/uri",
            json!("ftp://h/x"),
        ),
    ];
    for (place, damage) in aimed {
        let mut document = rich(&Version::V0_0_4);
        *document.pointer_mut(place).expect("a place") = damage;
        assert_eq!(newest.compare(&document), Ok(()));
        let errors = newest.validation_errors(&document);
        seen.extend(errors.into_iter().map(|(_, rule)| rule));
    }
    let unseen: Vec<_> = SAID.iter().filter(|rule| !seen.contains(rule)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}
