use super::super::{carry, words};
use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::num::NonZeroU32;

fn check(
    answer: &Value,
    completed: &[PlanStep],
    limit: Limit,
) -> Result<Vec<PlanStep>, Vec<String>> {
    let validator = Validator::new(&json!({"type": "object"})).unwrap();
    let frame = Frame {
        validator: &validator,
        completed,
        limit,
        tools: &BTreeSet::from(["add"]),
    };
    frame.check(answer)
}

fn refusal(steps: &Value) -> String {
    let answer = json!({"steps": steps});
    check(&answer, &[], Limit::Unbounded)
        .unwrap_err()
        .join("; ")
}

fn step(id: &str, depends_on: &[&str]) -> Value {
    json!({"id": id, "description": "d", "dependsOn": depends_on})
}

#[test]
fn what_is_wrong_with_a_plan_is_told() {
    assert_eq!(refusal(&json!([])), "it has no steps");
    assert_eq!(
        refusal(&json!([step("a", &[]), step("a", &[])])),
        "the id 'a' is used twice"
    );
    assert_eq!(
        refusal(&json!([step("a", &["b"])])),
        "step 'a' depends on 'b', which is no step of the plan"
    );
    assert_eq!(
        refusal(&json!([
            step("a", &["b"]),
            step("b", &["a"]),
            step("c", &[])
        ])),
        "the steps 'a', 'b' wait for each other"
    );
    assert_eq!(
        refusal(&json!([step("a", &["a"])])),
        "the steps 'a' wait for each other"
    );
    let ghost = json!([{"id": "a", "description": "d", "tool": "ghost"}]);
    assert_eq!(refusal(&ghost), "step 'a' uses 'ghost', which is no tool");
    assert_eq!(
        refusal(&json!([{"id": "a"}])),
        "at \"/steps/0\": missing field `description`"
    );
    assert_eq!(
        check(&json!({}), &[], Limit::Unbounded).unwrap_err(),
        ["it has no list `steps`"]
    );
}

#[test]
fn a_plan_longer_than_the_limit_is_refused_not_cut() {
    let answer = json!({"steps": [step("a", &[]), step("b", &["a"]), step("c", &["b"])]});
    let at_most = |n| Limit::AtMost(NonZeroU32::new(n).unwrap());
    assert_eq!(
        check(&answer, &[], at_most(2)).unwrap_err(),
        ["it has 3 steps, but at most 2 are allowed"]
    );
    assert_eq!(check(&answer, &[], at_most(3)).unwrap().len(), 3);
}

#[test]
fn new_steps_may_depend_on_completed_ones_but_not_take_their_ids() {
    let done = check(&json!({"steps": [step("a", &[])]}), &[], Limit::Unbounded).unwrap();
    let after = json!({"steps": [step("b", &["a"])]});
    assert_eq!(
        check(&after, &done, Limit::Unbounded).unwrap()[0].depends_on,
        ["a"]
    );
    let again = json!({"steps": [step("a", &[])]});
    assert_eq!(
        check(&again, &done, Limit::Unbounded).unwrap_err(),
        ["the id 'a' is used twice"]
    );
}

#[test]
fn a_breach_of_the_schema_is_told_with_its_place() {
    let schema = words::schema(&[]);
    let validator = Validator::new(&schema).unwrap();
    let frame = Frame {
        validator: &validator,
        completed: &[],
        limit: Limit::Unbounded,
        tools: &BTreeSet::new(),
    };
    let answer = json!({"steps": [{"id": 1, "description": "d", "tool": null, "dependsOn": []}]});
    let reasons = frame.check(&answer).unwrap_err();
    assert!(reasons[0].starts_with("at \"/steps/0/id\":"), "{reasons:?}");
    assert!(frame.check(&json!({"steps": []})).is_err());
}

#[test]
fn only_so_many_reasons_are_told() {
    let steps: Vec<Value> = (0..50).map(|_| step("a", &["?"])).collect();
    let reasons = check(&json!({"steps": steps}), &[], Limit::Unbounded).unwrap_err();
    assert_eq!(reasons.len(), N_REASONS);
}

proptest! {
    #[test]
    fn a_plan_is_refused_or_can_be_executed_to_its_end(
        needs in prop::collection::vec(prop::collection::vec(0_usize..8, 0..3), 1..8),
    ) {
        let ids: Vec<String> = (0..needs.len()).map(|at| format!("s{at}")).collect();
        let steps: Vec<Value> = needs.iter().zip(&ids).map(|(needs, id)| {
            let needs: Vec<String> = needs.iter().map(|at| format!("s{at}")).collect();
            json!({"id": id, "description": "d", "dependsOn": needs})
        }).collect();
        let Ok(mut plan) = check(&json!({"steps": steps}), &[], Limit::Unbounded) else {
            return Ok(());
        };
        let mut order = Vec::new();
        while let Some(step) = carry::next_ready(&plan) {
            let at = plan.iter().position(|other| other.id == step.id).unwrap();
            for need in &plan[at].depends_on {
                prop_assert!(order.contains(need), "{need} comes before {}", plan[at].id);
            }
            order.push(plan[at].id.clone());
            plan[at].status = PlanStatus::Completed;
        }
        prop_assert_eq!(order.len(), plan.len());
    }
}
