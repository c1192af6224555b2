//! The traces that are written with the events.

use super::{open, place, written};
use rusqlite::Connection;
use store::suite::script;
use timeline::{Command, Event, ExecutionId, NewItem, Trigger};

#[tokio::test]
async fn an_execution_leaves_a_run_its_spans_and_what_the_model_used() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let conn = Connection::open(&path).unwrap();
    let lines = |sql: &str| {
        let mut select = conn.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(
            "SELECT format('%s %s %s %d steps, %d+%d tokens, %d s', id, name, status, n_steps,
                           input_tokens, output_tokens, duration / 1000000000)
             FROM thread_trace_runs ORDER BY started_at"
        ),
        [
            "one-execution demo ok 3 steps, 24+14 tokens, 16 s",
            "two-execution demo error 1 steps, 12+7 tokens, 3 s",
            "three-execution demo error 1 steps, 0+0 tokens, 2 s",
            "four-execution demo ok 1 steps, 0+0 tokens, 2 s",
        ]
    );
    assert_eq!(
        lines(
            "SELECT format('%s %s of %s: %s %s, %d s', kind, id, parent_id, name, status, duration / 1000000000)
             FROM thread_trace_spans WHERE run_id IN ('one-execution', 'two-execution') AND kind = 'tool'
             ORDER BY started_at"
        ),
        [
            "tool one-step-0:c1 of one-step-0: weather ok, 2 s",
            "tool two-step-0:c1 of two-step-0: weather error, 1 s",
        ]
    );
    assert_eq!(
        lines("SELECT id FROM thread_trace_spans WHERE ended_at IS NULL"),
        [""; 0]
    );
    let models = "SELECT model || input_tokens FROM thread_trace_events WHERE name = 'llm'";
    assert_eq!(lines(models), ["m12", "m12", "m12"]);
}

#[tokio::test]
async fn odd_data_in_a_trace_does_not_fail_an_append() {
    let (_directory, path) = place();
    let store = open(&path);
    let start = Command::Start {
        trigger: Trigger::New(NewItem::user("ask", serde_json::json!([]).into())),
        run: Some(serde_json::json!({"agent": {"name": 7}}).into()),
        execution_id: "x".into(),
        reaction_item_id: "r".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    };
    let mut author = written(&store, "t", vec![start]).await;
    let responses = [
        r#"{"usage":{"inputTokens":18446744073709551615,"outputTokens":-1},"model":[]}"#,
        r#"{"usage":"none","model":null}"#,
        "[]",
        "1e999",
    ];
    for data in responses {
        let data = timeline::Payload::from_text(data.to_owned()).ok();
        for chunk_type in ["data-step-response", "data-tool-started", "data-step-reset"] {
            // Commands write no such thing; a log from elsewhere may hold it.
            let odd = Event::ChunkEmitted {
                chunk_type: chunk_type.into(),
                context_id: "c".into(),
                execution_id: Some("e".into()),
                step_id: Some("s".into()),
                data: data.clone(),
            };
            let append = author.append_with(vec![odd]);
            author.append(append).await.unwrap();
        }
    }
    let stray = Event::ChunkEmitted {
        chunk_type: "data-step-response".into(),
        context_id: "nowhere".into(),
        execution_id: Some(ExecutionId::from("nobody")),
        step_id: Some("none".into()),
        data: None,
    };
    let append = author.append_with(vec![stray]);
    author.append(append).await.unwrap();
    let part = serde_json::json!({"type": "tool-x", "toolCallId": "c", "state": "output-denied"});
    author
        .commit(Command::PutPart {
            idx: 0,
            part: part.into(),
        })
        .await;
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}
