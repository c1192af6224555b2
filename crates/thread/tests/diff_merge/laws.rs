//! Laws that hold for every pair of documents and every three branches.

use crate::random::{Change, branches, changed, changes, document, pair};
use crate::{errors, thread, user};
use loomline_thread::diff::{DiffKind, Edit, diff_with};
use loomline_thread::merge::ConflictKind;
use loomline_thread::{
    CanonicalOptions, Diff, Json, Merged, Thread, canonical, diff, merge, patch,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn meaning(thread: &Thread, keep_sys: bool) -> String {
    canonical(thread, CanonicalOptions { keep_sys }).expect("small numbers")
}

fn conversation() -> Thread {
    thread(include_str!("../fixtures/conversation.json"))
}

/// The fixture with as many of the changes as leave it valid.
fn still_valid(changes: Vec<(Index, Change)>) -> Thread {
    changes.into_iter().fold(conversation(), |thread, change| {
        let next = changed(&thread, &[change]);
        if errors(&next).is_empty() {
            next
        } else {
            thread
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_patch_leads_to_the_other_document_and_back((from, to) in pair()) {
        let diff = diff(&from, &to);
        prop_assert_eq!(patch(&from, &diff), Ok(to.clone()));
        prop_assert_eq!(patch(&to, &diff.clone().invert()), Ok(from));
        prop_assert_eq!(Diff::from_json(&diff.to_json()), Ok(diff.clone()));
        prop_assert_eq!(diff.clone().invert().invert(), diff);
    }

    #[test]
    fn a_document_is_no_different_from_itself(thread in document()) {
        let diff = diff(&thread, &thread.clone());
        prop_assert!(diff.is_empty() && !diff.is_semantic());
        prop_assert_eq!(diff.to_text(), "no difference in meaning\n");
    }

    #[test]
    fn large_integers_are_the_same_only_if_they_are_equal(
        near in 0u64..1 << 10, one in 0u64..8, other in 0u64..8, third in 0u64..8, keep_sys: bool,
    ) {
        let with = |n: u64| {
            let n = (1 << 53) + near * (1 << 50) + n;
            thread(&format!(r#"{{"turns":[{{"x":{n}}},{{"x":0}}],"metadata":{{"a":[{n}]}}}}"#))
        };
        let (one, other, third) = (with(one), with(other), with(third));
        let diff = diff_with(&one, &other, CanonicalOptions { keep_sys });
        prop_assert_eq!(diff.is_semantic(), one != other);
        prop_assert_eq!(diff.to_text().len() > diff.summary().to_string().len() + 1, one != other);
        let all_differ = one != other && other != third && third != one;
        prop_assert_eq!(!merge(&one, &other, &third).conflicts.is_empty(), all_differ);
    }

    #[test]
    fn a_difference_of_i_json_is_semantic_if_the_canonical_forms_differ((from, to) in pair()) {
        for keep_sys in [true, false] {
            let diff = diff_with(&from, &to, CanonicalOptions { keep_sys });
            let differ = meaning(&from, keep_sys) != meaning(&to, keep_sys);
            prop_assert_eq!(diff.is_semantic(), differ, "keep_sys {}:\n{:?}", keep_sys, diff);
        }
    }

    #[test]
    fn a_document_spelled_canonically_is_not_semantically_different(thread in document()) {
        for keep_sys in [true, false] {
            let other = Thread::decode(&meaning(&thread, keep_sys)).unwrap();
            let diff = diff_with(&thread, &other, CanonicalOptions { keep_sys });
            prop_assert!(!diff.is_semantic(), "{}", diff);
            prop_assert_eq!(patch(&thread, &diff), Ok(other));
        }
    }

    #[test]
    fn a_patch_refuses_every_other_document((from, to) in pair(), changes in changes(3)) {
        let diff = diff(&from, &to);
        for other in [changed(&from, &changes), to] {
            let patched = patch(&other, &diff);
            prop_assert_eq!(patched.is_ok(), other == from);
        }
    }

    #[test]
    fn pointers_lead_to_what_changed((from, to) in pair()) {
        let diff = diff(&from, &to);
        let (from, to) = (Json::from(from.into_root()), Json::from(to.into_root()));
        for change in diff.iter() {
            let old = change.from.as_ref().map(|place| from.pointer(place).expect("a place"));
            let new = change.to.as_ref().map(|place| to.pointer(place).expect("a place"));
            match &change.kind {
                DiffKind::Added { value, .. } => prop_assert_eq!((old, new), (None, Some(value))),
                DiffKind::Removed { value, .. } => prop_assert_eq!((old, new), (Some(value), None)),
                DiffKind::Changed { members, .. } => for member in members {
                    let place = |json: Option<&Json>| json.and_then(|json| json.pointer(&member.pointer)).cloned();
                    match &member.edit {
                        Edit::Added { new: value, .. } => prop_assert_eq!(place(new), Some(value.clone())),
                        Edit::Removed { old: value, .. } => prop_assert_eq!(place(old), Some(value.clone())),
                        Edit::Replaced { old: one, new: other } => {
                            prop_assert_eq!(place(old), Some(one.clone()));
                            prop_assert_eq!(place(new), Some(other.clone()));
                        }
                        Edit::Reordered { old, new } => prop_assert_ne!(old, new),
                    }
                },
            }
        }
    }

    #[test]
    fn text_for_people_is_printable_and_counts_at_its_end((from, to) in pair()) {
        let diff = diff(&from, &to);
        let text = diff.to_text();
        prop_assert!(!text.contains(|char: char| char.is_control() && char != '\n'));
        let summary = format!("{}\n", diff.summary());
        prop_assert!(text.ends_with(&summary));
        prop_assert_eq!(text.len() > summary.len(), diff.is_semantic());
    }

    #[test]
    fn merging_with_an_unchanged_branch_gives_the_other([base, side, _] in branches()) {
        prop_assert_eq!(merge(&base, &base, &side), crate::clean(side.clone()));
        prop_assert_eq!(merge(&base, &side, &base), crate::clean(side.clone()));
        prop_assert_eq!(merge(&base, &side, &side), crate::clean(side));
    }

    #[test]
    fn sides_change_only_which_value_wins([base, ours, theirs] in branches()) {
        let merged = merge(&base, &ours, &theirs);
        let swapped = merge(&base, &theirs, &ours);
        let places = |merged: &Merged| {
            let place = |c: &loomline_thread::Conflict| (c.pointer.clone(), c.kind.as_str());
            let mut places: Vec<_> = merged.conflicts.iter().map(place).collect();
            places.sort_unstable();
            places
        };
        prop_assert_eq!(places(&merged), places(&swapped));
        if merged.conflicts.is_empty() {
            prop_assert_eq!(meaning(&merged.thread, true), meaning(&swapped.thread, true));
        }
    }

    #[test]
    fn a_merge_forgets_nothing_that_both_sides_left([base, ours, theirs] in branches()) {
        let merged = merge(&base, &ours, &theirs);
        let json = Json::from(merged.thread.into_root());
        for conflict in &merged.conflicts {
            let place = json.pointer(&conflict.pointer);
            let is_breach = matches!(conflict.kind, ConflictKind::Breach { .. });
            prop_assert!(is_breach || place.is_some(), "{conflict}");
            let kept = conflict.ours.as_ref().or(conflict.theirs.as_ref());
            match conflict.kind {
                ConflictKind::BothChanged | ConflictKind::RemovedAndChanged => prop_assert_eq!(place, kept),
                ConflictKind::BothAppended | ConflictKind::BothInserted => {
                    let first = kept.and_then(|items| items.pointer("/0"));
                    prop_assert_eq!(place, first);
                }
                ConflictKind::Breach { .. } => {}
            }
        }
    }

    #[test]
    fn changes_of_different_turns_are_both_made(
        n in 2usize..8, one: Index, other: Index, texts in vec("[a-z]{1,5}", 2),
    ) {
        let (one, other) = (one.index(n), other.index(n));
        prop_assume!(one != other);
        let with = |said: &[(usize, &str)]| {
            let turns = (0..n).map(|n| {
                let said = said.iter().find(|(at, _)| *at == n).map_or("same", |(_, said)| said);
                user(said)
            });
            thread(&format!(r#"{{"turns":[{}]}}"#, turns.collect::<Vec<_>>().join(",")))
        };
        let merged = merge(&with(&[]), &with(&[(one, &texts[0])]), &with(&[(other, &texts[1])]));
        prop_assert_eq!(merged, crate::clean(with(&[(one, &texts[0]), (other, &texts[1])])));
    }

    #[test]
    fn a_merge_of_valid_documents_without_conflicts_is_valid(ours in changes(12), theirs in changes(12)) {
        let (ours, theirs) = (still_valid(ours), still_valid(theirs));
        let merged = merge(&conversation(), &ours, &theirs);
        if merged.conflicts.is_empty() {
            prop_assert_eq!(errors(&merged.thread), [""; 0]);
        }
    }
}
