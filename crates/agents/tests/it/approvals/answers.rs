//! What answers may say, and which are refused.

use super::*;

#[tokio::test]
async fn a_person_may_edit_the_arguments() {
    let log = Log::default();
    let agent = agent(options_with(&log));
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let state = waiting.state;
    for (edited, place) in [
        (json!({"sum": "ten"}), "/sum"),
        (json!([]), "object"),
        (json!({}), "required"),
    ] {
        let answers = Answers::new().approve("b").approve_with("a", edited);
        let refused = refusal(agent.resume(answers, state.clone()).await);
        let AnswerError::Arguments { call, breaches } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(call.as_str(), "a");
        assert!(breaches.contains(place), "{breaches}");
    }
    assert_eq!(
        log.lines(),
        ["look"],
        "nothing ran, not even what was approved"
    );
    let answers = Answers::new()
        .approve_with("a", json!({"sum": 10}))
        .deny("b")
        .result("x", 0);
    let done = agent.resume(answers, state).await.unwrap();
    assert_eq!(log.lines(), ["look", "pay 10"]);
    let ran = done
        .turn
        .tool_executions
        .iter()
        .find(|it| it.tool_call_id.as_str() == "a");
    assert_eq!(ran.unwrap().arguments, json!({"sum": 10}));
}

#[tokio::test]
async fn a_result_must_match_the_schema_of_its_tool() {
    let mut options = options_with(&Log::default());
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    options.tools.pop();
    let declared = Tool::external("elsewhere", "", json!({"type": "object"}));
    options.tools.push(declared.with_result(schema));
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let verdicts = || Answers::new().deny("a").deny("b");
    for (wrong, place) in [
        (json!({"n": "one"}), "/n"),
        (json!("text"), "object"),
        (json!({}), "required"),
    ] {
        let answers = verdicts().result("x", wrong);
        let refused = refusal(agent.resume(answers, waiting.state.clone()).await);
        let AnswerError::Result { call, breaches } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(call.as_str(), "x");
        assert!(breaches.contains(place), "{breaches}");
    }
    for right in [
        verdicts().result("x", json!({"n": 1})),
        verdicts().result("x", json!("{\"n\": 1}")),
        verdicts().failure("x", "It broke."),
    ] {
        let done = agent.resume(right, waiting.state.clone()).await.unwrap();
        assert!(done.pending.is_empty());
    }
}

#[tokio::test]
async fn answers_that_fit_no_waiting_call_are_refused_before_anything_runs() {
    let log = Log::default();
    let agent = agent(options_with(&log));
    let state = agent
        .generate("go", AgentState::initial())
        .await
        .unwrap()
        .state;
    let wrong = |call: &str, given, expected| AnswerError::WrongKind {
        call: call.into(),
        given,
        expected,
    };
    let cases = [
        (
            Answers::new().deny("nowhere"),
            AnswerError::UnknownCall {
                call: "nowhere".into(),
            },
        ),
        (
            Answers::new().result("", 1),
            AnswerError::UnknownCall { call: "".into() },
        ),
        (
            Answers::new().approve("x"),
            wrong("x", PendingKind::Approval, Some(PendingKind::External)),
        ),
        (
            Answers::new().result("a", 1),
            wrong("a", PendingKind::External, Some(PendingKind::Approval)),
        ),
        (
            Answers::new().approve("look"),
            AnswerError::AlreadyAnswered {
                call: "look".into(),
            },
        ),
        (
            Answers::new().result("look", 1),
            AnswerError::AlreadyAnswered {
                call: "look".into(),
            },
        ),
        (
            Answers::new().approve("a").result("a", 1),
            wrong("a", PendingKind::External, Some(PendingKind::Approval)),
        ),
    ];
    for (answers, expected) in cases {
        let answers = answers.approve("b");
        assert_eq!(
            refusal(agent.resume(answers, state.clone()).await),
            expected
        );
    }
    assert_eq!(log.lines(), ["look"]);
    let half = agent
        .resume(Answers::new().approve("a"), state)
        .await
        .unwrap();
    let twice = agent
        .resume(Answers::new().deny("a"), half.state.clone())
        .await;
    assert_eq!(
        refusal(twice),
        AnswerError::AlreadyAnswered { call: "a".into() }
    );
    let done = Answers::new().deny("b").result("x", 1);
    let done = agent.resume(done, half.state).await.unwrap();
    let late = agent.resume(Answers::new().deny("b"), done.state).await;
    assert_eq!(refusal(late), AnswerError::NothingWaits);
}

#[tokio::test]
async fn all_that_is_wrong_with_answers_is_found_and_not_only_the_first() {
    let mut options = options_with(&Log::default());
    let calls = vec![
        paying("a", &json!(1)),
        call("x", "elsewhere", &[]),
        ToolCall {
            after: vec!["a".into()],
            ..paying("late", &json!(1))
        },
    ];
    options.model = Canned::calls(calls);
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let wrong = |call: &str, given, expected| AnswerError::WrongKind {
        call: call.into(),
        given,
        expected: Some(expected),
    };
    let both = Answers::new()
        .approve_with("a", json!({"sum": "ten"}))
        .approve("x");
    let found = agent.faults(&both, &waiting.state);
    let [AnswerError::Arguments { call, .. }, other] = found.as_slice() else {
        panic!("{found:?}");
    };
    let expected = wrong("x", PendingKind::Approval, PendingKind::External);
    assert_eq!((call.as_str(), other), ("a", &expected));
    // A result in place of a verdict, and too early.
    let found = agent.faults(&Answers::new().result("late", 1), &waiting.state);
    let early = AnswerError::Early {
        call: "late".into(),
    };
    let expected = wrong("late", PendingKind::External, PendingKind::Approval);
    assert_eq!(found, [expected, early]);
}

#[tokio::test]
async fn an_error_about_answers_says_what_is_wrong() {
    let agent = agent(options_with(&Log::default()));
    let state = agent
        .generate("go", AgentState::initial())
        .await
        .unwrap()
        .state;
    let error = agent
        .resume(Answers::new().approve("x"), state)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidRequest));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        cause,
        "the tool call 'x' got an approval, but waits for a result"
    );
}

#[tokio::test]
async fn a_new_message_does_not_pass_over_open_calls() {
    let agent = agent(options_with(&Log::default()));
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let error = agent
        .generate("never mind", waiting.state)
        .await
        .unwrap_err();
    assert!(matches!(error, AgentError::OpenCalls { n_calls: 3 }));
    assert!(error.to_string().contains("answer or deny them"));
}

#[tokio::test]
async fn results_of_ones_own_close_what_is_still_open() {
    let agent = agent(options_with(&Log::default()));
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let rest = ["a", "b", "x"].map(|id| answer(id, "by hand")).to_vec();
    let input = upp::ToolResultMessage::new(rest, upp::MessageOptions::default());
    let done = agent.generate(input, waiting.state).await.unwrap();
    assert_eq!(results(&done.state).len(), 4);
    assert_eq!(done.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn answers_are_for_one_response_alone() {
    // The model uses its ids again, as some do.
    let log = Log::default();
    let rounds = Mutex::new(0);
    let mut options = options_with(&log);
    options.model = Canned::new(move |_| {
        let mut n = rounds.lock().unwrap();
        *n += 1;
        Some(if *n < 3 {
            asked(vec![paying("a", &json!(*n))])
        } else {
            said("done")
        })
    });
    let agent = agent(options);
    let first = agent.generate("go", AgentState::initial()).await.unwrap();
    let second = agent
        .resume(Answers::new().approve("a"), first.state)
        .await
        .unwrap();
    assert_eq!(ids(&second), ["a"], "asked again");
    assert_eq!(log.lines(), ["pay 1"]);
    let done = agent
        .resume(Answers::new().deny("a"), second.state)
        .await
        .unwrap();
    assert_eq!(log.lines(), ["pay 1"]);
    assert_eq!(done.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_cant_run() {
    let calls = vec![
        paying("wrong", &json!("much")),
        call("ghost", "nothing", &[]),
        paying("right", &json!(1)),
        paying("right", &json!(1)),
    ];
    let log = Log::default();
    let mut options = options_with(&log);
    options.model = Canned::calls(calls);
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(ids(&waiting), ["right"]);
    let told: Vec<String> = results(&waiting.state)
        .iter()
        .map(|it| it.tool_call_id.to_string())
        .collect();
    assert_eq!(told, ["wrong", "ghost"]);
    let done = agent
        .resume(Answers::new().approve("right"), waiting.state)
        .await
        .unwrap();
    let kept = results(&done.state);
    let errors: Vec<bool> = kept.iter().map(|it| it.is_error).collect();
    assert_eq!(
        errors,
        [true, true, false, true],
        "the repeated id is not run"
    );
    assert_eq!(log.lines(), ["pay 1"]);
}
