//! Documents of one version as those of another.

use loomline_thread::document::{Message, Part, Turn};
use loomline_thread::{
    Change, ChangeKind, DowngradeError, Json, Profile, Severity, Thread, UpgradeError, Version,
    downgrade, upgrade, upgrade_to, validate,
};
use std::path::Path;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/versions")
        .join(name);
    std::fs::read_to_string(&path).expect(name)
}

fn document(text: &str) -> Thread {
    Thread::decode(text).expect(text)
}

fn lines(changes: &[Change]) -> Vec<String> {
    changes.iter().map(Change::to_string).collect()
}

fn squeezed(text: &str) -> String {
    Json::parse(text).expect("JSON").to_text()
}

#[test]
fn actions_become_turns() {
    let actions = document(&fixture("actions.json"));
    let turns = upgrade_to(&actions, &Version::V2_0_0).unwrap();
    assert_eq!(turns.thread.encode(), squeezed(&fixture("turns.json")));
    let report = fixture("actions.report");
    let changes = upgrade(&actions).unwrap().changes;
    assert_eq!(lines(&changes), report.lines().collect::<Vec<_>>());
}

#[test]
fn broken_actions_have_exactly_the_violations_listed() {
    let thread = document(&fixture("broken_actions.json"));
    let found = validate(&thread, Profile::Lenient);
    let found: Vec<_> = found
        .iter()
        .map(|found| {
            format!(
                "{found}
"
            )
        })
        .collect();
    let found = found.concat();
    assert_eq!(found, fixture("broken_actions.expected"), "{found}");
}

#[test]
fn sound_actions_are_only_told_to_be_upgraded_before_and_have_nothing_wrong_after() {
    let actions = document(&fixture("actions.json"));
    let found = validate(&actions, Profile::Lenient);
    let rules: Vec<_> = found
        .iter()
        .map(|found| (found.rule.id(), found.severity))
        .collect();
    assert_eq!(rules, [("tp-version", Severity::Warning)]);
    let newest = upgrade(&actions).unwrap().thread;
    let found = validate(&newest, Profile::Lenient);
    let rules: Vec<_> = found.iter().map(|found| found.rule.id()).collect();
    assert_eq!(rules, ["tp-expected"], "the picture has no identifier");
}

#[test]
fn actions_that_no_turn_can_hold_stay_where_they_were() {
    let text = r#"{"version":"1.0.0","turns":"mine","actions":[7,{"action_type":"tool_return","tool_call_id":"c"},
        {"action_type":"system.x","data":1},{"x":1}],"y":2}"#;
    let upgraded = upgrade(&document(text)).unwrap();
    assert_eq!(
        upgraded.thread.encode(),
        concat!(
            r#"{"version":"0.0.4","1.0.0:turns":"mine","turns":[],"actions":[7,"#,
            r#"{"action_type":"tool_return","tool_call_id":"c"},{"x":1},{"action_type":"system.x","data":1}],"y":2}"#
        )
    );
    let kinds: Vec<_> = upgraded.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Unchanged; 4]);
}

/// The turns that actions become: whose each is, and its messages with the kinds of their parts.
fn turns(actions: &str) -> String {
    let text = format!(r#"{{"version":"1.0.0","actions":[{actions}]}}"#);
    let upgraded = upgrade_to(&document(&text), &Version::V2_0_0).expect("actions");
    let kinds = |message: Message<'_>| match message {
        Message::Request(request) => format!(" request[{}]", kinds(request.parts())),
        Message::Response(response) => format!(" response[{}]", kinds(response.parts())),
        Message::System(_) => " system".to_owned(),
        Message::Unknown(json) => format!(" {json}"),
    };
    let turn = |turn: Turn<'_>| match turn {
        Turn::User(_) => "user; ".to_owned(),
        Turn::Agent(turn) => {
            let messages: Vec<_> = turn.messages().map(kinds).collect();
            let agent = turn.agent_id().unwrap_or_default();
            format!("{agent}{}; ", messages.concat())
        }
        Turn::Unknown(json) => json.to_string(),
    };
    upgraded.thread.turns().map(turn).collect()
}

fn kinds<'a>(parts: impl Iterator<Item = Part<'a>>) -> String {
    let kinds: Vec<_> = parts.map(|part| part.kind().as_str()).collect();
    kinds.join(" ")
}

fn said(agent: &str) -> String {
    format!(r#"{{"action_type":"assistant_message","agent_id":"{agent}","content":"x"}}"#)
}

fn thought(agent: &str) -> String {
    format!(r#"{{"action_type":"thinking","agent_id":"{agent}"}}"#)
}

fn call(agent: &str, id: &str) -> String {
    format!(r#"{{"action_type":"tool_call","agent_id":"{agent}","tool_call_id":"{id}"}}"#)
}

fn answer(id: &str) -> String {
    format!(r#"{{"action_type":"tool_return","tool_call_id":"{id}"}}"#)
}

const USER: &str = r#"{"action_type":"user_message","content":"x"}"#;
const EVENT: &str = r#"{"action_type":"system.x","data":1}"#;

#[test]
fn a_message_after_a_message_is_a_response_of_its_own() {
    let actions = [
        said("a"),
        said("a"),
        thought("a"),
        call("a", "c"),
        answer("c"),
    ]
    .join(",");
    assert_eq!(
        turns(&actions),
        "a response[text] response[text] response[thinking tool-call] request[tool-return]; "
    );
}

#[test]
fn what_follows_an_open_call_belongs_to_the_same_response() {
    let actions = [
        call("a", "c"),
        said("a"),
        thought("a"),
        call("a", "d"),
        answer("d"),
        answer("c"),
    ];
    assert_eq!(
        turns(&actions.join(",")),
        "a response[tool-call text thinking tool-call] request[tool-return tool-return]; "
    );
}

#[test]
fn another_agent_or_a_user_ends_a_turn_and_an_answer_goes_to_the_caller() {
    let actions = [
        call("a", "c"),
        USER.to_owned(),
        said("b"),
        answer("c"),
        said("a"),
    ];
    assert_eq!(
        turns(&actions.join(",")),
        "a response[tool-call]; user; b response[text]; a request[tool-return] response[text]; "
    );
}

#[test]
fn an_event_outside_of_turns_begins_the_next_or_ends_the_last() {
    let actions = [
        EVENT.to_owned(),
        USER.to_owned(),
        said("a"),
        USER.to_owned(),
        EVENT.to_owned(),
    ];
    assert_eq!(
        turns(&actions.join(",")),
        "user; a system response[text] system; user; "
    );
    let actions = [thought("a"), EVENT.to_owned(), said("a")];
    assert_eq!(
        turns(&actions.join(",")),
        "a response[thinking text] system; "
    );
}

#[test]
fn sequence_alone_orders_and_its_gaps_are_reported() {
    let text = r#"{"version":"1.0.0","actions":[{"action_type":"user_message","content":"c","sequence":9},
        {"action_type":"user_message","content":"a","sequence":1},{"action_type":"user_message","content":"b","sequence":1},
        {"action_type":"user_message","content":"d","sequence":"x"}]}"#;
    let upgraded = upgrade_to(&document(text), &Version::V2_0_0).unwrap();
    let prompts = upgraded.thread.turns().filter_map(|turn| match turn {
        Turn::User(user) => user.parts().next()?.content_str(),
        Turn::Agent(_) | Turn::Unknown(_) => None,
    });
    let order: String = prompts.collect();
    assert_eq!(order, "abdc");
    let dropped: Vec<_> = upgraded
        .losses()
        .map(|change| change.pointer.as_str())
        .collect();
    assert_eq!(
        dropped,
        [
            "/actions/3/sequence",
            "/actions/2/sequence",
            "/actions/0/sequence"
        ]
    );
}

#[test]
fn a_parent_becomes_a_link_in_its_place() {
    let text = r#"{"version":"1.0.0","x":1,"parent_thread_id":"p","y":2}"#;
    let kept = upgrade_to(&document(text), &Version::V2_0_0)
        .unwrap()
        .thread;
    assert!(kept.encode().contains(r#""parent_thread_id":"p""#));
    let linked = upgrade(&kept).unwrap().thread.encode();
    assert_eq!(
        linked,
        r#"{"version":"0.0.4","x":1,"relationships":{"links":[{"thread_id":"p","relation":"spawned_from"}]},"y":2,"turns":[]}"#
    );
    assert_eq!(upgrade(&document(text)).unwrap().thread.encode(), linked);
}

#[test]
fn a_null_takes_the_link_to_the_parent_as_an_absent_member_does() {
    for relationships in ["null", r#"{"links":null}"#, r#"{"links":[]}"#, "{}"] {
        let text = format!(
            r#"{{"version":"2.0.0","relationships":{relationships},"parent_thread_id":"p","turns":[]}}"#
        );
        let upgraded = upgrade_to(&document(&text), &Version::V0_0_3).unwrap();
        assert_eq!(
            upgraded.thread.encode(),
            r#"{"version":"0.0.3","relationships":{"links":[{"thread_id":"p","relation":"spawned_from"}]},"turns":[]}"#
        );
        let kinds: Vec<_> = upgraded.changes.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [ChangeKind::Moved], "{relationships}");
    }
}

#[test]
fn a_member_that_the_later_version_gives_a_meaning_is_reported() {
    let kept = |text: &str| -> Vec<String> {
        let source = document(text);
        let upgraded = upgrade_to(&source, &Version::V0_0_3).unwrap();
        let changes = upgraded.changes.into_iter();
        let kept = changes.filter(|it| it.kind == ChangeKind::Unchanged);
        kept.map(|it| it.pointer).collect()
    };
    let with = |relationships: &str, own: &str| {
        format!(
            r#"{{"version":"2.0.0","relationships":{relationships},"turns":[
            {{"turn_type":"user","client_metadata":{own},"parts":[{{"part_kind":"tool-return","content_ref":{own}}}]}},
            {{"turn_type":"agent","client_metadata":{own},"messages":[{{"message_type":"request","parts":[
                {{"part_kind":"text","content_ref":{own}}},{{"part_kind":"tool-return","content_ref":{own}}}]}}]}}]}}"#
        )
    };
    assert_eq!(kept(&with("null", "null")), [""; 0]);
    let good = r#"{"links":[{"thread_id":"p","relation":"r","metadata":null}],"x":1}"#;
    assert_eq!(kept(&with(good, "null")), [""; 0]);
    let expected = [
        "/relationships",
        "/turns/0/client_metadata",
        "/turns/0/parts/0/content_ref",
        "/turns/1/messages/0/parts/1/content_ref",
    ];
    for malformed in ["[]", r#"{"links":{}}"#, r#"{"links":[{"relation":"r"}]}"#] {
        assert_eq!(kept(&with(malformed, "{}")), expected, "{malformed}");
    }
}

#[test]
fn a_broken_cycle_is_kept_and_reported() {
    let text = r#"{"version":"0.0.3","turns":[{"turn_type":"agent","agent_id":"a","messages":[
        {"message_type":"response","parts":[{"part_kind":"tool-call","tool_call_id":"c"}]},
        {"message_type":"response","parts":[]}]}]}"#;
    let upgraded = upgrade(&document(text)).unwrap();
    assert_eq!(upgraded.thread.turns().len(), 1);
    let last = upgraded
        .changes
        .last()
        .map(|change| (change.kind, change.pointer.as_str()));
    assert_eq!(
        last,
        Some((ChangeKind::Unchanged, "/turns/0/messages/0/parts/0"))
    );
    let found = validate(&upgraded.thread, Profile::Lenient);
    assert!(
        found
            .iter()
            .any(|found| found.rule.id() == "tp-complete-cycle")
    );
}

#[test]
fn a_call_that_loses_its_answer_is_reported() {
    let text = r#"{"version":"0.0.4","turns":[
        {"turn_type":"agent","agent_id":"a","completion_status":"complete","messages":[
            {"message_type":"response","parts":[{"part_kind":"tool-call","tool_call_id":"c"}]}]},
        {"turn_type":"agent","agent_id":"a","completion_status":"interrupted","messages":[
            {"message_type":"request","parts":[{"part_kind":"tool-return","tool_call_id":"c"}]},
            {"message_type":"response","parts":[{"part_kind":"text","content":"x"}]}]},
        {"turn_type":"agent","agent_id":"b","completion_status":"complete","messages":[]}]}"#;
    let old = downgrade(&document(text), &Version::V0_0_3).unwrap();
    let last = old
        .changes
        .last()
        .map(|change| (change.kind, change.pointer.as_str()));
    assert_eq!(
        last,
        Some((ChangeKind::Unchanged, "/turns/0/messages/0/parts/0"))
    );
}

#[test]
fn content_that_is_kept_elsewhere_becomes_null_in_2_0_0() {
    let part = |rest: &str| format!(r#"{{"part_kind":"tool-return",{rest}}}"#);
    let text = |version: &str, first: &str, second: &str| {
        let parts = [part(first), part(second)].join(",");
        format!(r#"{{"version":"{version}","turns":[{{"turn_type":"user","parts":[{parts}]}}]}}"#)
    };
    let new = text(
        "0.0.4",
        r#""content_ref":{"uri":"s3://a/b"},"x":1"#,
        r#""content":2,"content_ref":null"#,
    );
    let old = downgrade(&document(&new), &Version::V2_0_0).unwrap();
    assert_eq!(
        old.thread.encode(),
        text("2.0.0", r#""content":null,"x":1"#, r#""content":2"#)
    );
    assert_eq!(
        lines(&old.changes),
        [
            r#"dropped at "/turns/0/parts/0/content_ref": where the content is kept"#,
            r#"added at "/turns/0/parts/0": `content` is null"#,
            r#"dropped at "/turns/0/parts/1/content_ref": where the content is kept"#,
        ]
    );
}

#[test]
fn an_event_whose_name_means_something_else_in_the_other_version_is_reported() {
    let text = |version: &str, name: &str| {
        format!(
            r#"{{"version":"{version}","turns":[{{"turn_type":"agent","completion_status":"complete","messages":[{{"message_type":"system","event_type":"{name}"}}]}}]}}"#
        )
    };
    let old = downgrade(&document(&text("0.0.4", "error")), &Version::V0_0_3).unwrap();
    assert_eq!(
        old.changes.last().map(|change| change.kind),
        Some(ChangeKind::Unchanged)
    );
    let new = upgrade(&document(&text("0.0.3", "data-sys-x"))).unwrap();
    assert_eq!(
        new.changes.last().map(|change| change.kind),
        Some(ChangeKind::Unchanged)
    );
}

#[test]
fn a_document_of_the_version_asked_for_comes_back_as_it_was() {
    for version in Version::KNOWN {
        let thread = document(&format!(r#"{{"x":null,"version":"{version}","turns":7}}"#));
        let same = upgrade_to(&thread, &version).unwrap();
        assert_eq!((same.thread, same.changes), (thread, Vec::new()));
    }
}

#[test]
fn what_can_not_be_converted_is_refused_by_name() {
    let of = |version: &str| document(&format!(r#"{{"version":"{version}"}}"#));
    let error = upgrade(&of("3.1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"version "3.1" is not known; known are 1.0.0, 2.0.0, 0.0.3, 0.0.4"#
    );
    let error = upgrade(&document("{}")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the document names no version; known are")
    );
    let error = upgrade_to(&of("0.0.3"), &Version::V2_0_0).unwrap_err();
    assert!(matches!(
        error,
        UpgradeError::Backward {
            from: Version::V0_0_3,
            to: Version::V2_0_0
        }
    ));
    let error = upgrade_to(&of("2.0.0"), &Version::from("9")).unwrap_err();
    assert!(matches!(error, UpgradeError::UnknownVersion(_)));
    let error = downgrade(&of("0.0.4"), &Version::V1_0_0).unwrap_err();
    assert_eq!(error, DowngradeError::ReadOnly);
    let error = downgrade(&of("2.0.0"), &Version::V0_0_3).unwrap_err();
    assert!(matches!(error, DowngradeError::Forward { .. }));
    assert!(matches!(
        downgrade(&of("9"), &Version::V2_0_0),
        Err(DowngradeError::UnknownVersion(_))
    ));
}

#[test]
fn a_document_in_our_own_order_comes_back_byte_for_byte() {
    let text = concat!(
        r#"{"version":"0.0.4","turns":[{"turn_type":"agent","agent_id":"a","started_at":"s","completed_at":"e","#,
        r#""completion_status":"complete","messages":[],"total_usage":{"input_tokens":1}}]}"#
    );
    for version in [Version::V0_0_3, Version::V2_0_0] {
        let old = downgrade(&document(text), &version).unwrap();
        assert_eq!(old.losses().count(), 1);
        assert_eq!(upgrade(&old.thread).unwrap().thread.encode(), text);
    }
}
