//! What is kept of sub-agents in their parent's state (UAP §8.8).

use super::*;

#[tokio::test]
async fn a_failed_sub_agent_is_an_error_result_and_its_trace_has_what_it_did() {
    let adds = ScriptTurn::call("add", json!({"a": 1, "b": 2}));
    let mut options = scripted(vec![adds, failing(Code::QuotaExceeded)]);
    options.tools = vec![add()];
    let tool = subagent_tool(definition("explore", agent(options)));
    let (events, result) = watched(lead(vec![tool])).await;
    let answer = &results(&result.state)[0];
    assert!(answer.is_error);
    let text = answer.result.as_str().unwrap();
    assert!(
        text.starts_with("The sub-agent failed: the model call failed: "),
        "{text}"
    );
    assert_eq!(
        result.turn.response.joined_text(),
        "done",
        "the parent goes on"
    );
    let end = ends(&events)[0];
    assert!(!end.success && end.result.is_none());
    assert!(
        end.error.as_ref().unwrap().contains("QuotaExceeded"),
        "{end:?}"
    );
    let trace = traces(&result.state)[0];
    assert!(!trace.success);
    assert_eq!(trace.tool_executions.as_ref().unwrap().len(), 1);
    assert_eq!(trace.usage.as_ref().unwrap().cycles.len(), 1);
}

#[tokio::test]
async fn traces_keep_what_tools_got_and_gave_whatever_it_was() {
    let calls = vec![
        call("object", "object", &[]),
        call("text", "text", &[]),
        call("fails", "fails", &[]),
        upp::ToolCall {
            arguments: upp::Arguments::from_text("no JSON"),
            ..call("malformed", "text", &[])
        },
    ];
    let mut options = options(Canned::calls(calls));
    options.tools = vec![
        quick("object", |_| Ok(json!({"a": [1, null]}))),
        quick("text", |_| Ok(json!("as it \"is\""))),
        quick("fails", |_| Err(ToolFailure::new("no luck"))),
    ];
    let tool = subagent_tool(definition("explore", agent(options)));
    let result = generate(lead(vec![tool])).await;
    let kept = traces(&result.state)[0].tool_executions.clone().unwrap();
    let find = |id: &str| {
        let found = kept.iter().find(|it| it.tool_call_id == Some(id.into()));
        found.unwrap().clone()
    };
    assert_eq!(find("object").result, r#"{"a":[1,null]}"#);
    assert_eq!(find("text").result, "as it \"is\"");
    assert_eq!(
        (find("fails").result.as_str(), find("fails").is_error),
        ("no luck", Some(true))
    );
    assert_eq!(
        json!(find("malformed").arguments),
        json!({"arguments": "no JSON"})
    );
}

#[tokio::test]
async fn traces_are_in_the_state_in_call_order_and_survive_its_json() {
    let slow = {
        let mut options = options(Canned::calls(vec![call("1", "wait", &[])]));
        options.tools = vec![noted("wait", 50, &Log::default())];
        agent(options)
    };
    let tools = vec![
        subagent_tool(definition("slow", slow)),
        subagent_tool(definition(
            "fast",
            agent(options(Canned::new(|_| Some(said("hi"))))),
        )),
    ];
    let (events, result) = watched(lead(tools)).await;
    let ended: Vec<&str> = ends(&events)
        .iter()
        .map(|end| end.subagent_type.as_str())
        .collect();
    assert_eq!(ended, ["fast", "slow"]);
    let kept = traces(&result.state);
    assert_eq!(kept[0].subagent_type, "slow");
    assert_eq!(kept[1].subagent_type, "fast");
    let json = result.state.to_json().unwrap();
    let written: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        written["subagentTraces"][0]["parentToolCallId"],
        "call_slow"
    );
    assert_eq!(AgentState::from_json(&json).unwrap(), result.state);
}

#[tokio::test]
async fn events_and_traces_come_from_three_levels_down() {
    let (events, result) = watched(lead(vec![subagent_tool(definition(
        "one",
        above("two", above("three", adder())),
    ))]))
    .await;
    // Each inner event is wrapped once a level.
    let mut depths = Vec::new();
    for event in &events {
        let (mut depth, mut event) = (1, event.clone());
        while let SubagentEvent::Forwarded(forwarded) = &event {
            let Some(inner) = uap(&forwarded.inner_event).and_then(|it| it.subagent()) else {
                break;
            };
            (depth, event) = (depth + 1, inner);
        }
        if let SubagentEvent::End(end) = event {
            depths.push((
                depth,
                end.subagent_type.clone(),
                end.parent_tool_call_id.to_string(),
            ));
        }
    }
    let level = |depth, name: &str| (depth, name.to_owned(), format!("call_{name}"));
    assert_eq!(
        depths,
        [level(3, "three"), level(2, "two"), level(1, "one")]
    );
    let kept: Vec<&str> = traces(&result.state)
        .iter()
        .map(|it| it.subagent_type.as_str())
        .collect();
    assert_eq!(kept, ["three", "two", "one"]);
    assert_eq!(
        traces(&result.state)[0].tool_executions.as_ref().unwrap()[0].tool_name,
        "add"
    );
}

#[tokio::test]
async fn the_traces_below_a_sub_agent_outlive_its_failure() {
    let turn = ScriptTurn::call("two", json!({"task": "go"}));
    let mut options = scripted(vec![turn, failing(Code::Timeout)]);
    options.tools = vec![subagent_tool(definition("two", adder()))];
    let (_, result) = watched(lead(vec![subagent_tool(definition("one", agent(options)))])).await;
    let kept: Vec<(&str, bool)> = traces(&result.state)
        .iter()
        .map(|it| (it.subagent_type.as_str(), it.success))
        .collect();
    assert_eq!(kept, [("two", true), ("one", false)]);
}

#[tokio::test]
async fn stream_and_generate_leave_the_same_traces() {
    let mut options = lead(vec![subagent_tool(definition(
        "one",
        above("two", adder()),
    ))]);
    options.id = Some("same".into());
    let generated = generate(options.clone()).await;
    let (_, streamed) = watched(options).await;
    let stripped = |state: &AgentState| {
        let mut content = content(state);
        for trace in content["subagentTraces"].as_array_mut().unwrap() {
            for key in ["subagentId", "startTime", "endTime"] {
                trace[key] = Value::Null;
            }
        }
        content
    };
    assert_eq!(stripped(&streamed.state), stripped(&generated.state));
}

#[tokio::test]
async fn a_tool_of_ones_own_may_run_several_sub_agents() {
    let (first, second) = (adder(), agent(options(Canned::new(|_| Some(said("hi"))))));
    let both = tool("both", move |_: Value, context: upp::ToolContext| {
        let (first, second) = (first.clone(), second.clone());
        async move {
            for agent in [first, second] {
                let run = Spawn::new(agent, "go", &context).run(&context).await;
                run.turn
                    .map_err(|error| ToolFailure::new(error.to_string()))?;
            }
            Ok(json!("both ran"))
        }
        .boxed() as BoxFuture<'static, upp::ToolOutput>
    });
    let (events, result) = watched(lead(vec![both])).await;
    assert_eq!(ends(&events).len(), 2);
    assert_eq!(traces(&result.state).len(), 2);
    assert_eq!(results(&result.state)[0].result, "both ran");
}
