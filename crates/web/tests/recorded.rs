//! Conversations of recorded runs: what a live page shows at the end is what a new page shows.

#![cfg(test)]

#[path = "../../interop/tests/it/recorded_runs/compact.rs"]
mod compact;

use loomline_web::Conversation;
use std::path::{Path, PathBuf};
use timeline::{Event, Record, Seq, Transcript};

/// A log whose stored text is not the streamed one: its readers were sent both.
const BOTH_TEXTS: &str = "text_that_differs_from_its_chunks";

fn logs() -> Vec<(String, Vec<Record>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/logs");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 50, "the recorded logs are there");
    files.iter().map(|file| read(file)).collect()
}

/// Reads a log: one record a line, its place, its time and its event.
fn read(file: &Path) -> (String, Vec<Record>) {
    let text = compact::whole(&std::fs::read_to_string(file).unwrap());
    let record = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let mut next = || fields.next().unwrap();
        Record {
            seq: Seq(next().parse().unwrap()),
            at: next().parse().unwrap(),
            event: Event::decode(next()).unwrap(),
        }
    };
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    (name, text.lines().map(record).collect())
}

fn transcript(records: &[Record]) -> Transcript {
    let mut transcript = Transcript::default();
    for record in records {
        transcript.apply(record);
    }
    transcript.without_removed()
}

/// A conversation as HTML, without the ids of blocks: those of a stream and of stored parts differ.
fn shown(conversation: &Conversation) -> String {
    let html = conversation.html().into_string();
    let mut pieces = html.split(" id=\"b-");
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |shown, piece| {
        shown + piece.split_once('"').unwrap().1
    })
}

#[test]
fn a_live_page_ends_like_a_new_one() {
    for (name, records) in logs().into_iter().filter(|(name, _)| name != BOTH_TEXTS) {
        let whole = shown(&Conversation::of("k", &transcript(&records)));
        for from in 0..=records.len() {
            let (past, rest) = records.split_at(from);
            let mut live = Conversation::of("k", &transcript(past));
            for record in rest {
                live.apply(record, &mut Vec::new());
            }
            let live = shown(&live);
            assert!(
                live == whole,
                "{name}, live from event {from}: {}",
                difference(&live, &whole)
            );
        }
    }
}

#[test]
fn a_long_stream_keeps_its_last_messages_in_memory() {
    let (_, records) = logs().remove(0);
    let created = |record: &&Record| matches!(record.event, Event::ItemCreated { .. });
    let record = records.iter().find(created).unwrap();
    let Event::ItemCreated { item } = &record.event else {
        unreachable!("the record was looked for");
    };
    let mut live = Conversation::of("k", &Transcript::default());
    for n in 0..100 {
        let mut item = item.clone();
        item.id = format!("item-{n}-").as_str().into();
        let mut record = record.clone();
        record.event = Event::ItemCreated { item };
        live.apply(&record, &mut Vec::new());
        live.forget_earlier();
    }
    let shown = live.html().into_string();
    assert!(shown.contains("m-item-99-") && !shown.contains("m-item-50-"));
    assert!(shown.matches("<article").count() < 20, "{shown}");
}

/// The surroundings of the first difference.
fn difference(live: &str, whole: &str) -> String {
    let same = live
        .bytes()
        .zip(whole.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let from = |text: &str| {
        text.get(same.saturating_sub(200)..)
            .unwrap_or_default()
            .chars()
            .take(400)
            .collect::<String>()
    };
    format!("\nlive:  {}\nwhole: {}", from(live), from(whole))
}
