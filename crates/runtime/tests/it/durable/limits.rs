//! A run that may make only so many calls of tools.

use super::model::{Canned, call, calling, said};
use super::rig::{Client, approve, bring, messages, records};
use super::strategies::{Twice, options};
use super::tools::{World, all};
use crate::children::rig::{
    KEY, agent as agent_of, at_rest, calls as turn_of, fresh, message, tenant, text, tool,
};
use agents::{AgentOptions, ExecutionStrategy, Loop, Plan, PromptMark, React};
use futures_util::FutureExt;
use interop::model::history;
use interop::options::RunOptions;
use loomline_runtime as runtime;
use runtime::handoff;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Filter, Run};
use timeline::{OpenCall, OpenKind};
use upp::{Message, Request, ToolCall};

fn at_most(max_tool_calls: u64) -> Run {
    wanting(&RunOptions {
        max_tool_calls: Some(max_tool_calls),
        ..RunOptions::default()
    })
}

/// The calls that have a result, in order, and whether it says that they were too many.
async fn told(client: &Client) -> Vec<(String, bool)> {
    let messages = history(&client.transcript().await, None);
    let results = messages.iter().flat_map(|message| match message {
        Message::ToolResult(message) => message.results.as_slice(),
        Message::User(_) | Message::Assistant(_) => &[],
    });
    let too_many = |result: &upp::ToolResult| {
        result.is_error && result.result.to_string().contains("all the tool calls")
    };
    results
        .map(|result| (result.tool_call_id.to_string(), too_many(result)))
        .collect()
}

fn are(expected: &[(&str, bool)]) -> Vec<(String, bool)> {
    let expected = expected.iter();
    expected
        .map(|(call, is_beyond)| ((*call).to_owned(), *is_beyond))
        .collect()
}

#[tokio::test]
async fn calls_beyond_the_limit_are_answered_with_an_error_and_never_run() {
    let world = World::default();
    let rounds = vec![
        vec![call("a", "pure"), call("b", "effect")],
        vec![
            call("c", "pure"),
            call("d", "effect"),
            call("e", "approved"),
        ],
    ];
    let model = Canned::rounds(rounds);
    let agent = options(model, Arc::new(Loop::default()), all(&world));
    let mut client = Client::calm(agent);
    client.say_as("one", at_most(3)).await;
    assert!(client.open().await.is_empty(), "nobody is asked for them");
    let expected = [
        ("a", false),
        ("b", false),
        ("c", false),
        ("d", true),
        ("e", true),
    ];
    assert_eq!(told(&client).await, are(&expected));
    for (tool, call, n_runs) in [("effect", "b", 1), ("effect", "d", 0), ("approved", "e", 0)] {
        assert_eq!(world.n_runs(tool, call), n_runs, "{call}");
    }
    // Another message is another run.
    client.say_as("two", at_most(3)).await;
    client.rest().await;
    let told = told(&client).await;
    assert_eq!(told[5..], are(&expected));
}

#[tokio::test]
async fn a_model_that_has_no_calls_left_is_told_to_call_nothing() {
    let world = World::default();
    let choices = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&choices);
    let model = Canned::new(move |request: &Request| {
        seen.lock().unwrap().push(request.tool_choice.clone());
        match request.messages.len() {
            1 => calling(vec![call("a", "pure")]),
            _ => said("done"),
        }
    });
    let mut own = all(&world);
    own.retain(|tool| !tool.external);
    let agent = options(model, Arc::new(Loop::default()), own);
    let mut client = Client::calm(agent);
    client.say_as("one", at_most(1)).await;
    client.rest().await;
    let choices = choices.lock().unwrap().clone();
    assert_eq!(choices, [upp::ToolChoice::Auto, upp::ToolChoice::None]);
}

#[tokio::test]
async fn calls_that_are_executed_elsewhere_are_not_counted_and_wait_beyond_the_limit() {
    for restarts in [false, true] {
        let world = World::default();
        let rounds = vec![
            vec![call("a", "external"), call("b", "effect")],
            vec![call("c", "effect"), call("d", "external")],
        ];
        let agent = options(
            Canned::rounds(rounds),
            Arc::new(Loop::default()),
            all(&world),
        );
        let mut client = Client::calm(agent);
        client.say_as("one", at_most(1)).await;
        for call in ["a", "d"] {
            let open = client.open().await;
            let open: Vec<&str> = open.iter().map(|it| it.tool_call_id.as_str()).collect();
            assert_eq!(open, [call], "restarts: {restarts}");
            if restarts {
                client.restart().await;
            }
            client.answer(bring(call, &json!(1))).await;
        }
        client.rest().await;
        let expected = [("b", false), ("a", false), ("c", true), ("d", false)];
        assert_eq!(told(&client).await, are(&expected), "restarts: {restarts}");
        assert_eq!(world.n_runs("effect", "c"), 0);
    }
}

#[tokio::test]
async fn a_model_that_has_no_calls_left_is_offered_what_is_executed_elsewhere() {
    let world = World::default();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let offered = Arc::clone(&seen);
    let model = Canned::new(move |request: &Request| {
        let names: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        offered
            .lock()
            .unwrap()
            .push((names, request.tool_choice.clone()));
        match request.messages.len() {
            1 => calling(vec![call("a", "pure")]),
            _ => said("done"),
        }
    });
    let agent = options(model, Arc::new(Loop::default()), all(&world));
    let mut client = Client::calm(agent);
    client.say_as("one", at_most(1)).await;
    client.rest().await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen[0].0.len(), all(&world).len());
    let (names, choice) = &seen[1];
    assert_eq!(names, &["external"]);
    assert_eq!(choice, &upp::ToolChoice::Auto);
}

#[tokio::test]
async fn what_was_called_before_an_answer_counts_after_it_and_after_a_restart() {
    for restarts in [false, true] {
        let world = World::default();
        let mut after = call("b", "external");
        after.after = vec!["a".into()];
        let rounds = vec![
            vec![call("a", "approved"), after],
            vec![call("c", "pure"), call("d", "pure")],
        ];
        let agent = options(
            Canned::rounds(rounds),
            Arc::new(Loop::default()),
            all(&world),
        );
        let mut client = Client::calm(agent);
        client.say_as("one", at_most(2)).await;
        for answer in [approve("a"), bring("b", &json!(1))] {
            client.open().await;
            if restarts {
                client.restart().await;
            }
            client.answer(answer).await;
        }
        client.rest().await;
        let expected = [("a", false), ("b", false), ("c", false), ("d", true)];
        assert_eq!(told(&client).await, are(&expected), "restarts: {restarts}");
    }
}

#[tokio::test]
async fn a_call_beyond_the_limit_that_comes_after_one_that_waits_is_never_asked_for() {
    for restarts in [false, true] {
        let world = World::default();
        let mut after = call("b", "approved");
        after.after = vec!["a".into()];
        let rounds = vec![vec![call("a", "approved"), after]];
        let agent = options(
            Canned::rounds(rounds),
            Arc::new(Loop::default()),
            all(&world),
        );
        let mut client = Client::calm(agent);
        client.say_as("one", at_most(1)).await;
        client.open().await;
        if restarts {
            client.restart().await;
        }
        client.answer(approve("a")).await;
        assert!(client.open().await.is_empty());
        assert_eq!(told(&client).await, are(&[("a", false), ("b", true)]));
    }
}

#[tokio::test]
async fn a_run_that_is_handed_over_goes_on_counting() {
    let touch = || tool("touch", |_| async { Ok(json!("touched")) }.boxed());
    let other = agent_of(
        "other",
        // The first two turns are the lead's.
        vec![
            text("-"),
            text("-"),
            turn_of(&["touch", "touch"]),
            text("Done."),
        ],
        vec![touch()],
    );
    let transfer = handoff::tool("other", "Goes on.");
    let lead = agent_of(
        "lead",
        vec![turn_of(&["touch"]), turn_of(&["transfer_to_other"])],
        vec![touch(), transfer],
    );
    let runtime = fresh(vec![lead, other]);
    let mut request = message(&runtime, "go");
    request.run = at_most(3);
    runtime.react(request).await.unwrap();
    at_rest(&runtime, KEY).await;
    let transcript = runtime.transcript(&tenant(), KEY, Filter::Facts).await;
    let messages = history(&transcript.unwrap(), None);
    let results = messages.iter().flat_map(|message| match message {
        Message::ToolResult(message) => message.results.as_slice(),
        Message::User(_) | Message::Assistant(_) => &[],
    });
    let errors: Vec<bool> = results.map(|result| result.is_error).collect();
    assert_eq!(errors, [false, false, false, true]);
}

/// A run whose answers may have so many tokens together.
fn of_tokens(max: u64) -> Run {
    wanting(&RunOptions {
        max_run_output_tokens: Some(max),
        ..RunOptions::default()
    })
}

fn wanting(options: &RunOptions) -> Run {
    Run {
        params: Some(serde_json::to_value(options).unwrap()),
        ..Run::default()
    }
}

#[tokio::test]
async fn answers_share_the_tokens_of_their_run_which_ends_when_too_few_are_left() {
    for restarts in [false, true] {
        let world = World::default();
        let limits = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&limits);
        // Each answer has two tokens.
        let model = Canned::new(move |request: &Request| {
            let mut seen = seen.lock().unwrap();
            seen.push(request.params["max_tokens"].as_u64().unwrap());
            let tool = if seen.len() == 1 { "approved" } else { "pure" };
            calling(vec![call(&format!("c{}", seen.len()), tool)])
        });
        let agent = options(model, Arc::new(Loop::default()), all(&world));
        let mut client = Client::calm(agent);
        client.say_as("one", of_tokens(20)).await;
        client.open().await;
        if restarts {
            client.restart().await;
        }
        client.answer(approve("c1")).await;
        client.rest().await;
        assert_eq!(*limits.lock().unwrap(), [20, 18, 16], "{restarts}");
        // What was called has its result.
        let expected = [("c1", false), ("c2", false), ("c3", false)];
        assert_eq!(told(&client).await, are(&expected));
        // Another message is another run.
        client.say_as("two", of_tokens(17)).await;
        client.rest().await;
        assert_eq!(limits.lock().unwrap()[3..], [17]);
    }
}

#[tokio::test]
async fn a_run_that_brings_results_counts_anew_if_it_says_so() {
    for (begins_here, brings_own, expected) in [
        (false, true, [Some(20), Some(18)]),
        (true, true, [Some(20), Some(20)]),
        // Who has no wishes goes on with the run that has left the call, but for what that one wanted for itself.
        (false, false, [Some(20), Some(18)]),
        (true, false, [Some(20), None]),
    ] {
        for restarts in [false, true] {
            let world = World::default();
            let limits = Arc::new(std::sync::Mutex::new(Vec::new()));
            let seen = Arc::clone(&limits);
            let model = Canned::new(move |request: &Request| {
                let mut seen = seen.lock().unwrap();
                seen.push(request.params.get("max_tokens").and_then(Value::as_u64));
                match seen.len() {
                    1 => calling(vec![call("c", "external")]),
                    _ => said("done"),
                }
            });
            let agent = options(model, Arc::new(Loop::default()), all(&world));
            let mut client = Client::calm(agent);
            let run = wanting(&RunOptions {
                max_run_output_tokens: Some(20),
                tokens_begin_here: begins_here,
                ..RunOptions::default()
            });
            client.say_as("one", run.clone()).await;
            client.open().await;
            if restarts {
                client.restart().await;
            }
            let own = brings_own.then_some(run);
            client.answer_as(bring("c", &json!(1)), own).await;
            client.rest().await;
            let about = format!("{begins_here}, {brings_own}, {restarts}");
            assert_eq!(*limits.lock().unwrap(), expected, "{about}");
        }
    }
}

/// Calls two of these tools whenever it may, as each strategy asks.
fn eager(tools: [&'static str; 3]) -> Arc<Canned> {
    Canned::new(move |request: &Request| {
        let n = request.messages.len();
        let last = request
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::User(message) => Some(PromptMark::of(message).map(|mark| mark.kind)),
                Message::Assistant(_) | Message::ToolResult(_) => None,
            });
        let pair = || -> Vec<ToolCall> {
            let place = |at: usize| tools[(n + at) % tools.len()];
            (0..2)
                .map(|at| call(&format!("c{n}-{at}"), place(at)))
                .collect()
        };
        match last.flatten() {
            Some("reason" | "check") => said("I think"),
            Some("plan" | "replan") => {
                let step =
                    |id: &str| json!({"id": id, "description": id, "tool": null, "dependsOn": []});
                said(&json!({"steps": [step("one"), step("two")]}).to_string())
            }
            Some(_) | None if n < 12 && request.tool_choice != upp::ToolChoice::None => {
                calling(pair())
            }
            Some(_) | None => said("done"),
        }
    })
}

fn agent(n_strategy: usize, world: &World) -> AgentOptions {
    let strategies: [Arc<dyn ExecutionStrategy>; 4] = [
        Arc::new(Loop::default()),
        Arc::new(React::default()),
        Arc::new(Plan::default()),
        Arc::new(Twice),
    ];
    // A plan's step fails with its tools, so what a crash hides would change a plan.
    let tools = match n_strategy {
        2 => ["pure", "idempotent", "reconcilable"],
        _ => ["effect", "approved", "reconcilable"],
    };
    options(
        eager(tools),
        Arc::clone(&strategies[n_strategy]),
        all(world),
    )
}

async fn lived(client: &mut Client) {
    client.say_as("go", at_most(3)).await;
    loop {
        let open = client.open().await;
        let asks = |call: &&OpenCall| call.kind == OpenKind::Approval;
        let Some(call) = open.iter().find(asks) else {
            return;
        };
        client.answer(approve(&call.tool_call_id)).await;
    }
}

#[tokio::test]
async fn whichever_the_strategy_the_same_calls_run_wherever_the_process_dies() {
    for n_strategy in 0..4 {
        let world = World::default();
        let mut calm = Client::calm(agent(n_strategy, &world));
        lived(&mut calm).await;
        let expected = told(&calm).await;
        let n_ran = expected.iter().filter(|(_, is_beyond)| !is_beyond).count();
        assert_eq!(n_ran, 3, "strategy {n_strategy}: {expected:?}");
        assert!(expected.len() > 3, "strategy {n_strategy}");
        let known = calm.transcript().await;
        let calm_records: Vec<Value> = records(&known);
        for n in 0..calm.writes() {
            for keeps_last in [false, true] {
                let about = format!("strategy {n_strategy}, write {n}, {keeps_last}");
                let world = World::default();
                let mut client = Client::new(agent(n_strategy, &world), vec![(n, keeps_last)]);
                lived(&mut client).await;
                world.check(&about);
                let transcript = client.transcript().await;
                assert_eq!(messages(&transcript), messages(&known), "{about}");
                assert_eq!(records(&transcript), calm_records, "{about}");
                let found = told(&client).await;
                assert_eq!(found, expected, "{about}");
            }
        }
    }
}
