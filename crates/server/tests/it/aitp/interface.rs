//! What the next agent can't handle reaches the user interface, and the answer comes back (AITP-5).

use super::{Meeting, seat};
use serde_json::{Value, json};

/// An agent whose model asks for a seat, and then says something else.
async fn meeting() -> (Meeting, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let turns = json!({"turns": [{"text": seat(None).to_string()}, {"text": "It is booked."}], "per_turn": false});
    std::fs::write(&script, turns.to_string()).unwrap();
    let config = format!(
        "[models.s]\nprovider = \"scripted\"\nscript = {:?}\n[agents.clerk]\nmodel = \"s\"\n",
        script.to_str().unwrap()
    );
    (Meeting::keys(&config).await, directory)
}

#[tokio::test]
async fn an_agents_request_is_a_form_whose_answer_the_agent_goes_on_with() {
    let (meeting, _directory) = meeting().await;
    // The assistant in between declares nothing.
    meeting.user.say("t", "a seat, please").await;
    super::join(&meeting.helper, "assistant", &[]).await;
    let asked = meeting.request("decision:seat").await;
    assert_eq!(asked["by"], json!({"kind": "agent", "id": "clerk"}));
    assert_eq!(asked["answerers"], json!([{"kind": "initiator"}]));
    assert!(meeting.listed("?actor=assistant").await.is_empty());
    let body = json!({"value": {"option": "aisle"}});
    let refused = meeting
        .about(&meeting.helper, "decision:seat", "answer", body.clone())
        .await;
    assert_eq!(refused.json()["error"]["details"]["reason"], "not_declared");
    let said = meeting
        .about(&meeting.user, "decision:seat", "answer", body)
        .await
        .json();
    assert!(said["executionId"].is_string(), "{said}");
    meeting.user.at_rest("t").await;
    let texts = meeting.texts().await;
    let answer: Value = serde_json::from_str(&texts[texts.len() - 2]).unwrap();
    assert_eq!(answer["decision"]["options"][0]["id"], "aisle");
    assert_eq!(texts.last().unwrap(), "It is booked.");
    assert_eq!(meeting.request("decision:seat").await["state"], "answered");
}

#[tokio::test]
async fn what_nobody_answered_is_open_until_its_end_and_runs_nothing() {
    let (meeting, _directory) = meeting().await;
    meeting.user.say("t", "a seat, please").await;
    let seq = meeting.user.seq("t").await;
    for _ in 0..3 {
        assert_eq!(meeting.listed("").await, ["decision:seat"]);
    }
    assert_eq!(meeting.user.seq("t").await, seq, "reading writes nothing");
    let declined = meeting
        .about(&meeting.user, "decision:seat", "decline", json!({}))
        .await;
    assert!(
        declined.json()["executionId"].is_string(),
        "the agent hears of it"
    );
}
