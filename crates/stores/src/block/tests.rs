use super::*;
use jiff::SignedDuration;
use std::collections::BTreeSet;
use store::suite::{rolled, script};
use timeline::{BlockId, BlockKind, Chunk, Command, NewChunk, NewThread, State};

fn events(commands: Vec<Command>) -> Vec<(Timestamp, Event)> {
    let mut state = State::default();
    let create = Command::Create {
        thread: NewThread::new("0b9c7a2e-5f0e-7c3a-8f66-1d2e3c4b5a69", Some("k")),
        context_id: "c".into(),
    };
    let mut at = Timestamp::UNIX_EPOCH;
    let mut events = Vec::new();
    for command in std::iter::once(create).chain(commands) {
        at += SignedDuration::from_millis(7);
        for event in state.decide(command, at).unwrap_or_default() {
            state.apply(&event);
            events.push((at, event));
        }
    }
    events
}

fn stored(events: &[(Timestamp, Event)]) -> Vec<Block> {
    split(events.iter().map(|(at, event)| ToStore {
        at: *at,
        event,
        size: 100,
        raw: None,
    }))
}

#[test]
fn a_block_gives_back_every_event_byte_for_byte() {
    let mut types = BTreeSet::new();
    let lives = (1..=40).map(|seed| rolled(seed, 0..200)).chain([script()]);
    for commands in lives {
        let events = events(commands);
        let mut read = Vec::new();
        for block in stored(&events) {
            for decoded in BlockReader::new(&block.body).unwrap() {
                let decoded = decoded.unwrap();
                let text = decoded.text().unwrap();
                read.push((decoded.at, decoded.event, text));
            }
        }
        let expected: Vec<_> = events
            .into_iter()
            .map(|(at, event)| (at, event.clone(), event.encode().unwrap()))
            .collect();
        types.extend(expected.iter().map(|(_, event, _)| event.event_type()));
        assert_eq!(read, expected);
    }
    assert!(types.len() >= 14, "{types:?}");
}

#[test]
fn a_range_names_the_json_as_it_was_given() {
    let events = events(script());
    for block in stored(&events) {
        let mut reader = BlockReader::new(&block.body).unwrap();
        let read: Vec<_> = (&mut reader).map(|it| it.unwrap().event).collect();
        let ranges = reader.into_ranges();
        let mut n = 0;
        let all = events.iter().map(|(_, event)| event).zip(&read);
        for (given, read) in all {
            let at = |ranges: &ByteRanges, payload: &Payload| {
                let range = ranges.of(payload).unwrap();
                &block.body[range.offset..range.offset + range.length]
            };
            if event::Stream::of(given).is_some() {
                continue;
            }
            let mut texts = Vec::new();
            event::each_value(given, &mut |it| texts.push((&block.ranges, it)));
            event::each_value(read, &mut |it| texts.push((&ranges, it)));
            for (ranges, payload) in texts {
                n += 1;
                assert_eq!(at(ranges, payload), payload.text().as_bytes());
            }
        }
        assert!(n > 10);
    }
}

/// A chunk of a step.
fn chunk(chunk_type: &str, step_id: &str, data: &str) -> Event {
    Event::ChunkEmitted {
        chunk_type: chunk_type.to_owned(),
        context_id: "c".into(),
        execution_id: Some("e".into()),
        step_id: Some(step_id.into()),
        data: Some(Payload::from_text(data.to_owned()).unwrap()),
    }
}

/// A delta as the runtime writes it.
fn encoded(delta: &Chunk<'_>) -> Event {
    let NewChunk { chunk_type, data } = delta.encode();
    chunk(&chunk_type, "s", data.unwrap().text())
}

fn delta(id: &str, text: &str) -> Event {
    encoded(&Chunk::BlockDelta {
        kind: BlockKind::Text,
        block: BlockId::read(id),
        text: text.into(),
        extra: None,
    })
}

fn argument_delta(id: &str, text: &str) -> Event {
    encoded(&Chunk::ToolInputDelta {
        tool_call_id: id.into(),
        text: text.into(),
        extra: None,
    })
}

fn part(idx: u32, text: &str) -> Event {
    let part = serde_json::json!({"type": "message", "text": text});
    Event::PartCreated {
        part_key: format!("s:{idx}"),
        step_id: "s".into(),
        idx,
        part: part.into(),
    }
}

/// The block of these events, which must read back as they are.
fn round_trip(events: &[Event]) -> Vec<u8> {
    let at = Timestamp::UNIX_EPOCH;
    let events: Vec<_> = events.iter().map(|event| (at, event.clone())).collect();
    let body = stored(&events).remove(0).body;
    let read: Vec<_> = BlockReader::new(&body)
        .unwrap()
        .map(|it| it.unwrap().text().unwrap())
        .collect();
    let texts: Vec<_> = events.iter().map(|(_, it)| it.encode().unwrap()).collect();
    assert_eq!(read, texts);
    body
}

fn count(body: &[u8], text: &str) -> usize {
    let n = text.len();
    body.windows(n).filter(|it| *it == text.as_bytes()).count()
}

#[test]
fn a_block_stores_a_streamed_text_once_with_its_part() {
    let words: Vec<String> = (0..200).map(|n| format!("word-{n} \n\"ä\" ")).collect();
    let part = part(0, &words.concat());
    let mut events: Vec<_> = words.iter().map(|word| delta("t0-0", word)).collect();
    let without = round_trip(std::slice::from_ref(&part)).len();
    events.push(part);
    let body = round_trip(&events);
    assert_eq!(count(&body, "word-100"), 1);
    assert_eq!(count(&body, "t0-0"), 1);
    // A chunk is a code and a length.
    let added = body.len() - without;
    assert!(added <= words.len() * 2 + 60, "{added}");
}

#[test]
fn a_stream_without_its_part_has_its_text_once() {
    let events = ["alpha ", "beta ", "gamma"].map(|word| delta("t0-0", word));
    let body = round_trip(&events);
    assert_eq!(count(&body, "alpha beta gamma"), 1);
}

#[test]
fn the_deltas_of_arguments_are_a_stream() {
    let events = ["{\"a\": ", "\"ä\", ", "\"b\": 1}"].map(|it| argument_delta("call-1", it));
    let body = round_trip(&events);
    assert_eq!(count(&body, "call-1"), 1);
    assert_eq!(count(&body, r#"{\"a\": \"ä\", \"b\": 1}"#), 1);
}

#[test]
fn a_long_answer_is_in_one_block_with_its_part() {
    let words: Vec<String> = (0..3_000)
        .map(|n| format!("word-{n:04} and more "))
        .collect();
    let text = words.concat();
    assert!(text.len() > 55_000, "{}", text.len());
    let mut events: Vec<_> = words.iter().map(|word| delta("t0-0", word)).collect();
    events.push(part(0, &text));
    let to_store = events.iter().map(|event| ToStore {
        at: Timestamp::UNIX_EPOCH,
        event,
        size: event.encode().unwrap().len(),
        raw: None,
    });
    let blocks = split(to_store);
    assert_eq!(blocks.len(), 1);
    assert!(blocks[0].body.len() < text.len() + 8_000);
}

#[test]
fn texts_of_streams_fill_a_block() {
    let text = "x".repeat(1_000);
    let events: Vec<_> = (0..300).map(|_| delta("t0-0", &text)).collect();
    let to_store = events.iter().map(|event| ToStore {
        at: Timestamp::UNIX_EPOCH,
        event,
        size: 1_100,
        raw: None,
    });
    let sizes: Vec<_> = split(to_store).iter().map(|it| it.body.len()).collect();
    assert!(
        sizes.len() > 3 && sizes.iter().all(|it| *it < 70_000),
        "{sizes:?}"
    );
}

/// A block of version 2 with these bytes behind its ids: the instant is 1970, and the ids are `c` and `s`.
fn block_with(n: u8, behind: &[u8]) -> Vec<u8> {
    [&[2, n, 0, 2, 2, b'c', 2, b's'], behind].concat()
}

#[test]
fn odd_streams_are_refused() {
    let fault = |body: &[u8]| {
        let read = |mut reader: BlockReader<'_>| reader.find_map(Result::err);
        BlockReader::new(body).map_or_else(Some, read)
    };
    // A chunk `text-delta` of the context and no execution, whose data begins with `{"delta":"`.
    let stream = [&[STREAM, 2, 0, 0, 0, 10], br#"{"delta":""#.as_slice()].concat();
    let with = |streams: &[u8], lengths: &[u8]| {
        let (first, more) = lengths.split_first().unwrap();
        let mut behind = [streams, &stream, &[*first]].concat();
        for length in more {
            behind.extend([DELTA, *length]);
        }
        block_with(u8::try_from(lengths.len()).unwrap(), &behind)
    };
    let text = &[1, 0, 3, b'a', b'b', b'c'];
    assert!(fault(&with(text, &[1, 2])).is_none());
    // Longer and shorter than its text.
    assert!(matches!(
        fault(&with(text, &[1, 3])),
        Some(BlockFault::Delta)
    ));
    assert!(matches!(
        fault(&with(text, &[1, 1])),
        Some(BlockFault::TooLong)
    ));
    // A stream without a text, a text without a stream, a chunk without a stream.
    assert!(matches!(fault(&with(&[0], &[0])), Some(BlockFault::Delta)));
    assert!(matches!(
        fault(&with(&[2, 0, 0, 0, 0], &[0])),
        Some(BlockFault::TooLong)
    ));
    let alone = block_with(1, &[0, DELTA, 0]);
    assert!(matches!(fault(&alone), Some(BlockFault::Delta)));
    // A range beyond the end, and more ranges than there can be.
    assert!(matches!(
        fault(&with(&[1, 1, 90, 90], &[0])),
        Some(BlockFault::Truncated)
    ));
    let ranges = [&[33], [1, 0, 0].repeat(33).as_slice()].concat();
    assert!(matches!(
        fault(&with(&ranges, &[0])),
        Some(BlockFault::Code(1, _))
    ));
    // Version 1 has none.
    let mut older = block_with(1, &stream);
    older[0] = 1;
    assert!(matches!(fault(&older), Some(BlockFault::Delta)));
}

#[test]
fn streams_that_alternate_keep_their_order() {
    let others = [
        chunk("text-delta", "s", r#"{"delta":"behind","id":"t0-0"}"#),
        chunk("text-delta", "s", r#"{ "id":"t0-0", "delta":"spaced" }"#),
        chunk("text-delta", "s", r#"{"id":"\"delta\":\"","delta":""}"#),
        chunk("text-delta", "s", r#"{"delta":"a","delta":"b"}"#),
        argument_delta("c", "{\"a\":"),
        chunk("text-start", "s", r#"{"id":"t0-0"}"#),
        chunk("data-step-response", "s", r#"{"id":"t0-0","delta":"x"}"#),
        chunk(
            "text-delta",
            "other",
            r#"{"id":"t0-0","delta":"other step"}"#,
        ),
    ];
    let mut events = Vec::new();
    for other in others {
        let words = ["one ", "two ", ""].map(|word| delta("t0-0", word));
        events.extend(words);
        events.push(part(0, "one two "));
        events.push(delta("t0-1", "one two "));
        events.push(other);
    }
    round_trip(&events);
}

#[test]
fn an_event_of_another_spelling_keeps_its_text() {
    let text =
        r#"{ "type":"part.created","partKey":"other","stepId":"s","idx":0,"part":{"a":1.0} }"#;
    let event = Event::decode(text).unwrap();
    let mut writer = BlockWriter::new(Timestamp::UNIX_EPOCH);
    writer.add(Timestamp::UNIX_EPOCH, &event, Some(text));
    writer.add(Timestamp::UNIX_EPOCH, &event, None);
    let block = writer.finish();
    let read: Vec<_> = BlockReader::new(&block.body)
        .unwrap()
        .map(|it| it.unwrap().text().unwrap())
        .collect();
    assert_eq!(read, [text.to_owned(), event.encode().unwrap()]);
    let Event::PartCreated { part, .. } = &event else {
        panic!("{event:?}");
    };
    let range = block.ranges.of(part).unwrap();
    assert_eq!(
        &block.body[range.offset..range.offset + range.length],
        br#"{"a":1.0}"#
    );
}

#[test]
fn odd_bytes_are_refused_and_never_panic() {
    let events = events(script());
    let blocks = stored(&events);
    let body = &blocks[0].body;
    let read = |body: &[u8]| -> Result<usize, BlockFault> {
        let mut n = 0;
        for decoded in BlockReader::new(body)? {
            decoded?;
            n += 1;
        }
        Ok(n)
    };
    assert_eq!(read(body).unwrap(), events.len());
    for length in 0..body.len() {
        assert!(read(&body[..length]).is_err(), "{length}");
    }
    for range in 0..body.len() {
        let mut changed = body.clone();
        changed[range] ^= 0x81;
        // Many changes are still events: the sum finds them.
        let _ = read(&changed);
    }
    let longer = [body.as_slice(), &[0]].concat();
    assert!(matches!(read(&longer), Err(BlockFault::TooLong)));
    let newer = [&[9], &body[1..]].concat();
    assert!(matches!(read(&newer), Err(BlockFault::Version(9))));
}

#[test]
fn a_large_event_has_a_block_of_its_own() {
    let events = events(script());
    let sizes = [100, 70_000, 100, 100];
    let blocks = split(events.iter().zip(sizes).map(|((at, event), size)| ToStore {
        at: *at,
        event,
        size,
        raw: None,
    }));
    let counts: Vec<_> = blocks.iter().map(|block| block.n).collect();
    // The sizes are those of the texts: what the block has of them is less.
    assert_eq!(counts, [1, 3]);
}
