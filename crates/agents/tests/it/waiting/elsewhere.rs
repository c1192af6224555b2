//! Results of calls that were executed elsewhere, whatever is known of their tools here.

use super::*;
use loomline_agents::React;
use upp::{Arguments, AssistantMessage, MessageOptions};

/// A conversation that ends in these calls.
fn called(calls: Vec<ToolCall>) -> AgentState {
    let said = AssistantMessage::new(Vec::new(), calls, MessageOptions::default());
    AgentState::initial()
        .with_message(Message::from("go"))
        .with_message(said)
}

fn far(id: &str) -> ToolCall {
    call(id, "far", &[])
}

/// What the model was told of the calls, when it was asked the only time.
fn told(model: &Canned) -> Vec<ToolResult> {
    let seen = model.seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "the model is asked once");
    let messages = seen[0].messages.iter();
    let results = messages.filter_map(|message| match message {
        Message::ToolResult(message) => Some(message.results.clone()),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.flatten().collect()
}

#[tokio::test]
async fn a_result_is_told_to_the_model_though_its_tool_is_known_no_longer() {
    let tool_sets = [Vec::new(), vec![add()]];
    for tools in tool_sets {
        let strategies: [Arc<dyn loomline_agents::ExecutionStrategy>; 2] =
            [Arc::new(Loop::default()), Arc::new(React::default())];
        for strategy in strategies {
            let n_asked = if strategy.name() == "react" { 2 } else { 1 };
            let model = Canned::new(|_| Some(said("done")));
            let mut options = options(model.clone());
            options.tools.clone_from(&tools);
            options.execution = strategy;
            let agent = agent(options);
            let answers = Answers::new().result("x", "sunny");
            let done = agent.resume(answers, called(vec![far("x")])).await.unwrap();
            assert_eq!(results(&done.state), [result("x", "sunny")]);
            assert_eq!(done.turn.response.joined_text(), "done");
            assert_eq!(model.seen.lock().unwrap().len(), n_asked);
        }
    }
}

#[tokio::test]
async fn a_result_stands_though_the_arguments_do_not_fit_the_schema() {
    let schema = json!({"type": "object", "required": ["place"]});
    for text in ["{}", "no json"] {
        let model = Canned::new(|_| Some(said("done")));
        let mut options = options(model.clone());
        options.tools = vec![Tool::external("far", "", schema.clone())];
        let mut made = far("x");
        made.arguments = Arguments::from_text(text);
        let answers = Answers::new().result("x", "sunny");
        agent(options)
            .resume(answers, called(vec![made]))
            .await
            .unwrap();
        assert_eq!(told(&model), [result("x", "sunny")], "{text}");
    }
}

#[tokio::test]
async fn where_a_call_id_is_used_twice_the_result_is_the_first_ones() {
    let model = Canned::new(|_| Some(said("done")));
    let answers = Answers::new().result("x", "sunny");
    let state = called(vec![far("x"), far("x")]);
    let agent = agent(options(model.clone()));
    agent.resume(answers, state).await.unwrap();
    let told = told(&model);
    assert_eq!(told[0], result("x", "sunny"));
    assert!(told[1].is_error);
}

#[test]
fn a_result_for_a_call_that_the_agent_runs_itself_is_refused() {
    let mut options = options(Canned::new(|_| None));
    options.tools = vec![add()];
    let state = called(vec![call("x", "add", &[])]);
    let refused = agent(options).check(&Answers::new().result("x", 1), &state);
    assert!(
        matches!(refused, Err(AnswerError::WrongKind { expected: None, .. })),
        "{refused:?}"
    );
}
