//! An agent elsewhere is one like any other.

use super::{PROTOCOLS, Two, texts};
use crate::harness::names;
use serde_json::json;

#[tokio::test]
async fn an_agent_elsewhere_is_a_sub_agent_on_a_thread_of_its_own() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        let task = json!({"task": "compute 6 * 7"});
        let said = two.say("t", "lead", &format!("delegate {task}")).await;
        assert!(
            texts(&said).last().unwrap().contains("compute gave 42."),
            "{protocol}: {said}"
        );
        let parts = said.to_string();
        assert!(parts.contains("data-tp-thread_spawn"), "{protocol}");
        assert_eq!(two.far_threads().await.len(), 1, "{protocol}");
    }
}

#[tokio::test]
async fn a_conversation_is_handed_over_to_an_agent_elsewhere() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        two.say("t", "lead", "transfer_to_helper").await;
        let said = texts(&two.messages("t").await);
        assert!(
            said.last().unwrap().starts_with("You said: "),
            "{protocol}: {said:?}"
        );
        let events = two.near.at_rest("t").await;
        let began = names(&events)
            .into_iter()
            .filter(|name| *name == "execution.created");
        assert_eq!(began.count(), 2, "{protocol}");
        assert_eq!(two.far_threads().await.len(), 1, "{protocol}");
    }
}

#[tokio::test]
async fn an_agent_elsewhere_is_listed_with_the_others() {
    for protocol in PROTOCOLS {
        let two = Two::new(protocol).await;
        let agents = two.near.get("/api/v1/agents").await.json();
        let helper = agents["agents"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == "helper");
        assert_eq!(helper.unwrap()["provider"], *protocol, "{agents}");
        for (path, list) in [("/v1/models", "data"), ("/v1/assistants", "data")] {
            let listed = two.near.get(path).await.json();
            let mut ids = listed[list].as_array().unwrap().iter().map(|it| &it["id"]);
            assert!(ids.any(|id| id == "helper"), "{path}: {listed}");
        }
        let card = two
            .near
            .get("/a2a/helper/.well-known/agent-card.json")
            .await
            .json();
        assert_eq!(card["name"], "helper");
    }
}
