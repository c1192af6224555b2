//! Answers as bytes: what a stream may look like, where it may end, and how long an event may be.

use crate::chunks::{any_cut_is_the_same, read};
use loomline_upp::{ChatCompletions, Code, Response, ToolCall};

const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: x\ndata: {\"id\":\"chatcmpl-0123456789\",\"choices\":[{\"delta\":{\"content\":\"Grüße \"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"🌍\",\ndata: \"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n\
    data:{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

fn codec() -> ChatCompletions {
    ChatCompletions::openai("m")
}

fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    fn parts(call: &ToolCall) -> (&str, &str, &str) {
        let (id, name) = (call.tool_call_id.as_str(), &*call.tool_name);
        (id, name, call.arguments.text())
    }
    response.message.tool_calls.iter().map(parts).collect()
}

#[test]
fn an_event_of_several_lines_and_mixed_line_ends_is_read_the_same_in_any_pieces() {
    any_cut_is_the_same(&codec(), STREAM);
}

#[tokio::test]
async fn comments_other_fields_and_data_of_several_lines_are_read() {
    let pieces = vec![STREAM.as_bytes().to_vec()];
    let (_, whole) = read(&codec(), pieces, 1 << 20).await;
    let whole = whole.unwrap();
    assert_eq!(whole.message.joined_text(), "Grüße 🌍");
    assert_eq!(calls(&whole), [("a", "f", "{}")]);
    assert_eq!(whole.usage.output_tokens, 2);
}

#[tokio::test]
async fn an_end_at_any_byte_gives_the_whole_answer_or_an_error() {
    let bytes = STREAM.as_bytes();
    let finished = STREAM.find("\"tool_calls\"}]}").unwrap() + "\"tool_calls\"}]}".len();
    for at in 0..=bytes.len() {
        let (_, outcome) = read(&codec(), vec![bytes[..at].to_vec()], 1 << 20).await;
        match outcome {
            Ok(response) => {
                assert!(at >= finished, "ended at {at}");
                assert_eq!(calls(&response), [("a", "f", "{}")]);
            }
            Err(error) => {
                assert!(at < finished, "ended at {at}: {error}");
                assert!(matches!(
                    error.code,
                    Code::NetworkError | Code::InvalidResponse
                ));
            }
        }
    }
}

#[tokio::test]
async fn an_endless_event_is_refused() {
    let pieces = vec![vec![b'x'; 1000]; 20];
    let (_, outcome) = read(&codec(), pieces, 10_000).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
    assert!(error.message.contains("10000"), "{error}");
}
