//! Runs: the fold of the log and the replay of the transcript.

use crate::langgraph::executions;
use crate::native::conversation;
use loomline_interop::parts::{StepResponse, TextPart};
use loomline_interop::run::{RunEvent, RunFold, RunSelector, replay};
use proptest::prelude::*;
use std::collections::BTreeMap;
use timeline::{BlockKind, Chunk, Entry, ExecutionStatus, Payload, StepId, StepStatus};

/// The message of a step, as its events leave it.
#[derive(Debug, Default, PartialEq)]
struct Message {
    step: Option<StepId>,
    texts: Vec<(BlockKind, String)>,
    parts: BTreeMap<u32, Payload>,
    response: Option<StepResponse>,
    status: Option<StepStatus>,
}

/// A run, as its events leave it.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    messages: Vec<Message>,
    status: Option<ExecutionStatus>,
    is_over: bool,
}

fn outcome<'r>(events: impl IntoIterator<Item = RunEvent<'r>>) -> Outcome {
    let mut run = Outcome::default();
    let mut open = BTreeMap::new();
    for event in events {
        if let RunEvent::StepStarted { step } = &event {
            open.clear();
            run.messages.push(Message {
                step: Some(step.id.clone()),
                ..Message::default()
            });
        }
        if let RunEvent::ExecutionEnded { status, .. } = &event {
            run.status = Some(*status);
        }
        run.is_over |= event == RunEvent::Ended;
        let Some(message) = run.messages.last_mut() else {
            continue;
        };
        match event {
            RunEvent::Chunk(Chunk::BlockStart { kind, block, .. }) => {
                let id = block.id.into_owned();
                assert!(open.insert((kind, id), message.texts.len()).is_none());
                message.texts.push((kind, String::new()));
            }
            RunEvent::Chunk(Chunk::BlockDelta {
                kind, block, text, ..
            }) => message.texts[open[&(kind, block.id.into_owned())]]
                .1
                .push_str(&text),
            RunEvent::Chunk(Chunk::BlockEnd { kind, block, .. }) => {
                assert!(open.remove(&(kind, block.id.into_owned())).is_some());
            }
            RunEvent::StepReset { open: blocks } => {
                assert_eq!(blocks.len(), open.len());
                open.clear();
                let step = message.step.take();
                *message = Message {
                    step,
                    ..Message::default()
                };
            }
            RunEvent::Part { idx, payload, .. } => {
                message.parts.insert(idx, payload.clone());
            }
            RunEvent::Responded { response } => message.response = response,
            RunEvent::StepEnded { status, .. } => message.status = Some(status),
            RunEvent::Chunk(_)
            | RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::StepStarted { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }
    run
}

proptest! {
    #[test]
    fn folding_a_live_run_equals_replaying_its_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let log = conversation(&bytes);
        let transcript = log.transcript();
        for (execution, trigger) in executions(&log) {
            let mut fold = RunFold::new(RunSelector::answering(trigger)).with_blocks();
            let live = outcome(log.records.iter().flat_map(|record| fold.events(record)));
            let reactions = transcript.entries.iter().filter_map(|entry| match entry {
                Entry::Reaction(reaction) => Some(reaction),
                Entry::Item(_) => None,
            });
            let reactions = reactions.filter(|reaction| reaction.execution.id == execution);
            let replayed = outcome(replay(reactions, true).map(|(_, event)| event));
            prop_assert!(live.is_over);
            prop_assert_eq!(live, replayed);
        }
    }

    #[test]
    fn a_fold_with_blocks_gives_each_stored_text_once(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let log = conversation(&bytes);
        for (_, trigger) in executions(&log) {
            let mut fold = RunFold::new(RunSelector::answering(trigger)).with_blocks();
            let live = outcome(log.records.iter().flat_map(|record| fold.events(record)));
            for message in live.messages {
                let mut blocks = message.texts;
                let parts = message.parts.values();
                let texts = parts.filter_map(|part| part.read::<TextPart>().ok());
                for text in texts.filter(|it| it.part_type == "output_text" && !it.text.is_empty()) {
                    let block = (BlockKind::Text, text.text);
                    let found = blocks.iter().position(|known| *known == block);
                    prop_assert!(found.is_some(), "no block for {:?}", block);
                    found.map(|found| blocks.remove(found));
                }
            }
        }
    }
}
