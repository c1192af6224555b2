//! Summaries.

use super::*;

#[tokio::test]
async fn a_summary_takes_the_place_of_old_cycles_and_says_of_which() {
    let model = Canned::new(|_| Some(said("in short")));
    let state = history("uaucrcra");
    let summed = before(&summarise(model.clone()), state.clone()).await;
    assert_eq!(
        ids(&summed)[1..],
        ["c5", "r6", "a7"],
        "results stay with their calls"
    );
    let Some(Message::User(summary)) = summed.messages().first() else {
        panic!("a summary is the user's");
    };
    assert_eq!(
        summary.metadata["uap"]["summary"]["of"],
        json!(["u0", "r4"])
    );
    assert_eq!(
        summary.metadata["uap"]["summary"]["usage"],
        json!({"inputTokens": 2, "outputTokens": 1})
    );
    assert!(
        matches!(&summary.content[..], [UserContent::Text { text }] if text.ends_with("in short"))
    );

    let seen = model.seen.lock().unwrap();
    let Some(Message::User(asked)) = seen[0].messages.first() else {
        panic!("the summariser is asked by a user message");
    };
    let [UserContent::Text { text }] = &asked.content[..] else {
        panic!("in one text");
    };
    for part in [
        "User: u0",
        "Assistant: a1",
        "Assistant calls tool({}) [3x]",
        "Result [3y]: output",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test]
async fn an_earlier_summary_is_summarised_with_the_rest_and_seen_through() {
    let model = Canned::new(|_| Some(said("in short")));
    let summed = before(&summarise(model.clone()), history("suaua")).await;
    let Some(Message::User(summary)) = summed.messages().first() else {
        panic!("a summary is the user's");
    };
    assert_eq!(
        summary.metadata["uap"]["summary"]["of"],
        json!(["first", "a2"])
    );
    assert_eq!(ids(&summed)[1..], ["u3", "a4"]);
    let seen = content(
        &model.seen.lock().unwrap()[0]
            .messages
            .iter()
            .collect::<Vec<_>>(),
    );
    assert!(seen.to_string().contains("User: s0"));
}

#[tokio::test]
async fn nothing_is_summarised_below_the_threshold_or_when_there_is_only_a_summary() {
    let model = Canned::new(|_| Some(said("in short")));
    for (kinds, keep_recent) in [("uau", 1), ("uaua", 4), ("sucr", 3), ("uc", 0), ("", 2)] {
        let layer = Summarise {
            keep_recent,
            ..summarise(model.clone())
        };
        let state = history(kinds);
        assert_eq!(before(&layer, state.clone()).await, state, "{kinds}");
    }
    assert!(model.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_summariser_that_fails_or_says_nothing_leaves_the_state_as_it_is() {
    let failing = upp::ScriptTurn {
        error: serde_json::from_value(json!({})).unwrap(),
        ..upp::ScriptTurn::default()
    };
    let models: [Arc<dyn upp::Model>; 2] = [
        Arc::new(Scripted::with_script(upp::Script::new(vec![failing]))),
        Canned::new(|_| Some(said(" \n"))),
    ];
    for model in models {
        let state = history("uauaua");
        assert_eq!(before(&summarise(model), state.clone()).await, state);
    }
}

#[tokio::test]
async fn an_agent_may_be_the_summariser() {
    let mut options = options(Canned::new(|_| Some(said("the agent's summary"))));
    options.system = Some("be brief".into());
    let layer = Summarise {
        threshold: 30,
        keep_recent: 2,
        estimate: tens(),
        ..Summarise::with_agent(agent(options))
    };
    let summed = before(&layer, history("uauaua")).await;
    let text = content(&summed.messages().first());
    assert!(text.to_string().contains("the agent's summary"));
    assert_eq!(ids(&summed)[1..], ["u4", "a5"]);
}

#[tokio::test]
async fn layers_compose_in_their_order() {
    let model = Canned::new(|_| Some(said("in short")));
    let mut options = options(model.clone());
    options.middleware = vec![
        Arc::new(prune(0, 0)),
        Arc::new(window(6)),
        Arc::new(summarise(model.clone())),
    ];
    let result = agent(options)
        .ask("next", history("uaucraua"))
        .await
        .unwrap();
    let seen = model.seen.lock().unwrap();
    let asked = content(&seen[0].messages.iter().collect::<Vec<_>>()).to_string();
    assert!(asked.contains("[gone]"), "pruned before it is summarised");
    assert!(!asked.contains("User: u0"), "outside of the window");
    assert!(asked.contains("User: u2"));
    let kinds: Vec<&str> = ids(&result.state)[1..3].to_vec();
    assert_eq!(kinds, ["u6", "a7"]);
    assert_eq!(
        result.state.messages().len(),
        5,
        "summary, cycle, input, answer"
    );
    assert_eq!(result.turn.messages.len(), 2, "the turn is the run's alone");
}
