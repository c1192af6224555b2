//! However an agent is run, the content is the same (UAP §11.4).

use crate::crashing::cycle_by_cycle;
use crate::strategies::*;
use crate::support::*;
use futures_util::StreamExt;
use loomline_agents::{AgentOptions, AgentState, ExecutionStrategy, Limit, Loop, Plan, React};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::ScriptTurn;

/// One answer of the model.
#[derive(Clone, Debug)]
enum Answer {
    Says,
    Adds,
    AddsTwice,
    Breaks,
    Ghost,
    Plans(Vec<(bool, Vec<usize>)>),
}

impl Answer {
    fn turn(&self) -> ScriptTurn {
        match self {
            Self::Says => says("so"),
            Self::Adds => adds(),
            Self::AddsTwice => {
                let mut turn = adds();
                turn.tool_calls.extend(breaks().tool_calls);
                turn
            }
            Self::Breaks => breaks(),
            Self::Ghost => ScriptTurn::call("ghost", json!({})),
            Self::Plans(steps) => {
                let steps = steps.iter().enumerate().map(|(at, (uses, needs))| {
                    let needs: Vec<String> = needs.iter().map(|at| format!("s{at}")).collect();
                    let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
                    drafted(&format!("s{at}"), uses.then_some("add"), &needs)
                });
                plans(&steps.collect::<Vec<_>>())
            }
        }
    }
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let step = (
        prop::bool::weighted(0.3),
        prop::collection::vec(0_usize..3, 0..2),
    );
    let answer = prop_oneof![
        3 => Just(Answer::Says),
        3 => Just(Answer::Adds),
        1 => Just(Answer::AddsTwice),
        1 => Just(Answer::Breaks),
        1 => Just(Answer::Ghost),
        1 => prop::collection::vec(step.clone(), 0..4).prop_map(Answer::Plans),
    ];
    // Most runs by plan shall have one, and some shall have to correct it.
    let plan = prop::collection::vec((step.0, Just(Vec::new())), 1..4).prop_map(Answer::Plans);
    let answers = (
        prop::bool::weighted(0.3),
        plan,
        prop::collection::vec(answer, 0..8),
    );
    answers.prop_map(|(corrects, plan, mut rest)| {
        rest.insert(0, plan);
        if corrects {
            rest.insert(0, Answer::Plans(Vec::new()));
        }
        rest
    })
}

/// The answers to two inputs.
fn two_runs() -> impl Strategy<Value = Vec<Answer>> {
    (answers(), answers()).prop_map(|(first, second)| [first, second].concat())
}

const N_STRATEGIES: usize = 5;

fn strategy(at: usize) -> Arc<dyn ExecutionStrategy> {
    match at {
        0 => Arc::new(Loop::default()),
        1 => Arc::new(React::default()),
        2 => Arc::new(Plan::default()),
        3 => Arc::new(React {
            max_steps: Limit::AtMost(NonZeroU32::MIN.saturating_add(1)),
            ..React::default()
        }),
        _ => Arc::new(Plan {
            allow_replan: false,
            ..Plan::default()
        }),
    }
}

fn agent_options(at: usize, answers: &[Answer]) -> AgentOptions {
    let turns = answers.iter().map(Answer::turn).collect();
    let (mut options, _) = on_script(Loop::default(), turns);
    options.execution = strategy(at);
    options
}

/// The content of the final state; of a failure, its text.
fn told<E: std::fmt::Display>(outcome: Result<AgentState, E>) -> Value {
    match outcome {
        Ok(state) => content(&state),
        Err(error) => json!(error.to_string()),
    }
}

fn block_on<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(run)
}

async fn streamed(options: AgentOptions) -> (Value, Value) {
    let mut stream = agent(options).stream("go", AgentState::initial());
    while stream.next().await.is_some() {}
    let outcome = stream.result().await;
    let turn = outcome
        .as_ref()
        .map_or(Value::Null, |result| content(&result.turn));
    (told(outcome.map(|result| result.state)), turn)
}

async fn generated(options: AgentOptions) -> (Value, Value) {
    let outcome = agent(options).generate("go", AgentState::initial()).await;
    let turn = outcome
        .as_ref()
        .map_or(Value::Null, |result| content(&result.turn));
    (told(outcome.map(|result| result.state)), turn)
}

/// The second run of an agent, in one piece and cycle by cycle. Where the first one fails, it is
/// that which is run again.
async fn two_ways(options: AgentOptions, crash: Option<usize>) -> (Value, Value) {
    let agent = agent(options);
    let start = AgentState::initial();
    let first = agent.generate("go", start.clone()).await;
    let (start, whole) = match first {
        Ok(first) => (first.state.clone(), agent.ask("on", first.state).await),
        Err(error) => (start, Err(error)),
    };
    let is_first = start.messages().is_empty();
    let input = if is_first { "go" } else { "on" };
    let stepped = cycle_by_cycle(&agent, start.with_message(input), crash).await;
    (told(whole.map(|result| result.state)), told(stepped))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn stream_and_generate_have_the_same_content(at in 0..N_STRATEGIES, answers in answers()) {
        let whole = block_on(generated(agent_options(at, &answers)));
        let seen = block_on(streamed(agent_options(at, &answers)));
        prop_assert_eq!(whole, seen);
    }

    #[test]
    fn cycles_one_by_one_make_the_run_that_generate_makes(
        at in 0..N_STRATEGIES,
        answers in two_runs(),
    ) {
        let (whole, stepped) = block_on(two_ways(agent_options(at, &answers), None));
        prop_assert_eq!(whole, stepped);
    }

    #[test]
    fn a_run_that_crashes_anywhere_makes_the_run_that_generate_makes(
        at in 0..N_STRATEGIES,
        answers in two_runs(),
        crash in 0_usize..16,
    ) {
        let (whole, resumed) = block_on(two_ways(agent_options(at, &answers), Some(crash)));
        prop_assert_eq!(whole, resumed);
    }

    #[test]
    fn a_conversation_is_always_one_that_a_model_takes(at in 0..N_STRATEGIES, answers in answers()) {
        let outcome = block_on(async {
            agent(agent_options(at, &answers)).generate("go", AgentState::initial()).await
        });
        if let Ok(result) = outcome {
            let kinds = kinds(&result.state);
            for (at, kind) in kinds.iter().enumerate() {
                let after = kinds.get(at + 1).map(String::as_str);
                prop_assert_eq!(kind == "calls", after == Some("results"), "{:?}", kinds);
            }
            prop_assert_eq!(result.state.phase(), None);
            prop_assert_eq!(result.turn.messages.len(), result.state.messages().len());
        }
    }
}
