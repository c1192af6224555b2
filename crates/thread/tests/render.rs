//! What a model is shown of a thread.

#[path = "render/given.rs"]
mod given;
#[path = "render/laws.rs"]
mod laws;

use given::{
    AT, agent_turn, answer, call, json, message, options, prompt, retry, text, thread, user_turn,
};
use loomline_thread::render::{
    RenderOptions, Rendered, SpeakerAttribution, TargetModel, ToolTraffic, Unanswered, What, render,
};
use loomline_thread::{Json, Thread};

/// A weather question that Ada looks up and Bo comments on.
fn conversation() -> Thread {
    thread(vec![
        user_turn(vec![prompt("Rain?")]),
        agent_turn(
            "a",
            vec![
                message(
                    "response",
                    "a",
                    vec![text("Looking."), call("c1"), call("c2")],
                ),
                message("request", "a", vec![answer("c1"), retry("c2")]),
                json(r#"{"message_type":"system","event_type":"data-app-x","event_data":1}"#),
                message("response", "a", vec![text("Yes.")]),
            ],
        ),
        agent_turn(
            "b",
            vec![message("response", "b", vec![text("Take a coat.")])],
        ),
    ])
}

fn shown(rendered: &Rendered) -> Vec<String> {
    let line = |message: &Json| {
        let word = |part: &Json| {
            let text = |key: &str| part.get(key).and_then(Json::as_str).unwrap_or_default();
            let id = text("tool_call_id");
            match text("part_kind") {
                "tool-call" => format!("call {id}"),
                "tool-return" if text("outcome") == "interrupted" => format!("interrupted {id}"),
                "tool-return" | "retry-prompt" => format!("answer {id}"),
                _ => text("content").to_owned(),
            }
        };
        let parts = message
            .get("parts")
            .and_then(Json::as_array)
            .expect("parts");
        let parts: Vec<_> = parts.iter().map(word).collect();
        let kind = message.get("kind").and_then(Json::as_str).expect("a kind");
        format!("{kind}: {}", parts.join(" | "))
    };
    rendered.messages.iter().map(line).collect()
}

/// The options of a viewer who learns who wrote what in this way.
fn attributed(attribution: SpeakerAttribution, viewer: &str) -> RenderOptions {
    RenderOptions {
        attribution,
        ..options(viewer)
    }
}

/// The options of a viewer who sees foreign tool calls in this way.
fn with_traffic(tool_traffic: ToolTraffic, viewer: &str) -> RenderOptions {
    RenderOptions {
        tool_traffic,
        ..options(viewer)
    }
}

fn whats(rendered: &Rendered) -> Vec<What> {
    rendered.changes.iter().map(|change| change.what).collect()
}

#[test]
fn the_text_of_other_agents_is_prefixed_and_own_text_is_not() {
    let rendered = render(&conversation(), &options("b"));
    assert_eq!(
        shown(&rendered),
        [
            "request: Rain?",
            "response: {agent:Ada}: Looking. | call c1 | call c2",
            "request: answer c1 | answer c2",
            "response: {agent:Ada}: Yes.",
            "response: Take a coat.",
        ]
    );
}

#[test]
fn messages_are_in_the_words_of_pydantic_ai_and_client_metadata_stays_out() {
    let rendered = render(&conversation(), &options("a"));
    assert_eq!(
        rendered.messages[0].to_text(),
        format!(
            r#"{{"parts":[{{"part_kind":"user-prompt","content":"Rain?"}}],"timestamp":"{AT}","kind":"request"}}"#
        )
    );
    let pointers: Vec<_> = rendered
        .changes
        .iter()
        .map(|change| change.pointer.as_str())
        .collect();
    assert_eq!(
        pointers,
        [
            "/turns/0/client_metadata",
            "/turns/1/messages/2",
            "/turns/2/messages/0/parts/0"
        ]
    );
    assert_eq!(
        whats(&rendered),
        [What::ClientMetadata, What::SystemMessage, What::Attributed]
    );
}

#[test]
fn a_name_can_stand_in_a_field_of_its_own() {
    let rendered = render(
        &conversation(),
        &attributed(SpeakerAttribution::NameField, "b"),
    );
    let names: Vec<_> = rendered
        .messages
        .iter()
        .map(|message| message.get("name"))
        .collect();
    let ada = Json::from("Ada");
    assert_eq!(names, [None, Some(&ada), None, Some(&ada), None]);
    assert_eq!(shown(&rendered)[3], "response: Yes.");
}

#[test]
fn foreign_turns_can_be_quoted_to_the_viewing_agent() {
    let rendered = render(
        &conversation(),
        &attributed(SpeakerAttribution::QuotedInUserMessage, "b"),
    );
    let quotation = "The agent Ada wrote:\n> Looking.\n> [called lookup with {\"q\":1.0}]\n\
        > [called lookup with {\"q\":1.0}]\n> [lookup returned found]\n\
        > [was asked to try again: again]\n> Yes.";
    assert_eq!(
        shown(&rendered),
        [
            "request: Rain?".to_owned(),
            format!("request: {quotation}"),
            "response: Take a coat.".to_owned()
        ]
    );
}

#[test]
fn foreign_tool_traffic_can_be_summarised() {
    let rendered = render(&conversation(), &with_traffic(ToolTraffic::Summarise, "b"));
    let summary = "called lookup and got an answer; called lookup and got an error";
    assert_eq!(
        shown(&rendered)[1..3],
        [
            format!("response: {{agent:Ada}}: Looking. | {{agent:Ada}}: {summary}"),
            "response: {agent:Ada}: Yes.".to_owned()
        ]
    );
}

#[test]
fn foreign_tool_traffic_can_be_hidden_with_its_answers() {
    let tool_traffic = ToolTraffic::Hide;
    let rendered = render(&conversation(), &with_traffic(tool_traffic, "b"));
    assert_eq!(
        shown(&rendered)[1..3],
        [
            "response: {agent:Ada}: Looking.",
            "response: {agent:Ada}: Yes."
        ]
    );
    assert!(whats(&rendered).contains(&What::EmptyMessage));
    let own = render(&conversation(), &with_traffic(tool_traffic, "a"));
    assert_eq!(shown(&own)[2], "request: answer c1 | answer c2");
}

#[test]
fn a_foreign_answer_in_a_users_turn_goes_with_its_call() {
    let turns = vec![
        agent_turn("a", vec![message("response", "a", vec![call("c")])]),
        user_turn(vec![answer("c"), prompt("Go on.")]),
    ];
    let rendered = render(
        &thread(turns.clone()),
        &with_traffic(ToolTraffic::Hide, "b"),
    );
    assert_eq!(shown(&rendered), ["request: Go on."]);
    let attribution = SpeakerAttribution::QuotedInUserMessage;
    let rendered = render(&thread(turns), &attributed(attribution, "b"));
    let quoted = "request: The agent Ada wrote:\n> [lookup returned found] | Go on.";
    assert_eq!(shown(&rendered)[1], quoted);
}

#[test]
fn a_users_answer_belongs_to_the_latest_call_of_its_id() {
    let turns = vec![
        agent_turn("a", vec![message("response", "a", vec![call("c")])]),
        agent_turn("b", vec![message("response", "b", vec![call("c")])]),
        user_turn(vec![answer("c")]),
    ];
    let rendered = render(&thread(turns), &options("b"));
    assert_eq!(
        shown(&rendered),
        [
            "response: call c",
            "request: interrupted c",
            "response: call c",
            "request: answer c"
        ]
    );
}

#[test]
fn an_answer_to_ones_own_call_in_a_foreign_message_is_not_quoted() {
    let turns = vec![agent_turn(
        "b",
        vec![
            message("response", "b", vec![call("c")]),
            message("request", "a", vec![prompt("Ada?"), answer("c")]),
        ],
    )];
    let rendered = render(
        &thread(turns),
        &attributed(SpeakerAttribution::QuotedInUserMessage, "b"),
    );
    assert_eq!(
        shown(&rendered),
        [
            "response: call c",
            "request: answer c | The agent Ada wrote:\n> [was told: Ada?]"
        ]
    );
}

#[test]
fn a_thought_is_shown_whole_to_the_agent_that_had_it_and_to_no_other() {
    let thought =
        r#"{"part_kind":"thinking","content":"Hm.","signature":"c2ln","provider_name":"fable"}"#;
    let said = json(r#"{"part_kind":"text","content":"Yes.","id":"msg_1"}"#);
    let turns = vec![agent_turn(
        "a",
        vec![message("response", "a", vec![json(thought), said])],
    )];
    let own = render(&thread(turns.clone()), &options("a"));
    assert_eq!(
        own.messages[0]
            .pointer("/parts/0")
            .map(Json::to_text)
            .as_deref(),
        Some(thought)
    );
    let foreign = render(&thread(turns.clone()), &options("b"));
    let left = r#"[{"part_kind":"text","content":"{agent:Ada}: Yes."}]"#;
    assert_eq!(
        foreign.messages[0]
            .get("parts")
            .map(Json::to_text)
            .as_deref(),
        Some(left)
    );
    assert_eq!(
        whats(&foreign),
        [What::ThoughtOmitted, What::IdOmitted, What::Attributed]
    );
    let asked = Some(TargetModel {
        provider_name: "other".into(),
        model_name: None,
    });
    let elsewhere = render(
        &thread(turns),
        &RenderOptions {
            target: asked,
            ..options("a")
        },
    );
    assert_eq!(whats(&elsewhere), [What::ThoughtOmitted, What::IdOmitted]);
}

#[test]
fn a_call_of_ones_own_at_the_very_end_is_left_for_the_caller_to_answer() {
    let turns = vec![
        user_turn(vec![prompt("Order it.")]),
        agent_turn(
            "a",
            vec![message("response", "a", vec![text("Shall I?"), call("c")])],
        ),
    ];
    let pending = render(&thread(turns.clone()), &options("a"));
    assert_eq!(shown(&pending)[1], "response: Shall I? | call c");
    let left = &pending.changes[1];
    assert_eq!(left.what, What::PendingCallLeftOpen);
    assert_eq!(left.pointer, "/turns/1/messages/0/parts/1");
    let unanswered = Unanswered::Drop;
    let dropped = render(
        &thread(turns.clone()),
        &RenderOptions {
            unanswered,
            ..options("a")
        },
    );
    assert_eq!(shown(&dropped), ["request: Order it."]);
    let foreign = render(&thread(turns), &options("b"));
    assert_eq!(shown(&foreign)[2], "request: interrupted c");
}

#[test]
fn ones_own_calls_at_the_end_of_an_interrupted_turn_are_answered_as_interrupted() {
    let mut turn = agent_turn("a", vec![message("response", "a", vec![call("c")])]);
    if let Some(turn) = turn.as_object_mut() {
        turn.insert("completion_status", "interrupted");
    }
    let rendered = render(&thread(vec![turn]), &options("a"));
    assert_eq!(
        shown(&rendered),
        ["response: call c", "request: interrupted c"]
    );
    assert_eq!(whats(&rendered), [What::AnsweredAsInterrupted]);
}

#[test]
fn made_up_answers_follow_those_that_came_in_the_order_of_the_calls() {
    let turns = vec![agent_turn(
        "a",
        vec![
            message(
                "response",
                "a",
                vec![call("c"), call("d"), call("e"), call("f")],
            ),
            message("request", "a", vec![answer("f")]),
            message("request", "a", vec![answer("d"), prompt("So?")]),
            message("response", "a", vec![call("g"), call("h"), text("Hm.")]),
            message("request", "a", vec![answer("h")]),
            message("response", "a", vec![text("Well.")]),
        ],
    )];
    let rendered = render(&thread(turns), &options("a"));
    assert_eq!(
        shown(&rendered),
        [
            "response: call c | call d | call e | call f",
            "request: answer f",
            "request: answer d | interrupted c | interrupted e | So?",
            "response: call g | call h | Hm.",
            "request: answer h | interrupted g",
            "response: Well.",
        ]
    );
}

#[test]
fn tools_that_the_provider_of_another_agent_ran_are_hidden_or_summarised_too() {
    let searched = json(
        r#"{"part_kind":"builtin-tool-call","tool_name":"search","tool_call_id":"s","args":{}}"#,
    );
    let found = json(
        r#"{"part_kind":"builtin-tool-return","tool_name":"search","tool_call_id":"s","content":"secret"}"#,
    );
    let said = vec![text("Looking."), searched, found, text("Yes.")];
    let turns = vec![agent_turn(
        "a",
        vec![message("response", "a", said.clone())],
    )];
    for (tool_traffic, what, expected) in [
        (
            ToolTraffic::Hide,
            What::ToolTrafficHidden,
            "response: {agent:Ada}: Looking. | {agent:Ada}: Yes.",
        ),
        (
            ToolTraffic::Summarise,
            What::ToolTrafficSummarised,
            "response: {agent:Ada}: Looking. | {agent:Ada}: called search and got an answer | {agent:Ada}: Yes.",
        ),
    ] {
        let traffic = |agent| RenderOptions {
            tool_traffic,
            ..options(agent)
        };
        let foreign = render(&thread(turns.clone()), &traffic("b"));
        assert_eq!(shown(&foreign), [expected]);
        let taken: Vec<_> = foreign
            .changes
            .iter()
            .filter(|change| change.what == what)
            .map(|change| change.pointer.as_str())
            .collect();
        assert_eq!(
            taken,
            ["/turns/0/messages/0/parts/1", "/turns/0/messages/0/parts/2"]
        );
        let own = render(&thread(turns.clone()), &traffic("a"));
        assert_eq!(
            own.messages[0].get("parts"),
            Some(&Json::Array(said.clone()))
        );
    }
}

#[test]
fn a_call_that_a_user_talks_over_is_answered_as_interrupted() {
    let turns = vec![
        agent_turn(
            "a",
            vec![
                message("response", "a", vec![call("c"), call("d")]),
                message("request", "a", vec![answer("d")]),
            ],
        ),
        user_turn(vec![prompt("Never mind.")]),
    ];
    let rendered = render(&thread(turns.clone()), &options("a"));
    assert_eq!(
        shown(&rendered),
        [
            "response: call c | call d",
            "request: answer d | interrupted c",
            "request: Never mind."
        ]
    );
    let made_up = rendered.messages[1].pointer("/parts/1/timestamp");
    assert_eq!(made_up, Some(&AT.into()));
    let unanswered = Unanswered::Drop;
    let rendered = render(
        &thread(turns),
        &RenderOptions {
            unanswered,
            ..options("a")
        },
    );
    assert_eq!(shown(&rendered), ["request: Never mind."]);
}

#[test]
fn an_answer_that_comes_after_another_agents_turn_is_moved_up_to_its_call() {
    let turns = vec![
        agent_turn("a", vec![message("response", "a", vec![call("c")])]),
        agent_turn(
            "b",
            vec![message("response", "b", vec![text("Meanwhile.")])],
        ),
        agent_turn(
            "a",
            vec![
                message("request", "a", vec![answer("c")]),
                message("response", "a", vec![text("Done.")]),
            ],
        ),
    ];
    let rendered = render(&thread(turns), &options("a"));
    assert_eq!(
        shown(&rendered),
        [
            "response: call c",
            "request: answer c",
            "response: {agent:Bo}: Meanwhile.",
            "response: Done."
        ]
    );
    assert!(whats(&rendered).contains(&What::AnswerMoved));
}

#[test]
fn answers_to_no_call_and_second_answers_are_left_out() {
    let turns = vec![agent_turn(
        "a",
        vec![
            message("response", "a", vec![call("c"), call("c")]),
            message("request", "a", vec![answer("c"), retry("c"), answer("x")]),
            message(
                "request",
                "a",
                vec![json(
                    r#"{"part_kind":"retry-prompt","tool_call_id":"y","content":"?"}"#,
                )],
            ),
        ],
    )];
    let rendered = render(&thread(turns), &options("a"));
    assert_eq!(
        shown(&rendered),
        ["response: call c", "request: answer c", "request: answer y"]
    );
    assert_eq!(
        whats(&rendered),
        [What::RepeatedCall, What::RepeatedAnswer, What::OrphanAnswer]
    );
}

#[test]
fn content_that_is_kept_elsewhere_is_named() {
    let part = json(
        r#"{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","content_ref":{"uri":"s3://b/k","size_bytes":9}}"#,
    );
    let file = json(
        r#"{"part_kind":"user-prompt","content":["see",{"kind":"binary","media_type":"a/b","content_ref":{"uri":"s3://b/f"}}]}"#,
    );
    let turns = vec![
        user_turn(vec![file]),
        agent_turn(
            "a",
            vec![
                message("response", "a", vec![call("c")]),
                message("request", "a", vec![part]),
            ],
        ),
    ];
    let rendered = render(&thread(turns), &options("a"));
    let returned = rendered.messages[2].pointer("/parts/0").map(Json::to_text);
    let expected = r#"{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c","content":"[content kept at s3://b/k, 9 bytes]"}"#;
    assert_eq!(returned.as_deref(), Some(expected));
    let named = rendered.messages[0].pointer("/parts/0/content/1");
    assert_eq!(named, Some(&"[content kept at s3://b/f]".into()));
}

#[test]
fn system_prompts_stand_first_and_instructions_in_every_request() {
    let part = json(r#"{"part_kind":"system-prompt","content":"Be kind.","dynamic_ref":null}"#);
    let configured = RenderOptions {
        system_prompts: vec!["You are Bo.".into(), part],
        instructions: Some("Be brief.".into()),
        ..options("b")
    };
    let rendered = render(&conversation(), &configured);
    assert_eq!(
        shown(&rendered)[0],
        "request: You are Bo. | Be kind. | Rain?"
    );
    let instructed = rendered
        .messages
        .iter()
        .map(|message| message.get("instructions").is_some());
    assert_eq!(
        instructed.collect::<Vec<_>>(),
        [true, false, true, false, false]
    );
    let turns = vec![agent_turn(
        "a",
        vec![message("response", "a", vec![text("Hi.")])],
    )];
    let rendered = render(&thread(turns), &configured);
    assert_eq!(shown(&rendered)[0], "request: You are Bo. | Be kind.");
    assert!(render(&thread(vec![]), &configured).messages.is_empty());
}

#[test]
fn unknown_turns_and_messages_are_left_out_and_agents_without_a_name_go_by_their_id() {
    let turns = vec![
        json(r#"{"turn_type":"robot"}"#),
        agent_turn(
            "z",
            vec![json("7"), message("response", "z", vec![text("Hi.")])],
        ),
    ];
    let rendered = render(&thread(turns), &options("a"));
    assert_eq!(shown(&rendered), ["response: {agent:z}: Hi."]);
    assert_eq!(
        whats(&rendered),
        [What::UnknownTurn, What::UnknownMessage, What::Attributed]
    );
}
