//! Which model a sub-agent uses, and where it runs (UAP §8.4).

use super::*;

#[tokio::test]
async fn a_sub_agent_without_a_model_uses_its_callers_at_execution_time() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = seen.clone();
    let helper = SubAgent::inheriting(move |model, params| {
        noting
            .lock()
            .unwrap()
            .push((model.model_id().to_owned(), params.clone()));
        AgentOptions {
            params,
            ..AgentOptions::new("helper", model)
        }
    });
    let tool = subagent_tool(definition("helper", helper));
    assert!(
        seen.lock().unwrap().is_empty(),
        "nothing is resolved before a call"
    );
    for temperature in [0, 1] {
        let mut options = lead(vec![tool.clone()]);
        let params = json!({ "temperature": temperature });
        options.params = Arc::new(params.as_object().unwrap().clone());
        generate(options).await;
        let (model, inherited) = seen.lock().unwrap().pop().unwrap();
        assert_eq!((model.as_str(), json!(&*inherited)), ("canned", params));
    }
}

#[tokio::test]
async fn a_sub_agents_own_model_wins() {
    let own = Canned::new(|_| Some(said("mine")));
    let fixed = agent(options(own.clone()));
    let model = own.clone();
    let made = SubAgent::inheriting(move |_, _| options(model.clone()));
    let tools = vec![
        subagent_tool(definition("fixed", fixed)),
        subagent_tool(definition("made", made)),
    ];
    let result = generate(lead(tools)).await;
    assert!(results(&result.state).iter().all(|it| it.result == "mine"));
    assert_eq!(own.seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_sub_agent_that_cant_be_made_is_an_error_result() {
    let broken = SubAgent::inheriting(|model, _| AgentOptions {
        tools: vec![add(), add()],
        ..AgentOptions::new("broken", model)
    });
    let result = generate(lead(vec![subagent_tool(definition("broken", broken))])).await;
    let answer = &results(&result.state)[0];
    assert!(
        answer.is_error
            && answer
                .result
                .as_str()
                .unwrap()
                .contains("two tools are named")
    );
    assert!(traces(&result.state).is_empty(), "nothing began");
}

#[tokio::test]
async fn a_prompt_that_cant_be_made_is_an_error_result() {
    let tool = subagent_tool(SubAgentTool::new("picky", "", json!({}), adder(), |_| {
        Err(ToolFailure::new("Say what to do."))
    }));
    let (events, result) = watched(lead(vec![tool])).await;
    assert!(events.is_empty());
    assert_eq!(results(&result.state)[0].result, "Say what to do.");
}

#[tokio::test]
async fn without_an_agent_around_it_a_sub_agent_runs_all_the_same() {
    let inheriting = SubAgent::inheriting(|model, _| AgentOptions::new("heir", model));
    for (sub_agent, says) in [(adder().into(), "added"), (inheriting, "You said: rest")] {
        let mut options = LlmOptions::new(Arc::new(Scripted::new()));
        options.tools = vec![subagent_tool(definition("explore", sub_agent))];
        let llm = Llm::new(options).unwrap();
        let turn = llm.generate(Messages::new(), ["explore rest"]);
        assert_eq!(turn.await.unwrap().tool_executions[0].result, says);
    }
}
