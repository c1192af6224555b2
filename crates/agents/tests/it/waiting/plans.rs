//! Waiting within steps of a plan, and in states of other strategies.

use super::*;
use crate::strategies::*;
use loomline_agents::{AgentOptions, Plan, PlanStatus, React};
use upp::AssistantMessage;

fn by_plan(plan: Plan, answers: Vec<AssistantMessage>) -> AgentOptions {
    let mut options = options(queued(answers));
    options.execution = Arc::new(plan);
    options.tools = vec![add(), gate()];
    options
}

fn both() -> AssistantMessage {
    asked(vec![sum("1"), call("2", "gate", &[])])
}

#[tokio::test]
async fn a_plan_step_whose_tool_succeeded_before_the_wait_is_completed() {
    for tool in [None, Some("add"), Some("gate")] {
        let answers = vec![planned(&[drafted("a", tool, &[])]), both(), said("done")];
        let agent = agent(by_plan(Plan::default(), answers));
        let waiting = start(&agent).await;
        let done = agent
            .resume(approve_all(&waiting), waiting.state)
            .await
            .unwrap();
        assert_eq!(statuses(&done.state), [("a", PlanStatus::Completed)]);
        assert!(done.pending.is_empty(), "nobody is asked again");
    }
}

#[tokio::test]
async fn a_round_of_which_one_call_was_denied_did_not_fail() {
    let plan = Plan {
        allow_replan: false,
        ..Plan::default()
    };
    let answers = vec![planned(&[drafted("a", None, &[])]), both(), said("done")];
    let agent = agent(by_plan(plan, answers));
    let waiting = start(&agent).await;
    let answers = Answers::new().deny("2");
    let done = agent.resume(answers, waiting.state).await.unwrap();
    assert_eq!(statuses(&done.state), [("a", PlanStatus::Completed)]);
}

#[tokio::test]
async fn a_plan_step_that_waited_begins_again_under_its_number() {
    let answers = vec![planned(&[drafted("a", None, &[])]), both(), said("done")];
    let hooked = with_hooks(by_plan(Plan::default(), answers));
    let (agent, log) = (agent(hooked.0), hooked.1);
    let waiting = start(&agent).await;
    let answers = approve_all(&waiting);
    let mut stream = agent.resume_stream(answers, waiting.state);
    let first = stream.next().await.unwrap();
    assert_eq!(brief(&first), "step_start");
    stream.result().await.unwrap();
    let starts: Vec<String> = log.lines();
    let starts = starts.iter().filter(|line| line.starts_with("start"));
    assert!(starts.eq(["start 1", "start 2", "start 2"]));
}

fn with_hooks(mut options: AgentOptions) -> (AgentOptions, Log) {
    let log = Log::default();
    options.strategy = Arc::new(Noting(log.clone()));
    (options, log)
}

#[tokio::test]
async fn calls_that_another_strategy_left_are_answered_before_there_is_a_plan() {
    for reacts in [false, true] {
        let mut answers = vec![asked(vec![call("g", "gate", &[])])];
        if reacts {
            answers.insert(0, said("so"));
        }
        answers.extend([planned(&[drafted("a", None, &[])]), said("done")]);
        let planner = by_plan(Plan::default(), answers);
        let mut first = planner.clone();
        first.execution = if reacts {
            Arc::new(React::default())
        } else {
            Arc::new(Loop::default())
        };
        let waiting = start(&agent(first)).await;
        let done = agent(planner)
            .resume(approve_all(&waiting), waiting.state)
            .await
            .unwrap();
        let kinds = kinds(&done.state);
        let end = ["calls", "results", "plan", "says", "plan_step", "says"];
        assert!(kinds.ends_with(&end.map(str::to_owned)), "{kinds:?}");
        assert_eq!(results(&done.state), [result("g", "opened")]);
    }
}

#[tokio::test]
async fn a_loop_goes_on_with_what_a_plan_left_in_steps_of_its_own() {
    let calls = |id| asked(vec![sum(id)]);
    let answers = vec![
        planned(&[drafted("a", None, &[])]),
        both(),
        calls("3"),
        calls("4"),
        said("end"),
    ];
    let planner = by_plan(Plan::default(), answers);
    let (mut looper, hooks) = with(
        planner.clone(),
        Keeping {
            stops_at: Some(3),
            ..Keeping::default()
        },
    );
    looper.execution = Arc::new(Loop::default());
    let waiting = start(&agent(planner)).await;
    let done = agent(looper)
        .resume(approve_all(&waiting), waiting.state)
        .await
        .unwrap();
    assert_eq!((done.state.step(), done.state.phase()), (3, None));
    let n_asked = hooks.log.lines().iter().filter(|it| *it == "stop?").count();
    assert_eq!(n_asked, 2, "after each step");
}
