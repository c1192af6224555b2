//! Making a plan (UAP §5.4, MUST 1).

use crate::strategies::*;
use crate::support::*;
use loomline_agents::{AgentState, Limit, Plan, PlanError, PlanStatus, PlanStep};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::{ScriptTurn, Scripted, ToolChoice};

#[tokio::test]
async fn a_plan_is_asked_for_by_structured_output() {
    let (mut options, model) = on_script(Plan::default(), two_plan_steps());
    let structure = Arc::new(json!({"type": "object"}));
    options.structure = Some(Arc::clone(&structure));
    options.tool_choice = ToolChoice::Required;
    generate(options).await;
    let seen = model.seen.lock().unwrap();
    let schema = seen[0].structure.as_deref().unwrap();
    assert_eq!(schema["properties"]["steps"]["type"], "array");
    assert_eq!(
        schema["properties"]["steps"]["items"]["properties"]["tool"]["enum"],
        json!([null, "add", "broken"])
    );
    let choices: Vec<&ToolChoice> = seen.iter().map(|request| &request.tool_choice).collect();
    assert_eq!(
        choices,
        [
            &ToolChoice::None,
            &ToolChoice::Required,
            &ToolChoice::Auto,
            &ToolChoice::Auto
        ]
    );
    let structures: Vec<bool> = seen[1..].iter().map(|it| it.structure.is_some()).collect();
    assert_eq!(
        structures,
        [false, false, true],
        "only the last step gives the answer"
    );
    assert_eq!(seen[3].structure.as_ref(), Some(&structure));
    assert!(seen.iter().all(|request| request.tools.len() == 2));
}

#[tokio::test]
async fn a_model_without_structured_output_is_not_asked() {
    let mut model = Watched::new(two_plan_steps());
    model.capabilities.structured_output = false;
    let model = Arc::new(model);
    let mut options = options(model.clone());
    options.execution = Arc::new(Plan::default());
    let error = failure(options).await;
    assert!(matches!(&error, PlanError::Unsupported { model } if model == "scripted-1"));
    assert_eq!(model.n_seen(), 0);
}

#[tokio::test]
async fn a_schema_of_ones_own_is_sent_and_held() {
    let schema = Arc::new(json!({
        "type": "object",
        "required": ["goal", "steps"],
        "properties": {"goal": {"const": "win"}, "steps": {"type": "array"}},
    }));
    let plan = Plan {
        plan_schema: Some(Arc::clone(&schema)),
        ..Plan::default()
    };
    let steps = json!([{"id": "only", "description": "win"}]);
    let good = json!({"goal": "win", "steps": steps}).to_string();
    let bad = json!({"goal": "lose", "steps": steps}).to_string();
    let (result, model) = run(plan, vec![says(&bad), says(&good), says("won")]).await;
    assert_eq!(
        model.seen.lock().unwrap()[0].structure.as_ref(),
        Some(&schema)
    );
    assert!(model.prompts()[1].contains("at \"/goal\""));
    assert_eq!(statuses(&result.state), [("only", PlanStatus::Completed)]);
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused_before_anything_is_asked() {
    let plan = Plan {
        plan_schema: Some(Arc::new(json!({"type": "nonsense"}))),
        ..Plan::default()
    };
    let (options, model) = on_script(plan, two_plan_steps());
    assert!(matches!(failure(options).await, PlanError::Schema(_)));
    assert_eq!(model.n_seen(), 0);
}

#[tokio::test]
async fn a_cycle_in_a_plan_is_refused_before_anything_runs() {
    let log = Log::default();
    let cyclic = plans(&[
        drafted("first", Some("noted"), &[]),
        drafted("a", None, &["b"]),
        drafted("b", None, &["a"]),
    ]);
    let (mut options, model) = on_script(Plan::default(), vec![cyclic.clone(), cyclic]);
    options.tools = vec![noted("noted", 0, &log)];
    let PlanError::Refused { reasons } = failure(options).await else {
        panic!("the plan is refused");
    };
    assert_eq!(reasons, ["the steps 'a', 'b' wait for each other"]);
    assert_eq!((log.lines().len(), model.n_seen()), (0, 2));
}

#[tokio::test]
async fn a_plan_that_can_not_be_carried_out_is_corrected_once() {
    let unknown = plans(&[drafted("a", None, &["nobody"])]);
    let good = plans(&[drafted("a", None, &[])]);
    let (result, model) = run(Plan::default(), vec![unknown, good, says("done")]).await;
    assert_eq!(
        kinds(&result.state),
        ["user", "plan", "says", "plan", "says", "plan_step", "says"]
    );
    assert_eq!(
        model.prompts()[1],
        "This plan can't be used:\n- step 'a' depends on 'nobody', which is no step of the plan\n\
         Give the whole plan again, corrected."
    );
    assert_eq!(result.state.step(), 2, "both attempts are one step");
}

#[tokio::test]
async fn a_plan_step_without_a_tool_member_is_taken() {
    let step = json!({"id": "a", "description": "think", "dependsOn": []});
    let planned = ScriptTurn::text(json!({"steps": [step]}).to_string());
    let (result, model) = run(Plan::default(), vec![planned, says("done")]).await;
    assert_eq!(statuses(&result.state), [("a", PlanStatus::Completed)]);
    assert_eq!(result.state.plan().unwrap()[0].tool, None);
    assert_eq!(model.n_seen(), 2, "nothing is corrected");
}

#[tokio::test]
async fn an_answer_that_is_no_plan_is_refused() {
    let two = || vec![drafted("a", None, &[]), drafted("b", None, &[])];
    let at_most_one = Plan {
        max_plan_steps: Limit::AtMost(NonZeroU32::MIN),
        ..Plan::default()
    };
    for (plan, turn, reason) in [
        (
            Plan::default(),
            says("I would rather not"),
            "it is no JSON document",
        ),
        (Plan::default(), plans(&[]), "at \"/steps\""),
        (
            Plan::default(),
            adds(),
            "it calls tools instead of giving steps",
        ),
        (
            Plan::default(),
            plans(&[drafted("a", Some("ghost"), &[])]),
            "at \"/steps/0/tool\"",
        ),
        (
            at_most_one,
            plans(&two()),
            "it has 2 steps, but at most 1 are allowed",
        ),
    ] {
        let (options, model) = on_script(plan, vec![turn.clone(), turn]);
        let PlanError::Refused { reasons } = failure(options).await else {
            panic!("{reason}");
        };
        assert!(reasons[0].starts_with(reason), "{reasons:?}");
        assert!(model.prompts()[1].contains(reason));
        assert_eq!(model.n_seen(), 2);
    }
}

#[tokio::test]
async fn a_call_made_while_planning_is_not_run() {
    let log = Log::default();
    let call = ScriptTurn::call("noted", json!({}));
    let good = plans(&[drafted("a", None, &[])]);
    let (mut options, _) = on_script(Plan::default(), vec![call, good, says("done")]);
    options.tools = vec![noted("noted", 0, &log)];
    let result = generate(options).await;
    assert!(log.lines().is_empty());
    assert!(results(&result.state)[0].is_error);
    assert_eq!(result.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn the_scripted_model_makes_a_plan_of_its_own() {
    let mut options = options(Arc::new(Scripted::new()));
    options.execution = Arc::new(Plan::default());
    options.tools = vec![add()];
    let result = generate(options).await;
    let plan: &[PlanStep] = result.state.plan().unwrap();
    assert!(plan.iter().all(|step| step.status == PlanStatus::Completed));
    assert!(!result.turn.response.joined_text().is_empty());
}

#[tokio::test]
async fn planning_goes_on_after_a_crash_whatever_is_left_of_an_old_plan() {
    let planned = plans(&[drafted("new", None, &[])]);
    let (options, model) = on_script(Plan::default(), vec![planned]);
    let agent = agent(options);
    let keeper = Keeper::default();
    let context = keeper.context(&agent, &[]);
    let old = PlanStep {
        id: "old".to_owned(),
        description: "do old".to_owned(),
        tool: None,
        depends_on: Vec::new(),
        status: PlanStatus::Pending,
    };
    let committed = AgentState::initial().with_plan([old]).with_message("go");
    let asked_to = context
        .prompt(&committed.with_step(1), "plan", "Plan.")
        .await;
    let kept = asked_to.unwrap().with_step(0);
    let outcome = agent.run_step(kept, &context).await.unwrap();
    assert_eq!(statuses(&outcome.state), [("new", PlanStatus::Pending)]);
    assert_eq!(kinds(&outcome.state), ["user", "plan", "says"]);
    assert_eq!(model.n_seen(), 1);
}
