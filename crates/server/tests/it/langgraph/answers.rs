//! Answers to the calls of one response, one after the other and at once.

use super::{last, says};
use crate::harness::{Answer, Server};
use serde_json::{Value, json};

/// Agents whose calls wait: for an approval, and for their results.
const ASKERS: &str = r#"
default_agent = "careful"
[models.s]
provider = "scripted"
[agents.careful]
model = "s"
tools = ["compute", "record"]
requires_approval = ["compute", "record"]
[agents.asker]
model = "s"
[[agents.asker.external]]
name = "ask_user"
description = "Asks the user."
parameters = { type = "object", properties = { question = { type = "string" } }, required = ["question"] }
"#;

/// What a thread asks of which an agent was told something.
struct Asking {
    server: Server,
    thread: String,
    agent: &'static str,
    ids: Vec<String>,
}

impl Asking {
    async fn new(agent: &'static str, text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ledger = directory.path().join("ledger");
        let config = format!("{ASKERS}[tools]\nledger = \"{}\"\n", ledger.display());
        let server = Server::at(directory, &config).await;
        let thread = server.lang_thread().await;
        let mut asking = Self {
            server,
            thread,
            agent,
            ids: Vec::new(),
        };
        asking.says(text).await;
        asking
    }

    /// Says something in which the agent asks.
    async fn says(&mut self, text: &str) {
        let values = self.server.lang_wait(&self.thread, says(self.agent, text));
        let values = values.await;
        let asked = values["__interrupt__"].as_array().unwrap().iter();
        let ids = asked.map(|it| it["id"].as_str().unwrap().to_owned());
        self.ids = ids.collect();
    }

    /// Answers, and is told of the run at once.
    async fn resume(&self, resume: Value) -> Answer {
        let body = json!({"assistant_id": self.agent, "command": {"resume": resume}});
        let path = format!("/threads/{}/runs", self.thread);
        self.server.post(&path, body).await
    }

    /// Answers, and waits for what comes of it.
    async fn resumed(&self, resume: Value) -> Value {
        let body = json!({"assistant_id": self.agent, "command": {"resume": resume}});
        self.server.lang_wait(&self.thread, body).await
    }
}

#[tokio::test]
async fn an_answer_that_is_given_again_is_not_that_of_the_call_that_still_waits() {
    let text = "use ask_user on colour and use ask_user on size";
    let asking = Asking::new("asker", text).await;
    let [first, second] = asking.ids.as_slice() else {
        panic!("{:?}", asking.ids)
    };
    let values = asking.resumed(json!({first: "red"})).await;
    assert_eq!(values["__interrupt__"][0]["id"], *second, "{values}");
    let seq = asking.server.seq(&asking.thread).await;
    let again = asking.resume(json!({first: "red"})).await;
    assert_eq!(again.status, 409, "{}", again.text);
    let pointer = format!("/command/resume/{first}");
    assert_eq!(again.json()["metadata"]["pointer"], pointer);
    assert_eq!(asking.server.seq(&asking.thread).await, seq);
    // A result may be any object else.
    let values = asking.resumed(json!({"width": 7})).await;
    assert!(values.to_string().contains("width"), "{values}");
    let over = asking.resume(json!({second: "red"})).await;
    assert_eq!(over.status, 409, "{}", over.text);
}

#[tokio::test]
async fn an_answer_to_a_call_that_was_left_behind_is_not_that_of_a_later_one() {
    let mut asking = Asking::new("careful", "compute 6*7").await;
    let left = asking.ids[0].clone();
    asking.says("compute 1+1").await;
    let stale = asking.resume(json!({left: true})).await;
    assert_eq!(stale.status, 409, "{}", stale.text);
    assert!(stale.text.contains("left behind"), "{}", stale.text);
    let waiting = asking.ids[0].clone();
    let values = asking.resumed(json!({waiting: true})).await;
    assert_eq!(last(&values), "compute gave 2.");
}

#[tokio::test]
async fn a_call_is_answered_while_the_tool_of_another_one_runs() {
    let text = r#"use record {"line": "slow", "ms": 60000} and use record {"line": "b"} and use record {"line": "c"}"#;
    let asking = Asking::new("careful", text).await;
    let [slow, second, third] = asking.ids.as_slice() else {
        panic!("{:?}", asking.ids)
    };
    let first = asking.resume(json!({slow: true})).await.json();
    assert_eq!(first["status"], "running", "{first}");
    let run = asking.resume(json!({second: true})).await;
    assert_eq!(run.status, 200, "{}", run.text);
    let run = run.json();
    assert_eq!(run["status"], "pending", "{run}");
    let path = format!(
        "/threads/{}/runs/{}",
        asking.thread,
        run["run_id"].as_str().unwrap()
    );
    assert_eq!(asking.server.get(&path).await.json()["status"], "pending");
    for answered in [slow, second] {
        let again = asking.resume(json!({answered: true})).await;
        assert_eq!(again.status, 409, "{}", again.text);
    }
    let params = json!({"namespace": [], "interrupt_id": third, "response": false});
    let command = json!({"id": 1, "method": "input.respond", "params": params});
    let path = format!("/threads/{}/commands", asking.thread);
    let taken = asking.server.post(&path, command).await.json();
    assert_eq!(taken["type"], "success", "{taken}");
}

#[tokio::test]
async fn two_who_answer_at_once_are_both_heard() {
    let text = r#"use record {"line": "a", "ms": 50} and use record {"line": "b"}"#;
    let asking = Asking::new("careful", text).await;
    let [one, other] = asking.ids.as_slice() else {
        panic!("{:?}", asking.ids)
    };
    let (one, other) = tokio::join!(
        asking.resume(json!({one: true})),
        asking.resume(json!({other: true}))
    );
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (200, 200));
    asking.server.at_rest(&asking.thread).await;
    let path = format!("/threads/{}", asking.thread);
    let kept = asking.server.get(&path).await.json();
    assert_eq!(kept["status"], "idle", "{kept}");
    let messages = kept["values"]["messages"].as_array().unwrap();
    let results = messages.iter().filter(|it| it["type"] == "tool");
    let results: Vec<&Value> = results.map(|it| &it["status"]).collect();
    assert_eq!(results, ["success", "success"], "{kept}");
}

#[tokio::test]
async fn a_run_without_a_new_message_keeps_pending_calls() {
    let asking = Asking::new("careful", "compute 6*7").await;
    let seq = asking.server.seq(&asking.thread).await;
    let path = format!("/threads/{}/runs", asking.thread);
    let body = json!({"assistant_id": asking.agent, "input": null});
    let refused = asking.server.post(&path, body).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(refused.text.contains("pending calls"), "{}", refused.text);
    assert_eq!(asking.server.seq(&asking.thread).await, seq);
    let values = asking.resumed(json!({asking.ids[0].clone(): true})).await;
    assert_eq!(last(&values), "compute gave 42.");
}
