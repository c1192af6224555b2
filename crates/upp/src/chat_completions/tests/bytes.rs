//! Answers as bytes.

use super::*;
use crate::answer;
use crate::model::ModelEvent;
use ::bytes::Bytes;
use futures_util::StreamExt;
use proptest::prelude::*;

const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: x\ndata: {\"id\":\"chatcmpl-0123456789\",\"choices\":[{\"delta\":{\"content\":\"Grüße \"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"🌍\",\ndata: \"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n\
    data:{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

async fn read(pieces: Vec<Vec<u8>>, most: usize) -> (Vec<StreamEvent>, Result<Response, Error>) {
    let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
    let codec = ChatCompletions::openai("m");
    let decoder = codec.decoder(&Request::default());
    let bytes = futures_util::stream::iter(pieces);
    let mut stream = std::pin::pin!(answer(&codec, decoder, bytes, most));
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(ModelEvent::Event(event)) => events.push(event),
            Ok(ModelEvent::Done(response)) => return (events, Ok(*response)),
            Err(error) => return (events, Err(error)),
        }
    }
    panic!("no end")
}

fn same(response: &Response) -> Value {
    json!([
        response.message.content,
        response.message.tool_calls,
        response.message.id,
        response.usage
    ])
}

#[tokio::test]
async fn a_cut_at_any_byte_changes_nothing() {
    let bytes = STREAM.as_bytes();
    let (events, whole) = read(vec![bytes.to_vec()], 1 << 20).await;
    let whole = whole.unwrap();
    assert_eq!(whole.message.joined_text(), "Grüße 🌍");
    assert_eq!(
        (calls(&whole), whole.usage.output_tokens),
        (vec![("a", "f", "{}")], 2)
    );
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        let (cut_events, cut) = read(vec![left.to_vec(), right.to_vec()], 1 << 20).await;
        assert_eq!(
            (cut_events, same(&cut.unwrap())),
            (events.clone(), same(&whole)),
            "cut at {at}"
        );
    }
}

#[tokio::test]
async fn an_end_at_any_byte_gives_the_whole_answer_or_an_error() {
    let bytes = STREAM.as_bytes();
    let finished = STREAM.find("\"tool_calls\"}]}").unwrap() + "\"tool_calls\"}]}".len();
    for at in 0..=bytes.len() {
        let (_, outcome) = read(vec![bytes[..at].to_vec()], 1 << 20).await;
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
    let (_, outcome) = read(pieces, 10_000).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
    assert!(error.message.contains("10000"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_chunking_gives_the_same_answer(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(STREAM.as_bytes()[from..cut].to_vec());
            from = cut;
        }
        pieces.push(STREAM.as_bytes()[from..].to_vec());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (events, cut) = runtime.block_on(read(pieces, 1 << 20));
        let (expected, whole) = runtime.block_on(read(vec![STREAM.as_bytes().to_vec()], 1 << 20));
        prop_assert_eq!(events, expected);
        prop_assert_eq!(same(&cut.unwrap()), same(&whole.unwrap()));
    }
}
