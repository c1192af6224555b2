//! Laws of upgrade and downgrade that hold for every document.

mod documents;

use documents::{actions, any_version, damaged, earlier, newest};
use loomline_thread::{
    Change, ChangeKind, Json, Profile, Severity, Thread, Version, downgrade, upgrade, upgrade_to,
    validate,
};
use proptest::prelude::*;

/// Every unknown member of a document, at any depth, in no order.
fn unknown(json: &Json) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![json];
    while let Some(json) = open.pop() {
        if let Some(items) = json.as_array() {
            open.extend(items);
        }
        for (key, value) in json.as_object().into_iter().flatten() {
            if key.starts_with("x_") {
                found.push((key.to_owned(), value.to_text()));
            } else {
                open.push(value);
            }
        }
    }
    found.sort();
    found
}

fn root(thread: &Thread) -> Json {
    thread.root().clone().into()
}

fn step<'a>(json: &'a mut Json, token: &str) -> Option<&'a mut Json> {
    let token = token.replace("~1", "/").replace("~0", "~");
    match json {
        Json::Array(items) => items.get_mut(token.parse::<usize>().ok()?),
        Json::Object(object) => object.get_mut(&token),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

/// What a document says after the changes that a downgrade reports and a second upgrade: what was
/// dropped is gone, what was taken for something else has the new name.
fn after(thread: &Thread, changes: &[Change]) -> Json {
    let mut json = root(thread);
    let mut gone = Vec::new();
    for change in changes {
        let steps: Vec<&str> = change.pointer.split('/').skip(1).collect();
        let (last, above) = steps.split_last().expect("a place below the root");
        let here = above
            .iter()
            .try_fold(&mut json, |here, token| step(here, token));
        let here = here.expect("a place in the document");
        match (change.kind, *last) {
            (ChangeKind::Added | ChangeKind::Renamed, _) => {}
            (ChangeKind::Dropped, place) if here.as_array().is_some() => {
                gone.push(place.parse::<usize>().expect("a turn"));
            }
            (ChangeKind::Dropped, "content_ref") if here.get("content").is_none() => {
                let object = here.as_object_mut().map(std::mem::take).unwrap_or_default();
                let null = |(key, value): (Box<str>, Json)| match &*key {
                    "content_ref" => ("content".into(), Json::Null),
                    _ => (key, value),
                };
                *here = Json::Object(object.into_iter().map(null).collect());
            }
            (ChangeKind::Dropped, key) => {
                here.as_object_mut().and_then(|object| object.remove(key));
            }
            (ChangeKind::Unchanged, "event_type") => {
                let name = step(here, last).expect("a name");
                let renamed = [("error", "data-tp-error"), ("meta:x", "data-sys-x")];
                let new = renamed.iter().find(|(old, _)| name.as_str() == Some(old));
                *name = new.expect("a name that is taken for another").1.into();
            }
            (ChangeKind::Unchanged | ChangeKind::Moved, _) => {
                assert_eq!(
                    change.to_string(),
                    "",
                    "nothing of the kind is in the document"
                );
            }
        }
    }
    let mut place = 0;
    turns(&mut json).retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
    json
}

fn turns(json: &mut Json) -> &mut Vec<Json> {
    let turns = json.as_object_mut().and_then(|root| root.get_mut("turns"));
    turns.and_then(Json::as_array_mut).expect("turns")
}

/// Takes the status out of every agent's turn, which says `complete`.
fn without_status(mut json: Json) -> Json {
    let turns = turns(&mut json).iter_mut().filter_map(Json::as_object_mut);
    for turn in turns.filter(|turn| turn.get_str("turn_type") == Some("agent")) {
        let status = turn.remove("completion_status");
        assert!(status.is_none_or(|status| status.as_str() == Some("complete")));
    }
    json
}

fn errors(thread: &Thread) -> Vec<String> {
    let found = validate(thread, Profile::Lenient).into_iter();
    let errors = found.filter(|found| found.severity == Severity::Error);
    errors.map(|error| error.to_string()).collect()
}

proptest! {
    #[test]
    fn a_downgrade_loses_exactly_what_it_reports(thread in newest()) {
        for version in [Version::V0_0_3, Version::V2_0_0] {
            let old = downgrade(&thread, &version).expect("an earlier version");
            let back = upgrade(&old.thread).expect("a known version").thread;
            prop_assert!(back.turns().len() <= thread.turns().len());
            let expected = without_status(after(&thread, &old.changes));
            prop_assert_eq!(without_status(root(&back)).to_text(), expected.to_text());
            if old.changes.is_empty() {
                prop_assert_eq!(back.encode(), thread.encode());
            }
        }
    }

    #[test]
    fn an_upgrade_that_is_taken_back_leaves_the_document_as_it_was(thread in earlier()) {
        let new = upgrade(&thread).expect("a known version").thread;
        let back = downgrade(&new, &thread.version()).expect("an earlier version").thread;
        prop_assert_eq!(back.encode(), thread.encode());
    }

    #[test]
    fn an_upgrade_of_an_upgrade_changes_nothing(thread in prop_oneof![any_version(), damaged()]) {
        if let Ok(once) = upgrade(&thread) {
            let twice = upgrade(&once.thread).expect("the newest version");
            prop_assert_eq!(twice.changes, []);
            prop_assert_eq!(twice.thread.encode(), once.thread.encode());
        }
    }

    #[test]
    fn one_upgrade_is_all_steps_after_one_another(thread in prop_oneof![any_version(), damaged()]) {
        if let Ok(once) = upgrade(&thread) {
            let mut stepped = thread.clone();
            for version in Version::KNOWN.into_iter().filter(|version| *version > thread.version()) {
                stepped = upgrade_to(&stepped, &version).expect("a later version").thread;
                prop_assert_eq!(stepped.version(), version);
            }
            prop_assert_eq!(stepped.encode(), once.thread.encode());
        }
    }

    #[test]
    fn one_downgrade_is_all_steps_after_one_another(thread in newest()) {
        let once = downgrade(&thread, &Version::V2_0_0).expect("an earlier version").thread;
        let between = downgrade(&thread, &Version::V0_0_3).expect("an earlier version").thread;
        let twice = downgrade(&between, &Version::V2_0_0).expect("an earlier version").thread;
        prop_assert_eq!(twice.encode(), once.encode());
    }

    #[test]
    fn a_valid_document_has_no_errors_after_its_upgrade(thread in any_version()) {
        prop_assert_eq!(errors(&thread), Vec::<String>::new());
        let new = upgrade(&thread).expect("a known version");
        prop_assert_eq!(errors(&new.thread), Vec::<String>::new());
        prop_assert_eq!(new.losses().count(), 0);
    }

    #[test]
    fn unknown_members_survive_every_upgrade(thread in any_version()) {
        for version in Version::KNOWN.into_iter().filter(|version| *version >= thread.version()) {
            let new = upgrade_to(&thread, &version).expect("a later version").thread;
            prop_assert_eq!(unknown(&root(&new)), unknown(&root(&thread)));
        }
    }

    #[test]
    fn actions_keep_their_order(thread in actions()) {
        let texts = |json: &Json| -> Vec<String> {
            let text = json.to_text();
            let starts = text.match_indices("\"content\":\"m");
            starts.map(|(place, start)| text[place + start.len()..].split('"').next().unwrap_or_default().to_owned()).collect()
        };
        let mut actions = root(&thread);
        let list = actions.as_object_mut().and_then(|root| root.get_mut("actions")).and_then(Json::as_array_mut);
        list.expect("actions").sort_by_key(|action| action.get("sequence").and_then(Json::as_i64));
        let new = upgrade(&thread).expect("a known version").thread;
        prop_assert_eq!(texts(&root(&new)), texts(&actions));
    }

    #[test]
    fn every_change_points_into_the_source(thread in prop_oneof![any_version(), damaged()]) {
        let up = upgrade(&thread).map(|new| new.changes).unwrap_or_default();
        let down = downgrade(&thread, &Version::V2_0_0).map(|old| old.changes).unwrap_or_default();
        for change in up.iter().chain(&down) {
            prop_assert!(root(&thread).pointer(&change.pointer).is_some(), "{} in {}", change, thread.encode());
        }
        for violation in validate(&thread, Profile::Strict) {
            let mut place = violation.pointer.as_str();
            if root(&thread).pointer(place).is_none() {
                place = place.rsplit_once('/').map_or("", |(above, _)| above);
            }
            prop_assert!(root(&thread).pointer(place).is_some(), "{}", violation);
        }
    }
}
