use super::*;

fn fault_of(text: &str) -> JsonFault {
    Json::parse(text).unwrap_err().fault
}

#[test]
fn spelling_order_and_nulls_are_kept() {
    let text = r#"{"z":1.0,"a":[1e2,-0,12345678901234567890123,1E+2],"n":null,"é":"\u001fß"}"#;
    assert_eq!(Json::parse(text).unwrap().to_text(), text);
}

#[test]
fn a_repeated_key_is_refused_where_it_stands() {
    let error = Json::parse("{\"a\":[0,\n {\"k\":1,\"k\":2}]}").unwrap_err();
    let key = "k".to_owned();
    assert_eq!(error.fault, JsonFault::DuplicateKey { key });
    assert_eq!((error.pointer.as_str(), error.line), ("/a/1/k", 2));
}

#[test]
fn a_fault_between_members_is_told_of_their_object() {
    for (text, expected) in [
        (r#"{"version":"0.0.4""#, ""),
        (r#"{"a":1,}"#, ""),
        (r#"{"a":1 "b":2}"#, ""),
        (r#"{"":1,"#, ""),
        (r#"{"turns":[{"a":1"#, "/turns/0"),
        (r#"{"turns":[{"a":1,"b" 2}]}"#, "/turns/0"),
        (r#"{"":"#, "/"),
        (r#"{"turns":[{"a":1,"b":"#, "/turns/0/b"),
    ] {
        let error = Json::parse(text).unwrap_err();
        assert_eq!(error.pointer, expected, "{text}");
    }
}

#[test]
fn a_repeated_key_in_a_large_object_is_refused() {
    let members: Vec<String> = (0..40).map(|n| format!("\"k{}\":1", n % 39)).collect();
    let text = format!("{{{}}}", members.join(","));
    assert!(matches!(fault_of(&text), JsonFault::DuplicateKey { .. }));
}

#[test]
fn lone_surrogates_are_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\u0041""#,
    ] {
        assert_eq!(fault_of(text), JsonFault::LoneSurrogate, "{text}");
    }
}

#[test]
fn what_is_not_json_is_refused_by_name() {
    assert_eq!(fault_of("NaN"), JsonFault::NotFinite);
    assert_eq!(fault_of("[-Infinity]"), JsonFault::NotFinite);
    assert_eq!(fault_of("Infinity"), JsonFault::NotFinite);
    assert_eq!(fault_of("1 2"), JsonFault::TrailingData);
    assert_eq!(fault_of("[1,"), JsonFault::Truncated);
    assert_eq!(fault_of(""), JsonFault::Truncated);
    for text in [
        "[1,]",
        "{\"a\" 1}",
        "{a:1}",
        "01",
        "+1",
        "tru",
        "nulL",
        "\"\\x\"",
        "\"\u{1}\"",
        "[}",
        "\u{feff}1",
    ] {
        assert!(Json::parse(text).is_err(), "{text}");
    }
}

#[test]
fn every_limit_holds_at_its_edge() {
    let limits = Limits {
        max_depth: 2,
        max_bytes: 12,
        max_nodes: 4,
    };
    let fault = |text| Json::parse_with(text, &limits).map_err(|error| error.fault);
    assert!(fault("[[1,2]]").is_ok());
    assert_eq!(fault("[[[]]]"), Err(JsonFault::TooDeep { limit: 2 }));
    assert_eq!(
        fault("[1,2,3,4]"),
        Err(JsonFault::TooManyNodes { limit: 4 })
    );
    assert_eq!(
        fault("\"0123456789a\""),
        Err(JsonFault::TooLarge {
            bytes: 13,
            limit: 12
        })
    );
}

#[test]
fn very_deep_text_is_refused_before_it_is_built() {
    let text = "[".repeat(1_000_000);
    let limits = Limits {
        max_depth: usize::MAX,
        ..Limits::default()
    };
    let error = Json::parse_with(&text, &limits).unwrap_err();
    let limit = Limits::DEEPEST;
    assert_eq!(error.fault, JsonFault::TooDeep { limit });
}
