//! Tools: what they take, give and refuse.

use super::{CONFIG, call, connect, document, failure, lifecycles, served, structured};
use crate::harness::{Served, TEAM};
use crate::held::Held;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn a_thread_made_here_is_the_same_through_the_native_api_and_the_other_way_round() {
    let (server, socket) = served(CONFIG).await;
    for (lifecycle, key) in lifecycles().into_iter().zip(["one", "two"]) {
        let client = connect(&socket, None, lifecycle).await;
        let new = json!({"key": key, "title": "A thread"});
        let made = structured(&client, "create_thread", new.clone()).await;
        assert_eq!(
            (&made["created"], &made["thread"]["key"]),
            (&json!(true), &json!(key))
        );
        let again = structured(&client, "create_thread", new).await;
        assert_eq!(again["created"], false);

        let asked = json!({"key": key, "content": "compute 2+3*4"});
        let run = structured(&client, "run", asked).await;
        assert_eq!(run["status"], "completed");
        assert!(run["text"].as_str().unwrap().contains("14"), "{run}");
        server.say(key, "said natively").await;

        let native = server
            .get(&format!("/api/v1/threads/{key}/messages"))
            .await
            .json();
        let read = structured(&client, "read_thread", json!({ "key": key })).await;
        assert_eq!(read["messages"], native["messages"]);
        assert_eq!(
            read["thread"],
            server.get(&format!("/api/v1/threads/{key}")).await.json()
        );
        assert_eq!(read["messages"][0]["channel"], "mcp");

        let uri = format!("thread://{key}");
        let read = client
            .read_resource(rmcp::model::ReadResourceRequestParams::new(uri))
            .await;
        let read = serde_json::to_value(read.unwrap()).unwrap();
        let text = read["contents"][0]["text"].as_str().unwrap();
        let read: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read, document(&server, key).await);
    }
}

#[tokio::test]
async fn tools_say_what_they_take_and_give_and_whether_they_only_read() {
    let (_, socket) = served(CONFIG).await;
    for lifecycle in lifecycles() {
        let client = connect(&socket, None, lifecycle).await;
        let tools = client.list_all_tools().await.unwrap();
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let expected = [
            "answer",
            "create_thread",
            "list_threads",
            "post_message",
            "read_thread",
            "run",
        ];
        assert_eq!(names, BTreeSet::from(expected));
        for tool in tools {
            let hints = tool.annotations.unwrap();
            let reads = matches!(tool.name.as_ref(), "list_threads" | "read_thread");
            assert_eq!(hints.read_only_hint, Some(reads), "{}", tool.name);
            for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
                let schema = Value::Object((**schema).clone());
                assert_eq!(schema["type"], "object");
                assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
            }
            if tool.name == "run" {
                let agents = &tool.input_schema["properties"]["agent"]["enum"];
                assert_eq!(agents, &json!(["clerk", "demo"]));
            }
        }
    }
}

#[tokio::test]
async fn every_property_that_a_schema_names_is_taken_and_no_other() {
    let (_, socket) = served(CONFIG).await;
    let [_, lifecycle] = lifecycles();
    let client = connect(&socket, None, lifecycle).await;
    let full = [
        (
            "create_thread",
            json!({"key": "t", "title": "T", "metadata": {"a": 1}}),
        ),
        ("list_threads", json!({"prefix": "t", "limit": 5})),
        (
            "read_thread",
            json!({"key": "t", "limit": 5, "before": "9"}),
        ),
        (
            "run",
            json!({
                "key": "t", "content": "hello", "agent": "demo", "policy": "queue", "maxSteps": 3,
                "timeoutMs": 60_000, "metadata": {"a": 1}, "idempotencyKey": "one",
            }),
        ),
        (
            "post_message",
            json!({
                "key": "t", "content": [{"type": "input_text", "text": "hello"}], "agent": "demo", "policy": "queue",
                "maxSteps": 3, "timeoutMs": 60_000, "metadata": {"a": 1}, "idempotencyKey": "two",
            }),
        ),
    ];
    let tools = client.list_all_tools().await.unwrap();
    for (name, arguments) in full {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let named: BTreeSet<&String> = arguments.as_object().unwrap().keys().collect();
        let known = tool.input_schema["properties"].as_object().unwrap().keys();
        let known: BTreeSet<&String> = known.filter(|known| *known != "cursor").collect();
        assert_eq!(named, known, "{name}");
        structured(&client, name, arguments.clone()).await;
        let mut more = arguments;
        more["nonsense"] = json!(1);
        let refused = client.call_tool(call(name, more)).await.unwrap();
        assert_eq!(failure(&refused).0, "invalid_field", "{name}");
    }
}

#[tokio::test]
async fn a_call_that_waits_is_answered_and_the_agent_goes_on() {
    let (_, socket) = served(CONFIG).await;
    for (lifecycle, key) in lifecycles().into_iter().zip(["one", "two"]) {
        let client = connect(&socket, None, lifecycle).await;
        let asked = json!({"key": key, "agent": "clerk", "content": "compute 6*7"});
        let waits = structured(&client, "run", asked).await;
        assert_eq!(waits["status"], "waiting", "{waits}");
        let [pending] = waits["pending"].as_array().unwrap().as_slice() else {
            panic!("{waits}")
        };
        assert_eq!(
            (&pending["toolName"], &pending["kind"]),
            (&json!("compute"), &json!("approval"))
        );
        let answers = json!([{"toolCallId": pending["toolCallId"], "approved": true}]);
        let wrong = json!({"key": key, "answers": [{"toolCallId": "other", "approved": true}]});
        let refused = client.call_tool(call("answer", wrong)).await.unwrap();
        assert_eq!(failure(&refused).0, "unknown_call");
        let given = json!({"key": key, "answers": answers, "actor": "ada"});
        let done = structured(&client, "answer", given.clone()).await;
        assert_eq!(done["status"], "completed", "{done}");
        assert!(done["text"].as_str().unwrap().contains("42"), "{done}");
        let refused = client.call_tool(call("answer", given)).await.unwrap();
        assert_eq!(failure(&refused).0, "answered_already");

        let asked =
            json!({"key": key, "agent": "clerk", "content": "ask_user {\"question\": \"Why?\"}"});
        let waits = structured(&client, "run", asked).await;
        let call_id = &waits["pending"][0]["toolCallId"];
        assert_eq!(waits["pending"][0]["kind"], "external");
        let answers = json!([{"toolCallId": call_id, "output": "because"}]);
        let done = structured(&client, "answer", json!({"key": key, "answers": answers})).await;
        assert!(done["text"].as_str().unwrap().contains("because"), "{done}");
    }
}

#[tokio::test]
async fn what_is_called_again_under_the_same_name_is_done_once() {
    let (server, socket) = served(CONFIG).await;
    let [lifecycle, _] = lifecycles();
    let client = connect(&socket, None, lifecycle).await;
    let asked = json!({"key": "t", "content": "hello", "idempotencyKey": "k"});
    let first = structured(&client, "run", asked.clone()).await;
    let second = structured(&client, "run", asked).await;
    assert_eq!(first, second);
    let messages = server.get("/api/v1/threads/t/messages").await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn progress_tells_what_is_said_and_which_tools_are_called() {
    let (_, socket) = served(CONFIG).await;
    for (lifecycle, key) in lifecycles().into_iter().zip(["one", "two"]) {
        let client = connect(&socket, None, lifecycle).await;
        let run = structured(
            &client,
            "run",
            json!({"key": key, "content": "compute 1+2"}),
        )
        .await;
        let told = client.service().all();
        let called = told
            .iter()
            .position(|it| it == "compute is called")
            .unwrap();
        let answered = told
            .iter()
            .position(|it| it == "compute has answered")
            .unwrap();
        assert!(called < answered, "{told:?}");
        let said = told.iter().skip(answered + 1).cloned().collect::<String>();
        assert_eq!(said, run["text"].as_str().unwrap());
    }
}

#[tokio::test]
async fn progress_is_told_where_a_sub_agent_was_answered() {
    let (_, socket) = served(TEAM).await;
    for (lifecycle, key) in lifecycles().into_iter().zip(["one", "two"]) {
        let client = connect(&socket, None, lifecycle).await;
        let asked = json!({"key": key, "content": "use find {\"query\": \"compute 6 * 7\"}"});
        let waits = structured(&client, "run", asked).await;
        assert_eq!(waits["status"], "waiting", "{waits}");
        let n_told = client.service().all().len();
        // The call that waits for the sub-agent can't be answered, and is none of them.
        let [asks] = waits["pending"].as_array().unwrap().as_slice() else {
            panic!("{waits}")
        };
        assert_eq!(asks["toolName"], "compute");
        let call_id = &asks["toolCallId"];
        let answers = json!([{"toolCallId": call_id, "approved": true}]);
        let done = structured(&client, "answer", json!({"key": key, "answers": answers})).await;
        assert_eq!(done["status"], "completed", "{done}");
        let told = client.service().all();
        assert!(told.len() > n_told, "nothing more was told than {told:?}");
    }
}

#[tokio::test]
async fn who_answers_a_sub_agent_is_told_what_the_run_comes_to_that_hears_of_it() {
    let held = Held::new().await;
    let socket = Served::new(held.server.app.clone()).await;
    let [lifecycle, _] = lifecycles();
    let client = connect(&socket, None, lifecycle).await;
    held.answer_first().await;
    let (call_id, key) = held.place(1);
    let answers = json!([{"toolCallId": call_id, "threadKey": key, "approved": true}]);
    let answer = json!({"key": held.thread, "answers": answers});
    let (done, ()) = tokio::join!(structured(&client, "answer", answer), held.let_go());
    assert_eq!(done["status"], "completed", "{done}");
    assert!(done["text"].as_str().unwrap().contains("gave 2."), "{done}");
}

#[tokio::test]
async fn a_run_that_fails_says_so_and_why() {
    let (_, socket) = served(CONFIG).await;
    let [lifecycle, _] = lifecycles();
    let client = connect(&socket, None, lifecycle).await;
    let asked = call("run", json!({"key": "t", "content": "fail auth"}));
    let result = client.call_tool(asked).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    let run = result.structured_content.unwrap();
    assert_eq!(run["status"], "failed");
    assert_eq!(run["interruption"]["reason"], "error");
    assert!(
        run["text"]
            .as_str()
            .unwrap()
            .contains("[interrupted: error"),
        "{run}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told_with_its_place() {
    let (server, socket) = served(CONFIG).await;
    for lifecycle in lifecycles() {
        let client = connect(&socket, None, lifecycle).await;
        for (name, arguments, code, pointer) in [
            ("run", json!({"content": "x"}), "invalid_field", Some("")),
            (
                "run",
                json!({"key": "t", "content": 1}),
                "invalid_field",
                Some("/content"),
            ),
            (
                "run",
                json!({"key": "t", "content": []}),
                "invalid_field",
                Some("/content"),
            ),
            (
                "run",
                json!({"key": "t", "content": "x", "maxSteps": 0}),
                "invalid_field",
                Some("/maxSteps"),
            ),
            (
                "run",
                json!({"key": "t", "content": "x", "agent": "none"}),
                "unknown_agent",
                Some("/agent"),
            ),
            (
                "run",
                json!({"key": "", "content": "x"}),
                "invalid_field",
                Some("/key"),
            ),
            (
                "run",
                json!({"key": "t", "content": "x", "idempotencyKey": ""}),
                "invalid_field",
                Some("/idempotencyKey"),
            ),
            (
                "create_thread",
                json!({"key": "a\nb"}),
                "invalid_field",
                Some("/key"),
            ),
            (
                "read_thread",
                json!({"key": "none"}),
                "thread_not_found",
                None,
            ),
            (
                "read_thread",
                json!({"key": "none", "before": 1}),
                "invalid_field",
                Some("/before"),
            ),
            (
                "list_threads",
                json!({"cursor": "x"}),
                "invalid_query",
                None,
            ),
            (
                "answer",
                json!({"key": "none", "answers": [{"toolCallId": "c", "approved": true}]}),
                "thread_not_found",
                None,
            ),
            (
                "answer",
                json!({"key": "none", "answers": []}),
                "invalid_field",
                Some("/answers"),
            ),
            (
                "answer",
                json!({"key": "none", "answers": [{"approved": true}]}),
                "invalid_field",
                Some("/answers/0/toolCallId"),
            ),
        ] {
            let refused = client
                .call_tool(call(name, arguments.clone()))
                .await
                .unwrap();
            let expected = (code.to_owned(), pointer.map(str::to_owned));
            assert_eq!(failure(&refused), expected, "{name} {arguments}");
        }
        let unknown = client.call_tool(call("none", json!({}))).await.unwrap_err();
        assert!(
            unknown.to_string().contains("there is no tool"),
            "{unknown}"
        );
    }
    let threads = server.get("/api/v1/threads").await.json();
    assert_eq!(threads["threads"], json!([]));
}

#[tokio::test]
async fn threads_and_messages_are_read_in_pages_without_gap_or_repeat() {
    let (server, socket) = served(CONFIG).await;
    let [lifecycle, _] = lifecycles();
    let client = connect(&socket, None, lifecycle).await;
    for n in 0..5 {
        server.say(&format!("t{n}"), "hello").await;
        server.say("long", &format!("number {n}")).await;
    }
    let mut keys = Vec::new();
    let mut asked = json!({"prefix": "t", "limit": 2});
    loop {
        let page = structured(&client, "list_threads", asked.clone()).await;
        let threads = page["threads"].as_array().unwrap();
        keys.extend(
            threads
                .iter()
                .map(|thread| thread["key"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page.get("next") else { break };
        asked["cursor"] = next.clone();
    }
    assert_eq!(keys, ["t4", "t3", "t2", "t1", "t0"]);
    let mut read: Vec<Value> = Vec::new();
    let mut asked = json!({"key": "long", "limit": 2});
    loop {
        let page = structured(&client, "read_thread", asked.clone()).await;
        let mut messages = page["messages"].as_array().unwrap().clone();
        messages.append(&mut read);
        read = messages;
        let Some(older) = page.get("older") else {
            break;
        };
        asked["before"] = older.clone();
    }
    let all = server.get("/api/v1/threads/long/messages").await.json();
    assert_eq!(Value::Array(read), all["messages"]);
}
