//! Assistants.

use super::{Client, object, refused};
use serde_json::{Value, json};

#[tokio::test]
async fn an_assistant_is_made_changed_and_deleted() {
    let client = Client::new().await;
    let body = json!({
        "model": "scripted", "name": "Guide", "instructions": "Be brief.",
        "tools": [super::weather()], "metadata": {"a": "b"}, "temperature": 0.5,
    });
    let made = client.post("/assistants", body, "AssistantObject").await;
    let path = format!("/assistants/{}", made["id"].as_str().unwrap());
    assert_eq!(client.get(&path, "AssistantObject").await, made);
    let changed = client
        .post(
            &path,
            json!({"name": null, "instructions": "Be kind."}),
            "AssistantObject",
        )
        .await;
    assert_eq!(
        (&changed["name"], &changed["instructions"]),
        (&Value::Null, &json!("Be kind."))
    );
    assert_eq!(
        (&changed["temperature"], &changed["created_at"]),
        (&made["temperature"], &made["created_at"])
    );
    let deleted = object(&client.delete(&path).await, "DeleteAssistantResponse");
    assert_eq!(deleted["deleted"], true);
    let expected = format!(
        "No assistant found with id '{}'.",
        made["id"].as_str().unwrap()
    );
    assert_eq!(
        refused(&client.0.get(&format!("/v1{path}")).await),
        (404, expected, None)
    );
}

#[tokio::test]
async fn a_model_goes_by_its_name_an_agents_or_its_providers() {
    let client = Client::new().await;
    let listed = client.0.get("/v1/models").await.json();
    let mut names: Vec<Value> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].clone())
        .collect();
    let agents = client.0.get("/v1/assistants").await.json();
    names.extend(
        agents["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| agent["model"].clone()),
    );
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let made = client
            .post("/assistants", json!({"model": name}), "AssistantObject")
            .await;
        assert_eq!(made["model"], name);
        let thread = client.thread(&["hello"]).await;
        let run = client
            .ran(&thread, json!({"assistant_id": made["id"]}))
            .await;
        assert_eq!(
            (&run["status"], &run["model"]),
            (&json!("completed"), &name)
        );
    }
}

#[tokio::test]
async fn a_run_of_an_assistant_does_as_that_says() {
    let client = Client::new().await;
    let body =
        json!({"model": "scripted", "instructions": "Be brief.", "tools": [super::weather()]});
    let made = client.post("/assistants", body, "AssistantObject").await;
    let thread = client
        .thread(&["use get_weather on Oslo and compute 1+1"])
        .await;
    let run = client
        .ran(&thread, json!({"assistant_id": made["id"]}))
        .await;
    assert_eq!(
        (&run["status"], &run["assistant_id"]),
        (&json!("requires_action"), &made["id"])
    );
    assert_eq!(
        (&run["instructions"], &run["model"]),
        (&json!("Be brief."), &json!("scripted"))
    );
    // It has the tools that it was made with, and none of the default agent's.
    let calls = run["required_action"]["submit_tool_outputs"]["tool_calls"]
        .as_array()
        .unwrap();
    assert_eq!(calls.len(), 1, "{run}");
}

#[tokio::test]
async fn a_configured_agent_is_an_assistant_that_can_not_be_changed() {
    let client = Client::new().await;
    let agent = client.get("/assistants/demo", "AssistantObject").await;
    assert_eq!(
        (&agent["id"], &agent["name"]),
        (&json!("demo"), &json!("demo"))
    );
    let message = "The assistant 'demo' is an agent of the server's configuration, and can't be changed or deleted here.";
    let changed = client.ask("/assistants/demo", json!({"name": "x"})).await;
    assert_eq!(refused(&changed), (400, message.to_owned(), None));
    assert_eq!(refused(&client.delete("/assistants/demo").await).0, 400);
}

#[tokio::test]
async fn an_assistant_needs_a_model_that_there_is() {
    let client = Client::new().await;
    let refusal = refused(
        &client
            .ask("/assistants", json!({"model": "gpt-none"}))
            .await,
    );
    let message = "The requested model 'gpt-none' does not exist.".to_owned();
    assert_eq!(refusal, (400, message, Some("model".to_owned())));
    let (_, _, param) = refused(&client.ask("/assistants", json!({})).await);
    assert_eq!(param.as_deref(), Some("model"));
}

#[tokio::test]
async fn pages_of_assistants_show_agents_and_those_that_were_made_once_each() {
    let config = "
        default_agent = 'a'
        [models.m]
        provider = 'scripted'
        [agents.a]
        model = 'm'
        [agents.b]
        model = 'm'
    ";
    let client = Client(crate::harness::Server::new(config).await);
    let mut all = vec!["a".to_owned(), "b".to_owned()];
    for _ in 0..3 {
        let made = client
            .post("/assistants", json!({"model": "m"}), "AssistantObject")
            .await;
        all.push(made["id"].as_str().unwrap().to_owned());
    }
    for order in ["asc", "desc"] {
        for limit in 1..=6 {
            let mut seen = Vec::new();
            let mut after = String::new();
            loop {
                let path = format!("/assistants?order={order}&limit={limit}{after}");
                let (ids, more) = client.ids(&path, "ListAssistantsResponse").await;
                after = format!("&after={}", ids.last().unwrap());
                seen.extend(ids);
                if !more {
                    break;
                }
            }
            if order == "desc" {
                seen.reverse();
            }
            assert_eq!(seen, all, "{order} {limit}");
        }
    }
    let (before, _) = client
        .ids(
            &format!("/assistants?order=asc&before={}", all[2]),
            "ListAssistantsResponse",
        )
        .await;
    assert_eq!(before, all[..2]);
    assert_eq!(
        client.0.get("/v1/assistants?after=asst_none").await.status,
        404
    );
}
