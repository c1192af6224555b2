//! What is asked by AITP is what a task of A2A waits for, and what answers it goes on with the task.

use super::{DECISIONS, Meeting, seat};
use crate::a2a::{says, state, told};
use crate::harness::Answer;
use axum::body::{Body, BodyDataStream};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const STREAM: &str = "/a2a/clerk/v1/message:stream";

/// An agent that says these things one after the other, and another that is spoken to by default.
async fn meeting(turns: &[Value]) -> (Meeting, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let turns: Vec<Value> = turns
        .iter()
        .map(|turn| {
            let text = turn.as_str().map(str::to_owned);
            json!({"text": text.unwrap_or_else(|| turn.to_string())})
        })
        .collect();
    let script_of = json!({"turns": turns, "per_turn": false});
    std::fs::write(&script, script_of.to_string()).unwrap();
    let config = format!(
        "default_agent = \"other\"\n[models.s]\nprovider = \"scripted\"\nscript = {:?}\n[models.o]\nprovider = \"scripted\"\n\
         [agents.other]\nmodel = \"o\"\n[agents.clerk]\nmodel = \"s\"\n",
        script.to_str().unwrap()
    );
    (Meeting::keys(&config).await, directory)
}

/// A task on the thread `t` that has asked for a seat.
async fn asking(meeting: &Meeting) -> Value {
    let message = json!({"contextId": "t", "parts": [{"text": "a seat, please"}]});
    let task = meeting.user.task("/a2a/clerk", message).await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    task
}

fn answer(task: &Value, id: &str, parts: &Value) -> Value {
    json!({"taskId": task["id"], "messageId": id, "parts": parts})
}

fn aisle(task: &Value, id: &str) -> Value {
    let data = json!({"requestId": "decision:seat", "value": {"option": "aisle"}});
    answer(task, id, &json!([{ "data": data }]))
}

async fn read(meeting: &Meeting, task: &Value) -> Value {
    let read = meeting
        .user
        .rpc("/a2a", "GetTask", json!({"id": task["id"]}))
        .await;
    read["result"].clone()
}

async fn listed(meeting: &Meeting) -> Vec<Value> {
    let params = json!({"includeArtifacts": true});
    let page = meeting.user.rpc("/a2a", "ListTasks", params).await;
    page["result"]["tasks"].as_array().unwrap().clone()
}

fn texts(task: &Value) -> Vec<&str> {
    let history = task["history"].as_array().unwrap().iter();
    history
        .filter_map(|it| it["parts"][0]["text"].as_str())
        .collect()
}

/// Begins to follow a task.
async fn follow(meeting: &Meeting, path: &str) -> BodyDataStream {
    let request = meeting
        .user
        .request("POST", path)
        .header("a2a-version", "1.0");
    let request = request.body(Body::empty()).unwrap();
    let (status, stream) = meeting.user.open(request).await;
    assert_eq!(status, 200);
    stream
}

/// What a stream says to its end.
async fn followed(stream: BodyDataStream) -> Vec<Value> {
    let text = Body::from_stream(stream)
        .collect()
        .await
        .unwrap()
        .to_bytes();
    told(&Answer {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        text: String::from_utf8(text.into()).unwrap(),
    })
}

#[tokio::test]
async fn a_task_that_has_asked_is_answered_and_goes_on() {
    let (meeting, _directory) = meeting(&[seat(None), json!("It is booked.")]).await;
    let task = asking(&meeting).await;
    let [words, data] = task["status"]["message"]["parts"]
        .as_array()
        .unwrap()
        .as_slice()
    else {
        panic!("{task}")
    };
    let words = words["text"].as_str().unwrap();
    assert!(
        words.starts_with("Which seat?\n") && words.contains("decision:seat"),
        "{words}"
    );
    let form = meeting.request("decision:seat").await;
    assert_eq!(
        data["data"]["requests"],
        json!([{
            "requestId": "decision:seat", "asks": "request_decision",
            "answerSchema": form["answerSchema"], "request": seat(None),
        }])
    );
    assert_eq!(read(&meeting, &task).await, task);
    assert_eq!(json!(listed(&meeting).await), json!([task]));
    // Whoever is spoken to, who has asked goes on.
    let done = meeting.user.task("/a2a", aisle(&task, "m2")).await;
    assert_eq!((state(&done), &done["id"]), ("COMPLETED", &task["id"]));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "It is booked.");
    assert_eq!(done["metadata"]["agent"], "clerk");
    let [said, asked, answered] = texts(&done)[..] else {
        panic!("{done}")
    };
    assert_eq!(said, "a seat, please");
    assert_eq!(serde_json::from_str::<Value>(asked).unwrap(), seat(None));
    let answered: Value = serde_json::from_str(answered).unwrap();
    assert_eq!(answered["decision"]["options"][0]["id"], "aisle");
    assert_eq!(meeting.request("decision:seat").await["state"], "answered");
    assert_eq!(
        json!(listed(&meeting).await),
        json!([done]),
        "it is one task"
    );
    // A message that is sent again is the same message.
    let again = meeting.user.task("/a2a", aisle(&task, "m2")).await;
    assert_eq!(again, done);
    assert_eq!(meeting.request("decision:seat").await["nAnswers"], 1);
    let late = meeting
        .user
        .rpc("/a2a", "SendMessage", says(aisle(&task, "m3")))
        .await;
    assert_eq!(late["error"]["code"], -32004, "{late}");
}

#[tokio::test]
async fn what_is_no_answer_changes_nothing_and_its_place_is_told() {
    let (meeting, _directory) = meeting(&[seat(None), json!("It is booked.")]).await;
    let task = asking(&meeting).await;
    let seq = meeting.user.seq("t").await;
    let data = |data: Value| json!([{ "data": data }]);
    for (parts, field) in [
        (json!([{"text": "the aisle"}]), ""),
        (
            data(json!({"requestId": 7, "value": 1})),
            "/0/data/requestId",
        ),
        (data(json!({"requestId": "decision:seat"})), "/0/data"),
        (
            data(json!({"requestId": "decision:seat", "value": {}, "declined": true})),
            "/0/data",
        ),
    ] {
        let refused = says(answer(&task, "m2", &parts));
        let refused = meeting.user.rpc("/a2a", "SendMessage", refused).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let place = &refused["error"]["data"][1]["fieldViolations"][0]["field"];
        assert_eq!(*place, format!("/params/message/parts{field}"));
    }
    for (value, pointer) in [
        (json!({"option": "cellar"}), "/data/value/option"),
        (json!({}), "/data/value"),
    ] {
        let filled = data(json!({"requestId": "decision:seat", "value": value}));
        let refused = says(answer(&task, "m2", &filled));
        let refused = meeting.user.rpc("/a2a", "SendMessage", refused).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let info = &refused["error"]["data"][0];
        assert_eq!(info["reason"], "INVALID_REQUEST_ANSWER");
        let place = info["metadata"]["pointer"].as_str().unwrap();
        assert!(
            place.starts_with(&format!("/params/message/parts/0{pointer}")),
            "{place}"
        );
    }
    // The capability message itself goes through the same gate.
    let cellar = json!({"request_decision_id": "seat", "options": [{"id": "cellar"}]});
    let cellar = data(json!({"$schema": DECISIONS, "decision": cellar}));
    let refused = says(answer(&task, "m2", &cellar));
    let refused = meeting.user.rpc("/a2a", "SendMessage", refused).await;
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    let unknown = data(json!({"requestId": "decision:table", "declined": true}));
    let refused = says(answer(&task, "m2", &unknown));
    let refused = meeting.user.rpc("/a2a", "SendMessage", refused).await;
    assert_eq!(refused["error"]["data"][0]["reason"], "REQUEST_NOT_FOUND");
    let stopped = json!({"id": task["id"]});
    let stopped = meeting.user.rpc("/a2a", "CancelTask", stopped).await;
    assert_eq!(stopped["error"]["code"], -32002, "{stopped}");
    assert_eq!(meeting.user.seq("t").await, seq, "nothing was written");
    assert_eq!(read(&meeting, &task).await, task);
}

#[tokio::test]
async fn a_request_is_declined_or_answered_by_the_message_itself_as_data_or_as_a_text() {
    let aisle = json!({"request_decision_id": "seat", "options": [{"id": "aisle"}]});
    let aisle = json!({"$schema": DECISIONS, "decision": aisle});
    let declined = json!({"requestId": "decision:seat", "declined": true, "reason": "I walk."});
    for (said, stands) in [(declined, "declined"), (aisle, "answered")] {
        for part in [json!({"data": said}), json!({"text": said.to_string()})] {
            let (meeting, _directory) = meeting(&[seat(None), json!("Well.")]).await;
            let task = asking(&meeting).await;
            let parts = json!([{"text": "Here:"}, part]);
            let done = meeting.user.task("/a2a", answer(&task, "m2", &parts)).await;
            assert_eq!((state(&done), &done["id"]), ("COMPLETED", &task["id"]));
            assert_eq!(done["artifacts"][0]["parts"][0]["text"], "Well.");
            let request = meeting.request("decision:seat").await;
            assert_eq!(request["state"], stands);
            if stands == "declined" {
                assert_eq!(request["reason"], "I walk.");
            }
        }
    }
}

#[tokio::test]
async fn a_task_asks_as_long_as_anything_it_has_asked_is_open() {
    let mut meal = seat(None);
    meal["request_decision"]["id"] = "meal".into();
    // What the other agent says takes a turn.
    let turns = [seat(None), json!("Hm?"), meal, json!("Enjoy.")];
    let (meeting, _directory) = meeting(&turns).await;
    let task = asking(&meeting).await;
    // What others say on the thread is no part of it.
    let other = json!({"contextId": "t", "messageId": "o", "parts": [{"text": "hello"}]});
    let other = meeting.user.task("/a2a", other).await;
    assert_eq!(state(&other), "COMPLETED");
    assert_eq!(read(&meeting, &task).await, task);
    let second = meeting.user.task("/a2a", aisle(&task, "m2")).await;
    assert_eq!(state(&second), "INPUT_REQUIRED", "{second}");
    let asked = &second["status"]["message"]["parts"][1]["data"]["requests"];
    assert_eq!(asked[0]["requestId"], "decision:meal");
    assert_eq!(asked.as_array().unwrap().len(), 1);
    let data = json!({"requestId": "decision:meal", "value": {"option": "window"}});
    let done = answer(&task, "m3", &json!([{ "data": data }]));
    let done = meeting.user.task("/a2a", done).await;
    assert_eq!((state(&done), &done["id"]), ("COMPLETED", &task["id"]));
    assert_eq!(texts(&done).len(), 5, "{done}");
    let all = listed(&meeting).await;
    assert_eq!(all, [other, done]);
    // The tasks of a page are the same, however small it is.
    let mut token = json!("");
    for task in all {
        let params = json!({"pageSize": 1, "pageToken": token, "includeArtifacts": true});
        let page = meeting.user.rpc("/a2a", "ListTasks", params).await["result"].clone();
        assert_eq!(page["tasks"], json!([task]));
        token = page["nextPageToken"].clone();
    }
}

#[tokio::test]
async fn a_stream_ends_with_what_is_asked_and_goes_on_with_the_answer() {
    let (meeting, _directory) = meeting(&[seat(None), json!("It is booked.")]).await;
    let message = says(json!({"contextId": "t", "parts": [{"text": "a seat, please"}]}));
    let said = told(&meeting.user.a2a("POST", STREAM, Some(&message)).await);
    let task = said[0]["task"].clone();
    let last = &said.last().unwrap()["statusUpdate"];
    assert_eq!(state(last), "INPUT_REQUIRED");
    let now = read(&meeting, &task).await;
    assert_eq!(last["status"], now["status"]);
    // Who follows it sees the answer and what comes of it.
    let path = format!("/a2a/v1/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let follow = follow(&meeting, &path).await;
    let message = says(aisle(&task, "m2"));
    let sent = told(&meeting.user.a2a("POST", STREAM, Some(&message)).await);
    let followed = followed(follow).await;
    assert_eq!(followed[0]["task"], now);
    assert_eq!(state(&sent[0]["task"]), "WORKING");
    for said in [&followed, &sent] {
        assert_eq!(state(&said[1]["statusUpdate"]), "WORKING", "{said:?}");
        assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
        let text: String = said
            .iter()
            .filter_map(|said| said["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(text, "It is booked.");
    }
    assert_eq!(followed[1..], sent[1..]);
    let again = told(&meeting.user.a2a("POST", STREAM, Some(&message)).await);
    assert_eq!(again[1..], sent[1..], "the same message");
}

#[tokio::test]
async fn a_task_whose_request_is_settled_otherwise_is_over_and_so_is_its_stream() {
    let (meeting, _directory) = meeting(&[seat(None), json!("A pity.")]).await;
    let task = asking(&meeting).await;
    let path = format!("/a2a/v1/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let follow = follow(&meeting, &path).await;
    let declined = meeting.about(&meeting.user, "decision:seat", "decline", json!({}));
    let declined = declined.await;
    assert_eq!(declined.status, 200, "{}", declined.text);
    let said = followed(follow).await;
    assert_eq!(said[0]["task"], task);
    assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
    assert_eq!(said.len(), 2, "what goes on is a task of its own: {said:?}");
    meeting.user.at_rest("t").await;
    let all = listed(&meeting).await;
    assert_eq!(all.iter().map(state).collect::<Vec<_>>(), ["COMPLETED"; 2]);
    assert_eq!(all[0]["artifacts"][0]["parts"][0]["text"], "A pity.");
}

#[tokio::test]
async fn a_request_that_expires_is_waited_for_no_longer() {
    // On a slow machine it is over before it was asked for; then there is more time for it.
    for seconds in [2, 20, 200] {
        let end = Timestamp::now() + SignedDuration::from_secs(seconds);
        let (meeting, _directory) = meeting(&[seat(Some(&end.to_string()))]).await;
        let message = json!({"contextId": "t", "parts": [{"text": "a seat, please"}]});
        let task = meeting.user.task("/a2a/clerk", message).await;
        let path = format!("/a2a/v1/tasks/{}:subscribe", task["id"].as_str().unwrap());
        let answer = meeting.user.a2a("GET", &path, None).await;
        if state(&task) != "INPUT_REQUIRED" || answer.status != 200 {
            continue;
        }
        let asked = &task["status"]["message"]["parts"][1]["data"]["requests"][0];
        let expires: Timestamp = asked["expiresAt"].as_str().unwrap().parse().unwrap();
        assert_eq!(expires, end);
        let said = told(&answer);
        let last = said.last().unwrap();
        assert_eq!(state(&last["statusUpdate"]), "COMPLETED");
        assert!(Timestamp::now() > end);
        assert_eq!(state(&read(&meeting, &task).await), "COMPLETED");
        return;
    }
    panic!("it always was over before it was asked for");
}

#[tokio::test]
async fn an_answer_waits_for_its_turn_and_is_followed_from_there() {
    // What the other agent says takes a turn.
    let turns = [seat(None), json!("Hm?"), json!("It is booked.")];
    let (meeting, _directory) = meeting(&turns).await;
    let task = asking(&meeting).await;
    meeting.user.begin("t", "slow 20ms say 40 words").await;
    let mut message = says(aisle(&task, "m2"));
    message["configuration"] = json!({"returnImmediately": true});
    let sent = meeting.user.rpc("/a2a", "SendMessage", message).await;
    let queued = &sent["result"]["task"];
    assert_eq!((state(queued), &queued["id"]), ("SUBMITTED", &task["id"]));
    assert_eq!(texts(queued).len(), 2, "{queued}");
    let id = json!({"id": task["id"]});
    let stopped = meeting.user.rpc("/a2a", "CancelTask", id).await;
    assert_eq!(stopped["error"]["code"], -32002, "{stopped}");
    let path = format!("/a2a/v1/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let said = followed(follow(&meeting, &path).await).await;
    assert_eq!(said[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(state(&said.last().unwrap()["statusUpdate"]), "COMPLETED");
    let done = read(&meeting, &task).await;
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "It is booked.");
}
