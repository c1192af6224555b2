//! What each strategy's run leaves in the log, and how it goes on from it.

use crate::durable::model::{Canned, call, said, seeded};
use crate::durable::rig::{Client, document, records};
use crate::durable::tools::{World, all};
use agents::{
    Agent, AgentError, AgentOptions, AgentState, ExecutionStrategy, Loop, Next, Plan, React,
    StepContext, StepOutcome, SubAgentTool, subagent_tool,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use interop::model::history;
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{Message, Tool};

/// Has the model check its last answer once. It knows nothing of crashes.
pub(crate) struct Twice;

impl ExecutionStrategy for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }

    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
        async move {
            let checks = state.phase().is_some();
            let mut state = state;
            if checks {
                let text = "Check your answer.";
                state = context.prompt(&state, "check", text).await?;
            }
            if state.open_calls().is_empty() {
                let response = context.ask(context.request(&state)).await?;
                state = state.with_response(response);
            }
            let acts = !state.open_calls().is_empty();
            state = context.act(&state).await?;
            let (phase, next) = match (acts, checks) {
                (true, _) => (None, Next::Continue),
                (false, true) => (None, Next::Done),
                (false, false) => (Some("check".into()), Next::Continue),
            };
            let state = state.with_phase(phase);
            Ok(StepOutcome { state, next })
        }
        .boxed()
    }
}

pub(crate) fn options(
    model: Arc<Canned>,
    execution: Arc<dyn ExecutionStrategy>,
    tools: Vec<Tool>,
) -> AgentOptions {
    AgentOptions {
        id: Some("agent".into()),
        execution,
        tools,
        ..AgentOptions::new("demo", model)
    }
}

/// What a state is, apart from ids and instants.
fn content(state: &AgentState) -> Value {
    let mut value = serde_json::to_value(state).unwrap();
    value["id"].take();
    for message in value["messages"].as_array_mut().unwrap() {
        let fields = message.as_object_mut().unwrap();
        fields.remove("id");
        fields.remove("timestamp");
    }
    value
}

#[tokio::test]
async fn a_run_in_the_log_has_the_messages_of_the_same_run_in_memory() {
    let strategies: [Arc<dyn ExecutionStrategy>; 4] = [
        Arc::new(Loop::default()),
        Arc::new(React::default()),
        Arc::new(Plan::default()),
        Arc::new(Twice),
    ];
    for (seed, strategy) in (0..).zip(strategies) {
        let agent = |world: &World| {
            let model = seeded(seed, &["pure", "idempotent"]);
            options(model, Arc::clone(&strategy), all(world))
        };
        let mut client = Client::calm(agent(&World::default()));
        client.say("one").await;
        client.rest().await;
        let whole = Agent::new(agent(&World::default())).unwrap();
        let whole = whole.generate("one", AgentState::initial()).await.unwrap();
        let logged = AgentState::initial().with_messages(history(&client.transcript().await, None));
        let (logged, whole) = (content(&logged), content(&whole.state));
        assert_eq!(logged["messages"], whole["messages"], "{}", strategy.name());
        let last = records(&client.transcript().await).pop().unwrap();
        assert_eq!(last["step"], whole["step"], "{}", strategy.name());
    }
}

#[tokio::test]
async fn prompts_are_shown_to_the_model_again_and_to_nobody_else() {
    let model = seeded(1, &["pure"]);
    let agent = options(
        model.clone(),
        Arc::new(React::default()),
        all(&World::default()),
    );
    let mut client = Client::calm(agent);
    client.say("one").await;
    client.rest().await;
    let before = model.asked.lock().unwrap().last().unwrap().clone();
    client.restart().await;
    client.say("two").await;
    client.rest().await;
    let asked = model.asked.lock().unwrap().clone();
    let after = asked
        .iter()
        .find(|messages| messages.len() > before.len() + 1);
    let after = &after.unwrap()[..before.len()];
    let plain = |messages: &[Message]| {
        let state = AgentState::initial().with_messages(messages.to_vec());
        content(&state)["messages"].clone()
    };
    assert_eq!(plain(after), plain(&before));
    assert!(plain(after).to_string().contains("Think step by step"));
    let document = document(&client.transcript().await).to_string();
    assert!(!document.contains("Think step by step") && !document.contains("loomline-prompt"));
    let shown = interop::ai_sdk::to_ui_messages(&client.transcript().await);
    assert!(
        !json!(shown.value)
            .to_string()
            .contains("Think step by step")
    );
    assert!(shown.losses.is_empty(), "{:?}", shown.losses);
}

#[tokio::test]
async fn a_plan_is_kept_whole_once_and_then_by_what_changes() {
    let steps = json!({"steps": [
        {"id": "a", "description": "first", "tool": null, "dependsOn": []},
        {"id": "b", "description": "second", "tool": null, "dependsOn": ["a"]},
    ]});
    let model = Canned::new(move |request| {
        let text = json!(request.messages.last().unwrap()).to_string();
        let is_plan = request.structure.is_some() && text.contains("\"plan\"");
        if is_plan {
            said(&steps.to_string())
        } else {
            said("done")
        }
    });
    let mut client = Client::calm(options(model, Arc::new(Plan::default()), Vec::new()));
    client.say("go").await;
    client.rest().await;
    let records = records(&client.transcript().await);
    let plans: Vec<bool> = records.iter().map(|it| it["plan"].is_array()).collect();
    assert_eq!(plans, [true, false, false]);
    assert_eq!(records[1]["planStatus"], json!({"a": "completed"}));
    assert_eq!(records[2]["planStatus"], json!({"b": "completed"}));
}

#[tokio::test]
async fn what_sub_agents_did_is_kept_with_the_result_of_their_call() {
    let child = |n: usize| {
        let model = Canned::new(move |_| said(&format!("child {n}")));
        let agent = Agent::new(AgentOptions::new("child", model)).unwrap();
        let schema = json!({"type": "object"});
        let name = format!("child{n}");
        let definition = SubAgentTool::new(name, "Helps.", schema, agent, |_: &Value| {
            Ok(Message::from("help"))
        });
        let mut tool = subagent_tool(definition);
        tool.effect = upp::Effect::Pure;
        tool
    };
    let agent = || {
        let calls = vec![call("c1", "child1"), call("c2", "child2")];
        let model = Canned::rounds(vec![calls]);
        options(model, Arc::new(Loop::default()), vec![child(1), child(2)])
    };
    let calm = Agent::new(agent()).unwrap();
    let calm = calm.generate("go", AgentState::initial()).await.unwrap();
    let expected: Vec<Option<String>> = calm
        .state
        .subagent_traces()
        .map(|trace| trace.result.clone())
        .collect();
    assert_eq!(expected.len(), 2);
    for at in 0..10 {
        let mut client = Client::new(agent(), vec![(at, false)]);
        client.say("go").await;
        client.rest().await;
        let transcript = client.transcript().await;
        let parts = transcript.entries.iter().flat_map(|entry| match entry {
            timeline::Entry::Reaction(reaction) => reaction.steps.as_slice(),
            timeline::Entry::Item(_) => &[],
        });
        let tools = parts
            .flat_map(|step| &step.parts)
            .filter_map(|part| interop::parts::ToolPart::read(&part.part));
        let tools: Vec<_> = tools.collect();
        assert_eq!(tools.len(), expected.len(), "death at {at}");
        for (tool, expected) in tools.iter().zip(&expected) {
            // A sub-agent in memory that a crash cut off is not run again, and left no trace.
            if tool.outcome.as_deref() == Some("interrupted") {
                assert!(tool.subagents.is_none(), "death at {at}");
                continue;
            }
            let traces = tool.subagents.as_ref().unwrap();
            let traces = traces
                .read::<Vec<agents::SubagentExecutionTrace>>()
                .unwrap();
            let results: Vec<_> = traces.into_iter().map(|trace| trace.result).collect();
            assert_eq!(results, std::slice::from_ref(expected), "death at {at}");
        }
    }
}
