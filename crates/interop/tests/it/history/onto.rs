//! What goes onto an archive: whole histories that were cut or rewritten, and what runs added.

use super::{archive_of, plain, shape, through_json, turns};
use crate::document::errors;
use crate::histories::list;
use loomline_interop::archive::Archive;
use loomline_interop::convert::ReadOptions;
use loomline_interop::pydantic_ai::{append, write};
use thread::Json;

fn onto(archive: &mut Archive, messages: &[String]) {
    append(archive, &list(messages), &ReadOptions::default()).unwrap();
    assert_eq!(through_json(archive), *archive);
    assert_eq!(errors(&archive.to_thread().value), Vec::<String>::new());
}

/// Appends each list twice; after each time the archive gives what is expected.
fn gives(lists: &[Vec<String>], expected: &[Vec<String>]) -> Archive {
    let mut archive = archive_of("[]");
    for (messages, expected) in lists.iter().zip(expected) {
        for _ in 0..2 {
            onto(&mut archive, messages);
            assert_eq!(write(&archive).value, list(expected));
        }
    }
    archive
}

/// How many messages each run's head keeps of what was replaced.
fn superseded(archive: &Archive) -> Vec<usize> {
    let entries = |head: &thread::Object| {
        let entries = head.get("superseded").and_then(Json::as_array);
        let entries = entries.unwrap_or_default().iter();
        entries
            .map(|entry| entry.get("records").unwrap().as_array().unwrap().len())
            .sum()
    };
    archive.runs.iter().map(|run| entries(&run.head)).collect()
}

const IDS: [&str; 4] = [r#""r1""#, r#""r2""#, r#""r3""#, r#""r4""#];

/// Four runs of two messages, of which each saw the two before it alone.
fn windows(all: &[String]) -> Vec<Vec<String>> {
    let ends = (2..=all.len()).step_by(2);
    ends.map(|end| all[end.saturating_sub(4)..end].to_vec())
        .collect()
}

#[test]
fn a_window_that_slides_is_the_whole_history() {
    let windows = windows(&turns(&IDS));
    let archive = gives(&windows, &windows);
    assert_eq!(superseded(&archive), [2, 2, 0, 0]);
    let id = |id: &str| Some(id.to_owned());
    let expected = [(id("r1"), 0), (id("r2"), 0), (id("r3"), 2), (id("r4"), 2)];
    assert_eq!(shape(&archive), expected);
}

#[test]
fn a_window_slides_without_run_ids_too() {
    let windows = windows(&turns(&["null"; 4]));
    let archive = gives(&windows, &windows);
    assert_eq!(superseded(&archive), [2, 2, 0, 0]);
}

#[test]
fn a_long_history_that_keeps_one_run_is_the_whole_history() {
    let ids: Vec<String> = (0..9).map(|n| format!(r#""r{n}""#)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let all = turns(&ids);
    // The one that is kept may be rewritten: its run tells.
    let mut kept = all[14..].to_vec();
    kept[0] = kept[0].replace(r#""content":"14""#, r#""content":"cut""#);
    kept[1] = kept[1].replace(r#""content":"15""#, r#""content":"cut""#);
    let lists = [all[..16].to_vec(), kept];
    gives(&lists, &lists);
}

fn system(prompt: &str, second: usize) -> String {
    format!(
        r#"{{"content":"{prompt}","timestamp":"2026-01-05T09:00:{second:02}Z","dynamic_ref":"sp","part_kind":"system-prompt"}}"#
    )
}

/// A history without run ids as an old version of the library writes it, with its system prompt of now.
fn prompted(n_runs: usize) -> Vec<String> {
    let ask = |n: usize| {
        let system = format!("{},", system(&format!("prompt {n_runs}"), n_runs));
        let system = if n == 0 { system } else { String::new() };
        format!(
            r#"{{"parts":[{system}{{"content":"{n}","timestamp":"2026-01-05T08:00:{n:02}Z","part_kind":"user-prompt"}}],"instructions":null,"kind":"request"}}"#
        )
    };
    let answer = |n: usize| {
        format!(
            r#"{{"parts":[{{"content":"hi","id":null,"part_kind":"text"}}],"timestamp":"2026-01-05T08:00:{n:02}.5Z","kind":"response"}}"#
        )
    };
    (0..n_runs).flat_map(|n| [ask(n), answer(n)]).collect()
}

#[test]
fn a_system_prompt_that_is_evaluated_anew_is_in_the_same_history() {
    let lists: Vec<_> = (1..=3).map(prompted).collect();
    let archive = gives(&lists, &lists);
    assert_eq!(shape(&archive), [(None, 2), (None, 2), (None, 2)]);
    assert_eq!(superseded(&archive), [2, 0, 0]);
}

#[test]
fn a_prompt_of_the_same_instant_is_a_beginning_whatever_follows() {
    let mut after = prompted(2);
    after[1] = after[1].replace(r#""content":"hi""#, r#""content":"rewritten""#);
    let lists = [prompted(1), after];
    let archive = gives(&lists, &lists);
    assert_eq!(shape(&archive), [(None, 2), (None, 2)]);
    assert_eq!(superseded(&archive), [2, 0]);
}

#[test]
fn what_runs_added_is_put_together() {
    for ids in [IDS, ["null"; 4]] {
        let all = turns(&ids);
        let lists: Vec<_> = all.chunks(2).map(<[String]>::to_vec).collect();
        let expected: Vec<_> = (1..=4).map(|n| all[..2 * n].to_vec()).collect();
        let archive = gives(&lists, &expected);
        assert_eq!(superseded(&archive), [0; 4]);
    }
    let all = prompted(3);
    let lists: Vec<_> = all.chunks(2).map(<[String]>::to_vec).collect();
    gives(&lists, &[all[..2].to_vec(), all[..4].to_vec(), all]);
}

#[test]
fn the_same_words_at_another_time_are_new() {
    let all = prompted(1);
    let later = |message: &String| message.replace("2026-01-05", "2026-01-06");
    let new: Vec<_> = all.iter().map(later).collect();
    gives(
        &[all.clone(), new.clone()],
        &[all.clone(), [all, new].concat()],
    );
}

#[test]
fn what_a_run_added_is_put_in_its_place_when_told_again() {
    let all = turns(&IDS);
    let mut archive = archive_of(&list(&all));
    let before = archive.clone();
    for run in all.chunks(2) {
        onto(&mut archive, run);
        assert_eq!(archive, before);
    }
    let mut all = all;
    let again = [all[2].clone(), plain("response", IDS[1], 30)];
    onto(&mut archive, &again);
    all[3].clone_from(&again[1]);
    assert_eq!(write(&archive).value, list(&all));
    assert_eq!(superseded(&archive), [0, 1, 0, 0]);
}

#[test]
fn what_the_history_has_left_behind_does_not_come_back() {
    let all = turns(&IDS);
    let mut archive = archive_of(&list(&all[..4]));
    onto(&mut archive, &all[2..6]);
    onto(&mut archive, &all[..2]);
    assert_eq!(write(&archive).value, list(&all[2..6]));
}

#[test]
fn a_run_that_has_added_more_goes_on() {
    let all = turns(&[IDS[0], IDS[1], IDS[1]]);
    let mut archive = archive_of(&list(&all[..4]));
    for _ in 0..2 {
        onto(&mut archive, &all[4..]);
        assert_eq!(write(&archive).value, list(&all));
    }
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(shape(&archive), [(id("r1"), 2), (id("r2"), 4)]);
}
