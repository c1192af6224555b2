//! When a step of a plan fails (UAP §5.4, behaviour 3).

use crate::strategies::*;
use crate::support::*;
use loomline_agents::PlanStatus::{Completed, Failed, Pending};
use loomline_agents::{Plan, PlanError};
use serde_json::json;
use upp::ScriptTurn;

fn no_replan() -> Plan {
    Plan {
        allow_replan: false,
        ..Plan::default()
    }
}

#[tokio::test]
async fn a_failed_step_is_planned_anew_and_what_is_completed_stays() {
    let turns = vec![
        plans(&[
            drafted("a", None, &[]),
            drafted("b", Some("broken"), &["a"]),
            drafted("c", None, &["b"]),
        ]),
        says("a is done"),
        breaks(),
        says("it does not work"),
        plans(&[
            drafted("b2", Some("add"), &["a"]),
            drafted("c", None, &["b2"]),
        ]),
        adds(),
        says("b is done another way"),
        says("c is done"),
    ];
    let (options, model) = on_script(Plan::default(), turns);
    let (options, hooks) = with(options, Keeping::default());
    let result = generate(options).await;
    assert_eq!(
        statuses(&result.state),
        [("a", Completed), ("b2", Completed), ("c", Completed)]
    );
    let states = hooks.states.lock().unwrap();
    assert_eq!(
        statuses(&states[2]),
        [("a", Completed), ("b", Failed), ("c", Pending)]
    );
    assert_eq!(
        statuses(&states[3]),
        [("a", Completed), ("b2", Pending), ("c", Pending)]
    );
    let prompt = &model.prompts()[3];
    assert!(
        prompt.contains("- a is completed: do a\n- b failed: do b\n- c was not executed: do c")
    );
    assert_eq!(kinds(&result.state)[9], "replan");
    assert_eq!((result.state.step(), result.turn.cycles), (6, 8));
}

#[tokio::test]
async fn without_replanning_a_failed_step_ends_the_run_by_name() {
    let turns = vec![
        plans(&[
            drafted("b", None, &["a"]),
            drafted("a", Some("broken"), &[]),
            drafted("c", None, &[]),
        ]),
        breaks(),
        says("it does not work"),
    ];
    let (options, model) = on_script(no_replan(), turns);
    let (options, hooks) = with(options, Keeping::default());
    let error = failure(options).await;
    assert_eq!(error.to_string(), "the step \"a\" of the plan failed: do a");
    let states = hooks.states.lock().unwrap();
    assert_eq!(
        statuses(states.last().unwrap()),
        [("b", Pending), ("a", Failed), ("c", Pending)]
    );
    assert_eq!(model.n_seen(), 3);
    let lines = hooks.log.lines();
    assert!(
        !lines.contains(&"start 3".to_owned()),
        "no step begins that is not taken"
    );
}

#[tokio::test]
async fn a_named_tool_that_was_never_called_with_success_fails_its_step() {
    let planned = |tool| plans(&[drafted("a", Some(tool), &[])]);
    let mut both = adds();
    both.tool_calls.extend(breaks().tool_calls);
    for (name, turns) in [
        ("never called", vec![planned("add"), says("done")]),
        (
            "another called",
            vec![planned("broken"), adds(), says("done")],
        ),
        (
            "failed among others",
            vec![planned("broken"), both, says("done")],
        ),
        (
            "the last round failed",
            vec![planned("add"), adds(), breaks(), says("done")],
        ),
    ] {
        let (options, _) = on_script(no_replan(), turns);
        let error = failure(options).await;
        assert!(
            matches!(error, PlanError::StepFailed { .. }),
            "{name}: {error}"
        );
    }
    let turns = vec![planned("add"), breaks(), adds(), says("done")];
    let (result, _) = run(no_replan(), turns).await;
    assert_eq!(statuses(&result.state), [("a", Completed)]);
}

#[tokio::test]
async fn a_step_that_only_calls_ghosts_has_failed() {
    let ghost = || ScriptTurn::call("ghost", json!({}));
    let mut turns = vec![plans(&[drafted("a", None, &[])])];
    turns.extend(vec![ghost(); 9]);
    turns.push(says("I give up"));
    let (options, _) = on_script(no_replan(), turns.clone());
    assert!(matches!(
        failure(options).await,
        PlanError::StepFailed { .. }
    ));
    let (mut options, model) = on_script(no_replan(), turns);
    options.tools = Vec::new();
    assert!(matches!(
        failure(options).await,
        PlanError::StepFailed { .. }
    ));
    assert_eq!(
        model.n_seen(),
        2,
        "without tools there is nothing to hope for"
    );
}

#[tokio::test]
async fn a_replan_that_changes_nothing_twice_ends_the_run() {
    let once = [
        plans(&[drafted("a", Some("broken"), &[])]),
        breaks(),
        says("it does not work"),
    ];
    let turns: Vec<ScriptTurn> = std::iter::repeat_n(once, 9).flatten().collect();
    let (options, model) = on_script(Plan::default(), turns);
    let error = failure(options).await;
    assert!(
        matches!(&error, PlanError::NoProgress { ids } if ids == &["a"]),
        "{error}"
    );
    assert_eq!(
        model.n_seen(),
        7,
        "the plan, one more try, and the replan that is the same again"
    );
}

#[tokio::test]
async fn replanning_goes_on_as_long_as_the_plan_changes() {
    let mut turns: Vec<ScriptTurn> = (0..20)
        .flat_map(|n| {
            let step = drafted(&format!("s{n}"), Some("broken"), &[]);
            [plans(&[step]), breaks(), says("no")]
        })
        .collect();
    turns.extend([plans(&[drafted("last", None, &[])]), says("done")]);
    let (result, _) = run(Plan::default(), turns).await;
    assert_eq!(statuses(&result.state), [("last", Completed)]);
    assert_eq!(result.state.step(), 42);
}
