//! What sub-agents ask while a response is made.

use super::{output, output_types, text_of};
use crate::harness::Server;
use interop::ids::THREAD;
use serde_json::json;

const CALLER: &str = r#"
default_agent = "caller"
[models.m]
provider = "scripted"
[agents.caller]
model = "m"
[[agents.caller.subagents]]
agent = "asker"
name = "consult"
description = "Consults somebody."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.asker]
model = "m"
[[agents.asker.external]]
name = "ask_user"
description = "Asks the user."
parameters = { type = "object", properties = { question = { type = "string" } }, required = ["question"] }
"#;

#[tokio::test]
async fn what_a_sub_agent_asks_is_answered_in_its_own_conversation() {
    let server = Server::new(CALLER).await;
    let question = format!("use ask_user {}", json!({"question": "Which?"}));
    let input = format!("consult {}", json!({"query": question}));
    let body = json!({"input": input, "include": ["loomline:items"]});
    // No schema is published of what is beyond the specification.
    let asked = server.post("/v1/responses", body).await.json();
    assert_eq!(output_types(&asked), ["function_call", "loomline:event"]);
    let spawned = asked["output"][1]["data"]["spawned_thread_id"].as_str();
    let conversation = format!("conv_{}", spawned.unwrap().replace('-', ""));
    let path = format!("/v1/conversations/{conversation}/items?order=asc");
    let items = server.get(&path).await.json();
    let call = &items["data"][1];
    assert_eq!(call["name"], "ask_user", "{items}");
    let answer = json!({
        "model": "asker", "conversation": conversation, "input": [output(&call["call_id"], "the first")],
    });
    let answered = server.respond(answer).await;
    assert_eq!(text_of(&answered), "ask_user gave the first.");
    // Who called it goes on with that.
    let thread = &asked["id"].as_str().unwrap()[5..37];
    let id = THREAD.read(&format!("thread_{thread}")).into_owned();
    let threads = server.get("/api/v1/threads").await.json();
    let mut rows = threads["threads"].as_array().unwrap().iter();
    let row = rows.find(|row| row["id"] == id.as_str()).unwrap();
    let key = row["key"].as_str().unwrap();
    let rest = format!("/api/v1/threads/{key}/events?until=rest&subagents=true");
    assert_eq!(server.get(&rest).await.status, 200);
    let path = format!("/v1/conversations/conv_{thread}/items");
    let items = server.get(&path).await.json();
    let last = items["data"][0]["content"][0]["text"].as_str().unwrap();
    assert!(last.contains("the first"), "{items}");
}
