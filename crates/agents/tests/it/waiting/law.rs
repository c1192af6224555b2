//! What holds however answers come.

use super::*;
use proptest::prelude::*;

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
        let agent = with(&log, calls.clone());
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
