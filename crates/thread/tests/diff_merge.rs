//! Difference, patch and merge: examples here, laws in `diff_merge/laws.rs`.

#[path = "diff_merge/laws.rs"]
mod laws;
#[path = "diff_merge/random.rs"]
mod random;

use loomline_thread::diff::{DiffKind, Edit, Level, diff_with};
use loomline_thread::merge::ConflictKind;
use loomline_thread::{
    CanonicalOptions, Diff, Json, Merged, PatchError, Profile, Severity, Thread, diff, merge,
    patch, validate,
};

const AT: &str = "2026-03-04T10:00:00Z";

fn json(text: &str) -> Json {
    Json::parse(text).expect(text)
}

fn thread(text: &str) -> Thread {
    Thread::decode(text).expect(text)
}

fn clean(thread: Thread) -> Merged {
    Merged {
        thread,
        conflicts: Vec::new(),
    }
}

fn errors(thread: &Thread) -> Vec<String> {
    let found = validate(thread, Profile::Strict).into_iter();
    let errors = found.filter(|violation| violation.severity == Severity::Error);
    errors.map(|violation| violation.to_string()).collect()
}

fn user(said: &str) -> String {
    let part = format!(r#"{{"part_kind":"user-prompt","content":"{said}"}}"#);
    format!(r#"{{"turn_type":"user","submitted_at":"{AT}","parts":[{part}]}}"#)
}

fn agent(id: &str, said: &str) -> String {
    let part = format!(r#"{{"part_kind":"text","content":"{said}"}}"#);
    let message = format!(
        r#"{{"message_type":"response","timestamp":"{AT}","agent_id":"{id}","parts":[{part}]}}"#
    );
    format!(
        r#"{{"turn_type":"agent","agent_id":"{id}","started_at":"{AT}","completion_status":"complete","messages":[{message}]}}"#
    )
}

fn config(id: &str) -> String {
    format!(r#""{id}":{{"agent_id":"{id}","agent_name":"Agent {id}","created_at":"{AT}"}}"#)
}

fn document_of(agents: &[&str], turns: &[String]) -> Thread {
    let agents: Vec<_> = agents.iter().map(|id| config(id)).collect();
    thread(&format!(
        r#"{{"version":"0.0.4","thread_id":"t","created_at":"{AT}","updated_at":"{AT}","agents":{{{}}},"turns":[{}]}}"#,
        agents.join(","),
        turns.join(",")
    ))
}

fn long(n: usize, said: impl Fn(usize) -> String) -> Thread {
    let turns = (0..n).map(|n| {
        if n % 2 == 0 {
            user(&said(n))
        } else {
            agent("w", &said(n))
        }
    });
    document_of(&["w"], &turns.collect::<Vec<_>>())
}

#[test]
fn one_text_in_two_hundred_turns_is_one_change_of_one_part() {
    let from = long(200, |n| format!("said {n}"));
    let to = long(200, |n| {
        if n == 133 {
            "other".to_owned()
        } else {
            format!("said {n}")
        }
    });
    let diff = diff(&from, &to);
    let changes: Vec<_> = diff.iter().collect();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].level, Level::Part);
    let place = Some("/turns/133/messages/0/parts/0".to_owned());
    assert_eq!((&changes[0].from, &changes[0].to), (&place, &place));
    let text = "~ turn 133 (agent Agent w)\n  ~ message 0 response\n    - text \"said 133\"\n    + text \"other\"\n1 part changed\n";
    assert_eq!(diff.to_text(), text);
}

#[test]
fn a_turn_put_in_front_of_two_hundred_is_one_addition() {
    let from = long(200, |n| format!("said {n}"));
    let mut to = from.clone();
    let turns = to.root_mut().get_mut("turns").and_then(Json::as_array_mut);
    turns.unwrap().insert(0, json(&user("first")));
    let diff = diff(&from, &to);
    assert_eq!(diff.to_text(), "+ turn 0 (user) \"first\"\n1 turn added\n");
    assert_eq!(diff.changes.len(), 1);
    assert_eq!(
        diff.invert().to_text(),
        "- turn 0 (user) \"first\"\n1 turn removed\n"
    );
}

#[test]
fn ten_thousand_repeated_turns_are_compared_without_a_table() {
    let from = long(10_000, |_| "same".to_owned());
    let mut to = from.clone();
    let turns = to.root_mut().get_mut("turns").and_then(Json::as_array_mut);
    let turns = turns.unwrap();
    turns.insert(0, json(&agent("w", "first")));
    turns.insert(5000, json(&user("middle")));
    turns.push(json(&user("last")));
    let diff = diff(&from, &to);
    assert_eq!(patch(&from, &diff), Ok(to));
}

#[test]
fn the_text_names_what_changed_at_every_level() {
    let from = thread(
        r#"{"title":"Looms","metadata":{"a":1,"b":[1,2]},"agents":{"w":{"agent_name":"Weaver\u001b[1m"}},
            "turns":[{"turn_type":"agent","agent_id":"w","messages":[
                {"message_type":"response","usage":{"input_tokens":1},"parts":[
                    {"part_kind":"tool-call","tool_name":"weigh","tool_call_id":"c","args":{"kg":1}}]},
                {"message_type":"system","event_type":"data-sys-x","event_data":{}}]}]}"#,
    );
    let to = thread(
        r#"{"metadata":{"a":1.0,"b":[1,3,4]},"title":"A loom","agents":{"w":{"agent_name":"Weaver\u001b[1m"},"v":{"agent_name":"Vera"}},
            "turns":[{"turn_type":"agent","agent_id":"w","messages":[
                {"message_type":"response","usage":{"input_tokens":2},"parts":[
                    {"part_kind":"tool-call","tool_name":"weigh","tool_call_id":"c","args":{"kg":2}},
                    {"part_kind":"text","content":"ok"}]}]}]}"#,
    );
    let expected = r#"~ thread
  - title "Looms"
  + title "A loom"
  - metadata/b/1 2
  + metadata/b/1 3
  + metadata/b/2 4
+ agent Vera (v)
~ turn 0 (agent Weaver\u{1b}[1m)
  ~ message 0 response
    - usage/input_tokens 1
    + usage/input_tokens 2
    - tool-call weigh args/kg 1
    + tool-call weigh args/kg 2
    + text "ok"
  - message 1 system data-sys-x {}
1 thread changed, 1 agent added, 1 message removed, 1 message changed, 1 part added, 1 part changed; 2 differences of form only
"#;
    let diff = diff(&from, &to);
    assert_eq!(diff.to_text(), expected);
    assert_eq!(diff.to_string(), expected);
    let without = diff_with(&from, &to, CanonicalOptions { keep_sys: false });
    assert!(!without.to_text().contains("data-sys-x"));
    assert_eq!(patch(&from, &without), Ok(to));
}

#[test]
fn what_differs_is_in_sight_where_only_the_id_of_a_call_or_its_tool_changed() {
    let with = |tool: &str, id: &str| {
        thread(&format!(
            r#"{{"turns":[{{"turn_type":"agent","agent_id":"w","messages":[
                {{"message_type":"response","parts":[
                    {{"part_kind":"tool-call","tool_name":"{tool}","tool_call_id":"{id}","args":{{"q":1}}}}]}}]}}]}}"#
        ))
    };
    let expected = r#"~ turn 0 (agent w)
  ~ message 0 response
    - tool-call find {"q":1} tool_call_id "c1"
    + tool-call find {"q":1} tool_call_id "c2"
1 part added, 1 part removed
"#;
    assert_eq!(
        diff(&with("find", "c1"), &with("find", "c2")).to_text(),
        expected
    );
    let expected = r#"~ turn 0 (agent w)
  ~ message 0 response
    - tool-call find tool_name "find"
    + tool-call seek tool_name "seek"
1 part changed
"#;
    let renamed = diff(&with("find", "c1"), &with("seek", "c1"));
    assert_eq!(renamed.to_text(), expected);
    let back = diff(&with("seek", "c1"), &with("find", "c1")).invert();
    assert_eq!(back.to_text(), expected);
}

#[test]
fn a_forged_diff_is_refused() {
    let from = document_of(&["w"], &[user("a"), agent("w", "b")]);
    let to = document_of(&["w", "v"], &[user("a"), user("c"), agent("w", "d")]);
    let text = diff(&from, &to).to_json().to_text();
    let forge = |one: &str, other: &str| {
        assert!(text.contains(one), "{one} is not in {text}");
        let forged = Diff::from_json(&json(&text.replacen(one, other, 1))).unwrap();
        patch(&from, &forged).unwrap_err()
    };
    assert_eq!(forge(r#""at":1"#, r#""at":7"#).pointer(), "/agents");
    assert_eq!(
        forge("/turns/1/messages/0/parts/0", "/turns/1/parts/0").pointer(),
        "/turns/1/parts/0"
    );
    assert_eq!(
        forge(r#""old":"b""#, r#""old":"x""#).pointer(),
        "/turns/1/messages/0/parts/0/content"
    );
    let other_result = forge(r#""new":"d""#, r#""new":"x""#);
    assert!(
        other_result
            .to_string()
            .starts_with("the diff leads to the document sha256:")
    );
}

#[test]
fn turns_that_one_side_appended_are_taken() {
    let base = document_of(&["w"], &[user("a")]);
    let ours = document_of(&["w"], &[user("a"), agent("w", "b")]);
    let theirs = document_of(&["w", "v"], &[user("a!")]);
    let merged = merge(&base, &ours, &theirs);
    assert_eq!(
        merged,
        clean(document_of(&["w", "v"], &[user("a!"), agent("w", "b")]))
    );
}

#[test]
fn turns_that_both_appended_are_kept_ours_first_and_reported() {
    let base = document_of(&["w"], &[user("a")]);
    let ours = document_of(&["w"], &[user("a"), user("both"), agent("w", "ours")]);
    let theirs = document_of(
        &["w"],
        &[user("a"), user("both"), agent("w", "theirs"), user("b")],
    );
    let merged = merge(&base, &ours, &theirs);
    let turns = [
        user("a"),
        user("both"),
        agent("w", "ours"),
        agent("w", "theirs"),
        user("b"),
    ];
    assert_eq!(merged.thread, document_of(&["w"], &turns));
    let [conflict] = &merged.conflicts[..] else {
        panic!("{:?}", merged.conflicts)
    };
    assert_eq!(conflict.kind, ConflictKind::BothAppended);
    assert_eq!(conflict.pointer, "/turns/2");
    let length = |side: &Option<Json>| side.as_ref().and_then(Json::as_array).map(<[Json]>::len);
    assert_eq!(
        (length(&conflict.ours), length(&conflict.theirs)),
        (Some(1), Some(2))
    );
}

#[test]
fn agents_metadata_and_links_are_united_and_the_later_instant_is_taken() {
    let base = thread(
        r#"{"updated_at":"2026-03-04T10:00:00Z","metadata":{"a":{"b":1}},"agents":{"w":{}},"relationships":{"links":[{"thread_id":"1","relation":"r"}]}}"#,
    );
    let ours = thread(
        r#"{"updated_at":"2026-03-04T13:00:00+02:00","metadata":{"a":{"b":1,"c":2}},"agents":{"w":{},"o":{}},"relationships":{"links":[{"thread_id":"1","relation":"r"},{"thread_id":"2","relation":"r"}]}}"#,
    );
    let theirs = thread(
        r#"{"updated_at":"2026-03-04T12:00:00Z","metadata":{"a":{"b":3}},"agents":{"w":{"x":1},"t":{}},"relationships":{"links":[{"thread_id":"1","relation":"r"},{"thread_id":"3","relation":"r"},{"relation":"r","thread_id":"2"}]}}"#,
    );
    let expected = r#"{"updated_at":"2026-03-04T12:00:00Z","metadata":{"a":{"b":3,"c":2}},"agents":{"w":{"x":1},"o":{},"t":{}},"relationships":{"links":[{"thread_id":"1","relation":"r"},{"thread_id":"2","relation":"r"},{"thread_id":"3","relation":"r"}]}}"#;
    assert_eq!(merge(&base, &ours, &theirs), clean(thread(expected)));
}

#[test]
fn what_both_changed_is_a_conflict_and_ours_stays() {
    let base = document_of(&["w"], &[user("a"), agent("w", "b")]);
    let ours = document_of(&["w"], &[user("a"), agent("w", "ours")]);
    let theirs = document_of(&["w"], &[user("a"), agent("w", "theirs")]);
    let merged = merge(&base, &ours, &theirs);
    assert_eq!(merged.thread, ours);
    let shown: Vec<_> = merged
        .conflicts
        .iter()
        .map(|c| c.to_json().to_text())
        .collect();
    let expected = r#"{"kind":"both-changed","pointer":"/turns/1/messages/0/parts/0","base":{"part_kind":"text","content":"b"},"ours":{"part_kind":"text","content":"ours"},"theirs":{"part_kind":"text","content":"theirs"}}"#;
    assert_eq!(shown, [expected]);
}

#[test]
fn what_one_removed_and_the_other_changed_stays() {
    let base = document_of(&["w"], &[user("a"), agent("w", "b")]);
    let ours = document_of(&["w"], &[user("a")]);
    let theirs = document_of(&["w"], &[user("a"), agent("w", "c")]);
    for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
        let merged = merge(&base, ours, theirs);
        assert_eq!(
            merged.thread,
            document_of(&["w"], &[user("a"), agent("w", "c")])
        );
        let conflict = &merged.conflicts[0];
        assert_eq!(conflict.kind, ConflictKind::RemovedAndChanged);
        assert_eq!(conflict.pointer, "/turns/1");
    }
}

#[test]
fn an_agent_that_one_removed_stays_if_the_other_lets_it_speak() {
    let base = document_of(&["w", "v"], &[user("a")]);
    let ours = document_of(&["w"], &[user("a")]);
    let theirs = document_of(&["w", "v"], &[user("a"), agent("v", "b")]);
    let merged = merge(&base, &ours, &theirs);
    assert_eq!(merged.thread, theirs);
    assert_eq!(merged.conflicts[0].kind, ConflictKind::RemovedAndChanged);
    assert_eq!(merged.conflicts[0].pointer, "/agents/v");
}

#[test]
fn an_agent_that_only_an_event_names_stays() {
    let event = |name: &str, members: &str| {
        format!(
            r#"{{"turn_type":"agent","agent_id":"w","started_at":"{AT}","completion_status":"complete","messages":[
            {{"message_type":"system","timestamp":"{AT}","event_type":"{name}",{members}}}]}}"#
        )
    };
    for (event, stays) in [
        (
            event("data-x", r#""source_agent":"v","event_data":{}"#),
            true,
        ),
        (
            event("data-x", r#""target_agents":["v"],"event_data":{}"#),
            true,
        ),
        (
            event("data-tp-agent_handoff", r#""event_data":{"to":"v"}"#),
            true,
        ),
        (event("agent.handoff", r#""event_data":{"to":"v"}"#), true),
        (event("data-x", r#""event_data":{"to":"v"}"#), false),
    ] {
        let base = document_of(&["w", "v"], &[user("a")]);
        let ours = document_of(&["w"], &[user("a")]);
        let theirs = document_of(&["w", "v"], &[user("a"), event.clone()]);
        let merged = merge(&base, &ours, &theirs);
        assert_eq!(merged.thread.agent("v").is_some(), stays, "{event}");
        let told: Vec<_> = merged.conflicts.iter().map(|it| &*it.pointer).collect();
        assert_eq!(told, if stays { vec!["/agents/v"] } else { Vec::new() });
    }
}

#[test]
fn integers_that_are_one_double_are_different_all_the_same() {
    let with = |id: u64| {
        thread(&format!(
            r#"{{"version":"0.0.4","turns":[],"metadata":{{"id":{id}}}}}"#
        ))
    };
    let two_to_53 = 1 << 53;
    let [base, ours, theirs] = [0, 1, 2].map(|n| with(two_to_53 + n));
    let merged = merge(&base, &ours, &theirs);
    assert_eq!(merged.thread, ours);
    let [conflict] = &*merged.conflicts else {
        panic!("{:?}", merged.conflicts)
    };
    assert_eq!(conflict.kind, ConflictKind::BothChanged);
    assert_eq!(conflict.pointer, "/metadata/id");

    let expected = "~ thread\n  - metadata/id 9007199254740993\n  + metadata/id 9007199254740992\n1 thread changed\n";
    assert_eq!(diff(&ours, &base).to_text(), expected);
}

#[test]
fn changes_that_break_the_protocol_only_together_are_a_conflict() {
    let turn = |status: &str| {
        let member = r#""completion_status":"complete""#;
        agent("w", "b").replace(member, status)
    };
    let base = document_of(&["w"], &[turn(r#""completion_status":"complete""#)]);
    let why = format!(
        r#""completion_status":"interrupted","interruption":{{"reason":"timeout","interrupted_at":"{AT}"}}"#
    );
    let ours = document_of(&["w"], &[turn(&why)]);
    let when = format!(r#""completion_status":"complete","completed_at":"{AT}""#);
    let theirs = document_of(&["w"], &[turn(&when)]);
    for side in [&base, &ours, &theirs] {
        assert!(
            !errors(side)
                .iter()
                .any(|error| error.contains("completed-at"))
        );
    }
    let merged = merge(&base, &ours, &theirs);
    let shown: Vec<_> = merged.conflicts.iter().map(ToString::to_string).collect();
    let expected =
        "\"/turns/0/completed_at\": together tp-completed-at: an interrupted turn did not complete";
    assert_eq!(shown, [expected]);
}

#[test]
fn a_difference_of_form_gives_way_to_one_of_meaning() {
    let base = thread(r#"{"x":1,"title":null,"turns":[]}"#);
    let ours = thread(r#"{"turns":[],"x":1.0}"#);
    let theirs = thread(r#"{"x":2,"title":null,"turns":[],"y":0}"#);
    let merged = merge(&base, &ours, &theirs);
    assert_eq!(merged, clean(thread(r#"{"turns":[],"y":0,"x":2}"#)));
}

#[test]
fn a_turn_is_found_again_without_its_telemetry_where_that_does_not_count() {
    let event = format!(
        r#"{{"message_type":"system","timestamp":"{AT}","event_type":"data-sys-x","event_data":{{}}}},"#
    );
    let told = |said| agent("w", said).replace("[{\"message", &format!("[{event}{{\"message"));
    let from = document_of(&["w"], &[told("a"), told("b")]);
    let to = document_of(&["w"], &[agent("w", "b")]);
    let diff = diff_with(&from, &to, CanonicalOptions { keep_sys: false });
    let removed = "- turn 0 (agent Agent w) {}\n1 turn removed; 1 difference of form only\n";
    assert_eq!(diff.to_text(), removed);
    assert_eq!(patch(&from, &diff), Ok(to));
}

#[test]
fn a_diff_that_comes_back_to_an_object_is_refused_for_each_is_built_anew_once() {
    let from = thread(r#"{"turns":[],"x":{"a":1,"b":2},"y":{"c":3}}"#);
    let to = thread(r#"{"turns":[],"x":{},"y":{}}"#);
    let mut diff = diff(&from, &to);
    assert_eq!(patch(&from, &diff), Ok(to));
    let DiffKind::Changed { members, .. } = &mut diff.changes[0].kind else {
        panic!("{diff:?}")
    };
    // The second member of `x` is now the first, so that the diff still fits step by step.
    let [_, second, _] = members.as_mut_slice() else {
        panic!("{members:?}")
    };
    if let Edit::Removed { at, .. } = &mut second.edit {
        *at = 0;
    }
    members.swap(1, 2);
    let refused = patch(&from, &diff).unwrap_err();
    assert!(
        matches!(&refused, PatchError::Malformed { pointer } if pointer == "/x/b"),
        "{refused}"
    );
}
