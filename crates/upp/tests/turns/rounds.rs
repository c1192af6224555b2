//! Rounds of tools, and the turn that comes of them.

use crate::support::{Listed, answer, none, options, tool};
use futures_util::{FutureExt, StreamExt};
use loomline_upp::{
    Arguments, BeforeCall, Capabilities, Code, Llm, Message, StopReason, ToolFailure,
    ToolUseStrategy, TurnEvent,
};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn data_counts_only_when_a_structure_was_given() {
    let sniffed = || {
        let mut response = answer("42", &[("c", "t")]);
        response.data = Some(json!(42));
        response
    };
    let model = Listed::new(Capabilities::ALL, [sniffed(), answer("done", &[])]);
    let mut with_tool = options(&model);
    with_tool.tools = vec![tool("t", async |_| Ok(json!("ran")))];
    let turn = Llm::new(with_tool.clone()).unwrap();
    let turn = turn.generate(none(), ["hi"]).await.unwrap();
    assert_eq!((turn.cycles, turn.tool_executions.len()), (2, 1));
    assert_eq!(turn.data, None);
    // With one, the answer is there, whatever tool the model names beside it.
    let model = Listed::new(Capabilities::ALL, [sniffed()]);
    with_tool.model = model;
    with_tool.structure = Some(json!({"type": "object"}));
    let turn = Llm::new(with_tool).unwrap();
    let turn = turn.generate(none(), ["hi"]).await.unwrap();
    assert_eq!((turn.cycles, turn.data), (1, Some(json!(42))));
}

#[tokio::test]
async fn a_turn_sums_the_usage_of_its_cycles_and_tells_why_it_stopped() {
    let mut last = answer("cut", &[]);
    last.stop_reason = StopReason::MaxTokens;
    let model = Listed::new(Capabilities::ALL, [answer("", &[("c", "t")]), last]);
    let mut options = options(&model);
    options.tools = vec![tool("t", async |_| Ok(Value::Null))];
    let llm = Llm::new(options).unwrap();
    let turn = llm.generate(none(), ["hi"]).await.unwrap();
    assert_eq!(turn.stop_reason, StopReason::MaxTokens);
    let usage = &turn.usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.total_tokens),
        (2, 4, 6)
    );
    assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (6, 8));
    assert_eq!(usage.cycles.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_message_holds_all_results_in_call_order_and_executions_are_in_completion_order() {
    let calls = [("a", "slow"), ("b", "fast"), ("c", "ghost")];
    let model = Listed::new(Capabilities::ALL, [answer("", &calls), answer("done", &[])]);
    let mut options = options(&model);
    options.tools = vec![
        tool("slow", async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(json!("slow"))
        }),
        tool("fast", async |_| Ok(json!("fast"))),
    ];
    let llm = Llm::new(options).unwrap();
    let turn = llm.generate(none(), ["hi"]).await.unwrap();
    let results = turn.messages[2].as_tool_result().unwrap();
    let ids: Vec<&str> = results
        .results
        .iter()
        .map(|it| it.tool_call_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(results.results[2].result, json!("Tool 'ghost' not found"));
    assert!(results.results[2].is_error);
    let ids: Vec<&str> = turn
        .tool_executions
        .iter()
        .map(|it| it.tool_call_id.as_str())
        .collect();
    assert_eq!(ids.last(), Some(&"a"));
    assert_eq!(ids.len(), 3);
    // Without an approval handler nothing is said of approval.
    assert!(turn.tool_executions.iter().all(|it| it.approved.is_none()));
    // The model sees the results before it goes on.
    let seen: Vec<String> = model
        .request(1)
        .messages
        .iter()
        .map(Message::joined_text)
        .collect();
    assert_eq!(
        seen.last().unwrap(),
        "slow\n\nfast\n\nTool 'ghost' not found"
    );
}

#[tokio::test]
async fn the_events_of_each_cycle_come_in_order_and_the_turn_last() {
    let model = Listed::new(
        Capabilities::ALL,
        [answer("", &[("c", "t")]), answer("done", &[])],
    );
    let mut options = options(&model);
    options.tools = vec![tool("t", async |_| Ok(Value::Null))];
    let llm = Llm::new(options).unwrap();
    let items: Vec<TurnEvent> = llm
        .stream(none(), ["hi"])
        .map(Result::unwrap)
        .collect()
        .await;
    let types: Vec<Value> = items
        .iter()
        .filter_map(|item| match item {
            TurnEvent::Event(event) => Some(serde_json::to_value(event.event_type()).unwrap()),
            TurnEvent::Done(_) => None,
        })
        .collect();
    assert_eq!(
        types,
        [
            "message_start",
            "message_stop",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_stop"
        ]
    );
    assert!(matches!(items.last(), Some(TurnEvent::Done(_))));
}

#[tokio::test]
async fn a_failing_approval_ends_the_generation() {
    let model = Listed::new(Capabilities::ALL, [answer("", &[("c", "t")])]);
    let mut options = options(&model);
    let never = tool("t", async |_| panic!("it ran"));
    options.tools =
        vec![never.with_approval(|_| async { Err(ToolFailure::new("nobody answers")) }.boxed())];
    let error = Llm::new(options).unwrap().generate(none(), ["hi"]).await;
    let error = error.unwrap_err();
    let cause = error.cause.as_ref().unwrap();
    assert_eq!(cause.source().unwrap().to_string(), "nobody answers");
}

#[tokio::test]
async fn a_denied_call_is_told_to_the_model_and_recorded() {
    let model = Listed::new(
        Capabilities::ALL,
        [answer("", &[("c", "t")]), answer("fine", &[])],
    );
    let mut options = options(&model);
    let never = tool("t", async |_| panic!("it ran"));
    options.tools = vec![never.with_approval(|_| async { Ok(false) }.boxed())];
    let turn = Llm::new(options)
        .unwrap()
        .generate(none(), ["hi"])
        .await
        .unwrap();
    assert_eq!(turn.tool_executions[0].approved, Some(false));
    assert!(turn.tool_executions[0].is_error);
    assert_eq!(turn.cycles, 2);
}

#[test]
fn a_before_hook_that_says_nothing_lets_the_call_proceed() {
    assert_eq!(BeforeCall::default(), BeforeCall::Proceed);
}

#[tokio::test]
async fn the_model_is_asked_again_after_each_round_up_to_the_limit() {
    for (limit, outcome) in [(2, Ok(3)), (1, Err(Code::InvalidRequest)), (0, Ok(1))] {
        let round = || answer("", &[("c", "t")]);
        let model = Listed::new(Capabilities::ALL, [round(), round(), answer("done", &[])]);
        let mut options = options(&model);
        options.tools = vec![tool("t", async |_| Ok(Value::Null))];
        options.tool_strategy = ToolUseStrategy::default().with_max_iterations(Some(limit));
        let turn = Llm::new(options).unwrap().generate(none(), ["hi"]).await;
        let found = turn.map(|turn| {
            assert_eq!(turn.has_tool_calls(), limit == 0);
            turn.cycles
        });
        assert_eq!(found.map_err(|error| error.code), outcome, "{limit}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_told_to_the_model_and_not_run() {
    let mut cut = answer("", &[("c", "t")]);
    cut.message.tool_calls[0].arguments = Arguments::from_text("{\"path\": \"/tm");
    cut.stop_reason = StopReason::MaxTokens;
    let model = Listed::new(Capabilities::ALL, [cut, answer("fine", &[])]);
    let mut options = options(&model);
    options.tools = vec![tool("t", async |_| panic!("it ran"))];
    let llm = Llm::new(options).unwrap();
    let turn = llm.generate(none(), ["hi"]).await.unwrap();
    let [execution] = turn.tool_executions.as_slice() else {
        panic!("one execution")
    };
    assert!(execution.is_error);
    assert_eq!(
        execution.result,
        "Tool 't' was not run: the arguments are cut off before the end of their JSON. \
         Call it again with less in them."
    );
    assert_eq!(execution.arguments, "{\"path\": \"/tm");
    assert_eq!(turn.cycles, 2);
}
