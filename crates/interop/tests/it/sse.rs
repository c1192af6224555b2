//! Streams of server-sent events.

use crate::ui_streams::stream;
use loomline_interop::ai_sdk::sse::{Chunks, DONE, write_event};
use loomline_interop::ai_sdk::{Major, Reducer};
use proptest::prelude::*;
use thread::Json;

/// A stream as bytes, with ends of lines and comments as servers and proxies have them.
fn written(chunks: &[Json], line_end: &str) -> String {
    let mut text = "\u{feff}: stream-open\n\n".to_owned();
    for chunk in chunks {
        write_event(&chunk.to_text(), &mut text);
        text.push_str(": keep-alive\n\n");
    }
    write_event(DONE, &mut text);
    text.replace('\n', line_end)
}

proptest! {
    #[test]
    fn any_cutting_of_a_stream_gives_the_same_message(
        bytes in prop::collection::vec(any::<u8>(), 0..150),
        cuts in prop::collection::vec(1usize..40, 1..20),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let chunks = stream(Major::V7, &bytes);
        let text = written(&chunks, line_end);
        let mut decoder = Chunks::new();
        let mut read = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            decoder.push(piece, &mut read).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert!(decoder.is_done());
        prop_assert_eq!(&read, &chunks);
        let message = |chunks: &[Json]| {
            let mut reducer = Reducer::new(Major::V7, None);
            for chunk in chunks {
                reducer.push(chunk).unwrap();
            }
            reducer.finish()
        };
        prop_assert_eq!(message(&read), message(&chunks));
    }

    #[test]
    fn any_bytes_are_taken_alike_however_they_are_cut(bytes in prop::collection::vec(prop::sample::select(b"data: x\r\n\xEF\xBB\xBF\xC3\xBE1".to_vec()), 0..80)) {
        let mut whole = Vec::new();
        let mut decoder = loomline_interop::ai_sdk::sse::SseDecoder::new();
        decoder.push(&bytes, &mut whole).unwrap();
        let mut single = Vec::new();
        let mut decoder = loomline_interop::ai_sdk::sse::SseDecoder::new();
        for byte in &bytes {
            decoder.push(&[*byte], &mut single).unwrap();
        }
        prop_assert_eq!(whole, single);
    }
}
