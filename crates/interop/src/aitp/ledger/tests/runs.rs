//! Requests that agents make in their runs.

use super::*;

#[test]
fn an_agents_run_asks_when_its_step_is_complete() {
    let mut thread = Thread::empty();
    let part = |message: &Message| Payload::from(message.output_part());
    thread.run(Command::Start {
        trigger: Trigger::New(NewItem::user("u", json!([]).into())),
        run: Some(json!({"agent": "demo"}).into()),
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    let respond = |message: &Message| Command::Respond {
        parts: vec![part(message)],
        response: json!({}).into(),
    };
    thread.run(respond(&sample(Kind::Quote)));
    thread.run(Command::ResetStep);
    assert!(thread.ledger.requests().next().is_none());
    thread.run(respond(&sample(Kind::RequestDecision)));
    thread.run(Command::Emit {
        chunks: vec![NewChunk {
            chunk_type: "text-delta".to_owned(),
            data: None,
        }],
    });
    // A server may stop here and go on from what it kept.
    let text = serde_json::to_string(&thread.ledger).unwrap();
    thread.ledger = serde_json::from_str(&text).unwrap();
    thread.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    thread.run(Command::End {
        ending: Ending::Completed,
    });
    let asked: Vec<&Request> = thread.ledger.requests().collect();
    assert_eq!(asked.len(), 1, "the step was begun anew");
    assert_eq!(asked[0].ask.by, Party::Agent("demo".into()));
    assert_eq!(asked[0].item_id.as_str(), "a");
    assert_eq!(
        thread.say(&sample(Kind::Decision), USER),
        Ok(RequestEffect::Answers)
    );
}
