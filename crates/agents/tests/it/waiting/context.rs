//! Middleware that changes the conversation of a run that waits.

use super::*;
use crate::strategies::*;
use loomline_agents::middleware::{PruneToolOutputs, SlidingWindow, Summarise};
use loomline_agents::{AgentOptions, Plan, PlanStatus, React};
use std::num::NonZeroUsize;
use upp::AssistantMessage;

fn gated(answers: Vec<AssistantMessage>) -> AgentOptions {
    let mut options = options(queued(answers));
    options.tools = vec![add(), gate()];
    options
}

/// A summary of all but the last cycle, and a window of it.
fn shorteners() -> [Arc<dyn Middleware>; 2] {
    let summariser = Canned::new(|_| Some(said("in short")));
    let mut summarise = Summarise::with_model(summariser);
    summarise.threshold = 1;
    summarise.keep_recent = 1;
    let window = SlidingWindow::new(NonZeroUsize::new(2).unwrap());
    [Arc::new(summarise), Arc::new(window)]
}

async fn resumed(options: AgentOptions) -> Result<GenerateResult, AgentError> {
    let agent = agent(options);
    let waiting = start(&agent).await;
    assert_eq!(waiting.pending.len(), 1);
    let answers = approve_all(&waiting);
    let state = AgentState::from_json(&waiting.state.to_json().unwrap()).unwrap();
    agent.resume(answers, state).await
}

#[tokio::test]
async fn a_plan_goes_on_where_it_stood_when_its_past_is_shortened() {
    for (layer, tool) in shorteners().into_iter().zip([None, Some("add")]) {
        for layer in [None, Some(layer)] {
            let mut options = gated(vec![
                planned(&[drafted("a", tool, &[]), drafted("b", None, &["a"])]),
                asked(vec![sum("1")]),
                asked(vec![sum("2")]),
                asked(vec![call("3", "gate", &[])]),
                said("a is done"),
                said("b is done"),
            ]);
            options.execution = Arc::new(Plan::default());
            options.middleware = layer.into_iter().collect();
            let done = resumed(options).await.unwrap();
            let all = [("a", PlanStatus::Completed), ("b", PlanStatus::Completed)];
            assert_eq!(statuses(&done.state), all);
            assert_eq!(done.turn.response.joined_text(), "b is done");
        }
    }
}

#[tokio::test]
async fn a_tool_that_a_plan_step_names_counts_when_its_round_was_cut_away() {
    for layer in shorteners() {
        let mut options = gated(vec![
            planned(&[drafted("a", Some("add"), &[])]),
            asked(vec![sum("1")]),
            asked(vec![call("2", "gate", &[])]),
            said("a is done"),
        ]);
        options.execution = Arc::new(Plan::default());
        options.middleware = vec![layer];
        let done = resumed(options).await.unwrap();
        assert!(
            !kinds(&done.state).contains(&"plan".to_owned()),
            "it was cut"
        );
        assert_eq!(statuses(&done.state), [("a", PlanStatus::Completed)]);
    }
}

#[tokio::test]
async fn rounds_that_were_cut_away_count_against_the_limit() {
    for layer in shorteners() {
        for (limit, is_enough) in [(3, false), (4, true)] {
            let mut options = gated(vec![
                asked(vec![sum("1")]),
                asked(vec![call("2", "gate", &[])]),
                asked(vec![call("3", "gate", &[])]),
                asked(vec![sum("4")]),
                said("end"),
            ]);
            options.tool_strategy.max_iterations = Some(limit);
            options.middleware = vec![layer.clone()];
            let agent = agent(options);
            let mut run = Ok(start(&agent).await);
            for _ in 0..2 {
                let waiting = run.unwrap();
                assert_eq!(waiting.pending.len(), 1);
                run = agent.resume(approve_all(&waiting), waiting.state).await;
            }
            match run {
                Ok(done) => assert!(is_enough && done.pending.is_empty(), "{limit}"),
                Err(AgentError::MaxIterations { .. }) => assert!(!is_enough, "{limit}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn the_question_stays_when_the_past_of_a_run_is_shortened() {
    for layer in shorteners() {
        let answers = vec![
            said("hm"),
            asked(vec![sum("1")]),
            said("hm"),
            asked(vec![call("2", "gate", &[])]),
            said("hm"),
            said("done"),
        ];
        let mut options = gated(answers);
        options.execution = Arc::new(React::default());
        options.middleware = vec![layer];
        let done = resumed(options).await.unwrap();
        let is_go = |message: &Message| json!(message)["content"][0]["text"] == json!("go");
        assert!(done.state.messages().iter().any(is_go));
        let end = ["act", "calls", "results", "reason", "says", "act", "says"];
        let kinds = kinds(&done.state);
        assert!(kinds.ends_with(&end.map(str::to_owned)), "{kinds:?}");
        assert_eq!(done.state.step(), 3);
    }
}

/// Writes down the input.
struct See(Log);

impl Middleware for See {
    fn name(&self) -> &'static str {
        "see"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        self.0.add(context.input.id().as_str());
        ready(Ok(())).boxed()
    }
}

#[tokio::test]
async fn middleware_sees_the_users_own_message_again_and_no_prompt() {
    let log = Log::default();
    let mut options = gated(vec![
        said("hm"),
        asked(vec![call("1", "gate", &[])]),
        said("hm"),
        said("done"),
    ]);
    options.execution = Arc::new(React::default());
    options.middleware = vec![Arc::new(See(log.clone()))];
    resumed(options).await.unwrap();
    let lines = log.lines();
    assert_eq!((lines.len(), &lines[0]), (2, &lines[1]));
}

#[tokio::test]
async fn answers_that_do_not_fit_are_refused_before_any_middleware() {
    let log = Log::default();
    let calls = vec![asked(vec![call("1", "gate", &[])])];
    let (mut options, hooks) = with(gated(calls), Keeping::default());
    options.middleware = vec![Arc::new(See(log.clone()))];
    let agent = agent(options);
    let waiting = start(&agent).await;
    let refused = agent
        .resume(Answers::new().approve("nobody"), waiting.state)
        .await;
    assert!(matches!(refused, Err(AgentError::Answers(_))));
    assert_eq!(log.lines().len(), 1);
    let last = hooks.log.lines().pop().unwrap();
    assert!(last.starts_with("error at"), "the hook hears of it: {last}");
}

#[tokio::test]
async fn results_that_the_model_waits_for_are_not_pruned() {
    let calls = vec![call("g", "gate", &[]), call("f", "long", &[])];
    let mut options = gated(vec![asked(calls), said("done")]);
    options
        .tools
        .push(quick("long", |_| Ok(json!("x".repeat(4000)))));
    options.middleware = vec![Arc::new(PruneToolOutputs {
        usable: 500,
        protect_recent: 100,
        ..PruneToolOutputs::default()
    })];
    let done = resumed(options).await.unwrap();
    assert_eq!(results(&done.state)[0], result("f", "x".repeat(4000)));
}
