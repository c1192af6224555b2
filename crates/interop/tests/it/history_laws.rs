//! What holds for any history.

use crate::document::errors;
use crate::histories::{History, history, list, spaced};
use crate::history::{archive_of, shape, through_json};
use loomline_interop::Loss;
use loomline_interop::archive::{Archive, SourceText};
use loomline_interop::convert::ReadOptions;
use loomline_interop::pydantic_ai::{append, write};
use proptest::prelude::*;
use std::collections::BTreeSet;
use thread::Json;

/// JSON with the members in order of their names.
fn sorted(json: &Json) -> Json {
    match json {
        Json::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), sorted(value)));
            Json::object(members)
        }
        Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => json.clone(),
    }
}

/// Which messages the losses of a document name.
fn named_by(archive: &Archive, losses: &[Loss]) -> BTreeSet<usize> {
    let mut named = BTreeSet::new();
    for loss in losses {
        let mut steps = loss.pointer.split('/').skip(2);
        let run: usize = steps.next().unwrap().parse().unwrap();
        assert_eq!(steps.next(), Some("records"), "{loss:?}");
        let record: usize = steps.next().unwrap().parse().unwrap();
        let before: usize = archive.runs[..run]
            .iter()
            .map(|run| run.records.len())
            .sum();
        named.insert(before + record);
    }
    named
}

/// Through the document and back: every message that no loss names is as it was, in its place.
pub(crate) fn through_the_document(archive: &Archive) -> Result<(usize, usize), TestCaseError> {
    let document = archive.to_thread();
    let named = named_by(archive, &document.losses);
    let back = write(&Archive::from_thread(&document.value));
    let records: Vec<Json> = archive
        .runs
        .iter()
        .flat_map(|run| &run.records)
        .map(SourceText::json)
        .collect();
    let unknown = |json: &Json| json.to_text().contains("hologram");
    let written = Json::parse(&back.value).unwrap();
    let mut written = written.as_array().unwrap().iter().map(sorted);
    let (mut n, mut n_named) = (0, 0);
    for (place, json) in records.iter().enumerate() {
        if named.contains(&place) || unknown(json) {
            n_named += 1;
            continue;
        }
        let timed = with_instants(json);
        prop_assert!(
            written.any(|other| other == sorted(&timed)),
            "{place}: {timed}\n{}",
            back.value
        );
        n += 1;
    }
    Ok((n, n_named))
}

/// Parts without an instant get that of their message, which the library would make up.
fn with_instants(json: &Json) -> Json {
    let mut message = json.as_object().unwrap().clone();
    let at = message.get("timestamp").cloned();
    let parts = message
        .get_mut("parts")
        .and_then(Json::as_array_mut)
        .unwrap();
    for part in parts.iter_mut().filter_map(Json::as_object_mut) {
        let kind = part.get_str("part_kind").unwrap_or_default();
        let timed = ["user-prompt", "tool-return", "retry-prompt"].contains(&kind);
        if timed && !part.contains_key("timestamp") {
            part.insert("timestamp", at.clone().unwrap());
        }
    }
    message.into()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

/// Whether the messages of one run stand in the place of what was known of it, or are known of it
/// already. Messages are held against each other as what they mean: of `back` there is one text.
fn told_again(before: &[String], after: &[String], back: &str) -> bool {
    let parsed = |messages: &[String]| -> Vec<Json> {
        let messages = messages.iter();
        messages.map(|text| Json::parse(text).unwrap()).collect()
    };
    let (before, after) = (parsed(before), parsed(after));
    let of = |message: &Json| {
        let id = message.get("run_id").cloned();
        id.filter(|id| !id.is_null())
    };
    let id = after.first().and_then(of);
    let is_one = id.is_some() && after.iter().all(|message| of(message) == id);
    let back = Json::parse(back).unwrap().into_array().unwrap();
    let head = before
        .iter()
        .zip(&back)
        .take_while(|(one, other)| one == other);
    let head = head.count();
    let tail = before[head..].iter().rev().zip(back[head..].iter().rev());
    let tail = tail.take_while(|(one, other)| one == other).count();
    let changed = &back[head..back.len() - tail];
    is_one
        && changed.iter().all(|message| after.contains(message))
        && after.iter().all(|message| back.contains(message))
}

/// A history, and the same without the message at a place and with those of another behind it.
fn rewritten(bytes: &[u8], others: &[u8], at: usize) -> (Vec<String>, Vec<String>) {
    let before = history(bytes).messages;
    let at = at.min(before.len());
    let mut after = before[..at].to_vec();
    after.extend(before.iter().skip(at + 1).cloned());
    after.extend(history(others).messages);
    (before, after)
}

/// What an archive of one history gives after another was appended.
fn became(before: &[String], after: &[String]) -> String {
    let mut archive = archive_of(&list(before));
    append(&mut archive, &list(after), &ReadOptions::default()).unwrap();
    write(&archive).value
}

/// Whether what comes back is the new history, both, the old one that ends with the new one, or the
/// old one with a run of it told again.
fn comes_back(before: &[String], after: &[String], back: &str) -> bool {
    let added: Vec<String> = before.iter().chain(after).cloned().collect();
    back == list(after)
        || back == list(&added)
        || (back == list(before) && before.ends_with(after))
        || told_again(before, after, back)
}

#[test]
fn a_run_that_tells_less_than_is_known_of_it_leaves_what_is_known_in_any_spelling() {
    // The answer that the second history lacks has an escape that would be written otherwise.
    let bytes = [103, 4, 0, 0, 0, 0, 0, 0, 0, 0, 105, 77, 0, 0, 7, 51];
    let (before, after) = rewritten(&bytes, &[234], 1);
    assert!(before[1].contains(r"\ud83d\ude00") && after == before[..1]);
    let back = became(&before, &after);
    assert_eq!(back, list(&before));
    assert!(comes_back(&before, &after, &back));
}

fn growing(history: &History) -> Vec<usize> {
    let archive = archive_of(&history.text());
    let mut end = 0;
    let ends = archive.runs.iter().map(|run| {
        end += run.records.len();
        end
    });
    ends.collect()
}

proptest! {
    #[test]
    fn any_history_comes_back_byte_for_byte(bytes in bytes()) {
        let text = history(&bytes).text();
        let archive = archive_of(&text);
        prop_assert_eq!(&write(&archive).value, &text);
        let again = through_json(&archive);
        prop_assert_eq!(&again, &archive);
        prop_assert_eq!(write(&again).value, text);
    }

    #[test]
    fn any_spacing_means_the_same(bytes in bytes()) {
        let text = history(&bytes).text();
        let wide = archive_of(&spaced(&text));
        prop_assert_eq!(shape(&wide), shape(&archive_of(&text)));
        let back = write(&wide).value;
        prop_assert_eq!(Json::parse(&back).unwrap(), Json::parse(&text).unwrap());
    }

    #[test]
    fn any_history_gives_one_document_that_may_be_written(bytes in bytes()) {
        let archive = archive_of(&history(&bytes).text());
        let document = archive.to_thread();
        prop_assert_eq!(errors(&document.value), Vec::<String>::new());
        prop_assert_eq!(&through_json(&archive).to_thread(), &document);
        let cycles = document.value.encode();
        prop_assert_eq!(Archive::from_thread(&document.value).to_thread().value.encode(), cycles);
    }

    #[test]
    fn run_by_run_is_the_same_as_at_once(bytes in bytes()) {
        let history = history(&bytes);
        let whole = archive_of(&history.text());
        let options = ReadOptions::default();
        let (mut by_run, mut by_history) = (archive_of("[]"), archive_of("[]"));
        let mut start = 0;
        for end in growing(&history) {
            append(&mut by_run, &list(&history.messages[start..end]), &options).unwrap();
            append(&mut by_history, &list(&history.messages[..end]), &options).unwrap();
            start = end;
        }
        prop_assert_eq!(&by_run.runs, &whole.runs);
        prop_assert_eq!(&by_history.runs, &whole.runs);
    }

    #[test]
    fn whatever_a_history_becomes_is_what_comes_back(bytes in bytes(), others in bytes(), at in 0_usize..20) {
        let (before, after) = rewritten(&bytes, &others, at);
        let back = became(&before, &after);
        prop_assert!(comes_back(&before, &after, &back));
    }

    #[test]
    fn the_document_gives_back_what_no_loss_names(bytes in bytes()) {
        through_the_document(&archive_of(&history(&bytes).text()))?;
    }
}
