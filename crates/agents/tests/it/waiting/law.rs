//! What holds however answers come.

use super::*;
use crate::strategies::*;
use loomline_agents::{AgentOptions, ExecutionStrategy, Plan, React};
use proptest::prelude::*;
use serde_json::Value;
use upp::ScriptTurn;

/// What a model asks for at once, and in which order people answer.
fn rounds() -> impl Strategy<Value = (Vec<(usize, Option<usize>)>, Vec<usize>)> {
    let call = (0_usize..5, prop::option::weighted(0.3, 0_usize..8));
    prop::collection::vec(call, 1..8).prop_flat_map(|calls| {
        let order = prop::collection::vec(0_usize..100, calls.len());
        (Just(calls), order)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn however_answers_come_each_call_has_one_result_and_runs_at_most_once(
        (calls, order) in rounds()
    ) {
        const NAMES: [&str; 5] = ["gate", "lock", "free", "last", "far"];
        let log = Log::default();
        let calls: Vec<ToolCall> = calls.iter().enumerate().map(|(at, (tool, after))| {
            // Only backwards, so that there is no cycle; tools may still make one.
            let after = after.filter(|after| *after < at).map(|after| format!("c{after}"));
            let after: Vec<&str> = after.iter().map(String::as_str).collect();
            call(&format!("c{at}"), NAMES[*tool], &after)
        }).collect();
        let agent = calling(&log, calls.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let result = runtime.block_on(async {
            let mut result = start(&agent).await;
            let mut n_waits = 0;
            while !result.pending.is_empty() {
                n_waits += 1;
                assert!(n_waits <= calls.len(), "every answer settles a call");
                let pick = order[n_waits - 1] % result.pending.len();
                let id = result.pending[pick].call.tool_call_id.clone();
                let answers = match result.pending[pick].kind {
                    loomline_agents::PendingKind::External => Answers::new().result(id, "far"),
                    loomline_agents::PendingKind::Approval if order[n_waits - 1] % 3 == 0 => {
                        Answers::new().deny(id)
                    }
                    loomline_agents::PendingKind::Approval => Answers::new().approve(id),
                    loomline_agents::PendingKind::Subagent => panic!("all run in memory"),
                };
                let json = result.state.to_json().unwrap();
                let state = AgentState::from_json(&json).unwrap();
                result = agent.resume(answers, state).await.unwrap();
            }
            result
        });
        prop_assert_eq!(result.turn.response.joined_text(), "done");
        let mut ids = answered(&result.state);
        ids.sort();
        let mut expected: Vec<String> = calls.iter().map(|it| it.tool_call_id.to_string()).collect();
        expected.sort();
        prop_assert_eq!(ids, expected);
        let mut lines = log.lines();
        let n_lines = lines.len();
        lines.sort();
        lines.dedup();
        prop_assert_eq!(lines.len(), n_lines, "nothing starts or ends twice");
    }
}

/// What a model says in one of several ways, `gate` being the tool that may wait.
fn turn(kind: usize) -> ScriptTurn {
    let beside = |mut turn: ScriptTurn, others: &[&str]| {
        for name in others {
            let other = match *name {
                "add" => adds(),
                name => ScriptTurn::call(name, json!({})),
            };
            turn.tool_calls.extend(other.tool_calls);
        }
        turn
    };
    let gates = ScriptTurn::call("gate", json!({}));
    match kind {
        0 => says("so"),
        1 => adds(),
        2 => gates,
        3 => beside(adds(), &["gate"]),
        4 => beside(breaks(), &["gate"]),
        5 => ScriptTurn::call("ghost", json!({})),
        6 => beside(gates, &["gate", "add"]),
        7 => beside(gates, &["ghost"]),
        8 => plans(&[drafted("p", Some("gate"), &[]), drafted("q", None, &["p"])]),
        9 => beside(gates, &["after"]),
        _ => plans(&[
            drafted("x", None, &[]),
            drafted("y", Some("add"), &[]),
            drafted("z", Some("gate"), &["x"]),
        ]),
    }
}

fn strategy(kind: usize) -> Arc<dyn ExecutionStrategy> {
    match kind {
        0 => Arc::new(Loop::default()),
        1 => Arc::new(React::default()),
        2 => Arc::new(Plan::default()),
        3 => Arc::new(React {
            max_steps: Limit::AtMost(NonZeroU32::new(2).unwrap()),
            ..React::default()
        }),
        _ => Arc::new(Plan {
            allow_replan: false,
            ..Plan::default()
        }),
    }
}

fn playing(kind: usize, turns: &[usize], waits: bool) -> AgentOptions {
    let turns = turns.iter().map(|kind| turn(*kind)).collect();
    let (mut options, _) = on_script(Loop::default(), turns);
    options.execution = strategy(kind);
    let gate = quick("gate", |_| Ok(json!("opened")));
    options.tools.extend([
        if waits {
            gate.with_requires_approval()
        } else {
            gate
        },
        quick("after", |_| Ok(json!("came after"))).with_depends_on(["gate"]),
    ]);
    options
}

/// What is the same whether a run waited or not: a round that waits has its results in several
/// messages, in another order.
fn outcome(run: Result<GenerateResult, AgentError>) -> Result<Value, String> {
    let state = run.map_err(|error| error.to_string())?.state;
    let mut kinds = kinds(&state);
    kinds.dedup_by(|a, b| a == "results" && b == "results");
    let mut values: Vec<String> = results(&state)
        .iter()
        .map(|it| format!("{} {}", it.result, it.is_error))
        .collect();
    values.sort();
    let reasoning: Vec<&str> = state.reasoning().collect();
    Ok(json!([
        kinds,
        values,
        state.step(),
        reasoning,
        state.plan(),
        state.phase()
    ]))
}

/// Approves one pending call or all of them, each time the run waits.
async fn approving(agent: &Agent, picks: &[usize]) -> Result<GenerateResult, AgentError> {
    let mut result = agent.generate("go", AgentState::initial()).await?;
    let mut picks = picks.iter().cycle();
    while !result.pending.is_empty() {
        let pick = *picks.next().unwrap();
        let answers = if pick.is_multiple_of(2) {
            let one = &result.pending[pick % result.pending.len()];
            Answers::new().approve(one.call.tool_call_id.clone())
        } else {
            approve_all(&result)
        };
        let state = AgentState::from_json(&result.state.to_json().unwrap()).unwrap();
        assert_eq!(state, result.state);
        result = agent.resume(answers, state).await?;
    }
    Ok(result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_run_that_waits_ends_as_one_that_does_not_whatever_the_strategy(
        kind in 0_usize..5,
        plans in any::<bool>(),
        turns in prop::collection::vec(0_usize..11, 1..12),
        picks in prop::collection::vec(0_usize..100, 40),
    ) {
        let turns: Vec<usize> = plans.then_some(10).into_iter().chain(turns).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let plain = agent(playing(kind, &turns, false));
        let plain = runtime.block_on(plain.generate("go", AgentState::initial()));
        let waits = agent(playing(kind, &turns, true));
        let waited = runtime.block_on(approving(&waits, &picks));
        prop_assert_eq!(outcome(waited), outcome(plain));
    }
}
