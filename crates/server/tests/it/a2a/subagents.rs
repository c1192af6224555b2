//! Tasks whose sub-agents ask.

use super::{says, state, told};
use crate::harness::{Server, TEAM};
use serde_json::json;

#[tokio::test]
async fn what_a_sub_agent_asks_the_task_asks_and_goes_on_with_the_answer() {
    let server = Server::new(TEAM).await;
    let task = server
        .task("/a2a", json!("use find {\"query\": \"compute 6 * 7\"}"))
        .await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0];
    assert_eq!(call["toolName"], "compute", "{task}");
    assert_ne!(call["threadKey"], task["contextId"]);
    let elsewhere =
        json!({"toolCallId": call["toolCallId"], "approved": true, "threadKey": "elsewhere"});
    let message = json!({"taskId": task["id"], "messageId": "m2", "parts": [{"data": elsewhere}]});
    let refused = server.rpc("/a2a", "SendMessage", says(message)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let answer = json!({"toolCallId": call["toolCallId"], "approved": true});
    let message = json!({"taskId": task["id"], "messageId": "m3", "parts": [{"data": answer}]});
    let done = server.task("/a2a", message).await;
    assert_eq!(
        (state(&done), &done["id"]),
        ("COMPLETED", &task["id"]),
        "{done}"
    );
    assert!(done["artifacts"].to_string().contains("42"), "{done}");
}

#[tokio::test]
async fn a_stream_ends_with_what_a_sub_agent_asks() {
    let server = Server::new(TEAM).await;
    let asks = json!("use find {\"query\": \"compute 6 * 7\"}");
    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": says(asks)});
    let said = told(&server.a2a("POST", "/a2a", Some(&call)).await);
    let last = &said.last().unwrap()["result"]["statusUpdate"];
    let id = json!({"id": last["taskId"]});
    let task = server.rpc("/a2a", "GetTask", id).await;
    assert_eq!(last["status"], task["result"]["status"]);
    let call = &last["status"]["message"]["parts"][1]["data"]["calls"][0];
    assert_eq!(call["toolName"], "compute", "{last}");
}

#[tokio::test]
async fn an_answer_that_is_sent_again_is_the_same_answer() {
    let server = Server::new(TEAM).await;
    let asks = "use find {\"query\": \"compute 6 * 7 then compute 8 * 9\"}";
    let mut task = server.task("/a2a", json!(asks)).await;
    for (id, expected) in [("m2", "INPUT_REQUIRED"), ("m3", "COMPLETED")] {
        let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0];
        let answer = json!({"toolCallId": call["toolCallId"], "approved": true});
        let message = json!({"taskId": task["id"], "messageId": id, "parts": [{"data": answer}]});
        let done = server.task("/a2a", message.clone()).await;
        assert_eq!(state(&done), expected, "{done}");
        let again = server.task("/a2a", message).await;
        assert_eq!(again, done);
        task = done;
    }
}
