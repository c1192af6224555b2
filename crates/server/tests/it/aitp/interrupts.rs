//! What is asked by AITP is an interrupt to a front-end that speaks AG-UI, and its answer comes back.

use super::{Meeting, seat};
use crate::harness::Answer;
use serde_json::{Value, json};
use std::time::Duration;

/// An agent whose model asks for a seat and wants a sum allowed, and one that says these things next.
async fn meeting(turns: Value) -> (Meeting, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let script_of = json!({"turns": turns, "per_turn": false});
    std::fs::write(&script, script_of.to_string()).unwrap();
    let config = format!(
        "default_agent = \"other\"\n[models.s]\nprovider = \"scripted\"\nscript = {:?}\n[models.o]\nprovider = \"scripted\"\n\
         [agents.other]\nmodel = \"o\"\n\
         [agents.clerk]\nmodel = \"s\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n",
        script.to_str().unwrap()
    );
    (Meeting::keys(&config).await, directory)
}

/// What the client posts.
fn input(run: &str, said: Option<&str>, resume: &Value) -> Value {
    let message = |text| json!({"id": format!("said-{run}"), "role": "user", "content": text});
    let messages: Vec<Value> = said.into_iter().map(message).collect();
    json!({
        "threadId": "t", "runId": run, "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": messages, "resume": resume,
    })
}

async fn run(meeting: &Meeting, path: &str, body: Value) -> Answer {
    meeting.user.post(path, body).await
}

fn resolved(id: &str, payload: &Value) -> Value {
    json!({"interruptId": id, "status": "resolved", "payload": payload})
}

fn cancelled(id: &str) -> Value {
    json!({"interruptId": id, "status": "cancelled"})
}

/// The events of a run that was taken.
fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let lines = answer.text.lines();
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// How a run ended.
fn outcome(answer: &Answer) -> Value {
    let mut events = events(answer);
    let last = events.pop().unwrap();
    assert_eq!(last["type"], "RUN_FINISHED", "{}", answer.text);
    last["outcome"].clone()
}

fn interrupt_ids(outcome: &Value) -> Vec<&str> {
    let all = outcome["interrupts"].as_array();
    let all = all.unwrap_or_else(|| panic!("{outcome}")).iter();
    all.map(|it| it["id"].as_str().unwrap()).collect()
}

async fn asked(meeting: &Meeting) -> Answer {
    let body = input("r1", Some("a seat, please"), &json!([]));
    run(meeting, "/ag-ui/agents/clerk", body).await
}

#[tokio::test]
async fn what_an_agent_asks_is_an_interrupt_and_it_goes_on_with_the_answer() {
    let turns = json!([{"text": seat(None).to_string()}, {"text": "It is booked."}]);
    let (meeting, _directory) = meeting(turns).await;
    let first = asked(&meeting).await;
    let ended = outcome(&first);
    assert_eq!(ended["type"], "interrupt");
    let [interrupt] = ended["interrupts"].as_array().unwrap().as_slice() else {
        panic!("{ended}")
    };
    assert_eq!(interrupt["id"], "decision:seat");
    assert_eq!(interrupt["reason"], "aitp:request_decision");
    assert_eq!(interrupt["message"], "Which seat?");
    assert_eq!(interrupt["metadata"], seat(None));
    let form = meeting.request("decision:seat").await;
    assert_eq!(interrupt["responseSchema"], form["answerSchema"]);
    let kinds: Vec<Value> = events(&first).iter().map(|it| it["type"].clone()).collect();
    assert_eq!(kinds[kinds.len() - 2], "MESSAGES_SNAPSHOT", "as for others");
    let seq = meeting.user.seq("t").await;
    let none = json!([resolved("decision:seat", &json!({"option": "cellar"}))]);
    let refused = run(&meeting, "/ag-ui", input("r2", None, &none)).await;
    let (status, code, pointer) = refused.error();
    assert_eq!((status, code.as_str()), (422, "invalid_request_answer"));
    assert_eq!(pointer.as_deref(), Some("/resume/0/payload/option"));
    assert_eq!(meeting.user.seq("t").await, seq, "nothing was written");
    // The agent that has asked goes on, whose default is another.
    let aisle = json!([resolved("decision:seat", &json!({"option": "aisle"}))]);
    let body = input("r2", None, &aisle);
    let answered = run(&meeting, "/ag-ui", body.clone()).await;
    assert_eq!(outcome(&answered), json!({"type": "success"}));
    let told = events(&answered);
    assert_eq!(told[0]["type"], "RUN_STARTED");
    assert_eq!(told[1]["role"], "user", "what was filled in, as a message");
    let texts = meeting.texts().await;
    assert_eq!(told[2]["delta"], texts[texts.len() - 2]);
    let said: Value = serde_json::from_str(&texts[texts.len() - 2]).unwrap();
    assert_eq!(said["decision"]["options"][0]["id"], "aisle");
    assert_eq!(texts.last().unwrap(), "It is booked.");
    assert_eq!(meeting.request("decision:seat").await["state"], "answered");
    let again = run(&meeting, "/ag-ui", body).await;
    assert_eq!(again.text, answered.text, "the same run is begun once");
    assert_eq!(meeting.request("decision:seat").await["nAnswers"], 1);
}

#[tokio::test]
async fn an_interrupt_that_is_given_up_is_declined_once() {
    let said = |text: &str| json!({"text": text});
    let turns = json!([{"text": seat(None).to_string()}, said("A pity."), said("Well.")]);
    let (meeting, _directory) = meeting(turns).await;
    asked(&meeting).await;
    let giving_up = |run| input(run, None, &json!([cancelled("decision:seat")]));
    let body = giving_up("r2");
    let declined = run(&meeting, "/ag-ui/agents/clerk", body).await;
    assert_eq!(outcome(&declined), json!({"type": "success"}));
    assert_eq!(meeting.request("decision:seat").await["state"], "declined");
    assert_eq!(meeting.texts().await.last().unwrap(), "A pity.");
    // Somebody has declined it meanwhile: the client can always go on.
    let body = giving_up("r3");
    let again = run(&meeting, "/ag-ui/agents/clerk", body).await;
    assert_eq!(outcome(&again), json!({"type": "success"}));
    let late = json!([resolved("decision:seat", &json!({"option": "aisle"}))]);
    let late = run(&meeting, "/ag-ui", input("r4", None, &late)).await;
    assert_eq!(late.status, 409, "{}", late.text);
    assert_eq!(late.error().2.as_deref(), Some("/resume/0/payload"));
    let unknown = json!([resolved("decision:table", &json!({"option": "aisle"}))]);
    let unknown = run(&meeting, "/ag-ui", input("r4", None, &unknown)).await;
    assert_eq!(unknown.error().1, "request_not_found");
}

#[tokio::test]
async fn a_call_and_a_request_are_answered_in_one_run() {
    let call = json!({"name": "compute", "arguments": {"expression": "20+2"}});
    let turns = json!([
        {"text": seat(None).to_string(), "tool_calls": [call]},
        {"text": "Seat 22, at the aisle."},
    ]);
    let (meeting, _directory) = meeting(turns).await;
    let ended = outcome(&asked(&meeting).await);
    let ids = interrupt_ids(&ended);
    assert_eq!((ids.len(), ids[1]), (2, "decision:seat"));
    let resume = json!([
        resolved("decision:seat", &json!({"option": "aisle"})),
        resolved(ids[0], &json!({"approved": true})),
    ]);
    let body = input("r2", Some("quickly"), &resume);
    let answered = run(&meeting, "/ag-ui/agents/clerk", body).await;
    assert_eq!(outcome(&answered), json!({"type": "success"}));
    assert_eq!(meeting.request("decision:seat").await["state"], "answered");
    assert!(answered.text.contains("Seat 22, at the aisle."));
    assert!(answered.text.contains("TOOL_CALL_RESULT"));
}

#[tokio::test]
async fn only_what_the_run_has_asked_and_the_client_may_answer_interrupts_it() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let body = input("r1", Some("hello again"), &json!([]));
    let ended = run(&meeting, "/ag-ui", body).await;
    assert_eq!(outcome(&ended), json!({"type": "success"}));
    assert_eq!(meeting.request("decision:seat").await["state"], "open");
    // What the client itself asks is for others.
    let own = json!({"$schema": super::DATA, "request_data": {
        "id": "name", "description": "Who?", "form": {"fields": [{"id": "name"}]},
    }});
    let body = input("r2", Some(&own.to_string()), &json!([]));
    let ended = run(&meeting, "/ag-ui", body).await;
    assert_eq!(outcome(&ended), json!({"type": "success"}));
    assert_eq!(meeting.request("data:name").await["state"], "open");
}

/// An agent with a sub-agent that takes longer than any test.
async fn holding() -> (Meeting, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let turns = json!([{"text": "At last.", "delay_ms": 3_600_000}]);
    std::fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
    let config = format!(
        "default_agent = \"lead\"\n[models.s]\nprovider = \"scripted\"\n\
         [models.h]\nprovider = \"scripted\"\nscript = {:?}\n\
         [agents.holder]\nmodel = \"h\"\n[agents.lead]\nmodel = \"s\"\n\
         [[agents.lead.subagents]]\nagent = \"holder\"\nname = \"hold\"\ndescription = \"Holds.\"\n\
         parameters = {{ type = \"object\", properties = {{ query = {{ type = \"string\" }} }} }}\n\
         prompt = \"{{query}}\"\n",
        script.to_str().unwrap()
    );
    (Meeting::keys(&config).await, directory)
}

/// The key of the one thread beside `t`, once there is one.
async fn held(meeting: &Meeting) -> String {
    let found = async {
        loop {
            let list = meeting.user.get("/api/v1/threads").await.json();
            let threads = list["threads"].as_array().unwrap().iter();
            let mut keys = threads.map(|thread| thread["key"].as_str().unwrap());
            if let Some(key) = keys.find(|key| *key != "t") {
                return key.replace('/', "%2F");
            }
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), found).await;
    found.expect("the sub-agent begins")
}

#[tokio::test]
async fn what_others_ask_while_a_run_goes_on_is_no_interrupt_of_it() {
    let (meeting, _directory) = holding().await;
    let body = input("r1", Some("use hold {\"query\": \"it\"}"), &json!([]));
    let meanwhile = async {
        let child = held(&meeting).await;
        super::join(&meeting.shop, "shop", &[]).await;
        let said = json!({
            "content": seat(None).to_string(), "metadata": {"actor": "shop"}, "stream": false,
        });
        let asked = meeting.shop.post("/api/v1/threads/t/messages", said).await;
        assert!(asked.status.is_success(), "{}", asked.text);
        assert_eq!(meeting.request("decision:seat").await["state"], "open");
        let path = format!("/api/v1/threads/{child}/cancel");
        let stopped = meeting.user.post(&path, json!({})).await;
        assert_eq!(stopped.status, 200, "{}", stopped.text);
    };
    let (ended, ()) = tokio::join!(run(&meeting, "/ag-ui", body), meanwhile);
    assert_eq!(outcome(&ended), json!({"type": "success"}));
    assert_eq!(meeting.request("decision:seat").await["state"], "open");
}
