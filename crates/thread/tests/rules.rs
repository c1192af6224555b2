//! Single rules of the validator, each on the smallest document that shows it.

use loomline_thread::{Profile, Thread, validate};

const AT: &str = "2026-03-04T07:30:00Z";
const ID: &str = "6a1e2f30-0c44-4d0b-8a43-5a9f0e6c7d01";

/// The breaches in a document with the given root members and turns: severity when reading and
/// when writing, rule, place.
fn found(version: &str, root: &str, turns: &str) -> Vec<String> {
    let status = r#""completion_status":"complete","#;
    let turns = match version {
        "2.0.0" | "0.0.3" => turns.replace(status, ""),
        _ => turns.to_owned(),
    };
    let agent = format!(r#"{{"agent_id":"{ID}","agent_name":"A","created_at":"{AT}"}}"#);
    let text = format!(
        r#"{{"version":"{version}","thread_id":"{ID}","created_at":"{AT}","updated_at":"{AT}",
        "agents":{{"{ID}":{agent}}},{root}"turns":[{turns}]}}"#
    );
    let thread = Thread::decode(&text).expect(&text);
    let lenient = validate(&thread, Profile::Lenient);
    let strict = validate(&thread, Profile::Strict);
    assert_eq!(lenient.len(), strict.len());
    let both = lenient.iter().zip(&strict);
    both.map(|(reading, writing)| {
        let (rule, pointer) = (reading.rule, &reading.pointer);
        let severities = format!("{:?}/{:?}", reading.severity, writing.severity);
        format!("{severities} {rule} {pointer}").to_lowercase()
    })
    .collect()
}

fn user(rest: &str) -> String {
    format!(r#"{{"turn_type":"user","submitted_at":"{AT}",{rest}}}"#)
}

fn prompt(content: &str) -> String {
    user(&format!(
        r#""parts":[{{"part_kind":"user-prompt","content":{content}}}]"#
    ))
}

fn agent(messages: &str) -> String {
    format!(
        r#"{{"turn_type":"agent","agent_id":"{ID}","started_at":"{AT}","completed_at":"{AT}",
        "completion_status":"complete","messages":[{messages}]}}"#
    )
}

fn message(kind: &str, rest: &str) -> String {
    format!(r#"{{"message_type":"{kind}","timestamp":"{AT}","agent_id":"{ID}",{rest}}}"#)
}

fn event(name: &str, data: &str) -> String {
    agent(&format!(
        r#"{{"message_type":"system","timestamp":"{AT}","event_type":"{name}","event_data":{data}}}"#
    ))
}

#[test]
fn a_link_has_a_thread_a_relation_and_metadata_that_is_an_object() {
    let links = |links: &str| format!(r#""relationships":{{"links":{links}}},"#);
    let good = links(&format!(
        r#"[{{"thread_id":"{ID}","relation":"of-our-own","metadata":{{"branch_point":"turn_5"}}}}]"#
    ));
    assert_eq!(found("0.0.4", &good, ""), [""; 0]);
    let bad = links(r#"[{"thread_id":"t","metadata":7},{"relation":"referenced"},7]"#);
    let breaches = [
        "error/error tp-required /relationships/links/0",
        "error/error tp-shape /relationships/links/0/metadata",
        "warning/error tp-8-link-thread-id /relationships/links/0/thread_id",
        "error/error tp-required /relationships/links/1",
        "error/error tp-shape /relationships/links/2",
    ];
    for version in ["0.0.3", "0.0.4"] {
        assert_eq!(found(version, &bad, ""), breaches);
    }
    assert_eq!(found("2.0.0", &bad, ""), [""; 0]);
    let shape = "error/error tp-shape /relationships/links";
    assert_eq!(found("0.0.4", &links("{}"), ""), [shape]);
}

#[test]
fn keys_of_client_metadata_have_a_namespace() {
    let turn =
        user(r#""parts":[],"client_metadata":{"a:b":1,"a.b":1,"a/b":1,"a_b":1,"a-b":1,"ab":1}"#);
    let breach = "warning/error tp-6-client-metadata-key /turns/0/client_metadata/ab";
    assert_eq!(found("0.0.3", "", &turn), [breach]);
    assert_eq!(found("2.0.0", "", &turn), [""; 0]);
    let turn = user(r#""parts":[],"client_metadata":[]"#);
    assert_eq!(
        found("0.0.4", "", &turn),
        ["error/error tp-shape /turns/0/client_metadata"]
    );
}

fn returned(version: &str, rest: &str) -> Vec<String> {
    let call = r#""parts":[{"part_kind":"tool-call","tool_name":"t","tool_call_id":"c","args":1}]"#;
    let answer = format!(
        r#""parts":[{{"part_kind":"tool-return","tool_name":"t","tool_call_id":"c"{rest}}}]"#
    );
    let turn = agent(&[message("response", call), message("request", &answer)].join(","));
    let found = found(version, "", &turn);
    let part = "/turns/0/messages/1/parts/0";
    found
        .into_iter()
        .map(|line| line.replace(part, "…"))
        .collect()
}

#[test]
fn a_tool_return_has_a_content_and_a_status() {
    let none = r#","status":"success""#;
    assert_eq!(returned("2.0.0", none), ["warning/error tp-expected …"]);
    let missing = "warning/error tp-tool-return-content …";
    assert_eq!(returned("0.0.3", none), [missing]);
    let lost = r#","status":"lost","content":null"#;
    assert_eq!(returned("2.0.0", lost), ["error/error tp-shape …/status"]);
    let unsaid = r#","content":1"#;
    assert_eq!(returned("0.0.4", unsaid), ["warning/error tp-expected …"]);
}

#[test]
fn a_reference_says_where_how_large_and_of_what_type_the_content_is() {
    let with = |reference: &str| {
        returned(
            "0.0.4",
            &format!(r#","status":"success","content_ref":{reference}"#),
        )
    };
    let hash = "0".repeat(64);
    let whole = format!(
        r#"{{"uri":"s3://a/b","size_bytes":204800,"hash":"sha256:{hash}","media_type":"text/csv"}}"#
    );
    assert_eq!(with(&whole), [""; 0]);
    assert_eq!(with("null"), ["warning/error tp-tool-return-content …"]);
    assert_eq!(with("7"), ["error/error tp-shape …/content_ref"]);
    assert_eq!(
        with(r#"{"size_bytes":-1,"hash":"md5:0","media_type":7}"#),
        [
            "error/error tp-required …/content_ref",
            "error/error tp-shape …/content_ref/size_bytes",
            "error/error tp-shape …/content_ref/media_type",
            "warning/error tp-7-content-ref-hash …/content_ref/hash",
        ]
    );
}

#[test]
fn every_kind_of_user_content_has_its_members() {
    let content = r#"["x",{"kind":"image-url","url":"u","identifier":"i","force_download":"allow-local"},
        {"kind":"audio-url","identifier":"i"},{"kind":"video-url","url":"u"},{"kind":"document-url","url":7,"identifier":"i"},
        {"kind":"binary","data":"YQ==","media_type":"a/b","identifier":"i"},{"kind":"binary"},{"kind":"smell"},{"url":"u"}]"#;
    let at = "/turns/0/parts/0/content";
    let breaches = [
        format!("error/error tp-required {at}/2"),
        format!("warning/error tp-expected {at}/3"),
        format!("error/error tp-shape {at}/4/url"),
        format!("error/error tp-required {at}/6"),
        format!("error/error tp-required {at}/6"),
        format!("warning/error tp-expected {at}/6"),
        format!("error/error tp-required {at}/8"),
    ];
    assert_eq!(found("0.0.4", "", &prompt(content)), breaches);
}

#[test]
fn an_attachment_has_a_name_a_type_and_a_place_or_bytes() {
    let turn = user(
        r#""parts":[],"attachments":[{"name":"n","media_type":"a/b","url":"u","size_bytes":1},
        {"name":"n","media_type":"a/b"},{"data":"YQ==","size_bytes":"1"}]"#,
    );
    let at = "/turns/0/attachments";
    let breaches = [
        format!("warning/error tp-expected {at}/1"),
        format!("warning/error tp-expected {at}/2"),
        format!("warning/error tp-expected {at}/2"),
        format!("error/error tp-shape {at}/2/size_bytes"),
    ];
    assert_eq!(found("2.0.0", "", &turn), breaches);
}

#[test]
fn prompts_and_instructions_stand_in_no_document() {
    let parts =
        r#""instructions":"be brief","parts":[{"part_kind":"system-prompt","content":"x"}]"#;
    let breaches = [
        "warning/error tp-system-prompt /turns/0/messages/0/parts/0",
        "warning/error tp-system-prompt /turns/0/messages/0/instructions",
    ];
    for version in ["2.0.0", "0.0.3", "0.0.4"] {
        assert_eq!(
            found(version, "", &agent(&message("request", parts))),
            breaches
        );
    }
}

#[test]
fn usage_counts_and_reasons_are_of_a_closed_set() {
    let rest = r#""parts":[{"part_kind":"text","content":"x"}],"finish_reason":"tired",
        "usage":{"input_tokens":1.5,"output_tokens":"1","thinking_tokens":0,"total_tokens":null,"cache":-1}"#;
    let at = "/turns/0/messages/0";
    let breaches = [
        format!("error/error tp-shape {at}/finish_reason"),
        format!("error/error tp-shape {at}/usage/input_tokens"),
        format!("error/error tp-shape {at}/usage/output_tokens"),
    ];
    assert_eq!(
        found("0.0.4", "", &agent(&message("response", rest))),
        breaches
    );
}

#[test]
fn payloads_of_the_protocols_events_are_checked() {
    let at = "/turns/0/messages/0/event_data";
    let payload = |severity: &str, place: &str| format!("{severity} {at}{place}");
    let (error, warning) = (
        "error/error tp-event-payload",
        "warning/warning tp-event-payload-field",
    );
    let cases = [
        ("agent_handoff", r#"{"to":7}"#, payload(error, "/to")),
        ("thread_spawn", "{}", payload(error, "")),
        ("thread_spawn", "[]", payload(error, "")),
        ("thread_merge", "{}", payload(warning, "")),
        ("thread_end", r#"{"reason":7}"#, payload(error, "/reason")),
        ("error", "null", payload(warning, "")),
        ("error", r#"{"code":7}"#, payload(error, "/code")),
        (
            "error",
            r#"{"code":"x","timestamp":"soon"}"#,
            payload("error/error tp-1-timestamp", "/timestamp"),
        ),
    ];
    for (name, data, breach) in cases {
        let newest = event(&format!("data-tp-{name}"), data);
        assert_eq!(
            found("0.0.4", "", &newest),
            std::slice::from_ref(&breach),
            "{name} {data}"
        );
        // Before 0.0.4 the same payload is only told to break when the document is upgraded.
        let place = breach.rsplit(' ').next().unwrap_or_default();
        for version in ["2.0.0", "0.0.3"] {
            let earlier = event(&name.replace('_', "."), data);
            assert_eq!(
                found(version, "", &earlier),
                [format!("{warning} {place}")],
                "{name} {data}"
            );
        }
        assert_eq!(
            found("0.0.4", "", &event(&name.replace('_', "."), data)),
            [""; 0]
        );
    }
}

#[test]
fn a_call_stands_in_a_response_and_an_answer_does_not() {
    let part = |kind: &str, rest: &str| {
        format!(r#"{{"part_kind":"{kind}","tool_name":"t","tool_call_id":"c"{rest}}}"#)
    };
    let call = part("tool-call", r#","args":{}"#);
    let answer = part("tool-return", r#","content":"x","status":"success""#);
    let retry = part("retry-prompt", r#","content":"again""#);
    let of = |kind: &str, parts: &[&str]| {
        let parts = parts.join(",");
        message(kind, &format!(r#""parts":[{parts}]"#))
    };
    let run = |messages: &[String]| found("0.0.4", "", &agent(&messages.join(",")));

    let good = [of("response", &[&call]), of("request", &[&answer])];
    assert_eq!(run(&good), [""; 0]);
    let provider = [
        part("builtin-tool-call", ""),
        part("builtin-tool-return", ""),
    ];
    assert_eq!(
        run(&[of("response", &[&provider[0], &provider[1]])]),
        [""; 0]
    );

    let place = |pointer: &str| format!("warning/error tp-2-tool-place {pointer}");
    let own = [of("response", &[&call, &answer, &retry]), good[1].clone()];
    let expected = [1, 2].map(|part| place(&format!("/turns/0/messages/0/parts/{part}")));
    assert_eq!(run(&own), expected);
    assert_eq!(
        run(&[of("request", &[&call])]),
        [place("/turns/0/messages/0/parts/0")]
    );
    let submitted = user(&format!(r#""parts":[{call}]"#));
    assert_eq!(found("2.0.0", "", &submitted), [place("/turns/0/parts/0")]);
    let output = r#"{"part_kind":"retry-prompt","content":"again"}"#;
    assert_eq!(run(&[of("response", &[output])]), [""; 0]);
}

#[test]
fn data_that_is_not_base64_breaks_a_rule_of_its_own() {
    let binary = |data: &str| {
        format!(r#"{{"kind":"binary","data":"{data}","media_type":"a/b","identifier":"i"}}"#)
    };
    let prompt = prompt(&format!("[{},{}]", binary("YQ=="), binary("no base64!")));
    let rule = "warning/error tp-base64";
    let breach = format!("{rule} /turns/0/parts/0/content/1/data");
    assert_eq!(found("0.0.4", "", &prompt), [breach]);
    let file = format!(
        r#""parts":[{{"part_kind":"file","content":{}}}]"#,
        binary("YQ=")
    );
    let breach = format!("{rule} /turns/0/messages/0/parts/0/content/data");
    assert_eq!(
        found("2.0.0", "", &agent(&message("response", &file))),
        [breach]
    );
    let attached = user(r#""parts":[],"attachments":[{"name":"n","media_type":"a/b","data":"%"}]"#);
    let breach = format!("{rule} /turns/0/attachments/0/data");
    assert_eq!(found("0.0.3", "", &attached), [breach]);
}

#[test]
fn a_return_has_its_content_here_or_elsewhere_and_not_both() {
    let reference = r#","status":"success","content_ref":{"uri":"s3://a/b"}"#;
    assert_eq!(returned("0.0.3", reference), [""; 0]);
    let both = format!(r#"{reference},"content":"x""#);
    for version in ["0.0.3", "0.0.4"] {
        assert_eq!(
            returned(version, &both),
            ["warning/error tp-7-content-beside-ref …/content"]
        );
        let neither = returned(version, r#","status":"success""#);
        assert_eq!(neither, ["warning/error tp-tool-return-content …"]);
    }
    let null = r#","status":"success","content":null"#;
    assert_eq!(returned("0.0.4", null), [""; 0]);
}

#[test]
fn an_event_concerns_agents_of_the_registry() {
    let event = agent(&format!(
        r#"{{"message_type":"system","timestamp":"{AT}","event_type":"data-app-x","event_data":1,
        "source_agent":"nobody","target_agents":["{ID}","no one"]}}"#
    ));
    let breaches = ["source_agent", "target_agents/1"]
        .map(|place| format!("warning/error tp-3-agent-ref /turns/0/messages/0/{place}"));
    assert_eq!(found("0.0.4", "", &event), breaches);
}

#[test]
fn a_handoff_that_names_nobody_breaks_a_rule_of_its_own() {
    let breach = "warning/error tp-handoff-target /turns/0/messages/0/event_data";
    for data in ["{}", "null", r#"{"reason":"x"}"#] {
        let handoff = event("data-tp-agent_handoff", data);
        assert_eq!(found("0.0.4", "", &handoff), [breach], "{data}");
    }
    let targeted = event("data-tp-agent_handoff", "{}")
        .replace("}]", &format!(r#","target_agents":["{ID}"]}}]"#));
    assert_eq!(found("0.0.4", "", &targeted), [""; 0]);
}

#[test]
fn an_unknown_version_is_read_and_not_written() {
    let breach = "warning/error tp-version /version";
    for version in ["0.0.5", "9.9.9", "newest", ""] {
        assert_eq!(found(version, "", ""), [breach], "{version}");
    }
}

#[test]
fn no_turn_says_how_it_ended_before_0_0_4() {
    let breach = "warning/error tp-early-completion /turns/0/completion_status";
    let turn = agent("").replace(r#""complete""#, r#""interrupted""#);
    for version in ["2.0.0", "0.0.3"] {
        assert_eq!(found(version, "", &turn), [breach]);
        assert_eq!(found(version, "", &agent("")), [""; 0]);
    }
}

#[test]
fn a_message_is_of_the_agent_whose_turn_it_stands_in() {
    let other = "7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01";
    let text = r#""parts":[{"part_kind":"text","content":"x"}]"#;
    let turn = agent(&message("response", text).replace(ID, other));
    let breaches = [
        "error/error tp-3-agent-id /turns/0/messages/0/agent_id",
        "warning/error tp-3-message-agent /turns/0/messages/0/agent_id",
    ];
    assert_eq!(found("0.0.4", "", &turn), breaches);
}
