//! What resumes a thread.

use super::*;
use crate::langgraph::error::ErrorKind;

fn asked(call: &str, is_external: bool, key: &str) -> InterruptedCall {
    let kind = if is_external {
        OpenKind::External
    } else {
        OpenKind::Approval
    };
    let call = OpenCall {
        tool_call_id: call.to_owned(),
        kind,
        part: ToolPart::call("compute", call, r#"{"expression":"6 * 7"}"#)
            .write()
            .unwrap(),
        origin: None,
        children: Vec::new(),
    };
    InterruptedCall::of("own", key, &call).unwrap()
}

/// Reads a command's answers; of its members, these are calls that wait no longer.
fn answered<const N: usize>(
    resume: &Value,
    asked: &[InterruptedCall],
    over: [&str; N],
) -> Result<Resume, RequestError> {
    let over = over.map(str::to_owned).into();
    Resume::of_answers(&ResumeValues::Command(resume.clone()), (asked, &over))
}

fn said(resume: &Value, asked: &[InterruptedCall]) -> Result<Vec<Value>, RequestError> {
    let read = answered(resume, asked, [])?;
    let parts = read.answers.into_iter().map(|mut it| {
        let part = it.part.as_object_mut().unwrap();
        part.remove("type");
        part.remove("toolCallId");
        it.part
    });
    Ok(parts.collect())
}

#[test]
fn an_approval_may_be_said_in_all_words_that_clients_have_for_it() {
    let one = [asked("c", false, "own")];
    for (resume, says) in [
        (json!(true), json!({"approved": true})),
        (json!(false), json!({"approved": false})),
        (json!({"type": "approve"}), json!({"approved": true})),
        (
            json!([{"type": "accept", "args": null}]),
            json!({"approved": true}),
        ),
        (
            json!({"decisions": [{"type": "approve"}]}),
            json!({"approved": true}),
        ),
        (
            json!({"decisions": [{"type": "reject", "message": "no"}]}),
            json!({"approved": false, "message": "no"}),
        ),
        (
            json!({"type": "edit", "edited_action": {"name": "compute", "args": {"a": 1}}}),
            json!({"approved": true, "arguments": {"a": 1}}),
        ),
        (json!({"c": {"approved": true}}), json!({"approved": true})),
    ] {
        assert_eq!(said(&resume, &one), Ok(vec![says]), "{resume}");
    }
}

#[test]
fn nothing_is_allowed_by_what_does_not_say_so() {
    let one = [asked("c", false, "own")];
    for resume in [
        json!("yes"),
        json!(null),
        json!(1),
        json!({}),
        json!({"type": "respond", "args": "yes"}),
        json!({"approved": "true"}),
        json!({"d": true}),
        json!({"decisions": []}),
        json!({"decisions": [{"type": "approve"}, {"type": "approve"}]}),
        json!([true, true]),
        json!({"type": "edit"}),
    ] {
        assert!(said(&resume, &one).is_err(), "{resume}");
    }
    assert!(said(&json!(true), &[]).is_err());
}

#[test]
fn an_edited_call_stays_one_of_its_tool() {
    let one = [asked("c", false, "own")];
    for (edit, place) in [
        (
            json!({"edited_action": {"name": "read_file", "args": {"a": 1}}}),
            "/edited_action/name",
        ),
        (
            json!({"args": {"action": "read_file", "args": {"a": 1}}}),
            "/args/action",
        ),
        (
            json!({"edited_action": {"name": 7, "args": {}}}),
            "/edited_action/name",
        ),
        (
            json!({"edited_action": {"name": "compute"}}),
            "/edited_action/args",
        ),
        (json!({}), "/edited_action"),
    ] {
        let mut decision = edit.clone();
        decision["type"] = "edit".into();
        let refused = said(&json!({"decisions": [decision]}), &one).unwrap_err();
        let place = format!("/command/resume/decisions/0{place}");
        assert_eq!(refused.pointer, Some(place), "{edit}");
    }
    let same = json!([{"type": "edit", "args": {"action": "compute", "args": {"a": 1}}}]);
    let says = json!({"approved": true, "arguments": {"a": 1}});
    assert_eq!(said(&same, &one), Ok(vec![says]));
}

#[test]
fn several_calls_are_answered_by_their_ids() {
    let both = [
        asked("c", false, "own"),
        asked("c", true, "own/child"),
        asked("d", false, "own"),
    ];
    assert_eq!(both[1].id, "c@own/child");
    let resume = json!({"c": true, "c@own/child": [1, 2]});
    let read = answered(&resume, &both, []).unwrap();
    assert_eq!(read.answers.len(), 2);
    assert_eq!(read.answers[1].thread_key, "own/child");
    assert_eq!(read.answers[1].part["output"], json!([1, 2]));
    let decided = json!({"decisions": [{"type": "approve"}, {"type": "reject"}]});
    let says = said(&decided, &both).unwrap();
    assert_eq!(
        says,
        [json!({"approved": true}), json!({"approved": false})]
    );
    let error = said(&json!(true), &both).unwrap_err();
    assert!(error.message.contains("c@own/child"), "{}", error.message);
}

#[test]
fn a_result_is_any_value() {
    let one = [asked("c", true, "own")];
    for (resume, says) in [
        (json!("green"), json!({"output": "green"})),
        (json!(null), json!({"output": null})),
        (
            json!({"colour": "green"}),
            json!({"output": {"colour": "green"}}),
        ),
        (json!({"output": 7}), json!({"output": 7})),
        (json!({"errorText": "off"}), json!({"errorText": "off"})),
        (json!({"c": {"x": 1}}), json!({"output": {"x": 1}})),
    ] {
        assert_eq!(said(&resume, &one), Ok(vec![says]), "{resume}");
    }
}

#[test]
fn a_tools_message_answers_the_call_that_wants_a_result() {
    let both = [asked("c", true, "own"), asked("d", false, "own")];
    let result = |call: &str| ClientToolResult {
        id: None,
        tool_call_id: call.to_owned(),
        text: "green".to_owned(),
        is_error: true,
        pointer: "/input/messages/0".to_owned(),
    };
    let read = Resume::of_results(&[result("c")], &both).unwrap();
    assert_eq!(read.answers[0].part["errorText"], "green");
    for wrong in ["d", "e"] {
        assert!(
            Resume::of_results(&[result(wrong)], &both).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn what_an_answer_names_is_told_by_the_ids_of_interrupts() {
    let id = asked("c", false, "own/c@home").id;
    let named = ResumeValues::Command(json!({id: true}));
    assert_eq!(Resume::named(&named), Some(("c", Some("own/c@home"))));
    let named = ResumeValues::Command(json!({"c": true}));
    assert_eq!(Resume::named(&named), Some(("c", None)));
    for unnamed in [json!(true), json!([true]), json!({}), json!("c@own")] {
        assert_eq!(Resume::named(&ResumeValues::Command(unnamed)), None);
    }
}

#[test]
fn an_answer_by_id_is_for_that_interrupt_alone() {
    let only = [asked("c", true, "own")];
    let none = BTreeSet::new();
    let by_id = |id: &str| ResumeValues::ById(Map::from_iter([(id.to_owned(), json!(42))]));
    let read = Resume::of_answers(&by_id("c"), (&only, &none)).unwrap();
    assert_eq!(read.answers[0].part["output"], 42);
    let refused = Resume::of_answers(&by_id("d"), (&only, &none)).unwrap_err();
    assert_eq!(refused, RequestError::no_interrupt("d"));
    let mixed = answered(&json!({"c": 42, "d": 7}), &only, []).unwrap_err();
    assert_eq!(mixed, RequestError::no_interrupt("d"));
}

#[test]
fn an_answer_to_a_call_that_is_over_is_none_to_the_one_that_waits() {
    for only in [asked("c", true, "own"), asked("c", false, "own")] {
        let only = [only];
        for resume in [json!({"d": 42}), json!({"d": 42, "c": true})] {
            let refused = answered(&resume, &only, ["d"]).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Conflict);
            assert_eq!(refused.pointer.as_deref(), Some("/command/resume/d"));
        }
        let refused = answered(&json!({"d": 42}), &[], ["d"]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }
    // What no call was ever called is the result's own.
    let only = [asked("c", true, "own")];
    let read = answered(&json!({"d": 42}), &only, []).unwrap();
    assert_eq!(read.answers[0].part["output"], json!({"d": 42}));
}

#[test]
fn only_members_that_may_be_ids_are_looked_for_among_calls_that_are_over() {
    let asked = [asked("c", true, "own")];
    let resume = json!({"c": 1, "d": 2, "type": "approve", "own": {"e": 3}});
    let resume = ResumeValues::Command(resume);
    assert_eq!(Resume::unknown(&resume, &asked), ["d", "own"]);
    let by_id = ResumeValues::ById(Map::from_iter([("d".to_owned(), json!(1))]));
    assert!(Resume::unknown(&by_id, &asked).is_empty());
}
