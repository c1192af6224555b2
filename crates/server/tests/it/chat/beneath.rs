//! Answers of `useChat` to what several sub-agents ask.

use super::{chunks, kinds};
use crate::harness::Answer;
use crate::held::Held;
use serde_json::{Value, json};

impl Held {
    /// Has a client of the chat allow what these ask, in its last message, as it has it now.
    async fn allow(&self, which: &[usize]) -> Answer {
        let body = self.allowing(which).await;
        self.server.post("/api/chat", body).await
    }

    /// The body of that request.
    async fn allowing(&self, which: &[usize]) -> Value {
        let path = format!("/api/chat/{}/messages", self.thread);
        let mut messages = self.server.get(&path).await.json()["messages"].take();
        let list = messages.as_array_mut().unwrap();
        let parts = list.last_mut().unwrap()["parts"].as_array_mut().unwrap();
        for n in which {
            let (call, key) = self.place(*n);
            let id = format!("subagent:{key}#{call}");
            let part = parts.iter_mut().find(|part| part["toolCallId"] == id);
            let part = part.unwrap_or_else(|| panic!("{id} is asked"));
            part["state"] = "approval-responded".into();
            part["approval"]["approved"] = true.into();
        }
        json!({"id": self.thread, "messages": messages})
    }

    /// The id of the message that the client has.
    async fn message_id(&self) -> Value {
        let path = format!("/api/chat/{}/messages", self.thread);
        let messages = self.server.get(&path).await.json();
        let messages = messages["messages"].as_array().unwrap();
        messages.last().unwrap()["id"].clone()
    }
}

/// The stream is one message's, whose agent has heard of all answers.
fn is_whole(streamed: &Answer, message: &Value) {
    assert_eq!(streamed.status, 200, "{}", streamed.text);
    assert!(streamed.text.contains("gave 2."), "{}", streamed.text);
    let chunks = chunks(&streamed.text);
    let count = |kind: &str| kinds(&chunks).iter().filter(|it| **it == kind).count();
    assert_eq!((count("start"), count("finish")), (1, 1), "{chunks:#?}");
    assert_eq!(&chunks[0]["messageId"], message, "{chunks:#?}");
    assert_eq!(chunks.last().unwrap(), "[DONE]");
}

#[tokio::test]
async fn a_stream_of_a_chat_shows_the_run_that_hears_of_an_answer_to_a_sub_agent() {
    let held = Held::new().await;
    let message = held.message_id().await;
    held.answer_first().await;
    let (streamed, ()) = tokio::join!(held.allow(&[1]), held.let_go());
    is_whole(&streamed, &message);
}

#[tokio::test]
async fn what_several_sub_agents_ask_is_answered_at_once_and_the_stream_shows_all_that_follows() {
    let held = Held::new().await;
    let message = held.message_id().await;
    let (streamed, ()) = tokio::join!(held.allow(&[0, 1]), held.let_go());
    is_whole(&streamed, &message);
    // What came of both calls of the agent's own is told.
    let chunks = chunks(&streamed.text);
    let ends = chunks.iter().filter(|it| {
        let kind = it["type"].as_str().unwrap_or_default();
        let id = it["toolCallId"].as_str().unwrap_or_default();
        kind.starts_with("tool-output") && it["preliminary"].is_null() && !id.contains('#')
    });
    assert_eq!(ends.count(), 2, "{chunks:#?}");
}

#[tokio::test]
async fn answers_to_sub_agents_that_are_sent_again_are_shown_what_followed() {
    let held = Held::new().await;
    let (message, body) = (held.message_id().await, held.allowing(&[0, 1]).await);
    let first = held.server.post("/api/chat", body.clone());
    let (streamed, ()) = tokio::join!(first, held.let_go());
    is_whole(&streamed, &message);
    let again = held.server.post("/api/chat", body.clone()).await;
    is_whole(&again, &message);
    // Others' threads tell nothing, though they have taken the same.
    held.server.say("other", "hello").await;
    let other = json!({"messages": body["messages"], "id": "other"});
    let refused = held.server.post("/api/chat", other).await;
    assert!(refused.status.is_client_error(), "{}", refused.text);
}
