//! What is no history, and what is one all the same.

use crate::history::{archive_of, shape};
use loomline_interop::convert::ReadOptions;
use loomline_interop::pydantic_ai::{PydanticAiError, read, write};
use thread::Limits;

fn request(parts: &str) -> String {
    format!(r#"[{{"parts":[{parts}],"kind":"request"}}]"#)
}

fn response(rest: &str) -> String {
    format!(r#"[{{"parts":[],"kind":"response"{rest}}}]"#)
}

fn part(kind: &str, rest: &str) -> String {
    format!(r#"{{{rest}"part_kind":"{kind}"}}"#)
}

fn refused(table: &[(String, &str)]) {
    for (text, pointer) in table {
        let error = read(text, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.pointer(), *pointer, "{text}: {error}");
    }
}

#[test]
fn a_request_that_no_version_of_the_library_takes_is_refused_with_its_place() {
    refused(&[
        (r#"[{"parts":[],"kind":"request"},1]"#.to_owned(), "/1"),
        (r#"[{"parts":[],"kind":"answer"}]"#.to_owned(), "/0"),
        (r#"[{"parts":[]}]"#.to_owned(), "/0"),
        (r#"[{"kind":"request"}]"#.to_owned(), "/0"),
        (r#"[{"parts":{},"kind":"request"}]"#.to_owned(), "/0"),
        (
            r#"[{"parts":[],"parts":[],"kind":"request"}]"#.to_owned(),
            "/0/parts",
        ),
        (
            r#"[{"parts":[{"x":[{"y":1,"y":2}]}],"kind":"request"}]"#.to_owned(),
            "/0/parts/0/x/0/y",
        ),
        ("[{]".to_owned(), "/0"),
        (request("7"), "/0/parts/0"),
        (request("{}"), "/0/parts/0"),
        (request(r#"{"part_kind":7}"#), "/0/parts/0/part_kind"),
        (request(&part("text", r#""content":"a","#)), "/0/parts/0"),
        (request(&part("user-prompt", "")), "/0/parts/0"),
        (
            request(&part("user-prompt", r#""content":7,"#)),
            "/0/parts/0/content",
        ),
        (
            request(&part("user-prompt", r#""content":[7],"#)),
            "/0/parts/0/content/0",
        ),
        (
            request(&part("user-prompt", r#""content":[{}],"#)),
            "/0/parts/0/content/0",
        ),
        (
            request(&part(
                "user-prompt",
                r#""content":["a",{"kind":"image-url","url":null}],"#,
            )),
            "/0/parts/0/content/1/url",
        ),
        (
            request(&part(
                "user-prompt",
                r#""content":[{"kind":"binary","data":"a b","media_type":"x"}],"#,
            )),
            "/0/parts/0/content/0/data",
        ),
        (
            request(&part(
                "user-prompt",
                r#""content":"","timestamp":"yesterday","#,
            )),
            "/0/parts/0/timestamp",
        ),
        (
            request(&part("tool-return", r#""content":1,"#)),
            "/0/parts/0",
        ),
        (
            request(&part(
                "tool-return",
                r#""content":1,"tool_name":"t","outcome":"odd","#,
            )),
            "/0/parts/0/outcome",
        ),
        (
            request(&part(
                "tool-return",
                r#""content":1,"tool_name":"t","retry":{"attempt":1},"#,
            )),
            "/0/parts/0/retry",
        ),
        (
            request(&part("retry-prompt", r#""content":[{"type":"t"}],"#)),
            "/0/parts/0/content/0",
        ),
    ]);
}

#[test]
fn a_response_that_no_version_of_the_library_takes_is_refused_with_its_place() {
    refused(&[
        (response(r#","usage":null"#), "/0/usage"),
        (
            response(r#","usage":{"input_tokens":1.5}"#),
            "/0/usage/input_tokens",
        ),
        (
            response(r#","usage":{"details":{"a/b":"1"}}"#),
            "/0/usage/details/a~1b",
        ),
        (response(r#","finish_reason":"tired""#), "/0/finish_reason"),
        (response(r#","state":null"#), "/0/state"),
        (
            response(r#","failed_attempts":[{}]"#),
            "/0/failed_attempts/0",
        ),
        (
            format!(
                r#"[{{"parts":[{}],"kind":"response"}}]"#,
                part("tool-call", r#""tool_name":"t","args":[],"#)
            ),
            "/0/parts/0/args",
        ),
    ]);
}

#[test]
fn what_is_no_list_or_too_large_is_refused() {
    let not_a_list = read("{}", &ReadOptions::default());
    assert_eq!(
        not_a_list,
        Err(PydanticAiError::NotAList { found: "object" })
    );
    let limits = Limits {
        max_bytes: 3,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    assert!(matches!(
        read("[1,2]", &options),
        Err(PydanticAiError::Json(_))
    ));
}

#[test]
fn what_the_library_fills_in_may_be_missing_and_what_is_not_known_may_be_there() {
    let texts = [
        r#"[{"parts":[{"part_kind":"tool-call","tool_name":"t"}],"kind":"response"}]"#,
        r#"[{"parts":[{"part_kind":"tool-call","tool_kind":"tool-search","args":"{}"}],"kind":"response"}]"#,
        r#"[{"parts":[{"part_kind":"beam","content":{"a":[]}}],"kind":"request","usage":7}]"#,
        r#"[{"parts":[{"content":"a","part_kind":"user-prompt","timestamp":1767600000}],"kind":"request"}]"#,
        r#"[{"parts":[{"content":[{"kind":"beam"}],"part_kind":"user-prompt","timestamp":"2026-01-05 08:00"}],"kind":"request"}]"#,
        r#"[{"p\u0061rts":[],"kin\u0064":"re\u0071uest","run_id":"\u0041"}]"#,
    ];
    for text in texts {
        assert_eq!(write(&archive_of(text)).value, text);
    }
    assert_eq!(shape(&archive_of(texts[5])), [(Some("A".to_owned()), 1)]);
}
