//! A stream is read the same, however its bytes are cut.

use bytes::Bytes;
use futures_util::StreamExt;
use loomline_upp::codec::Framing;
use loomline_upp::{Code, Codec, Error, ModelEvent, Request, Response, StreamEvent, answer};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The events of a stream, and what it comes to.
pub(crate) type Read = (Vec<StreamEvent>, Result<Response, Error>);

/// The longest event of the streams here, in bytes.
const MOST: usize = 1 << 20;

/// Reads these pieces of a stream whose events have at most so many bytes.
pub(crate) async fn read(codec: &dyn Codec, pieces: Vec<Vec<u8>>, most: usize) -> Read {
    let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
    let decoder = codec.decoder(&Request::default());
    let bytes = futures_util::stream::iter(pieces);
    let mut stream = std::pin::pin!(answer(codec, decoder, bytes, most));
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

fn same((events, response): Read, (expected, whole): &Read) {
    assert_eq!(&events, expected);
    let (mut response, whole) = (response.unwrap(), whole.as_ref().unwrap());
    response.message.timestamp = whole.message.timestamp;
    // Without an id of the provider's, each reading mints one.
    if whole.response_id.as_deref() != Some(whole.message.id.as_str()) {
        response.message.id = whole.message.id.clone();
    }
    assert_eq!(&response, whole);
}

fn pieces(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<Vec<u8>> {
    cuts.sort_unstable();
    let ends = cuts.iter().copied().chain([bytes.len()]);
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    starts
        .zip(ends)
        .map(|(a, b)| bytes[a..b].to_vec())
        .collect()
}

/// Asserts that the stream is read the same in any pieces and with any line ends, and that its
/// beginning gives the whole answer or an error. Its calls must have ids of the provider's.
pub(crate) fn any_cut_is_the_same(codec: &dyn Codec, stream: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let bytes = stream.as_bytes();
    let whole = runtime.block_on(read(codec, vec![bytes.to_vec()], MOST));
    for at in 0..=bytes.len() {
        same(
            runtime.block_on(read(codec, pieces(bytes, vec![at]), MOST)),
            &whole,
        );
        let (_, begun) = runtime.block_on(read(codec, vec![bytes[..at].to_vec()], MOST));
        match begun {
            Ok(begun) => assert_eq!(
                begun.message.content,
                whole.1.as_ref().unwrap().message.content
            ),
            Err(error) => assert!(
                matches!(error.code, Code::NetworkError | Code::InvalidResponse),
                "ended at {at}: {error}"
            ),
        }
    }
    let before = match codec.framing() {
        Framing::ServerSentEvents => "\u{feff}: hello\r\n\r\n",
        Framing::Lines => "\r\n",
    };
    let other_ends = before.to_owned() + &stream.replace("\r\n", "\n").replace('\n', "\r\n");
    let config = ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let cuts = prop::collection::vec(0..bytes.len(), 0..24);
    TestRunner::new(config)
        .run(&cuts, |cuts| {
            for bytes in [bytes, other_ends.as_bytes()] {
                same(
                    runtime.block_on(read(codec, pieces(bytes, cuts.clone()), MOST)),
                    &whole,
                );
            }
            Ok(())
        })
        .unwrap();
}
