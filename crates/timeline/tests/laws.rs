//! Laws of the timeline: whatever is accepted keeps the invariants, and every prefix is a legal state.

use jiff::Timestamp;
use loomline_timeline::{
    Command, Ending, Entry, Event, ExecutionStatus, Interruption, ItemStatus, ItemType, NewChunk,
    NewItem, NewThread, Record, Removed, Seq, State, StepOutcome, StepStatus, ThreadStatus,
    Transcript, Trigger, chunk_type, verify,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Ask {
    Create,
    Record,
    Enqueue,
    StartNew,
    StartWaiting,
    Emit,
    Respond(u8),
    PutPart(u8),
    Note,
    Reset,
    Restart(Box<Command>),
    CompleteStep(bool),
    LeaveOpen,
    StartAnswer,
    EnqueueAnswer,
    Complete,
    Fail,
    Stop,
    Close,
    Reopen,
    Update(u8),
    Remove(u8),
    RemoveStep(u8),
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = prop_oneof![
        1 => Just(Ask::Create),
        1 => Just(Ask::Record),
        2 => Just(Ask::Enqueue),
        4 => Just(Ask::StartNew),
        2 => Just(Ask::StartWaiting),
        3 => Just(Ask::Emit),
        4 => (0u8..4).prop_map(Ask::Respond),
        3 => (0u8..5).prop_map(Ask::PutPart),
        2 => Just(Ask::Note),
        1 => Just(Ask::Reset),
        1 => Just(Ask::Restart(Command::Resume.into())),
        1 => Just(Ask::Restart(Command::Park.into())),
        4 => any::<bool>().prop_map(Ask::CompleteStep),
        2 => Just(Ask::LeaveOpen),
        2 => Just(Ask::StartAnswer),
        2 => Just(Ask::EnqueueAnswer),
        3 => Just(Ask::Complete),
        1 => Just(Ask::Fail),
        1 => Just(Ask::Stop),
        1 => Just(Ask::Close),
        1 => Just(Ask::Reopen),
        3 => (0u8..4).prop_map(Ask::Update),
        3 => (0u8..60).prop_map(Ask::Remove),
        3 => (0u8..60).prop_map(Ask::RemoveStep),
    ];
    proptest::collection::vec(ask, 0..60)
}

fn command(ask: &Ask, n: usize) -> Command {
    let item = || {
        NewItem::user(
            format!("item_{n}"),
            json!([{"type": "input_text", "text": "hi"}]).into(),
        )
    };
    let answer = || NewItem {
        item_type: ItemType::ActionResult,
        role: None,
        content: Some(
            json!([{"type": "loomline-answer", "toolCallId": "c", "approved": true}]).into(),
        ),
        ..item()
    };
    let start = |trigger| Command::Start {
        trigger,
        run: None,
        execution_id: format!("execution_{n}").into(),
        reaction_item_id: format!("reaction_{n}").into(),
        step_id: format!("step_{n}").into(),
        workflow_run_id: None,
    };
    let text = || json!({"type": "output_text", "text": "ok"}).into();
    let why = || Interruption {
        reason: "error".into(),
        detail: None,
    };
    match ask {
        Ask::Create => Command::Create {
            thread: NewThread::new("thread", Some("key")),
            context_id: "context".into(),
        },
        Ask::Record => Command::Record { item: item() },
        Ask::Enqueue => Command::Enqueue {
            item: item(),
            run: json!({}).into(),
        },
        Ask::StartNew => start(Trigger::New(item())),
        Ask::StartWaiting => start(Trigger::Waiting),
        Ask::Emit => Command::Emit {
            chunks: vec![NewChunk {
                chunk_type: "text-delta".into(),
                data: None,
            }],
        },
        Ask::Respond(parts) => Command::Respond {
            parts: (0..*parts).map(|_| text()).collect(),
            response: json!({"model": "m"}).into(),
        },
        Ask::PutPart(idx) => Command::PutPart {
            idx: u32::from(*idx),
            part: text(),
        },
        Ask::Note => Command::Note {
            note: json!({"n": n}).into(),
        },
        Ask::Reset => Command::ResetStep,
        Ask::Restart(command) => (**command).clone(),
        Ask::CompleteStep(more) => Command::CompleteStep {
            outcome: StepOutcome::default(),
            next: more.then(|| format!("next_{n}").into()),
        },
        Ask::LeaveOpen => Command::CompleteStep {
            outcome: StepOutcome {
                open_calls: Some(
                    json!([{"toolCallId": "c", "kind": "approval", "part": {"type": "tool-t"}}])
                        .into(),
                ),
                ..StepOutcome::default()
            },
            next: None,
        },
        Ask::StartAnswer => start(Trigger::New(answer())),
        Ask::EnqueueAnswer => Command::Enqueue {
            item: answer(),
            run: json!({}).into(),
        },
        Ask::Complete => Command::End {
            ending: Ending::Completed,
        },
        Ask::Fail => Command::End {
            ending: Ending::Failed(why()),
        },
        Ask::Stop => Command::End {
            ending: Ending::Stopped(why()),
        },
        Ask::Close => Command::Close,
        Ask::Reopen => Command::Reopen,
        Ask::Update(what) => Command::Update {
            title: (what & 1 > 0).then(|| (!n.is_multiple_of(3)).then(|| format!("title {n}"))),
            metadata: (what & 2 > 0)
                .then(|| (!n.is_multiple_of(2)).then(|| json!({"n": n}).into())),
        },
        Ask::Remove(of) => Command::Remove {
            what: Removed::Item(format!("item_{of}").into()),
        },
        Ask::RemoveStep(of) => Command::Remove {
            what: Removed::Step(format!("step_{of}").into()),
        },
    }
}

fn run(asks: &[Ask]) -> (State, Vec<Record>) {
    let mut state = State::default();
    let mut log = Vec::new();
    let first = Ask::Create;
    for (n, ask) in std::iter::once(&first).chain(asks).enumerate() {
        if let Ok(events) = state.decide(command(ask, n), Timestamp::UNIX_EPOCH) {
            for event in events {
                state.apply(&event);
                log.push(Record {
                    seq: Seq(log.len() as u64 + 1),
                    at: Timestamp::UNIX_EPOCH,
                    event,
                });
            }
        }
    }
    (state, log)
}

fn legal(state: &State) -> bool {
    let Some(thread) = state.thread() else {
        return state.active().is_none();
    };
    let rested = thread.status != ThreadStatus::Streaming;
    let active = state.active();
    // An execution runs only on a streaming thread, and what it writes is pending while it does.
    active.is_none_or(|active| {
        !rested
            && active.execution.status == ExecutionStatus::Executing
            && active
                .reaction
                .as_ref()
                .is_none_or(|item| item.status != ItemStatus::Completed || rested)
            && active
                .step
                .as_ref()
                .is_none_or(|step| step.step.status == StepStatus::Running)
    })
}

fn folded(log: &[Record]) -> Transcript {
    let mut transcript = Transcript::default();
    for record in log {
        transcript.apply(record);
    }
    transcript
}

fn names(transcript: &Transcript) -> Vec<Removed> {
    let name = |entry: &Entry| match entry {
        Entry::Item(item) => vec![Removed::Item(item.id.clone())],
        Entry::Reaction(reaction) => {
            let steps = reaction.steps.iter();
            steps
                .map(|step| Removed::Step(step.step.id.clone()))
                .collect()
        }
    };
    transcript.entries.iter().flat_map(name).collect()
}

proptest! {
    #[test]
    fn any_accepted_commands_write_a_log_that_verifies(asks in asks()) {
        let (state, log) = run(&asks);
        prop_assert_eq!(verify(&log), Ok(()));
        // Between commands a thread streams exactly while an execution runs.
        let streaming = state.thread().is_some_and(|thread| thread.status == ThreadStatus::Streaming);
        prop_assert_eq!(streaming, state.active().is_some());
        prop_assert!(legal(&state));
    }

    #[test]
    fn replaying_the_log_gives_the_same_state(asks in asks()) {
        let (state, log) = run(&asks);
        let mut again = State::default();
        for record in &log {
            again.apply(&Event::decode(&record.event.encode().unwrap()).unwrap());
        }
        prop_assert_eq!(again, state);
    }

    #[test]
    fn replaying_any_prefix_gives_a_state_that_can_be_ended(asks in asks(), cut in 0usize..200) {
        let (_, log) = run(&asks);
        let mut state = State::default();
        let mut transcript = Transcript::default();
        for record in log.iter().take(cut) {
            state.apply(&record.event);
            transcript.apply(record);
        }
        // A prefix that ends between transactions can always be brought to rest.
        if state.active().is_some() && state.thread().is_some_and(|thread| thread.status == ThreadStatus::Streaming)
            && state.active().is_some_and(|active| {
                active.reaction.as_ref().is_some_and(|item| item.status == ItemStatus::Pending)
            })
            && state.context().is_some_and(|context| context.status == loomline_timeline::ContextStatus::Streaming)
        {
            let why = Interruption { reason: "error".into(), detail: None };
            let end = Command::End { ending: Ending::Failed(why) };
            let events = state.decide(end, Timestamp::UNIX_EPOCH);
            prop_assert!(events.is_ok(), "{events:?}");
            for event in events.unwrap_or_default() {
                state.apply(&event);
            }
            prop_assert!(state.active().is_none());
        }
    }

    #[test]
    fn a_call_is_never_answered_twice(asks in asks()) {
        let (_, log) = run(&asks);
        let mut n_open = 0;
        let mut n_answers = 0;
        for record in &log {
            if let Event::StepStatusChanged { outcome, .. } = &record.event {
                n_open += usize::from(outcome.open_calls.is_some());
            }
            if let Event::ItemCreated { item } = &record.event {
                n_answers += usize::from(item.item_type == ItemType::ActionResult);
            }
            prop_assert!(n_answers <= n_open);
        }
    }

    #[test]
    fn a_refused_command_changes_nothing(asks in asks()) {
        let (state, _) = run(&asks);
        let before = state.clone();
        let refused = state.decide(command(&Ask::Create, 0), Timestamp::UNIX_EPOCH);
        prop_assert!(refused.is_err());
        prop_assert_eq!(before, state);
    }

    #[test]
    fn state_and_transcript_tell_the_same_of_the_thread(asks in asks()) {
        let (state, log) = run(&asks);
        let transcript = folded(&log);
        let told = transcript.thread.as_ref().map(|it| (&it.title, &it.metadata, it.status));
        let stands = state.thread().map(|it| (&it.title, &it.metadata, it.status));
        prop_assert_eq!(told, stands);
    }

    #[test]
    fn what_is_removed_is_left_out_and_nothing_else_is(asks in asks()) {
        let (_, log) = run(&asks);
        let mut removed = BTreeSet::new();
        for record in &log {
            if let Event::ChunkEmitted { chunk_type, data: Some(data), .. } = &record.event
                && chunk_type == chunk_type::ITEM_REMOVED
            {
                removed.insert(data.read::<Removed>().unwrap());
            }
        }
        let whole = folded(&log);
        prop_assert_eq!(whole.removed().keys().collect::<Vec<_>>(), removed.iter().collect::<Vec<_>>());
        let mut expected = names(&whole);
        expected.retain(|name| !removed.contains(name));
        let left = whole.without_removed();
        prop_assert_eq!(names(&left), expected);
        prop_assert!(left.removed().is_empty());
        // Those who go on folding find what can still change where it is now.
        prop_assert!(left.waiting().all(|item| left.waits(&item.id)));
    }

    #[test]
    fn what_waits_or_runs_is_not_removed(asks in asks(), of in 0u8..60) {
        let (state, _) = run(&asks);
        for ask in [Ask::Remove(of), Ask::RemoveStep(of)] {
            let Command::Remove { what } = command(&ask, 0) else { continue };
            let needed = match &what {
                Removed::Compaction(_) => false,
                Removed::Item(id) => {
                    let trigger = state.active().map(|active| &active.execution.trigger_item_id);
                    trigger == Some(id) || state.waiting().any(|waiting| waiting.item.id == *id)
                }
                Removed::Step(id) => {
                    let step = state.active().and_then(|active| active.step.as_ref());
                    step.is_some_and(|step| step.step.id == *id)
                }
            };
            let closed = state.thread().is_some_and(|it| it.status == ThreadStatus::Closed);
            let decided = state.decide(command(&ask, 0), Timestamp::UNIX_EPOCH);
            prop_assert_eq!(decided.is_err(), needed || closed);
        }
    }
}
