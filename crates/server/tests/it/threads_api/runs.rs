//! Runs: their states, their lock, their steps.

use super::{Client, object, refused, weather};
use crate::harness::Server;
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

#[tokio::test]
async fn a_run_is_queued_and_then_completed_with_its_step_and_its_message() {
    let client = Client::new().await;
    let thread = client.thread(&["Good morning"]).await;
    let begun = client.begin(&thread, json!({"metadata": {"n": "1"}})).await;
    assert_eq!(
        (&begun["status"], &begun["started_at"]),
        (&json!("queued"), &Value::Null)
    );
    assert_eq!(
        begun["expires_at"].as_i64().unwrap(),
        begun["created_at"].as_i64().unwrap() + 600
    );
    assert_eq!(
        (&begun["usage"], &begun["assistant_id"]),
        (&Value::Null, &json!("demo"))
    );
    client.rest(&thread).await;
    let run = client.run(&thread, &begun).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(run["metadata"], json!({"n": "1"}));
    assert!(run["usage"]["total_tokens"].as_u64().unwrap() > 0);
    assert_eq!(
        (&run["expires_at"], &run["last_error"]),
        (&Value::Null, &Value::Null)
    );
    let path = format!(
        "/threads/{thread}/runs/{}/steps",
        run["id"].as_str().unwrap()
    );
    let steps = client.get(&path, "ListRunStepsResponse").await;
    let [step] = steps["data"].as_array().unwrap().as_slice() else {
        panic!("{steps}");
    };
    assert_eq!(
        (&step["type"], &step["status"]),
        (&json!("message_creation"), &json!("completed"))
    );
    let message = step["step_details"]["message_creation"]["message_id"]
        .as_str()
        .unwrap();
    let message = client
        .get(
            &format!("/threads/{thread}/messages/{message}"),
            "MessageObject",
        )
        .await;
    assert_eq!(message["run_id"], run["id"]);
    assert_eq!(
        message["content"][0]["text"]["value"],
        "You said: Good morning"
    );
    let own = format!("{path}/{}", step["id"].as_str().unwrap());
    assert_eq!(&client.get(&own, "RunStepObject").await, step);
    let none = refused(&client.0.get(&format!("/v1{path}/step_none")).await);
    assert_eq!(
        none,
        (
            404,
            "No run step found with id 'step_none'.".to_owned(),
            None
        )
    );
}

#[tokio::test]
async fn a_run_locks_its_thread_against_runs() {
    let client = Client::new().await;
    let thread = client.thread(&["slow 50ms say 200 words"]).await;
    let run = client.begin(&thread, json!({})).await;
    let path = format!("/threads/{thread}/runs");
    let asked = client.ask(&path, json!({"assistant_id": "demo"})).await;
    let id = run["id"].as_str().unwrap();
    let expected = format!("Thread {thread} already has an active run {id}.");
    assert_eq!(refused(&asked), (400, expected, None));
    // Nothing of what was refused is kept.
    let body =
        json!({"assistant_id": "demo", "additional_messages": [{"role": "user", "content": "no"}]});
    assert_eq!(client.ask(&path, body).await.status, 400);
    assert_eq!(
        client.get(&path, "ListRunsResponse").await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let cancelled = client
        .post(&format!("{path}/{id}/cancel"), json!({}), "RunObject")
        .await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(
        !client
            .said(&thread)
            .await
            .iter()
            .any(|(_, text)| text == "no")
    );
}

#[tokio::test]
async fn of_runs_that_are_asked_for_at_once_one_begins() {
    let client = Client::new().await;
    let thread = client.thread(&["use get_weather on Oslo"]).await;
    let body = || json!({"assistant_id": "demo", "tools": [weather()]});
    let path = format!("/threads/{thread}/runs");
    let asked = (0..8).map(|_| client.ask(&path, body()));
    let answers = futures_util::future::join_all(asked).await;
    let (begun, refusals): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 200);
    let [begun] = begun.as_slice() else {
        panic!("{} runs have begun", begun.len());
    };
    let run = object(begun, "RunObject");
    let expected = format!(
        "Thread {thread} already has an active run {}.",
        run["id"].as_str().unwrap()
    );
    for refusal in refusals {
        assert_eq!(refused(refusal), (400, expected.clone(), None));
    }
    client.rest(&thread).await;
    assert_eq!(client.run(&thread, &run).await["status"], "requires_action");
}

#[tokio::test]
async fn a_run_that_is_over_is_not_cancelled() {
    let client = Client::new().await;
    let thread = client.thread(&["hello"]).await;
    let run = client.ran(&thread, json!({})).await;
    let path = format!(
        "/threads/{thread}/runs/{}/cancel",
        run["id"].as_str().unwrap()
    );
    let (status, message, _) = refused(&client.ask(&path, json!({})).await);
    assert_eq!(
        (status, message.as_str()),
        (400, "Cannot cancel run with status 'completed'.")
    );
}

#[tokio::test]
async fn a_run_that_fails_says_why() {
    let client = Client::new().await;
    let thread = client.thread(&["fail rate_limited"]).await;
    let run = client.ran(&thread, json!({})).await;
    assert_eq!(run["status"], "failed");
    assert_eq!(run["last_error"]["code"], "rate_limit_exceeded");
    assert!(run["failed_at"].is_i64());
    // The thread is free again.
    let body = json!({"additional_messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(client.ran(&thread, body).await["status"], "completed");
}

#[tokio::test]
async fn additional_messages_are_said_before_the_run_and_instructions_reach_it() {
    let client = Client::new().await;
    let thread = client.thread(&["one"]).await;
    let run = client
        .ran(&thread, json!({
            "instructions": "Be brief.", "additional_instructions": "Be kind.",
            "additional_messages": [{"role": "user", "content": "two"}, {"role": "user", "content": "three"}],
        }))
        .await;
    assert_eq!(run["instructions"], "Be brief.\nBe kind.");
    let said: Vec<String> = client
        .said(&thread)
        .await
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(said, ["one", "two", "three", "You said: three"]);
}

#[tokio::test]
async fn what_a_run_can_not_have_is_refused_before_anything_is_written() {
    let client = Client::new().await;
    let thread = client.thread(&["one"]).await;
    let path = format!("/threads/{thread}/runs");
    let cases = [
        (
            json!({"assistant_id": "nobody"}),
            404,
            None,
            "No assistant found with id 'nobody'.",
        ),
        (
            json!({}),
            400,
            Some("assistant_id"),
            "Missing required parameter: 'assistant_id'.",
        ),
        (
            json!({"assistant_id": "demo", "model": "gpt-none"}),
            400,
            Some("model"),
            "The requested model 'gpt-none' does not exist.",
        ),
        (
            json!({"assistant_id": "demo", "tool_choice": {"type": "function", "function": {"name": "none"}}}),
            400,
            Some("tool_choice"),
            "there is no tool \"none\" to choose",
        ),
        (
            json!({"assistant_id": "demo", "tools": [{"type": "file_search"}]}),
            400,
            Some("tools[0].type"),
            "Unsupported value for 'tools[0].type': the tool file_search is not available on this server.",
        ),
    ];
    for (body, status, param, message) in cases {
        let answer = client.ask(&path, body).await;
        let expected = (status, message.to_owned(), param.map(str::to_owned));
        assert_eq!(refused(&answer), expected);
    }
    assert_eq!(
        client.get(&path, "ListRunsResponse").await["data"],
        json!([])
    );
    let no_run = refused(&client.0.get(&format!("/v1{path}/run_none")).await);
    assert_eq!(
        no_run,
        (404, "No run found with id 'run_none'.".to_owned(), None)
    );
}

#[tokio::test]
async fn a_thread_and_its_run_are_made_in_one_request() {
    let client = Client::new().await;
    let body = json!({"assistant_id": "demo", "thread": {
        "messages": [{"role": "user", "content": "Good morning"}], "metadata": {"a": "b"},
    }});
    let run = client.post("/threads/runs", body, "RunObject").await;
    let thread = run["thread_id"].as_str().unwrap();
    client.rest(thread).await;
    assert_eq!(client.run(thread, &run).await["status"], "completed");
    assert_eq!(client.said(thread).await.len(), 2);
    let made = client
        .get(&format!("/threads/{thread}"), "ThreadObject")
        .await;
    assert_eq!(made["metadata"], json!({"a": "b"}));
    // An assistant that is not there makes no thread.
    let n_threads = || async {
        client.0.get("/api/v1/threads").await.json()["threads"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        client
            .ask("/threads/runs", json!({"assistant_id": "nobody"}))
            .await
            .status,
        404
    );
    assert_eq!(n_threads().await, 1);
}

#[tokio::test]
async fn a_thread_is_not_made_for_a_run_whose_stream_is_refused() {
    let client = Client(Server::new("[limits]\nstreams = 1").await);
    let body = || {
        json!({"assistant_id": "demo", "stream": true, "thread": {"messages": [
            {"role": "user", "content": "slow 50ms say 200 words"}]}})
    };
    let request = client.0.request("POST", "/v1/threads/runs");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body().to_string())).unwrap();
    let open = client.0.open(request).await;
    let refused = client.ask("/threads/runs", body()).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    let threads = client.0.get("/api/v1/threads").await.json();
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1);
    drop(open);
}

#[tokio::test]
async fn a_run_expires_when_the_servers_time_for_runs_is_up() {
    let client = Client(Server::new("[server]\nrun_timeout_s = 30").await);
    let thread = client.thread(&["hello"]).await;
    let run = client.begin(&thread, json!({})).await;
    assert_eq!(
        run["expires_at"].as_i64().unwrap(),
        run["created_at"].as_i64().unwrap() + 30
    );
}

#[tokio::test]
async fn runs_and_answers_before_the_first_message_are_listed() {
    let client = Client::new().await;
    let thread = client.thread(&[]).await;
    let run = client.ran(&thread, json!({})).await;
    let path = format!("/threads/{thread}/messages");
    for n in 0..22 {
        let body = json!({"role": "user", "content": n.to_string()});
        client.post(&path, body, "MessageObject").await;
    }
    let runs = format!("/threads/{thread}/runs");
    let (ids, more) = client.ids(&runs, "ListRunsResponse").await;
    assert_eq!(
        (ids, more),
        (vec![run["id"].as_str().unwrap().to_owned()], false)
    );
    let (ids, more) = client
        .ids(&format!("{path}?limit=22"), "ListMessagesResponse")
        .await;
    assert_eq!(
        (ids.len(), more),
        (22, true),
        "what the run said comes next"
    );
}

/// A server whose default agent's model answers by a script.
async fn scripted(turns: Value) -> Client {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let turns = json!({"turns": turns, "repeat_last": true});
    std::fs::write(&script, turns.to_string()).unwrap();
    let config = format!(
        "default_agent = \"demo\"\n[models.scripted]\nprovider = \"scripted\"\nscript = \"{}\"\n[agents.demo]\nmodel = \"scripted\"\n",
        script.display()
    );
    Client(Server::at(directory, &config).await)
}

#[tokio::test]
async fn a_run_whose_calls_are_cut_off_ends_incomplete() {
    let client = scripted(json!([{
        "tool_calls": [{"name": "get_weather", "arguments": "{\"city\": \"Os"}],
        "stop_reason": "max_tokens",
        "usage": {"inputTokens": 5, "outputTokens": 400},
    }]))
    .await;
    let thread = client.thread(&["go"]).await;
    // Without a limit the model is told of its cut call, and asked again.
    let body = json!({"tools": [weather()], "max_completion_tokens": 300});
    let run = client.ran(&thread, body).await;
    assert_eq!(run["status"], "incomplete");
    let reason = json!({"reason": "max_completion_tokens"});
    assert_eq!(run["incomplete_details"], reason);
}

#[tokio::test]
async fn a_run_ends_incomplete_when_its_answers_have_had_their_tokens() {
    let client = scripted(json!([{
        "tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}],
        "usage": {"inputTokens": 5, "outputTokens": 200},
    }]))
    .await;
    let thread = client.thread(&["go"]).await;
    let body = json!({"tools": [weather()], "max_completion_tokens": 300});
    let mut run = client.ran(&thread, body).await;
    for status in ["requires_action", "incomplete"] {
        let path = format!("/threads/{thread}/runs/{}", run["id"].as_str().unwrap());
        let calls = &run["required_action"]["submit_tool_outputs"]["tool_calls"];
        let output = json!({"tool_call_id": calls[0]["id"], "output": "sunny"});
        let body = json!({"tool_outputs": [output]});
        let path = format!("{path}/submit_tool_outputs");
        client.post(&path, body, "RunObject").await;
        client.rest(&thread).await;
        run = client.run(&thread, &run).await;
        assert_eq!(run["status"], status);
    }
    let reason = json!({"reason": "max_completion_tokens"});
    assert_eq!(run["incomplete_details"], reason);
    assert_eq!(run["usage"]["completion_tokens"], 400);
}

#[tokio::test]
async fn a_request_without_a_body_is_told_what_is_missing() {
    let client = Client::new().await;
    let thread = client.thread(&[]).await;
    for (path, missing) in [
        (format!("/threads/{thread}/runs"), "assistant_id"),
        (format!("/threads/{thread}/messages"), "role"),
        ("/threads/runs".to_owned(), "assistant_id"),
        ("/assistants".to_owned(), "model"),
    ] {
        let request = client.0.request("POST", &format!("/v1{path}"));
        let answer = client.0.send(request.body(Body::empty()).unwrap()).await;
        let message = format!("Missing required parameter: '{missing}'.");
        let expected = (400, message, Some(missing.to_owned()));
        assert_eq!(refused(&answer), expected, "{path}");
    }
}

#[tokio::test]
async fn a_run_that_is_asked_for_again_begins_once() {
    let client = Client::new().await;
    let thread = client.thread(&["hello"]).await;
    let path = format!("/threads/{thread}/runs");
    let body = || json!({"assistant_id": "demo"});
    let first = client.ask_once(&path, body(), "r-1").await.json();
    let again = client.ask_once(&path, body(), "r-1").await.json();
    assert_eq!(first, again);
    client.rest(&thread).await;
    assert_eq!(client.ids(&path, "ListRunsResponse").await.0.len(), 1);
    let both = || json!({"assistant_id": "demo", "thread": {"messages": [{"role": "user", "content": "hi"}]}});
    let first = client.ask_once("/threads/runs", both(), "r-1").await.json();
    let again = client.ask_once("/threads/runs", both(), "r-1").await.json();
    assert_eq!(first, again);
}

#[tokio::test]
async fn what_is_noted_on_a_run_can_be_changed() {
    let client = Client::new().await;
    let thread = client.thread(&["hello"]).await;
    let run = client.ran(&thread, json!({"metadata": {"n": "1"}})).await;
    let runs = format!("/threads/{thread}/runs");
    let own = format!("{runs}/{}", run["id"].as_str().unwrap());
    let changed = client
        .post(&own, json!({"metadata": {"n": "2"}}), "RunObject")
        .await;
    assert_eq!(changed["metadata"], json!({"n": "2"}));
    assert_eq!(client.get(&own, "RunObject").await, changed);
    assert_eq!(
        client.get(&runs, "ListRunsResponse").await["data"],
        json!([changed])
    );
}

#[tokio::test]
async fn pages_of_runs_and_of_steps_show_each_once() {
    let client = Client::new().await;
    let thread = client.thread(&["compute 1+1 then compute 2+2"]).await;
    let first = client.ran(&thread, json!({})).await;
    for _ in 0..2 {
        client.ran(&thread, json!({})).await;
    }
    let runs = format!("/threads/{thread}/runs");
    let (newest_first, _) = client.ids(&runs, "ListRunsResponse").await;
    assert_eq!(
        (newest_first.len(), &newest_first[2]),
        (3, &json!(first["id"]).as_str().unwrap().to_owned())
    );
    let path = format!("{runs}?limit=2&after={}", newest_first[0]);
    assert_eq!(
        client.ids(&path, "ListRunsResponse").await,
        (newest_first[1..].to_vec(), false)
    );
    let steps = format!("{runs}/{}/steps", newest_first[2]);
    let (all, _) = client
        .ids(&format!("{steps}?order=asc"), "ListRunStepsResponse")
        .await;
    assert_eq!(all.len(), 3, "two of calls, one of a message");
    let (page, more) = client
        .ids(
            &format!("{steps}?order=asc&limit=2"),
            "ListRunStepsResponse",
        )
        .await;
    assert_eq!((page.as_slice(), more), (&all[..2], true));
}
