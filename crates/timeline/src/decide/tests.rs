use super::*;
use crate::command::NewItem;
use crate::entity::Interruption;
use serde_json::json;

fn after(commands: impl IntoIterator<Item = Command>) -> State {
    let mut state = State::default();
    for command in commands {
        for event in state.decide(command, Timestamp::UNIX_EPOCH).unwrap() {
            state.apply(&event);
        }
    }
    state
}

fn create() -> Command {
    Command::Create {
        thread: NewThread::new("t", Some("k")),
        context_id: "c".into(),
    }
}

fn start() -> Command {
    let content = json!([{"type": "input_text", "text": "hi"}]).into();
    Command::Start {
        trigger: Trigger::New(NewItem::user("u", content)),
        run: None,
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    }
}

fn respond() -> Command {
    Command::Respond {
        parts: Vec::new(),
        response: json!({"model": "m"}).into(),
    }
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| event.event_type().name())
        .collect()
}

#[test]
fn starting_persists_trigger_execution_reaction_and_step_in_the_order_of_section_7() {
    let events = after([create()])
        .decide(start(), Timestamp::UNIX_EPOCH)
        .unwrap();
    assert_eq!(
        names(&events),
        [
            "context.resolved",
            "thread.resolved",
            "item.created",
            "thread.status.changed",
            "context.status.changed",
            "execution.created",
            "item.created",
            "item.status.changed",
            "step.created",
        ]
    );
}

#[test]
fn a_second_execution_is_refused_while_one_runs() {
    let error = after([create(), start()])
        .decide(start(), Timestamp::UNIX_EPOCH)
        .unwrap_err();
    assert_eq!(error, Rejected::Busy("e".into()));
}

#[test]
fn a_closed_thread_can_not_stream_again() {
    let error = after([create(), Command::Close])
        .decide(start(), Timestamp::UNIX_EPOCH)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the thread is closed, and can't become streaming"
    );
}

#[test]
fn a_closed_thread_that_is_closed_is_said_to_be_closed() {
    let error = after([create(), Command::Close])
        .decide(Command::Close, Timestamp::UNIX_EPOCH)
        .unwrap_err();
    assert_eq!(error.to_string(), "the thread is closed already");
}

#[test]
fn closing_an_idle_thread_passes_through_streaming() {
    let events = after([create()])
        .decide(Command::Close, Timestamp::UNIX_EPOCH)
        .unwrap();
    assert_eq!(
        names(&events),
        [
            "thread.status.changed",
            "context.status.changed",
            "thread.status.changed"
        ]
    );
}

#[test]
fn a_cancelled_execution_fails_and_leaves_the_thread_open() {
    let stop = Ending::Stopped(Interruption {
        reason: "user_cancelled".into(),
        detail: None,
    });
    let state = after([create(), start(), Command::End { ending: stop }]);
    assert_eq!(state.thread().unwrap().status, ThreadStatus::Open);
    assert!(state.active().is_none());
}

#[test]
fn an_execution_does_not_complete_while_a_step_runs() {
    let error = after([create(), start()]).decide(
        Command::End {
            ending: Ending::Completed,
        },
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(error, Err(Rejected::StepRunning("s".into())));
}

#[test]
fn a_reset_step_is_as_if_its_model_had_not_answered() {
    let respond = || Command::Respond {
        parts: vec![json!({"type": "output_text", "text": "hello"}).into()],
        response: json!({"model": "m"}).into(),
    };
    let state = after([create(), start(), respond(), Command::ResetStep]);
    assert!(
        state
            .active()
            .unwrap()
            .step
            .as_ref()
            .unwrap()
            .parts
            .is_empty()
    );
    assert!(state.decide(respond(), Timestamp::UNIX_EPOCH).is_ok());
}

#[test]
fn starts_count_until_a_step_completes_unless_the_process_parks_the_run() {
    let n_starts = |commands: &[Command]| {
        let begun = [create(), start()].into_iter();
        let state = after(begun.chain(commands.iter().cloned()));
        state.active().map(|active| active.n_starts)
    };
    let complete = Command::CompleteStep {
        outcome: StepOutcome::default(),
        next: Some("next".into()),
    };
    let (resume, park) = (Command::Resume, Command::Park);
    assert_eq!(n_starts(&[]), Some(1));
    assert_eq!(n_starts(&[resume.clone(), Command::ResetStep]), Some(2));
    assert_eq!(n_starts(std::slice::from_ref(&park)), Some(0));
    assert_eq!(n_starts(&[park, resume.clone()]), Some(1));
    assert_eq!(
        n_starts(&[resume.clone(), resume, respond(), complete]),
        Some(1)
    );
}

#[test]
fn the_last_note_of_a_step_outlives_its_reset_and_not_the_step() {
    let note = |n: u32| Command::Note {
        note: json!({ "n": n }).into(),
    };
    let noted = |state: &State| {
        let step = state.active()?.step.as_ref()?;
        step.note.as_ref().map(Payload::value)
    };
    let begun = [create(), start(), note(1), note(2), Command::ResetStep];
    assert_eq!(noted(&after(begun.clone())), Some(json!({"n": 2})));
    let complete = Command::CompleteStep {
        outcome: StepOutcome::default(),
        next: Some("next".into()),
    };
    let completed = begun.into_iter().chain([respond(), complete]);
    assert_eq!(noted(&after(completed)), None);
    assert!(
        after([create()])
            .decide(note(1), Timestamp::UNIX_EPOCH)
            .is_err()
    );
}

#[test]
fn a_queued_trigger_waits_until_an_execution_takes_it() {
    let content = json!([{"type": "input_text", "text": "next"}]).into();
    let enqueue = Command::Enqueue {
        item: NewItem::user("u2", content),
        run: json!({"agent": "demo"}).into(),
    };
    let state = after([create(), start(), enqueue]);
    assert_eq!(state.waiting().count(), 1);
    let done = Ending::Stopped(Interruption {
        reason: "timeout".into(),
        detail: None,
    });
    let take = Command::Start {
        trigger: Trigger::Waiting,
        run: None,
        execution_id: "e2".into(),
        reaction_item_id: "a2".into(),
        step_id: "s2".into(),
        workflow_run_id: None,
    };
    let mut state = state;
    for command in [Command::End { ending: done }, take] {
        for event in state.decide(command, Timestamp::UNIX_EPOCH).unwrap() {
            state.apply(&event);
        }
    }
    assert_eq!(state.waiting().count(), 0);
    assert_eq!(
        state.active().unwrap().execution.trigger_item_id,
        "u2".into()
    );
}

#[test]
fn a_part_that_is_added_comes_after_those_there_are() {
    let text = |text: &str| Payload::from(json!({"type": "output_text", "text": text}));
    let event = |n: u32| Payload::from(json!({"type": "data-tp-thread_spawn", "n": n}));
    let respond = Command::Respond {
        parts: vec![text("a"), text("b")],
        response: json!({}).into(),
    };
    let add = |n| Command::AddPart { part: event(n) };
    let state = after([create(), start(), respond, add(1), add(2)]);
    let step = state.active().and_then(|active| active.step.as_ref());
    assert_eq!(
        step.unwrap().parts,
        [text("a"), text("b"), event(1), event(2)]
    );
    let refused = after([create()]).decide(add(1), Timestamp::UNIX_EPOCH);
    assert_eq!(refused, Err(Rejected::NotRunning));
}
