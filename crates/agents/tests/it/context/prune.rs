//! Clearing old tool outputs.

use super::*;

#[test]
fn results_that_the_model_has_not_read_are_not_cleared() {
    for kinds in ["ucrcr", "ucrchg", "ucrch"] {
        let state = history(kinds);
        let pruned = now(&prune(10, 0), state.clone());
        let is_cleared = |at: usize| list(&pruned)[at] != list(&state)[at];
        assert!(is_cleared(2), "{kinds}: what was read");
        assert!(!(3..kinds.len()).any(is_cleared), "{kinds}: what was not");
    }
}

#[test]
fn pruning_clears_old_outputs_and_keeps_the_id_of_every_result() {
    let state = history("ucrcra");
    let pruned = now(&prune(50, 20), state.clone());
    assert_eq!(ids(&pruned), ids(&state));
    let values: Vec<Value> = results(&pruned)
        .into_iter()
        .map(|result| result.result.into())
        .collect();
    assert_eq!(values[..2], [json!("[gone]"), json!("[gone]")]);
    assert!(
        values[2].as_str().unwrap().starts_with("output"),
        "the recent ones stay"
    );
    let call_ids: Vec<_> = results(&pruned)
        .into_iter()
        .map(|result| result.tool_call_id)
        .collect();
    let before: Vec<_> = results(&state)
        .into_iter()
        .map(|result| result.tool_call_id)
        .collect();
    assert_eq!(call_ids, before);
    assert!(is_sound(&list(&pruned)));
}

#[test]
fn pruning_changes_nothing_below_the_limit_or_where_nothing_is_long() {
    let state = history("ucrcra");
    assert_eq!(now(&prune(60, 0), state.clone()), state);
    let short = PruneToolOutputs {
        placeholder: "long ".repeat(100),
        ..prune(0, 0)
    };
    assert_eq!(now(&short, state.clone()), state);
}

#[test]
fn pruning_twice_changes_nothing_more() {
    let once = now(&prune(0, 10), history("ucrcrcr"));
    assert_eq!(now(&prune(0, 10), once.clone()), once);
}

#[test]
fn tokens_are_a_quarter_of_the_json_unless_another_estimate_is_given() {
    let message = Message::from("x".repeat(4000));
    let n = serde_json::to_string(&message).unwrap().len() / 4;
    assert_eq!(Estimate::default().of(&message), u64::try_from(n).unwrap());
    assert_eq!(tens().of(&message), 10);
}
