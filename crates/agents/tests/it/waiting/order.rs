//! Which calls wait, and for whom (UAP §8.5, §8.6).

use super::*;

#[tokio::test]
async fn what_comes_after_a_waiting_call_waits_too() {
    let log = Log::default();
    let calls = vec![
        call("g", "gate", &[]),
        call("by_tool", "last", &[]),
        call("by_model", "free", &["g"]),
        call("now", "free", &[]),
    ];
    let agent = calling(&log, calls);
    let waiting = start(&agent).await;
    assert_eq!(log.lines(), ["+now", "-now"]);
    assert_eq!(ids(&waiting), ["g"], "nobody is asked about the others");
    let done = agent
        .resume(Answers::new().approve("g"), waiting.state)
        .await
        .unwrap();
    assert_eq!(log.lines()[2..4], ["+g", "-g"]);
    assert_eq!(answered(&done.state), ["now", "g", "by_tool", "by_model"]);
}

#[tokio::test]
async fn a_denial_ends_a_call_and_frees_those_behind_it() {
    let log = Log::default();
    let agent = calling(&log, vec![call("g", "gate", &[]), call("l", "last", &[])]);
    let waiting = start(&agent).await;
    agent
        .resume(Answers::new().deny("g"), waiting.state)
        .await
        .unwrap();
    assert_eq!(log.lines(), ["+l", "-l"]);
}

#[tokio::test]
async fn a_sequential_call_that_waits_holds_all_later_ones_back() {
    let log = Log::default();
    let calls = vec![
        call("1", "lock", &[]),
        call("2", "free", &[]),
        call("3", "lock", &[]),
    ];
    let agent = calling(&log, calls);
    let first = start(&agent).await;
    assert!(log.lines().is_empty());
    assert_eq!((ids(&first), results(&first.state).len()), (vec!["1"], 0));
    let second = agent
        .resume(Answers::new().approve("1"), first.state)
        .await
        .unwrap();
    assert_eq!(ids(&second), ["3"]);
    let done = agent
        .resume(Answers::new().approve("3"), second.state)
        .await
        .unwrap();
    assert_eq!(log.lines(), ["+1", "-1", "+3", "-3", "+2", "-2"]);
    assert_eq!(done.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn an_answer_that_cant_be_used_yet_is_refused_not_lost() {
    let log = Log::default();
    let agent = calling(
        &log,
        vec![call("1", "gate", &[]), call("2", "gate", &["1"])],
    );
    let waiting = start(&agent).await;
    assert_eq!(ids(&waiting), ["1"]);
    let early = agent
        .resume(Answers::new().approve("2"), waiting.state.clone())
        .await;
    assert!(
        matches!(early, Err(AgentError::Answers(AnswerError::Early { call })) if call.as_str() == "2")
    );
    let both = Answers::new().approve("2").approve("1");
    let done = agent.resume(both, waiting.state).await.unwrap();
    assert!(done.pending.is_empty());
    assert_eq!(log.lines(), ["+1", "-1", "+2", "-2"]);
}

#[tokio::test]
async fn calls_that_cant_be_ordered_wait_for_nobody() {
    let log = Log::default();
    let agent = calling(
        &log,
        vec![call("1", "gate", &["2"]), call("2", "gate", &["1"])],
    );
    let result = start(&agent).await;
    assert!(result.pending.is_empty());
    assert!(results(&result.state).iter().all(|it| it.is_error));
}

#[test]
fn open_calls_are_those_without_results_in_the_messages_after() {
    let state = AgentState::initial().with_message("go");
    let open = |state: &AgentState| -> Vec<String> {
        let calls = state.open_calls();
        calls.iter().map(|it| it.tool_call_id.to_string()).collect()
    };
    assert!(open(&state).is_empty());
    let calls = ["1", "2", "1", "3"]
        .map(|id| call(id, "free", &[]))
        .to_vec();
    let state = state.with_message(asked(calls));
    assert_eq!(open(&state), ["1", "2", "1", "3"]);
    let results = |ids: &[&str]| {
        let results = ids.iter().map(|id| result(id, 1)).collect();
        upp::ToolResultMessage::new(results, upp::MessageOptions::default())
    };
    let state = state.with_message(results(&["3", "1"]));
    assert_eq!(
        open(&state),
        ["2", "1"],
        "a repeated id needs a result each"
    );
    let state = state.with_message(results(&["2", "elsewhere"]));
    assert_eq!(open(&state), ["1"]);
    assert!(open(&state.with_message("new")).is_empty());
    assert!(open(&state.with_message(results(&["1"]))).is_empty());
}
