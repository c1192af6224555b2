//! Saves beside the run (UAP §12.4.7).

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[tokio::test]
async fn fast_steps_are_each_saved_behind_a_slow_store() {
    let (store, checkpoints) = slow(0, |_| {});
    let mut turns = vec![ScriptTurn::call("add", serde_json::json!({"a": 1, "b": 2})); 8];
    turns.push(ScriptTurn::text("done"));
    let mut options = kept(scripted(turns), &checkpoints);
    options.tools = vec![add()];
    let result = generate(options).await;
    store.permits.add_permits(100);
    checkpoints.flush().await;
    assert_eq!(store.steps(), (1..=9).collect::<Vec<_>>());
    assert_eq!(store.last().1, result.state);
}

#[tokio::test]
async fn a_slow_store_does_not_hold_up_the_run() {
    let (store, checkpoints) = slow(0, |_| {});
    let result = generate(kept(adding(), &checkpoints)).await;
    assert_eq!(result.state.step(), 4);
    assert_eq!(
        store.steps(),
        [0_u64; 0],
        "nothing is saved yet, and the run is over"
    );
    store.permits.add_permits(100);
    checkpoints.flush().await;
    assert_eq!(store.last().1, result.state);
}

#[tokio::test]
async fn every_state_that_waits_behind_a_slow_save_is_saved_in_order() {
    let (store, checkpoints) = slow(0, |_| {});
    let state = AgentState::initial();
    checkpoints.save("s", state.with_step(1));
    while store.started.lines().is_empty() {
        tokio::task::yield_now().await;
    }
    for step in 2..=50 {
        checkpoints.save("s", state.with_step(step));
    }
    store.permits.add_permits(100);
    checkpoints.flush().await;
    assert_eq!(store.steps(), (1..=50).collect::<Vec<_>>());
}

#[tokio::test]
async fn sessions_do_not_wait_for_each_other() {
    let (store, checkpoints) = slow(0, |_| {});
    for session in ["a", "b"] {
        checkpoints.save(session, AgentState::initial());
    }
    while store.started.lines().len() < 2 {
        tokio::task::yield_now().await;
    }
    store.permits.add_permits(2);
    checkpoints.flush().await;
    assert_eq!(store.steps(), [0, 0]);
}

#[tokio::test]
async fn agents_that_share_the_queue_save_one_session_in_order() {
    let (store, checkpoints) = slow(0, |_| {});
    let given = |text: &str| {
        let mut options = kept(scripted(vec![ScriptTurn::text(text)]), &checkpoints);
        options.session_id = Some("shared".to_owned());
        agent(options)
    };
    let first = given("one").ask("go", AgentState::initial()).await.unwrap();
    let second = given("two").ask("go on", first.state).await.unwrap();
    store.permits.add_permits(100);
    checkpoints.flush().await;
    assert_eq!(store.last(), ("shared".to_owned(), second.state));
}

#[tokio::test]
async fn what_waits_is_saved_though_run_agent_and_queue_are_dropped() {
    let (store, checkpoints) = slow(0, |_| {});
    let state = generate(kept(adding(), &checkpoints)).await.state;
    drop(checkpoints);
    store.permits.add_permits(100);
    while store.saves.lock().unwrap().last().map(|(_, saved)| saved) != Some(&state) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_failing_store_fails_no_run() {
    for change in [
        (|store: &mut Slow| store.fails = true) as fn(&mut Slow),
        |store| store.panics = true,
    ] {
        let (store, checkpoints) = slow(100, change);
        let result = generate(kept(adding(), &checkpoints)).await;
        checkpoints.flush().await;
        assert_eq!(result.turn.response.joined_text(), "done");
        assert!(!store.started.lines().is_empty() && store.steps().is_empty());
        checkpoints.save("s", AgentState::initial());
        checkpoints.flush().await;
        assert_eq!(
            store.started.lines().last().unwrap(),
            "s",
            "it goes on trying"
        );
    }
}

#[test]
fn a_queue_outlives_the_runtime_it_was_used_in() {
    let (store, checkpoints) = slow(0, |_| {});
    let run = |work: &dyn Fn(&tokio::runtime::Runtime)| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        work(&runtime);
    };
    run(&|runtime| {
        runtime.block_on(async {
            checkpoints.save("s", AgentState::initial().with_step(1));
            tokio::task::yield_now().await;
        });
    });
    store.permits.add_permits(100);
    run(&|runtime| {
        runtime.block_on(async {
            checkpoints.save("s", AgentState::initial().with_step(2));
            checkpoints.flush().await;
        });
    });
    assert_eq!(store.steps(), [2]);
}

#[test]
fn without_a_tokio_runtime_a_run_goes_on_unsaved() {
    let (store, checkpoints) = slow(100, |_| {});
    let agent = agent(kept(scripted(vec![ScriptTurn::text("hi")]), &checkpoints));
    let result = agent.ask("go", AgentState::initial()).now_or_never();
    assert_eq!(result.unwrap().unwrap().state.step(), 1);
    assert!(store.started.lines().is_empty());
}

#[tokio::test]
async fn a_failed_save_is_logged_as_an_error_with_session_step_and_cause() {
    let (log, _guard) = traced();
    let (_store, checkpoints) = slow(100, |store| store.fails = true);
    checkpoints.save("my-session", AgentState::initial().with_step(3));
    checkpoints.flush().await;
    let line = log.lines().concat();
    for part in [
        "ERROR",
        "not saved",
        "my-session",
        "step=3",
        "the disk is full",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_is_saved_when_each_session_has_all_its_states_in_order(saves in prop::collection::vec((0_usize..3, any::<bool>()), 1..200)) {
        let (store, checkpoints) = slow(10_000, |_| {});
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let mut given = BTreeMap::<String, Vec<u64>>::new();
        runtime.block_on(async {
            for (step, (session, lets_others_go)) in (1..).zip(&saves) {
                let session = ["a", "b", "c"][*session];
                given.entry(session.to_owned()).or_default().push(step);
                checkpoints.save(session, AgentState::initial().with_step(step));
                if *lets_others_go {
                    checkpoints.flush().await;
                }
            }
            checkpoints.flush().await;
        });
        let mut saved = BTreeMap::<String, Vec<u64>>::new();
        for (session, state) in store.saves.lock().unwrap().iter() {
            saved.entry(session.clone()).or_default().push(state.step());
        }
        prop_assert_eq!(saved, given);
    }
}
