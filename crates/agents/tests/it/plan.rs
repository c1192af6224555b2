//! Executing a plan (UAP §5.4, MUST 2–4).

use crate::strategies::*;
use crate::support::*;
use loomline_agents::PlanStatus::{Completed, InProgress, Pending};
use loomline_agents::{AgentError, AgentState, Plan};
use upp::ToolUseStrategy;

#[tokio::test]
async fn a_plan_is_made_and_executed_in_the_order_of_its_dependencies() {
    let (result, model) = run(Plan::default(), two_plan_steps()).await;
    assert_eq!(
        kinds(&result.state),
        [
            "user",
            "plan",
            "says",
            "plan_step",
            "calls",
            "results",
            "says",
            "plan_step",
            "says"
        ]
    );
    let prompts = model.prompts();
    assert!(
        prompts[1].starts_with("Execute step a: do a\nUse the add tool."),
        "{prompts:?}"
    );
    assert!(prompts[2].starts_with("Execute step b: do b\n"));
    assert!(!prompts[2].contains("tool"));
    assert_eq!(
        statuses(&result.state),
        [("b", Completed), ("a", Completed)]
    );
    assert_eq!(result.turn.response.joined_text(), "b is done");
    assert_eq!((result.state.step(), result.state.phase()), (3, None));
}

#[tokio::test]
async fn the_turn_is_that_of_all_cycles() {
    let (result, _) = run(Plan::default(), two_plan_steps()).await;
    assert_sums(&result, 4);
    assert_eq!(result.turn.tool_executions.len(), 1);
    assert_eq!(result.turn.messages.len(), result.state.messages().len());
}

#[tokio::test]
async fn steps_without_an_order_of_their_own_keep_the_plans() {
    let steps = ["c", "a", "b"].map(|id| drafted(id, None, &[]));
    let (_, model) = run(
        Plan::default(),
        vec![plans(&steps), says("1"), says("2"), says("3")],
    )
    .await;
    let asked: Vec<String> = model.prompts()[1..]
        .iter()
        .map(|text| text.chars().take("Execute step c".len()).collect())
        .collect();
    assert_eq!(
        asked,
        ["Execute step c", "Execute step a", "Execute step b"]
    );
}

#[tokio::test]
async fn a_plan_that_was_kept_stays_as_it_was() {
    let (options, _) = on_script(Plan::default(), two_plan_steps());
    let (options, hooks) = with(options, Keeping::default());
    generate(options).await;
    let states = hooks.states.lock().unwrap();
    assert_eq!(statuses(&states[0]), [("b", Pending), ("a", Pending)]);
    assert_eq!(statuses(&states[1]), [("b", Pending), ("a", Completed)]);
    assert_eq!(statuses(&states[2]), [("b", Completed), ("a", Completed)]);
}

#[tokio::test]
async fn a_step_is_in_progress_while_it_runs() {
    let (options, _) = on_script(Plan::default(), two_plan_steps());
    let agent = agent(options);
    let keeper = Keeper::default();
    let mut state = AgentState::initial().with_message("go");
    let mut seen = Vec::new();
    for _ in 0..4 {
        let outcome = agent.run_step(state, &keeper.context(&agent, &[])).await;
        state = outcome.unwrap().state;
        let of_a = state.plan().unwrap()[1].status;
        seen.push((state.phase().map(str::to_owned), state.step(), of_a));
    }
    assert_eq!(
        seen,
        [
            (None, 1, Pending),
            (Some("executing".to_owned()), 2, InProgress),
            (None, 2, Completed),
            (None, 3, Completed),
        ]
    );
}

#[tokio::test]
async fn the_stop_condition_leaves_the_rest_pending_and_an_input_plans_anew() {
    let mut turns = two_plan_steps();
    turns.truncate(3);
    turns.extend([plans(&[drafted("x", None, &[])]), says("x is done")]);
    let (options, model) = on_script(Plan::default(), turns);
    let (options, _) = with(
        options,
        Keeping {
            stops_at: Some(2),
            ..Keeping::default()
        },
    );
    let agent = agent(options);
    let first = agent.ask("go", AgentState::initial()).await.unwrap();
    assert_eq!(statuses(&first.state), [("b", Pending), ("a", Completed)]);
    assert_eq!(model.n_seen(), 3);
    let second = agent.ask("something else", first.state).await.unwrap();
    assert_eq!(statuses(&second.state), [("x", Completed)]);
    assert_eq!((second.state.step(), second.turn.cycles), (4, 2));
}

#[tokio::test]
async fn the_tool_strategys_limit_holds_for_each_step_of_the_plan() {
    let planned = plans(&[drafted("a", None, &[]), drafted("b", None, &[])]);
    let turns = vec![
        planned,
        adds(),
        adds(),
        says("a"),
        adds(),
        adds(),
        adds(),
        says("b"),
    ];
    let log = Log::default();
    let heard = log.clone();
    let (mut options, _) = on_script(Plan::default(), turns);
    options.tool_strategy = ToolUseStrategy::unlimited()
        .with_max_iterations(Some(2))
        .with_on_max_iterations(move |n| heard.add(n.to_string()));
    let error = agent(options.clone()).query("go").await.unwrap_err();
    assert!(matches!(error, AgentError::MaxIterations { limit } if limit.get() == 2));
    assert_eq!(log.lines(), ["2"]);
    options.tool_strategy.max_iterations = Some(3);
    assert!(agent(options).query("go").await.is_ok());
}

#[tokio::test]
async fn a_step_without_rounds_goes_on_with_results_given_by_hand() {
    let turns = vec![
        plans(&[drafted("a", Some("add"), &[])]),
        adds(),
        says("done"),
    ];
    let (mut options, _) = on_script(Plan::default(), turns);
    options.tool_strategy.max_iterations = Some(0);
    let agent = agent(options);
    let first = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(statuses(&first.state), [("a", InProgress)]);
    let id = first.state.open_calls()[0].tool_call_id.as_str().to_owned();
    let given = upp::ToolResultMessage::new(vec![result(&id, 3)], upp::MessageOptions::default());
    let second = agent.generate(given, first.state).await.unwrap();
    assert_eq!(statuses(&second.state), [("a", Completed)]);
    assert_eq!(second.turn.response.joined_text(), "done");
}
