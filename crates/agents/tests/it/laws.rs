//! Laws that hold for any calls.

use crate::support::*;
use loomline_agents::AgentState;
use proptest::prelude::*;
use upp::{ToolCall, ToolResult};

/// One call: which tool, how long it takes, whom it waits for, whether it was answered before.
#[derive(Clone, Debug)]
struct Case {
    tool: usize,
    after: Option<usize>,
    answered: bool,
}

fn cases() -> impl Strategy<Value = Vec<Case>> {
    let case = (
        0_usize..6,
        prop::option::weighted(0.3, 0_usize..12),
        prop::bool::weighted(0.3),
    );
    let case = case.prop_map(|(tool, after, answered)| Case {
        tool,
        after,
        answered,
    });
    prop::collection::vec(case, 1..12)
}

const NAMES: [&str; 6] = ["quick", "slow", "alone", "after_slow", "panics", "ghost"];

fn calls(cases: &[Case]) -> Vec<ToolCall> {
    let calls = cases.iter().enumerate().map(|(at, case)| {
        let after = case.after.map(|after| format!("c{after}"));
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        call(&format!("c{at}"), NAMES[case.tool], &after)
    });
    calls.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_calls_are_answered_once_each_in_call_order(cases in cases()) {
        let log = Log::default();
        let mut alone = noted("alone", 1, &log);
        alone.sequential = true;
        let mut after_slow = noted("after_slow", 2, &log);
        after_slow.depends_on = vec!["slow".to_owned()];
        let mut options = options(Canned::new(|_| None));
        options.tools = vec![
            noted("quick", 0, &log),
            noted("slow", 4, &log),
            alone,
            after_slow,
            quick("panics", |_| panic!("on purpose")),
        ];
        let agent = agent(options);
        let calls = calls(&cases);
        let state = AgentState::initial().with_message("go").with_message(asked(calls.clone()));
        let answered: Vec<ToolResult> = calls.iter().zip(&cases)
            .filter(|(_, case)| case.answered)
            .map(|(call, _)| result(call.tool_call_id.as_str(), "before"))
            .collect();

        let keeper = Keeper::default();
        let context = keeper.context(&agent, &answered);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(agent.run_step(state, &context)).unwrap();

        let answers = results(&outcome.state);
        let ids: Vec<&str> = answers.iter().map(|answer| answer.tool_call_id.as_str()).collect();
        let expected: Vec<&str> = calls.iter().map(|call| call.tool_call_id.as_str()).collect();
        prop_assert_eq!(ids, expected);
        for (answer, case) in answers.iter().zip(&cases) {
            prop_assert_eq!(answer.result == "before", case.answered);
        }
        let started = log.lines().iter().filter(|line| line.starts_with('+')).count();
        let mut distinct = log.lines();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), started * 2, "each starts and ends once");
        let n_returned = keeper.log.lines().iter().filter(|line| line.starts_with("returned")).count();
        prop_assert_eq!(n_returned, cases.iter().filter(|case| !case.answered).count());
    }
}
