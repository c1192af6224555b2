//! Runs that wait for the outputs of their client's tools.

use super::{Client, events, names, refused, weather};
use interop::ids::{CONVERSATION, THREAD};
use serde_json::{Value, json};

/// A run that waits: the thread, the run, and the id of its call.
async fn waiting(client: &Client) -> (String, Value, String) {
    let thread = client.thread(&["use get_weather on Oslo"]).await;
    let run = client.ran(&thread, json!({"tools": [weather()]})).await;
    assert_eq!(run["status"], "requires_action");
    let calls = &run["required_action"]["submit_tool_outputs"]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], "get_weather");
    let call = calls[0]["id"].as_str().unwrap().to_owned();
    (thread, run, call)
}

fn path(thread: &str, run: &Value) -> String {
    let run = run["id"].as_str().unwrap();
    format!("/threads/{thread}/runs/{run}/submit_tool_outputs")
}

fn outputs(call: &str) -> Value {
    json!({"tool_outputs": [{"tool_call_id": call, "output": "sunny"}]})
}

#[tokio::test]
async fn a_run_waits_for_outputs_and_goes_on_with_them() {
    let client = Client::new().await;
    let (thread, run, call) = waiting(&client).await;
    let queued = client
        .post(&path(&thread, &run), outputs(&call), "RunObject")
        .await;
    assert_eq!(
        (&queued["status"], &queued["id"]),
        (&json!("queued"), &run["id"])
    );
    assert_eq!(queued["started_at"], run["started_at"]);
    assert!(queued["started_at"].is_i64());
    client.rest(&thread).await;
    let done = client.run(&thread, &run).await;
    assert_eq!(done["status"], "completed");
    let steps = format!(
        "/threads/{thread}/runs/{}/steps?order=asc",
        run["id"].as_str().unwrap()
    );
    let steps = client.get(&steps, "ListRunStepsResponse").await;
    assert_eq!(
        steps["data"][0]["step_details"]["tool_calls"][0]["function"]["output"],
        "sunny"
    );
    assert_eq!(steps["data"][1]["type"], "message_creation");
    let said = client.said(&thread).await;
    assert!(said.last().unwrap().1.contains("sunny"), "{said:?}");
    // It is one run.
    let runs = client
        .ids(&format!("/threads/{thread}/runs"), "ListRunsResponse")
        .await;
    assert_eq!(runs.0.len(), 1);
}

#[tokio::test]
async fn outputs_that_are_streamed_begin_where_the_stream_ended() {
    let client = Client::new().await;
    let thread = client.thread(&["use get_weather on Oslo"]).await;
    let body = json!({"assistant_id": "demo", "tools": [weather()], "stream": true});
    let asked = events(&client.ask(&format!("/threads/{thread}/runs"), body).await);
    let (name, run) = &asked[asked.len() - 2];
    assert_eq!(name, "thread.run.requires_action");
    let call = &run["required_action"]["submit_tool_outputs"]["tool_calls"][0]["id"];
    let mut body = outputs(call.as_str().unwrap());
    body["stream"] = true.into();
    let answered = events(&client.ask(&path(&thread, run), body).await);
    let told = names(&answered);
    assert_eq!(
        told[..3],
        [
            "thread.run.step.completed",
            "thread.run.queued",
            "thread.run.in_progress"
        ]
    );
    assert_eq!(told[told.len() - 2..], ["thread.run.completed", "done"]);
    let deltas = answered
        .iter()
        .filter(|(name, _)| name == "thread.message.delta");
    let text: String = deltas
        .map(|(_, data)| {
            data["delta"]["content"][0]["text"]["value"]
                .as_str()
                .unwrap_or_default()
        })
        .collect();
    assert!(text.contains("sunny"), "{text}");
}

#[tokio::test]
async fn outputs_must_be_those_that_are_waited_for() {
    let client = Client::new().await;
    let (thread, run, call) = waiting(&client).await;
    let path = path(&thread, &run);
    let (status, message, _) = refused(&client.ask(&path, outputs("call_x")).await);
    assert_eq!(status, 400);
    assert_eq!(
        message,
        format!("Expected tool outputs for call_ids ['{call}'], got ['call_x']")
    );
    assert_eq!(
        refused(&client.ask(&path, json!({"tool_outputs": []})).await).0,
        400
    );
    assert_eq!(client.run(&thread, &run).await["status"], "requires_action");
    client.post(&path, outputs(&call), "RunObject").await;
    client.rest(&thread).await;
    let (status, message, _) = refused(&client.ask(&path, outputs(&call)).await);
    assert_eq!(
        (status, message.as_str()),
        (
            400,
            "Runs in status \"completed\" do not accept tool outputs."
        )
    );
}

#[tokio::test]
async fn what_was_said_beside_outputs_is_a_message_like_others() {
    let client = Client::new().await;
    let (thread, run, call) = waiting(&client).await;
    // Through a protocol that takes both at once.
    let conversation = CONVERSATION.write(&THREAD.read(&thread));
    let body = json!({"conversation": conversation, "model": "demo", "tools": [{
        "type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": false,
    }], "input": [
        {"type": "function_call_output", "call_id": call, "output": "rain"},
        {"role": "user", "content": "And be brief"},
    ]});
    let answer = client.ask("/responses", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    client.rest(&thread).await;
    let path = format!("/threads/{thread}/messages");
    let schema = "ListMessagesResponse";
    let (all, _) = client.ids(&format!("{path}?order=asc"), schema).await;
    assert_eq!(all.len(), 3, "{all:?}");
    let beside = &all[1];
    assert!(beside.starts_with("msg_"), "{beside}");
    let own = format!("{path}/{beside}");
    let said = client.get(&own, "MessageObject").await;
    assert_eq!(said["content"][0]["text"]["value"], "And be brief");
    let noted = json!({"metadata": {"n": "1"}});
    let changed = client.post(&own, noted.clone(), "MessageObject").await;
    assert_eq!(changed["metadata"], noted["metadata"]);
    assert_eq!(client.get(&own, "MessageObject").await, changed);
    for (order, after, before) in [("asc", &all[2], &all[0]), ("desc", &all[0], &all[2])] {
        let page = format!("{path}?order={order}&after={beside}");
        let list = client.get(&page, schema).await;
        assert_eq!(list["data"][0]["id"], json!(after), "{order}");
        let answer = &list["data"][0];
        let is_answer = answer["role"] == "assistant";
        assert!(!is_answer || answer["run_id"] == run["id"], "{answer}");
        let page = format!("{path}?order={order}&before={beside}");
        let (ids, _) = client.ids(&page, schema).await;
        assert_eq!(ids.iter().collect::<Vec<_>>(), [before]);
    }
    let (status, message, _) = refused(&client.delete(&own).await);
    assert_eq!(status, 400);
    assert!(message.contains("tool outputs"), "{message}");
    assert_eq!(client.get(&own, "MessageObject").await, changed);
}

#[tokio::test]
async fn outputs_that_are_sent_again_are_taken_once() {
    let client = Client::new().await;
    let (thread, run, call) = waiting(&client).await;
    let own = format!("/threads/{thread}/runs/{}", run["id"].as_str().unwrap());
    let note = json!({"metadata": {"ticket": "7"}});
    client.post(&own, note.clone(), "RunObject").await;
    let path = path(&thread, &run);
    let first = client.ask_once(&path, outputs(&call), "o-1").await;
    assert_eq!(first.json()["metadata"], note["metadata"]);
    client.rest(&thread).await;
    let again = client.ask_once(&path, outputs(&call), "o-1").await;
    assert_eq!((first.status, first.json()), (again.status, again.json()));
    let mut body = outputs(&call);
    body["stream"] = true.into();
    let streamed = events(&client.ask_once(&path, body, "o-1").await);
    assert_eq!(names(&streamed).first(), Some(&"thread.run.step.completed"));
    let runs = streamed
        .iter()
        .filter(|(_, data)| data["object"] == "thread.run");
    for (name, run) in runs {
        assert_eq!(run["metadata"], note["metadata"], "{name}");
    }
    assert_eq!(client.said(&thread).await.len(), 2);
}

#[tokio::test]
async fn outputs_for_a_run_that_a_fork_goes_on_with_are_taken_once() {
    let client = Client::new().await;
    let (thread, run, call) = waiting(&client).await;
    let key = THREAD.read(&thread).into_owned();
    let fork = format!("/api/v1/threads/{key}/fork");
    let fork = client.0.post(&fork, json!({})).await.json();
    let fork = THREAD.write(fork["id"].as_str().unwrap());
    let path = path(&fork, &run);
    let first = client.ask_once(&path, outputs(&call), "o-1").await;
    assert_eq!(first.status, 200, "{}", first.text);
    client.rest(&fork).await;
    let again = client.ask_once(&path, outputs(&call), "o-1").await;
    assert_eq!((again.status, again.json()), (first.status, first.json()));
    assert_eq!(client.run(&fork, &run).await["status"], "completed");
    assert_eq!(client.run(&thread, &run).await["status"], "requires_action");
}

#[tokio::test]
async fn a_run_that_waits_locks_its_thread_until_it_is_cancelled() {
    let client = Client::new().await;
    let (thread, run, call) = waiting(&client).await;
    let id = run["id"].as_str().unwrap();
    let messages = format!("/threads/{thread}/messages");
    let say = || client.ask(&messages, json!({"role": "user", "content": "more"}));
    assert_eq!(say().await.status, 400);
    let asked = client
        .ask(
            &format!("/threads/{thread}/runs"),
            json!({"assistant_id": "demo"}),
        )
        .await;
    assert_eq!(
        refused(&asked).1,
        format!("Thread {thread} already has an active run {id}.")
    );
    let cancel = format!("/threads/{thread}/runs/{id}/cancel");
    let cancelled = client.post(&cancel, json!({}), "RunObject").await;
    assert_eq!(cancelled["status"], "cancelled");
    // The call waits no longer, for nobody.
    let key = interop::ids::THREAD.read(&thread).into_owned();
    let pending = client
        .0
        .get(&format!("/api/v1/threads/{key}/pending"))
        .await
        .json();
    assert_eq!(pending["calls"], json!([]));
    assert_eq!(
        client
            .ask(&path(&thread, &run), outputs(&call))
            .await
            .status,
        400
    );
    // Stopping it is no run of its own.
    let runs = client
        .ids(&format!("/threads/{thread}/runs"), "ListRunsResponse")
        .await;
    assert_eq!(runs.0, [id]);
    assert_eq!(say().await.status, 200);
}

#[tokio::test]
async fn a_forced_tool_is_called_once() {
    let client = Client::new().await;
    let thread = client.thread(&["Oslo, please"]).await;
    let choice = json!({"type": "function", "function": {"name": "get_weather"}});
    let run = client
        .ran(
            &thread,
            json!({"tools": [weather()], "tool_choice": choice}),
        )
        .await;
    assert_eq!(run["status"], "requires_action");
    assert_eq!(run["tool_choice"], choice);
    let call = &run["required_action"]["submit_tool_outputs"]["tool_calls"][0]["id"];
    client
        .post(
            &path(&thread, &run),
            outputs(call.as_str().unwrap()),
            "RunObject",
        )
        .await;
    client.rest(&thread).await;
    assert_eq!(client.run(&thread, &run).await["status"], "completed");
}
