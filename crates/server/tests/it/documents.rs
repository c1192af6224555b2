//! Threads as files: taken in, given out, the same after a restart.

use crate::harness::Server;
use axum::body::Body;
use futures_util::StreamExt;
use http::header;
use serde_json::json;

const HISTORY: &str = r#"[
  {"kind":"request","parts":[{"part_kind":"user-prompt","content":"What is 2 + 2?","timestamp":"2026-01-05T08:00:00Z"}]},
  {"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"add","args":{"a":2,"b":2},"tool_call_id":"c1"}],
   "model_name":"m","timestamp":"2026-01-05T08:00:01Z","usage":{"input_tokens":5,"output_tokens":3}},
  {"kind":"request","parts":[{"part_kind":"tool-return","tool_name":"add","content":4,"tool_call_id":"c1","timestamp":"2026-01-05T08:00:02Z"}]},
  {"kind":"response","parts":[{"part_kind":"text","content":"It is 4."}],"model_name":"m","timestamp":"2026-01-05T08:00:03Z"}
]"#;

#[tokio::test]
async fn an_imported_history_is_the_same_document_after_the_store_is_opened_again() {
    let first = Server::new("").await;
    let imported = first
        .post_text("/api/v1/import?from=pydantic-ai&key=h", HISTORY)
        .await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    assert_eq!(imported.json()["thread"]["key"], "h");
    assert!(imported.json()["losses"].is_array());
    let before = first.get("/api/v1/threads/h/document").await;
    let hash = before.headers["loomline-content-hash"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(hash.starts_with("sha256:") && hash.len() == 71);
    assert_eq!(before.json()["version"], "0.0.4");
    first.app.shutdown().await.unwrap();
    let Server {
        app,
        router,
        directory,
        ..
    } = first;
    drop((app, router));
    let second = Server::at(directory, "").await;
    let after = second.get("/api/v1/threads/h/document").await;
    assert_eq!(
        (
            after.headers["loomline-content-hash"].to_str().unwrap(),
            after.text
        ),
        (hash.as_str(), before.text)
    );
}

#[tokio::test]
async fn a_document_that_was_given_out_is_taken_in_again() {
    let server = Server::new("").await;
    server.say("t", "use compute 1 + 2").await;
    let document = server.get("/api/v1/threads/t/document").await;
    let imported = server
        .post_text(
            "/api/v1/import?from=threadprotocol&key=u",
            document.text.clone(),
        )
        .await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    let again = server.get("/api/v1/threads/u/document").await.json();
    assert_eq!(again["turns"], document.json()["turns"]);
}

#[tokio::test]
async fn what_is_said_after_an_import_is_given_out_whatever_the_document_had_in_its_place() {
    let server = Server::new("").await;
    for (key, document) in [
        ("none", r#"{"version":"0.0.4","agents":[],"x":1}"#),
        ("other", r#"{"turns":5,"version":"0.0.4","agents":[]}"#),
    ] {
        let path = format!("/api/v1/import?from=threadprotocol&key={key}");
        let imported = server.post_text(&path, document).await;
        assert_eq!(imported.status, 201, "{}", imported.text);
        let path = format!("/api/v1/threads/{key}/document");
        let given = thread::Thread::decode(&server.get(&path).await.text).unwrap();
        let errors = thread::validate(&given, thread::Profile::Strict);
        assert_eq!(errors, [], "{key}");
        server.say(key, "hi").await;
        let grown = server.get(&path).await.json();
        let said = grown["turns"].as_array().map(Vec::len);
        assert_eq!(said, Some(2), "{grown:#}");
        assert!(grown["agents"].is_object() && grown["thread_id"].is_string());
    }
}

#[tokio::test]
async fn an_imported_conversation_goes_on() {
    let server = Server::new("").await;
    server
        .post_text("/api/v1/import?from=pydantic-ai&key=h", HISTORY)
        .await;
    server.say("h", "and more").await;
    let messages = server.get("/api/v1/threads/h/messages").await.json();
    let roles: Vec<_> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(
        json!(roles),
        json!(["user", "assistant", "user", "assistant"])
    );
}

/// Has the one answer of a thread cancelled when it has said something; gives the run's id.
async fn cancelled(server: &Server) -> String {
    let request = server
        .request("POST", "/api/v1/threads/t/messages")
        .header(header::CONTENT_TYPE, "application/json");
    let body = json!({"content": "slow 20ms say 2000 words", "stream": true}).to_string();
    let (_, mut stream) = server.open(request.body(Body::from(body)).unwrap()).await;
    let (mut text, mut id) = (String::new(), None);
    while let Some(piece) = stream.next().await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        if id.is_none() && text.contains("text-delta") {
            let cancel = server.post("/api/v1/threads/t/cancel", json!({})).await;
            id = cancel.json()["executionId"].as_str().map(str::to_owned);
        }
    }
    id.unwrap()
}

#[tokio::test]
async fn the_losses_of_an_export_name_a_cancelled_half_answer() {
    let server = Server::new("").await;
    cancelled(&server).await;
    let exported = server.get("/api/v1/threads/t/document").await;
    assert_eq!(exported.headers["loomline-losses"], "1");
    let loss = exported.headers["loomline-loss"].to_str().unwrap();
    assert!(
        loss.starts_with("/entries/1 ")
            && loss.ends_with(" characters of an answer that was cut off"),
        "{loss}"
    );
}

#[tokio::test]
async fn the_native_views_show_a_cancelled_half_answer_like_the_ai_sdk_view() {
    let server = Server::new("").await;
    let id = cancelled(&server).await;
    let shown = server.get("/api/chat/t/messages").await.json();
    let said = shown["messages"][1]["parts"].as_array().unwrap();
    let said = said.iter().find(|part| part["type"] == "text").unwrap();
    let messages = server.get("/api/v1/threads/t/messages").await.json();
    let half = json!([{"type": "output_text", "text": said["text"]}]);
    assert_eq!(messages["messages"][1]["content"], half);
    let run = format!("/api/v1/threads/t/runs/{id}");
    assert_eq!(server.get(&run).await.json()["steps"][0]["parts"], half);
}

#[tokio::test]
async fn an_export_of_integers_beyond_2_to_the_53_warns_beside_its_hash() {
    let server = Server::new("").await;
    let document = r#"{"version":"0.0.4","thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01",
        "created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:00:00Z","agents":{},"turns":[],
        "metadata":{"n":9007199254740993}}"#;
    server
        .post_text("/api/v1/import?from=thread&key=k", document)
        .await;
    let exported = server.get("/api/v1/threads/k/document").await;
    let warning = exported.headers["loomline-hash-warning"].to_str().unwrap();
    assert!(warning.contains("9007199254740993"), "{warning}");
    server.say("t", "hi").await;
    let exact = server.get("/api/v1/threads/t/document").await;
    assert!(!exact.headers.contains_key("loomline-hash-warning"));
}

#[tokio::test]
async fn an_import_names_an_answer_that_was_cut_off() {
    let server = Server::new("").await;
    let half = r#"[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"Q","timestamp":"2026-01-05T08:00:00Z"}],"timestamp":"2026-01-05T08:00:00Z"},
        {"kind":"response","parts":[{"part_kind":"text","content":"On the ro"}],"timestamp":"2026-01-05T08:00:03Z","state":"interrupted"}]"#;
    let path = "/api/v1/import?from=pydantic-ai&key=h&agent=ada";
    let imported = server.post_text(path, half).await.json();
    let expected = json!([{"pointer": "/1", "what": "an answer that was cut off"}]);
    assert_eq!(imported["losses"], expected);
}

#[tokio::test]
async fn an_import_reports_the_runs_that_it_cannot_attribute() {
    let server = Server::new("").await;
    let imported = server
        .post_text("/api/v1/import?from=pydantic-ai&key=h", HISTORY)
        .await
        .json();
    let what = "the source names no agent, so the run is attributed to \"agent\"";
    let expected = json!({"pointer": "/0", "what": what});
    assert_eq!(imported["losses"][0], expected, "{imported:#}");
    let document = server.get("/api/v1/threads/h/document").await.json();
    let names: Vec<_> = document["agents"]
        .as_object()
        .unwrap()
        .values()
        .map(|agent| agent["agent_name"].clone())
        .collect();
    assert_eq!(json!(names), json!(["agent"]));
}

#[tokio::test]
async fn no_local_agent_gets_the_model_of_an_imported_run() {
    let server = Server::new("").await;
    let path = "/api/v1/import?from=pydantic-ai&key=h&agent=demo";
    let imported = server.post_text(path, HISTORY).await.json();
    let losses = imported["losses"].to_string();
    assert!(losses.contains("ran with the model"), "{losses}");
    let document = server.get("/api/v1/threads/h/document").await.json();
    let agents = document["agents"].as_object().unwrap();
    assert!(
        agents
            .values()
            .all(|it| it["agent_name"] == "demo" && it["model_name"].is_null())
    );
    // The message still says what wrote it.
    assert_eq!(document["turns"][1]["messages"][0]["model_name"], "m");
}

#[tokio::test]
async fn an_attribution_over_http_keeps_the_agents_of_a_history() {
    let server = Server::new("").await;
    let attribution = json!([{"agent": "ada", "n_messages": 4}, {"agent": "bo", "n_messages": 2}]);
    let history = HISTORY.trim_end().strip_suffix(']').unwrap();
    let history = format!(
        r#"{history},{{"kind":"request","parts":[{{"part_kind":"user-prompt","content":"And you?","timestamp":"2026-01-05T08:00:04Z"}}]}},
        {{"kind":"response","parts":[{{"part_kind":"text","content":"Me too."}}],"timestamp":"2026-01-05T08:00:05Z"}}]"#
    );
    let query = attribution
        .to_string()
        .replace('"', "%22")
        .replace('{', "%7B");
    let query = query
        .replace('}', "%7D")
        .replace('[', "%5B")
        .replace(']', "%5D");
    let path = format!("/api/v1/import?from=pydantic-ai&key=h&attribution={query}");
    let imported = server.post_text(&path, history).await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    let document = server.get("/api/v1/threads/h/document").await.json();
    let name = |turn: usize| {
        let id = document["turns"][turn]["agent_id"].as_str().unwrap();
        document["agents"][id]["agent_name"].clone()
    };
    assert_eq!((name(1), name(3)), (json!("ada"), json!("bo")));
    let wrong = "/api/v1/import?from=pydantic-ai&attribution=7";
    let refused = server.post_text(wrong, HISTORY).await;
    assert_eq!(refused.error().1, "invalid_query");
}

#[tokio::test]
async fn a_stored_thread_gives_back_what_was_imported_and_what_was_said_since() {
    let server = Server::new("").await;
    let ui = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"hi","x":1.0}]},{"id":"a","role":"assistant","parts":[{"type":"text","text":"Hello"}]}]"#;
    let system = r#"[{"kind":"request","parts":[{"part_kind":"system-prompt","content":"Be brief."},{"part_kind":"user-prompt","content":"Hi"}]},{"kind":"response","parts":[{"part_kind":"text","content":"Hello"}],"x":1e2}]"#;
    for (form, text) in [("ai-sdk-ui", ui), ("pydantic-ai", system)] {
        let import = format!("/api/v1/import?from={form}&key={form}");
        let imported = server.post_text(&import, text).await;
        assert_eq!(imported.status, 201, "{}", imported.text);
        let document = format!("/api/v1/threads/{form}/document?format=");
        let back = server.get(&format!("{document}{form}")).await;
        assert_eq!(
            (back.text.trim(), &back.headers["loomline-losses"]),
            (text, &"0".parse().unwrap())
        );
        assert!(!back.headers.contains_key("loomline-content-hash"));
        // The archive is taken in as well, and gives the same back.
        let archive = server.get(&format!("{document}archive")).await.text;
        let again = format!("/api/v1/import?from=archive&key={form}-2");
        assert_eq!(server.post_text(&again, archive.clone()).await.status, 201);
        let copy = format!("/api/v1/threads/{form}-2/document?format=archive");
        assert_eq!(server.get(&copy).await.text, archive);
        server.say(form, "and more").await;
        let grown = server.get(&format!("{document}{form}")).await.text;
        let begins = text.strip_suffix(']').unwrap();
        assert!(
            grown.starts_with(begins) && grown.contains("and more"),
            "{grown}"
        );
    }
}

/// The messages of a JSON list, without its brackets.
fn inner(list: &str) -> &str {
    let list = list.trim().strip_prefix('[').unwrap();
    list.strip_suffix(']').unwrap().trim()
}

#[tokio::test]
async fn appended_messages_are_exported_unchanged_between_what_was_said() {
    let server = Server::new("").await;
    let ui = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"hi","x":1.0}]},{"id":"a","role":"assistant","parts":[{"type":"text","text":"Hello"}]}]"#;
    let system = r#"[{"kind":"request","parts":[{"part_kind":"system-prompt","content":"Be brief."},{"part_kind":"user-prompt","content":"Hi"}]},{"kind":"response","parts":[{"part_kind":"text","content":"Hello"}],"x":1e2}]"#;
    for (form, text) in [("ai-sdk-ui", ui), ("pydantic-ai", system)] {
        server.say(form, "one").await;
        let append = format!("/api/v1/threads/{form}/import?from={form}&agent=ada");
        let appended = server.post_text(&append, text).await;
        assert_eq!(appended.status, 200, "{}", appended.text);
        assert_eq!(appended.json()["thread"]["key"], form);
        server.say(form, "two").await;
        let export = format!("/api/v1/threads/{form}/document?format={form}");
        let whole = server.get(&export).await.text;
        let order = ["\"one\"", inner(text), "\"two\""].map(|piece| whole.find(piece));
        assert!(order.is_sorted() && order[0].is_some(), "{order:?} {whole}");
        let messages = format!("/api/v1/threads/{form}/messages");
        let messages = server.get(&messages).await.json();
        assert_eq!(messages["messages"].as_array().unwrap().len(), 6);
    }
}

#[tokio::test]
async fn messages_are_appended_to_an_import_and_to_appended_messages() {
    let server = Server::new("").await;
    let import = "/api/v1/import?from=pydantic-ai&key=h&agent=ada";
    assert_eq!(server.post_text(import, HISTORY).await.status, 201);
    let more = HISTORY.replace("2026-01-05T08", "2026-01-05T09");
    for _ in 0..2 {
        let append = "/api/v1/threads/h/import?from=pydantic-ai&agent=ada";
        let appended = server.post_text(append, more.clone()).await;
        assert_eq!(appended.status, 200, "{}", appended.text);
    }
    let whole = server
        .get("/api/v1/threads/h/document?format=pydantic-ai")
        .await;
    let expected = format!("[{},{},{}]", inner(HISTORY), inner(&more), inner(&more));
    let [whole, expected] =
        [whole.text, expected].map(|it| serde_json::from_str::<serde_json::Value>(&it).unwrap());
    assert_eq!(whole, expected);
    let said = server.say("h", "and more").await;
    assert!(said.text.contains("You said: and more"), "{}", said.text);
}

#[tokio::test]
async fn an_append_with_an_old_position_writes_nothing() {
    let server = Server::new("").await;
    server.say("h", "one").await;
    let seq = server.seq("h").await;
    let append = |seq: u64| format!("/api/v1/threads/h/import?from=pydantic-ai&seq={seq}");
    let refused = server.post_text(&append(seq - 1), HISTORY).await;
    assert_eq!(refused.error().1, "conflict");
    assert_eq!(server.seq("h").await, seq);
    let appended = server.post_text(&append(seq), HISTORY).await;
    assert_eq!(appended.status, 200, "{}", appended.text);
    let after = appended.json()["thread"]["seq"].as_u64();
    assert_eq!(after, Some(server.seq("h").await));
    let again = server.post_text(&append(seq), HISTORY).await;
    assert_eq!(again.error().1, "conflict");
}

#[tokio::test]
async fn an_append_refuses_documents_and_unknown_threads() {
    let server = Server::new("").await;
    let missing = server
        .post_text("/api/v1/threads/none/import?from=pydantic-ai", HISTORY)
        .await;
    assert_eq!(missing.error().1, "thread_not_found");
    server.say("h", "one").await;
    let document = server.get("/api/v1/threads/h/document").await.text;
    let path = "/api/v1/threads/h/import?from=thread";
    assert_eq!(
        server.post_text(path, document).await.error().1,
        "invalid_query"
    );
    let path = "/api/v1/threads/h/import?from=pydantic-ai";
    assert_eq!(
        server.post_text(path, "[1]").await.error().1,
        "invalid_document"
    );
}

#[tokio::test]
async fn an_append_ends_what_a_pending_call_waits_for() {
    let config = "[models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"m\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n";
    let server = Server::new(config).await;
    server.say("h", "compute 1+1").await;
    let pending = |answer: crate::harness::Answer| answer.json()["calls"].as_array().unwrap().len();
    assert_eq!(pending(server.get("/api/v1/threads/h/pending").await), 1);
    let path = "/api/v1/threads/h/import?from=pydantic-ai";
    let appended = server.post_text(path, HISTORY).await;
    assert_eq!(appended.status, 200, "{}", appended.text);
    assert_eq!(pending(server.get("/api/v1/threads/h/pending").await), 0);
    for form in ["ai-sdk-ui", "pydantic-ai"] {
        let export = format!("/api/v1/threads/h/document?format={form}");
        let exported = server.get(&export).await.text;
        assert!(exported.contains("went on without answering"), "{exported}");
    }
    server.say("h", "and more").await;
}

#[tokio::test]
async fn an_archive_has_the_title_and_all_agents_after_appends() {
    let server = Server::new("").await;
    let new = json!({"key": "h", "title": "A sum", "metadata": {"n": 1}});
    server.post("/api/v1/threads", new).await;
    for agent in ["ada", "bob"] {
        let append = format!("/api/v1/threads/h/import?from=pydantic-ai&agent={agent}");
        assert_eq!(server.post_text(&append, HISTORY).await.status, 200);
    }
    let archive = server
        .get("/api/v1/threads/h/document?format=archive")
        .await;
    let root = archive.json();
    assert_eq!(
        (&root["title"], &root["metadata"]["n"]),
        (&json!("A sum"), &json!(1))
    );
    let import = "/api/v1/import?from=archive&key=copy";
    let imported = server.post_text(import, archive.text).await;
    assert_eq!(imported.status, 201, "{}", imported.text);
    let messages = server.get("/api/v1/threads/copy/messages").await.json();
    let said = messages["messages"].to_string();
    assert_eq!(said.matches("It is 4.").count(), 2, "{said}");
}

#[tokio::test]
async fn an_export_has_the_metadata_of_a_thread_a_few_times_at_most() {
    let server = Server::new("").await;
    let new = json!({"key": "h", "metadata": {"text": "x".repeat(10_000)}});
    server.post("/api/v1/threads", new).await;
    for _ in 0..5 {
        server.say("h", "one").await;
        let append = "/api/v1/threads/h/import?from=pydantic-ai";
        assert_eq!(server.post_text(append, HISTORY).await.status, 200);
    }
    let archive = server
        .get("/api/v1/threads/h/document?format=archive")
        .await;
    assert!(archive.text.len() < 40_000, "{}", archive.text.len());
}

#[tokio::test]
async fn appended_messages_whose_answer_is_regenerated_come_from_the_log() {
    let server = Server::new("").await;
    server.say("h", "one").await;
    let system = r#"[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"Hi"}]},{"kind":"response","parts":[{"part_kind":"text","content":"Hello"}],"x":1e2}]"#;
    let append = "/api/v1/threads/h/import?from=pydantic-ai&agent=demo";
    assert_eq!(server.post_text(append, system).await.status, 200);
    let messages = server.get("/api/v1/threads/h/messages").await.json();
    let id = messages["messages"][2]["id"].as_str().unwrap();
    let path = format!("/api/v1/threads/h/messages/{id}/regenerate");
    let again = server.post(&path, json!({"stream": true})).await;
    assert_eq!(again.status, 200, "{}", again.text);
    let export = "/api/v1/threads/h/document?format=pydantic-ai";
    let exported = server.get(export).await.text;
    assert!(
        exported.contains("You said: Hi") && !exported.contains("Hello"),
        "{exported}"
    );
}

#[tokio::test]
async fn a_closed_thread_takes_no_appended_messages() {
    let server = Server::new("").await;
    server.say("h", "one").await;
    server.post("/api/v1/threads/h/close", json!({})).await;
    let append = "/api/v1/threads/h/import?from=pydantic-ai";
    let refused = server.post_text(append, HISTORY).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}

#[tokio::test]
async fn a_thread_that_was_never_imported_is_given_out_in_every_form() {
    let server = Server::new("").await;
    server.say("t", "hi").await;
    for (form, part) in [
        ("thread", "\"part_kind\":\"user-prompt\""),
        ("archive", "{\"archive\":\"1.0.0\""),
        ("pydantic-ai", "\"kind\":\"request\""),
        ("ai-sdk-ui", "\"role\":\"user\""),
    ] {
        let path = format!("/api/v1/threads/t/document?format={form}");
        let given = server.get(&path).await;
        assert!(
            given.status == 200 && given.text.contains(part),
            "{form}: {}",
            given.text
        );
    }
    let unknown = server.get("/api/v1/threads/t/document?format=csv").await;
    assert_eq!(unknown.error().1, "invalid_query");
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_under_api_v1_alone() {
    let server = Server::new("").await;
    server.say("t", "hi").await;
    let threads = ["", "/t", "/t/messages", "/t/runs", "/t/document"];
    for path in threads.map(|path| format!("/api/v1/threads{path}")) {
        let refused = server.get(&format!("{path}?nonsense=1")).await;
        assert_eq!(refused.error().1, "invalid_query", "{path}");
        assert!(refused.text.contains("nonsense"), "{}", refused.text);
        assert_eq!(server.get(&path).await.status, 200, "{path}");
    }
    let posted = server.post("/api/v1/threads?nonsense=1", json!({})).await;
    assert_eq!(posted.error().1, "invalid_query");
    let elsewhere = server.get("/healthz?nonsense=1").await;
    assert_eq!(elsewhere.status, 200, "{}", elsewhere.text);
}

/// Histories that the real libraries wrote, each through the store and back.
#[tokio::test]
async fn every_real_history_comes_back_from_the_store_as_it_went_in() {
    let Some(shared) = crate::reference::reference("the histories of the real libraries") else {
        return;
    };
    let vectors = shared.join("vectors");
    let server = Server::new("").await;
    let mut n_tried = 0;
    for (directory, form, end) in [
        ("pydantic-ai", "pydantic-ai", ".json"),
        ("ai-sdk", "ai-sdk-ui", ".ui.json"),
    ] {
        for file in std::fs::read_dir(vectors.join(directory)).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let beside = [".runs.json", ".children.json", "index.json", "schema.json"];
            if !name.ends_with(end) || beside.iter().any(|end| name.ends_with(end)) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            if !text.trim_start().starts_with('[') {
                // What the library says instead of a list of messages.
                continue;
            }
            let key = format!("{directory}-{n_tried}");
            let path = format!("/api/v1/import?from={form}&key={key}");
            let imported = server.post_text(&path, text.clone()).await;
            assert_eq!(imported.status, 201, "{name}: {}", imported.text);
            let path = format!("/api/v1/threads/{key}/document?format={form}");
            let back = thread::Json::parse(&server.get(&path).await.text).unwrap();
            assert_eq!(back, thread::Json::parse(&text).unwrap(), "{name}");
            let append = format!("/api/v1/threads/{key}/import?from={form}");
            let appended = server.post_text(&append, text.clone()).await;
            assert_eq!(appended.status, 200, "{name}: {}", appended.text);
            let twice = format!("[{0},{0}]", inner(&text));
            let back = thread::Json::parse(&server.get(&path).await.text).unwrap();
            assert_eq!(
                back,
                thread::Json::parse(&twice).unwrap(),
                "{name}, appended"
            );
            n_tried += 1;
        }
    }
    assert!(n_tried > 51, "{n_tried}");
}
