//! The blocks of a run are its texts.

use crate::log::Log;
use crate::native::conversation;
use loomline_interop::run::{RunEvent, RunFold, RunPart, RunSelector};
use proptest::prelude::*;
use std::collections::BTreeMap;
use timeline::{BlockKind, Chunk, Event, ItemId, PartKind, Payload, StepStatus, part_kind};

fn triggers(log: &Log) -> Vec<ItemId> {
    let executions = log.records.iter().filter_map(|record| {
        let Event::ExecutionCreated { execution } = &record.event else {
            return None;
        };
        Some(execution.trigger_item_id.clone())
    });
    executions.collect()
}

/// The texts of a completed step's stored parts, and those of its blocks.
type Texts = Vec<(BlockKind, String)>;

fn stored_text(part: &Payload) -> Option<(BlockKind, String)> {
    let (kind, key) = match part_kind(&part.str_field("type")?)? {
        PartKind::OutputText | PartKind::InputText => (BlockKind::Text, "text"),
        PartKind::Refusal => (BlockKind::Text, "refusal"),
        PartKind::Reasoning => (BlockKind::Reasoning, "text"),
        PartKind::InputImage | PartKind::InputFile | PartKind::Tool(_) | PartKind::Extension(_) => {
            return None;
        }
    };
    let text = part.str_field(key).filter(|text| !text.is_empty())?;
    Some((kind, text))
}

/// For each completed step: its stored texts, and the texts of its blocks that ended.
fn texts(log: &Log, trigger: &ItemId) -> Vec<(Texts, Texts)> {
    let mut fold = RunFold::new(RunSelector::answering(trigger.clone())).with_blocks();
    let mut steps = Vec::new();
    let (mut stored, mut ended) = (Texts::new(), Texts::new());
    let mut open: BTreeMap<(BlockKind, String), String> = BTreeMap::new();
    for record in &log.records {
        for event in fold.events(record) {
            match event {
                RunEvent::StepStarted { .. } | RunEvent::StepReset { .. } => {
                    stored.clear();
                    ended.clear();
                    open.clear();
                }
                RunEvent::Chunk(Chunk::BlockStart { kind, block, .. }) => {
                    let before = open.insert((kind, block.id.into_owned()), String::new());
                    assert_eq!(before, None, "a block begins once");
                }
                RunEvent::Chunk(Chunk::BlockDelta {
                    kind, block, text, ..
                }) => {
                    let known = open.get_mut(&(kind, block.id.into_owned()));
                    known
                        .expect("a block begins before it grows")
                        .push_str(&text);
                }
                RunEvent::Chunk(Chunk::BlockEnd { kind, block, .. }) => {
                    let text = open.remove(&(kind, block.id.into_owned()));
                    ended.push((kind, text.expect("only open blocks end")));
                }
                RunEvent::Part {
                    part: RunPart::Content,
                    payload,
                    is_new: true,
                    ..
                } => stored.extend(stored_text(payload)),
                RunEvent::StepEnded {
                    status: StepStatus::Completed,
                    ..
                } => {
                    assert!(open.is_empty(), "a completed step leaves no block open");
                    steps.push((std::mem::take(&mut stored), std::mem::take(&mut ended)));
                }
                RunEvent::StepEnded { .. }
                | RunEvent::Chunk(_)
                | RunEvent::Part { .. }
                | RunEvent::Started { .. }
                | RunEvent::Continued { .. }
                | RunEvent::Responded { .. }
                | RunEvent::ExecutionEnded { .. }
                | RunEvent::Continues
                | RunEvent::Ended
                | RunEvent::Abandoned
                | RunEvent::ItemAdded(_)
                | RunEvent::ThreadChanged(_) => {}
            }
        }
    }
    steps
}

proptest! {
    #[test]
    fn a_fold_with_blocks_gives_each_stored_text_once(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let log = conversation(&bytes);
        for trigger in triggers(&log) {
            for (stored, mut ended) in texts(&log, &trigger) {
                for text in stored {
                    let found = ended.iter().position(|block| *block == text);
                    prop_assert!(found.is_some(), "no block for {text:?}");
                    found.map(|found| ended.remove(found));
                }
            }
        }
    }
}
