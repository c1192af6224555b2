//! States that were not written by us, or not whole (UAP §12.3, §15.3).

use crate::strategies::{on_script, two_react_steps};
use crate::support::*;
use loomline_agents::{AgentState, React, StateError, StateLimits};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;
use upp::{
    Media, MediaSource, Message, MessageOptions, ToolResultMessage, UserContent, UserMessage,
};

#[test]
fn bytes_in_memory_are_base64_in_a_state_and_come_back() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let source = MediaSource::Bytes {
        data: every_byte.into(),
    };
    let blocks = [
        UserContent::Image(Media::new(source.clone(), "image/png")),
        UserContent::Audio(Media::new(source.clone(), "audio/wav")),
        UserContent::Video(Media::new(source.clone(), "video/mp4")),
        UserContent::Binary(Media::new(source, "application/octet-stream")),
    ];
    let message = UserMessage::new(blocks.to_vec(), MessageOptions::default());
    let state = AgentState::initial().with_message(message);
    let json = state.to_json().unwrap();
    let first = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v";
    assert_eq!(json.matches(first).count(), 4, "{json}");
    let restored = AgentState::from_json(&json).unwrap();
    let Some(upp::Message::User(restored)) = restored.messages().first() else {
        panic!("it is the user's");
    };
    for block in &restored.content {
        let (UserContent::Image(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media)) = block
        else {
            panic!("{block:?}");
        };
        let bytes = media.to_bytes().unwrap();
        assert!(bytes.iter().copied().eq(0..=255));
    }
}

#[test]
fn a_state_without_a_required_part_is_refused() {
    let whole = json!({
        "version": "1.0.0", "id": "s", "messages": [], "step": 1, "metadata": {},
        "subagentTraces": [{
            "subagentId": "a", "subagentType": "explorer", "parentToolCallId": "c",
            "prompt": "find", "startTime": 1, "endTime": 2, "success": true,
            "toolExecutions": [{"toolName": "grep", "arguments": {}, "result": "none"}],
        }],
    });
    let read = |state: &Value| AgentState::from_json(&state.to_string());
    assert!(read(&whole).is_ok(), "what is optional may be absent");
    let mut n_refused = 0;
    for place in [
        "",
        "/subagentTraces/0",
        "/subagentTraces/0/toolExecutions/0",
    ] {
        let keys = whole.pointer(place).unwrap().as_object().unwrap().keys();
        for key in keys.filter(|key| !["subagentTraces", "toolExecutions"].contains(&key.as_str()))
        {
            let mut damaged = whole.clone();
            let object = damaged.pointer_mut(place).unwrap().as_object_mut().unwrap();
            object.remove(key);
            assert!(read(&damaged).is_err(), "without {place}/{key}");
            n_refused += 1;
        }
    }
    assert_eq!(n_refused, 15);
}

#[test]
fn a_state_is_read_within_limits() {
    let json = AgentState::initial().with_message("hi").to_json().unwrap();
    let within = |max_bytes| AgentState::from_json_within(&json, StateLimits { max_bytes });
    assert!(within(json.len()).is_ok());
    let Err(StateError::TooLong { length, limit }) = within(json.len() - 1) else {
        panic!("it is longer");
    };
    assert_eq!((length, limit), (json.len(), json.len() - 1));
}

#[test]
fn what_may_be_absent_may_be_null_and_what_is_given_twice_is_refused() {
    let json = json!({
        "version": "1.0.0", "id": "s", "messages": [], "step": 1, "metadata": {},
        "reasoning": null, "plan": null, "phase": null, "subagentTraces": null, "other": 1,
    });
    let json = json.to_string();
    let state = AgentState::from_json(&json).unwrap();
    assert_eq!((state.step(), state.plan(), state.phase()), (1, None, None));
    for wrong in ["\"step\":1,\"step\":2", "\"step\":-1", "\"step\":null"] {
        let wrong = json.replace("\"step\":1", wrong);
        assert!(AgentState::from_json(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn whether_messages_are_a_conversation_is_left_to_who_takes_them() {
    let orphan = ToolResultMessage::new(vec![result("gone", 1)], MessageOptions::default());
    let orphan = Message::from(orphan);
    let state = AgentState::initial().with_messages([orphan.clone(), orphan]);
    let read = AgentState::from_json(&state.to_json().unwrap()).unwrap();
    assert_eq!(read, state);
    assert!(read.open_calls().is_empty());
}

/// The JSON of a state with a whole run in it.
static WRITTEN: LazyLock<String> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (options, _) = on_script(React::default(), two_react_steps());
    let state = runtime.block_on(generate(options)).state;
    state.with_metadata("k", "v").to_json().unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_state_is_refused_or_a_sound_one(
        at in any::<prop::sample::Index>(),
        n_removed in 0_usize..40,
        inserted in prop::sample::select(vec!["", "\"", "{", "]", "null", "-1", ",", "\\", "9", "[]"]),
    ) {
        let mut text: Vec<char> = WRITTEN.chars().collect();
        let start = at.index(text.len());
        let end = text.len().min(start + n_removed);
        text.splice(start..end, inserted.chars());
        let text: String = text.into_iter().collect();
        if let Ok(state) = AgentState::from_json(&text) {
            let again = AgentState::from_json(&state.to_json().unwrap()).unwrap();
            prop_assert_eq!(again, state);
        }
    }
}
