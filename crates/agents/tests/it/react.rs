//! The `ReAct` strategy (UAP §5.3).

use crate::strategies::*;
use crate::support::*;
use loomline_agents::{AgentState, Limit, React};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::{Message, ScriptTurn, ToolChoice};

fn at_most(n: u32) -> React {
    React {
        max_steps: Limit::AtMost(NonZeroU32::new(n).unwrap()),
        ..React::default()
    }
}

#[tokio::test]
async fn the_model_reasons_before_each_action() {
    let (result, model) = run(React::default(), two_react_steps()).await;
    assert_eq!(
        kinds(&result.state),
        [
            "user", "reason", "says", "act", "calls", "results", "reason", "says", "act", "says"
        ]
    );
    assert_eq!(result.turn.response.joined_text(), "3");
    let reasoning: Vec<&str> = result.state.reasoning().collect();
    assert_eq!(reasoning, ["I need a sum", "it is known"]);
    assert_eq!((result.state.step(), model.n_seen()), (2, 4));
    assert_eq!(result.state.phase(), None);
}

#[tokio::test]
async fn what_was_sent_only_grows() {
    let (_, model) = run(React::default(), two_react_steps()).await;
    let seen = model.seen.lock().unwrap();
    for pair in seen.windows(2) {
        let [before, after] = pair else {
            panic!("two requests");
        };
        let n = before.messages.len();
        let start: Vec<&Message> = after.messages.iter().take(n).collect();
        assert_eq!(start, before.messages.iter().collect::<Vec<_>>());
        assert!(after.messages.len() > n);
        assert_eq!(before.tools.len(), after.tools.len());
    }
}

#[tokio::test]
async fn no_tool_can_be_called_while_reasoning() {
    let (mut options, model) = on_script(React::default(), two_react_steps());
    options.tool_choice = ToolChoice::Required;
    options.structure = Some(Arc::new(json!({"type": "object"})));
    generate(options).await;
    let seen = model.seen.lock().unwrap();
    let choices: Vec<&ToolChoice> = seen.iter().map(|request| &request.tool_choice).collect();
    let required = ToolChoice::Required;
    assert_eq!(
        choices,
        [
            &ToolChoice::None,
            &required,
            &ToolChoice::None,
            &ToolChoice::Auto
        ],
        "what is forced is forced once, or no run could end"
    );
    let structured: Vec<bool> = seen.iter().map(|it| it.structure.is_some()).collect();
    assert_eq!(structured, [false, true, false, true]);
}

#[tokio::test]
async fn a_call_made_while_reasoning_is_not_run() {
    let log = Log::default();
    let mut call = ScriptTurn::call("noted", json!({}));
    call.text = Some("let me look".to_owned());
    let (mut options, _) = on_script(React::default(), vec![call, says("done")]);
    options.tools = vec![noted("noted", 0, &log)];
    let result = generate(options).await;
    assert!(log.lines().is_empty());
    let [refused] = results(&result.state).try_into().unwrap();
    assert!(refused.is_error);
    assert_eq!(
        refused.result,
        "Tool 'noted' was not run: this is the moment to reason. Call it when you are asked to act."
    );
    assert_eq!(
        kinds(&result.state),
        ["user", "reason", "calls", "results", "act", "says"]
    );
    assert_eq!(
        result.state.reasoning().collect::<Vec<_>>(),
        ["let me look"]
    );
    assert!(result.turn.tool_executions[0].is_error);
}

#[tokio::test]
async fn the_turn_is_that_of_all_cycles() {
    let (result, _) = run(React::default(), two_react_steps()).await;
    assert_sums(&result, 4);
    assert_eq!(result.turn.messages.len(), result.state.messages().len());
    assert_eq!(result.turn.tool_executions.len(), 1);
}

#[tokio::test]
async fn at_most_n_steps_are_taken_and_that_is_no_error() {
    let turns: Vec<ScriptTurn> = (0..5).flat_map(|_| [says("hm"), adds()]).collect();
    for n in 1..=3 {
        let (result, _) = run(at_most(n), turns.clone()).await;
        assert_eq!(result.state.step(), u64::from(n));
        assert!(result.state.open_calls().is_empty());
    }
}

#[tokio::test]
async fn steps_are_limited_for_each_input_anew() {
    let turns: Vec<ScriptTurn> = (0..4).flat_map(|_| [says("hm"), adds()]).collect();
    let (options, _) = on_script(at_most(2), turns);
    let agent = agent(options);
    let first = agent.ask("go", AgentState::initial()).await.unwrap();
    let second = agent.ask("on", first.state.clone()).await.unwrap();
    assert_eq!((first.state.step(), second.state.step()), (2, 4));
    assert_eq!(second.state.reasoning().len(), 4);
    assert_eq!(second.turn.cycles, 4);
}

#[tokio::test]
async fn there_is_no_limit_on_steps_unless_one_is_asked_for() {
    let mut turns: Vec<ScriptTurn> = (0..60).flat_map(|_| [says("hm"), adds()]).collect();
    turns.extend([says("enough"), says("done")]);
    let (result, _) = run(React::default(), turns).await;
    assert_eq!(result.state.step(), 61);
}

#[tokio::test]
async fn the_reasoning_prompt_can_be_given() {
    let react = React {
        reasoning_prompt: Some("What now?".into()),
        ..React::default()
    };
    let (_, model) = run(react, two_react_steps()).await;
    let prompts = model.prompts();
    assert_eq!(
        (prompts[0].as_str(), prompts[2].as_str()),
        ("What now?", "What now?")
    );
    assert_ne!(prompts[1], "What now?");
}

#[tokio::test]
async fn prompts_are_marked_with_their_step() {
    let (result, _) = run(React::default(), two_react_steps()).await;
    let json = serde_json::to_value(&result.turn.messages).unwrap();
    assert_eq!(
        json[6]["metadata"],
        json!({"uap": {"prompt": "reason", "step": 2, "firstStep": 1}})
    );
    assert_eq!(json[0].get("metadata"), None, "the user's own has no mark");
}

#[tokio::test]
async fn a_new_input_begins_a_new_step_whatever_the_old_phase() {
    let (options, _) = on_script(React::default(), vec![says("hm"), says("done")]);
    let left = AgentState::initial().with_phase(Some("act".into()));
    let result = agent(options).generate("go", left).await.unwrap();
    assert_eq!(
        kinds(&result.state),
        ["user", "reason", "says", "act", "says"]
    );
}

#[tokio::test]
async fn without_tools_a_model_that_calls_has_one_step() {
    let ghost = || ScriptTurn::call("ghost", json!({}));
    let turns: Vec<ScriptTurn> = (0..9).flat_map(|_| [says("hm"), ghost()]).collect();
    let (mut options, _) = on_script(React::default(), turns);
    options.tools = Vec::new();
    assert_eq!(generate(options).await.state.step(), 1);
}

#[tokio::test]
async fn no_rounds_gives_the_turn_with_its_calls() {
    let (mut options, _) = on_script(React::default(), two_react_steps());
    options.tool_strategy.max_iterations = Some(0);
    let result = generate(options).await;
    assert_eq!(result.state.open_calls().len(), 1);
    assert_eq!((result.state.phase(), result.state.step()), (None, 1));
}

#[tokio::test]
async fn calls_that_another_strategy_left_open_are_run_first() {
    let (options, model) = on_script(
        React::default(),
        vec![says("never"), says("hm"), says("done")],
    );
    let agent = agent(options);
    let mut open = call("1", "add", &[]);
    open.arguments = upp::Arguments::from_text(r#"{"a":1,"b":2}"#);
    let state = AgentState::initial()
        .with_message("go")
        .with_message(asked(vec![open]));
    let keeper = Keeper::default();
    let outcome = agent
        .run_step(state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    assert_eq!(results(&outcome.state)[0].result, 3.0);
    assert_eq!((model.n_seen(), outcome.state.step()), (0, 1));
}

#[tokio::test]
async fn calls_made_while_reasoning_are_refused_after_a_crash_too() {
    let log = Log::default();
    let (mut options, model) = on_script(React::default(), Vec::new());
    options.tools = vec![noted("noted", 0, &log)];
    let agent = agent(options);
    let keeper = Keeper::default();
    let context = keeper.context(&agent, &[]);
    let calls = vec![call("1", "noted", &[]), call("2", "noted", &[])];
    let state = AgentState::initial().with_message("go");
    // The number of the step is given before its first prompt.
    let asked_to = context
        .prompt(&state.with_step(1), "reason", "Think.")
        .await
        .unwrap();
    let state = asked_to.with_message(asked(calls)).with_step(0);

    let answered = [result("1", "before")];
    let outcome = agent
        .run_step(state, &keeper.context(&agent, &answered))
        .await
        .unwrap();
    let [first, second] = results(&outcome.state).try_into().unwrap();
    assert_eq!((first.result, second.is_error), ("before".into(), true));
    assert_eq!(outcome.state.phase(), Some("act"));
    assert!(log.lines().is_empty());
    assert_eq!(model.n_seen(), 0, "the model had reasoned");
    let returned = keeper
        .log
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("returned"));
    assert_eq!(returned.collect::<Vec<_>>(), ["returned 2"]);
}

#[tokio::test]
async fn a_prompt_that_is_there_is_not_given_again() {
    let (options, _) = on_script(React::default(), Vec::new());
    let agent = agent(options);
    let keeper = Keeper::default();
    let context = keeper.context(&agent, &[]);
    let state = AgentState::initial().with_message("go");
    let once = context.prompt(&state, "check", "Check it.").await.unwrap();
    let twice = context.prompt(&once, "check", "Check it.").await.unwrap();
    assert_eq!(once, twice);
    let another = context.prompt(&twice, "sum up", "Sum up.").await.unwrap();
    assert_eq!(kinds(&another), ["user", "check", "sum up"]);
    let next_step = context
        .prompt(&twice.with_step(1), "check", "Check it.")
        .await
        .unwrap();
    assert_eq!(kinds(&next_step), ["user", "check", "check"]);
}
