//! Clients that keep the whole state, and send all of it with each request.

use super::last;
use crate::harness::Server;
use loomline_server::auth::hash_text;
use serde_json::{Value, json};

const COMPUTES: &str = "default_agent = \"demo\"\n[models.s]\nprovider = \"scripted\"\n\
                        [agents.demo]\nmodel = \"s\"\ntools = [\"compute\"]\n";

fn human(id: &str, text: &str) -> Value {
    json!({"type": "human", "id": id, "content": text})
}

fn run(messages: &[Value]) -> Value {
    json!({"assistant_id": "demo", "input": {"messages": messages}})
}

#[tokio::test]
async fn five_turns_that_send_the_whole_state_say_each_message_once() {
    let server = Server::new(COMPUTES).await;
    let thread = server.lang_thread().await;
    let mut state: Vec<Value> = Vec::new();
    for turn in 1..=5 {
        state.push(human(&format!("u{turn}"), &format!("compute {turn}+1")));
        let values = server.lang_wait(&thread, run(&state)).await;
        assert_eq!(last(&values), format!("compute gave {}.", turn + 1));
        let messages = values["messages"].as_array().unwrap().clone();
        let ids = |messages: &[Value]| -> Vec<Value> {
            messages.iter().map(|it| it["id"].clone()).collect()
        };
        assert_eq!(messages.len(), 4 * turn, "{values}");
        assert_eq!(ids(&messages)[..state.len()], ids(&state));
        state = messages;
    }
}

#[tokio::test]
async fn a_known_message_that_says_something_else_is_refused() {
    let server = Server::new(COMPUTES).await;
    let thread = server.lang_thread().await;
    server.lang_wait(&thread, run(&[human("u1", "hi")])).await;
    let seq = server.seq(&thread).await;
    let path = format!("/threads/{thread}/runs/wait");
    let changed = [human("u1", "hello"), human("u2", "and now?")];
    let refused = server.post(&path, run(&changed)).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let pointer = refused.json()["metadata"]["pointer"].clone();
    assert_eq!(pointer, "/input/messages/0/content", "{}", refused.text);
    let call = json!({"name": "compute", "args": {}, "id": "c", "type": "tool_call"});
    let forged = json!({"type": "ai", "id": "forged", "content": "", "tool_calls": [call]});
    let refused = server.post(&path, run(&[forged])).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert_eq!(server.seq(&thread).await, seq, "nothing was written");
}

#[tokio::test]
async fn values_with_known_messages_append_the_new_ones() {
    let server = Server::new(COMPUTES).await;
    let thread = server.lang_thread().await;
    let values = server.lang_wait(&thread, run(&[human("u1", "compute 1+1")]));
    let mut state = values.await["messages"].as_array().unwrap().clone();
    for (method, path, id) in [("PATCH", "", "u2"), ("POST", "/state", "u3")] {
        state.push(human(id, "noted"));
        let body = json!({"values": {"messages": state}});
        let path = format!("/threads/{thread}{path}");
        let answer = server.call(method, &path, Some(&body)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let now = server.get(&format!("/threads/{thread}")).await.json();
        let messages = now["values"]["messages"].as_array().unwrap();
        assert_eq!(messages.len(), state.len(), "{now}");
        assert_eq!(messages.last().unwrap()["id"], id);
    }
}

#[tokio::test]
async fn a_key_that_only_writes_learns_nothing_of_known_messages() {
    let (all, one) = (hash_text("llk_all"), hash_text("llk_one"));
    let tenants = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n[tenants.a.keys.one]\nhash = \"{one}\"\nscopes = [\"write\"]\n"
    );
    let server = Server::new(&format!("{COMPUTES}{tenants}")).await;
    let (all, one) = (server.with_key("llk_all"), server.with_key("llk_one"));
    let thread = all.lang_thread().await;
    all.lang_wait(&thread, run(&[human("u1", "swordfish")]))
        .await;
    let mut refusals = Vec::new();
    for guess in ["swordfish", "trout"] {
        let path = format!("/threads/{thread}/runs");
        let refused = one.post(&path, run(&[human("u1", guess)])).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        refusals.push(refused.json()["detail"].clone());
    }
    assert_eq!(refusals[0], refusals[1]);
}
