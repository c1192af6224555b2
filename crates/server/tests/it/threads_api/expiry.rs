//! Runs whose time is up.

use super::{Client, refused, weather};
use interop::ids::THREAD;
use interop::parts::ToolPart;
use interop::threads::{Assistant, CreateRun, trigger};
use jiff::{SignedDuration, Timestamp};
use loomline_server::DEV_TENANT;
use runtime::Import;
use serde_json::{Value, json};
use timeline::{Command, Ending, OpenCall, OpenKind, Payload, StepOutcome, Trigger};

const CALL: &str = "call_1";

/// A thread whose run has waited for its client since then.
async fn waited(client: &Client, since: SignedDuration) -> (String, Value) {
    let runtime = client.0.app.default_runtime();
    let at = Timestamp::now() - since;
    let asked = CreateRun::read(&json!({"assistant_id": "demo", "tools": [weather()]})).unwrap();
    let assistant = Assistant::of_agent("demo", "scripted", None, at);
    let params = asked.options(&assistant).value;
    let part = ToolPart::call("get_weather", CALL, r#"{"city":"Oslo"}"#);
    let open = vec![OpenCall {
        tool_call_id: CALL.to_owned(),
        kind: OpenKind::External,
        part: part.write().unwrap(),
        origin: None,
        children: Vec::new(),
    }];
    let outcome = StepOutcome {
        open_calls: Some(Payload::write(&open).unwrap()),
        ..StepOutcome::default()
    };
    let commands = [
        Command::Start {
            trigger: Trigger::New(trigger(&runtime.mint(), None)),
            run: Some(json!({"agent": "demo", "params": params}).into()),
            execution_id: runtime.mint().into(),
            reaction_item_id: runtime.mint().into(),
            step_id: runtime.mint().into(),
            workflow_run_id: None,
        },
        Command::Respond {
            parts: vec![part.write().unwrap()],
            response: json!({"provider": "p", "model": "m", "stopReason": "tool_use"}).into(),
        },
        Command::CompleteStep {
            outcome,
            next: None,
        },
        Command::End {
            ending: Ending::Completed,
        },
    ];
    let import = Import {
        created_at: Some(at),
        commands: commands.map(|command| (at, command)).into(),
        ..Import::default()
    };
    let row = runtime.import(&DEV_TENANT.into(), None, import).await;
    let thread = THREAD.write(row.unwrap().thread.id.as_str());
    let runs = client
        .get(&format!("/threads/{thread}/runs"), "ListRunsResponse")
        .await;
    (thread, runs["data"][0].clone())
}

fn outputs() -> Value {
    json!({"tool_outputs": [{"tool_call_id": CALL, "output": "sunny"}]})
}

#[tokio::test]
async fn a_run_that_waits_is_expired_ten_minutes_after_it_was_made() {
    let client = Client::new().await;
    let (thread, run) = waited(&client, SignedDuration::from_mins(11)).await;
    assert_eq!(
        (&run["status"], &run["expires_at"]),
        (&json!("expired"), &Value::Null)
    );
    let path = format!("/threads/{thread}/runs/{}", run["id"].as_str().unwrap());
    let late = client
        .ask(&format!("{path}/submit_tool_outputs"), outputs())
        .await;
    let message = "Runs in status \"expired\" do not accept tool outputs.";
    assert_eq!(refused(&late), (400, message.to_owned(), None));
    let cancel = refused(&client.ask(&format!("{path}/cancel"), json!({})).await);
    assert_eq!(
        cancel,
        (
            400,
            "Cannot cancel run with status 'expired'.".to_owned(),
            None
        )
    );
    let steps = client
        .get(&format!("{path}/steps"), "ListRunStepsResponse")
        .await;
    assert_eq!(steps["data"][0]["status"], "expired");
    // The thread is free.
    let said = json!({"role": "user", "content": "hello"});
    client
        .post(
            &format!("/threads/{thread}/messages"),
            said,
            "MessageObject",
        )
        .await;
    assert_eq!(client.ran(&thread, json!({})).await["status"], "completed");
}

#[tokio::test]
async fn a_run_that_waits_goes_on_in_what_is_left_of_its_time() {
    let client = Client::new().await;
    let (thread, run) = waited(&client, SignedDuration::from_mins(2)).await;
    assert_eq!(run["status"], "requires_action");
    let ends = run["created_at"].as_i64().unwrap() + 600;
    assert_eq!(run["expires_at"].as_i64(), Some(ends));
    let path = format!("/threads/{thread}/runs/{}", run["id"].as_str().unwrap());
    client
        .post(
            &format!("{path}/submit_tool_outputs"),
            outputs(),
            "RunObject",
        )
        .await;
    client.rest(&thread).await;
    assert_eq!(client.run(&thread, &run).await["status"], "completed");
    let key = THREAD.read(&thread).into_owned();
    let events = client.0.at_rest(&key).await;
    let mut events = events.iter();
    let begun = events.rfind(|(_, event)| event["type"] == "execution.created");
    let limit = begun.unwrap().1["execution"]["run"]["timeoutMs"]
        .as_u64()
        .unwrap();
    assert!(limit <= 8 * 60 * 1_000, "{limit}");
}
