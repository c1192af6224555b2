use super::*;
use crate::command::{Command, Ending, NewItem, NewThread, Trigger};
use crate::entity::ItemType;
use crate::event::Event;
use crate::state::State;
use jiff::Timestamp;
use serde_json::{Value, json};

fn after(commands: impl IntoIterator<Item = Command>) -> State {
    let mut state = begun(NewItem::user("u", json!([]).into()));
    for command in commands {
        run(&mut state, command);
    }
    state
}

fn run(state: &mut State, command: Command) {
    for event in decide(state, command).unwrap() {
        state.apply(&event);
    }
}

fn decide(state: &State, command: Command) -> Result<Vec<Event>, Rejected> {
    state.decide(command, Timestamp::UNIX_EPOCH)
}

fn start(trigger: NewItem, id: &str) -> Command {
    Command::Start {
        trigger: Trigger::New(trigger),
        run: None,
        execution_id: format!("e{id}").into(),
        reaction_item_id: format!("a{id}").into(),
        step_id: format!("s{id}").into(),
        workflow_run_id: None,
    }
}

fn begun(trigger: NewItem) -> State {
    let mut state = State::default();
    let create = Command::Create {
        thread: NewThread::new("t", Some("k")),
        context_id: "c".into(),
    };
    run(&mut state, create);
    run(&mut state, start(trigger, "1"));
    state
}

fn call(state: &str) -> Value {
    json!({"type": "tool-t", "toolCallId": "c", "state": state, "input": {}})
}

fn respond(parts: &[Value]) -> Command {
    Command::Respond {
        parts: parts.iter().map(|part| part.clone().into()).collect(),
        response: json!({"model": "m"}).into(),
    }
}

fn complete(open: Option<Value>, next: Option<&str>) -> Command {
    Command::CompleteStep {
        outcome: StepOutcome {
            open_calls: open.map(Into::into),
            ..StepOutcome::default()
        },
        next: next.map(Into::into),
    }
}

fn tool(id: &str) -> Command {
    Command::StartTool {
        tool_call_id: id.into(),
    }
}

#[test]
fn a_step_whose_reactor_never_responded_is_not_completed() {
    let state = after([]);
    for next in [None, Some("s2")] {
        let refused = decide(&state, complete(None, next));
        assert_eq!(refused, Err(Rejected::NotResponded("s1".into())));
    }
    let ending = Ending::Completed;
    let refused = decide(&state, Command::End { ending });
    assert_eq!(refused, Err(Rejected::StepRunning("s1".into())));
    assert!(decide(&after([respond(&[])]), complete(None, None)).is_ok());
    // A step that is run again must be responded to again.
    let reset = after([respond(&[]), Command::ResetStep]);
    let refused = decide(&reset, complete(None, None));
    assert_eq!(refused, Err(Rejected::NotResponded("s1".into())));
}

#[test]
fn a_step_is_not_completed_over_an_unanswered_call() {
    for waiting in [
        "input-available",
        "approval-requested",
        "approval-responded",
    ] {
        let state = after([respond(&[call(waiting)])]);
        for next in [None, Some("s2")] {
            let refused = decide(&state, complete(None, next));
            let step_id = "s1".into();
            let call = "c".into();
            assert_eq!(refused, Err(Rejected::CallRunning { step_id, call }));
        }
    }
    for ended in ["output-available", "output-error"] {
        let put = Command::PutPart {
            idx: 0,
            part: call(ended).into(),
        };
        let state = after([respond(&[call("input-available")]), put]);
        assert!(decide(&state, complete(None, Some("s2"))).is_ok());
    }
}

#[test]
fn a_call_that_is_left_open_ends_the_run() {
    let state = after([respond(&[call("input-available")])]);
    let left =
        || Some(json!([{"toolCallId": "c", "kind": "external", "part": call("input-available")}]));
    let refused = decide(&state, complete(left(), Some("s2")));
    assert_eq!(refused, Err(Rejected::CallWaits("c".into())));
    assert!(decide(&state, complete(left(), None)).is_ok());
    let to_nobody = || Some(json!([]));
    assert!(decide(&state, complete(to_nobody(), Some("s2"))).is_ok());
}

#[test]
fn a_tool_starts_only_for_a_call_of_its_step() {
    let unknown = |call: &str| {
        let (step_id, call) = ("s1".into(), call.into());
        Err(Rejected::UnknownCall { step_id, call })
    };
    assert_eq!(decide(&after([]), tool("c")), unknown("c"));
    let state = after([respond(&[call("input-available")])]);
    assert!(decide(&state, tool("c")).is_ok());
    assert_eq!(decide(&state, tool("d")), unknown("d"));
}

#[test]
fn a_tool_starts_for_a_call_that_was_left_open() {
    let left = json!([{"toolCallId": "c", "kind": "approval", "part": call("approval-requested")}]);
    let mut state = after([
        respond(&[call("approval-requested")]),
        complete(Some(left), None),
        Command::End {
            ending: Ending::Completed,
        },
    ]);
    let answer = NewItem {
        item_type: ItemType::ActionResult,
        role: None,
        content: Some(
            json!([{"type": "loomline-answer", "toolCallId": "c", "approved": true}]).into(),
        ),
        ..NewItem::user("u2", json!([]).into())
    };
    run(&mut state, start(answer, "2"));
    assert!(decide(&state, tool("c")).is_ok());
    assert!(decide(&state, tool("d")).is_err());
}

#[test]
fn an_imported_step_and_an_old_log_are_taken_as_they_are() {
    let import = |next: Option<&str>| Command::ImportStep {
        outcome: StepOutcome::default(),
        next: next.map(Into::into),
    };
    let mut state = after([import(Some("s2"))]);
    run(&mut state, respond(&[call("input-available")]));
    let events = decide(&state, import(None)).unwrap();
    assert!(decide(&state, complete(None, None)).is_err());
    // Such events are what logs of earlier versions have.
    for event in &events {
        state.apply(event);
    }
    assert!(state.active().unwrap().step.is_none());
}
