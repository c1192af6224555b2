//! Content of stores, with secrets in each kind of it.

use jiff::Timestamp;
use loomline_stores::{DurableStore, StoreFault};
use serde_json::json;
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::script::{end, fork, keep, script_of_answers};
use store::suite::{Author, script};
use store::{Append, CheckpointRow, Store, TenantId, Token};
use timeline::{Command, NewChunk, NewItem, NewThread, Payload, Removed, StepOutcome, Trigger};

pub(crate) fn acme() -> TenantId {
    "acme".into()
}

/// A secret of a thread and a kind of content. The full-text index has it as one word.
pub(crate) fn secret(thread: &str, kind: &str) -> String {
    format!("zq{kind}{thread}xw0123456789").replace('-', "")
}

/// A text with a secret, as long as messages are.
fn text(secret: &str, n: usize) -> String {
    format!("{secret} {}", "some other words ".repeat(n % 160))
}

/// Writes content into a store.
pub(crate) struct Content {
    pub(crate) durable: Arc<dyn DurableStore>,
    pub(crate) store: Arc<dyn Store>,
}

impl Content {
    pub(crate) fn of(durable: Arc<dyn DurableStore>) -> Self {
        Self {
            store: durable.clone(),
            durable,
        }
    }

    /// A thread whose key is its id.
    pub(crate) async fn thread(&self, id: &str) -> Author {
        Author::new(&self.store, "acme", NewThread::new(id, Some(id))).await
    }

    /// A fork of a thread at its end.
    pub(crate) async fn fork(&self, id: &str, of: &Author) -> Author {
        let thread = NewThread {
            fork: Some(fork(of.thread.as_str(), of.tail.0)),
            ..NewThread::new(id, Some(id))
        };
        Author::new(&self.store, "acme", thread).await
    }

    /// A thread with secrets in each kind of content.
    pub(crate) async fn secrets(&self, name: &str, n: usize) -> Author {
        let secret = |kind| secret(name, kind);
        let mut author = self.thread(name).await;
        let update = Command::Update {
            title: Some(Some(secret("title"))),
            metadata: Some(Some(json!({"note": secret("metadata")}).into())),
        };
        author.commit(update).await;
        let said = json!([{"type": "input_text", "text": text(&secret("message"), n)}]);
        let start = Command::Start {
            trigger: Trigger::New(NewItem::user(format!("{name}-item"), said.into())),
            run: Some(json!({"agent": "demo"}).into()),
            execution_id: format!("{name}-execution").into(),
            reaction_item_id: format!("{name}-reaction").into(),
            step_id: format!("{name}-step").into(),
            workflow_run_id: None,
        };
        let token = Token {
            token: secret("token"),
            answer: "{}".to_owned(),
        };
        let append = Append {
            token: Some(token),
            ..author.append_of(start)
        };
        author.append(append).await.unwrap();
        let chunk = NewChunk {
            chunk_type: "text-delta".to_owned(),
            data: Some(json!({"delta": text(&secret("chunk"), n)}).into()),
        };
        let call = |state: &str, output: Option<String>| -> Payload {
            let mut call = json!({
                "type": "tool-weather", "toolCallId": "c1", "state": state, "input": {"city": secret("input")},
            });
            if let Some(output) = output {
                call["output"] = json!({"found": output});
            }
            call.into()
        };
        let outcome = StepOutcome {
            agent_state: Some(json!({"note": secret("state")}).into()),
            ..StepOutcome::default()
        };
        let commands = [
            Command::Emit {
                chunks: vec![chunk],
            },
            Command::Respond {
                parts: vec![
                    json!({"type": "reasoning", "text": text(&secret("reasoning"), n)}).into(),
                    json!({"type": "output_text", "text": text(&secret("text"), n + 70)}).into(),
                    call("input-available", None),
                ],
                response: json!({"model": "m", "usage": {"inputTokens": 3, "outputTokens": 4}})
                    .into(),
            },
            Command::PutPart {
                idx: 2,
                part: call("output-available", Some(text(&secret("output"), n))),
            },
            Command::ImportStep {
                outcome,
                next: None,
            },
            end(),
        ];
        author.commit_all(commands).await;
        let object = NewObject {
            kind: "checkpoint".into(),
            id: format!("{name}-object"),
            created_at: Timestamp::UNIX_EPOCH,
            json: json!({"value": secret("sidecar")}).to_string(),
            content: Some(text(&secret("sidecarfile"), n).into_bytes()),
            thread: Some(author.thread.clone()),
            is_limited: false,
        };
        self.store.objects().put(&acme(), object).await.unwrap();
        author
    }

    /// An object with a content.
    pub(crate) async fn file(&self, tenant: &str, id: &str, content: &[u8]) {
        let file = NewObject {
            kind: "file".into(),
            id: id.into(),
            created_at: Timestamp::from_second(17).unwrap(),
            json: "{ \"a\" : 1.0, \"a\":\"\u{2028}\" }".to_owned(),
            content: Some(content.to_vec()),
            thread: None,
            is_limited: false,
        };
        self.store
            .objects()
            .put(&tenant.into(), file)
            .await
            .unwrap();
    }

    /// A checkpoint of an agent.
    pub(crate) async fn checkpoint(&self, tenant: &str, session: &str, state: String) {
        let about = CheckpointRow {
            session_id: session.into(),
            checkpoint_id: "c".into(),
            timestamp: Timestamp::from_second(5).unwrap(),
            step: 3,
            agent_id: Some("a".to_owned()),
        };
        let checkpoints = self.store.checkpoints();
        checkpoints
            .save(&tenant.into(), about, state)
            .await
            .unwrap();
    }

    /// Everything that there is: turns, dead attempts, calls that wait, forks that have them, removed entries, objects,
    /// files, tokens and checkpoints.
    pub(crate) async fn everything(&self) {
        let mut parent = self.thread("parent").await;
        parent.commit_all(script()).await;
        let mut fork = self.fork("fork", &parent).await;
        fork.commit_all(script()).await;
        let mut asking = self.thread("asking").await;
        let mut answers = script_of_answers();
        // The call of the last run waits.
        answers.pop();
        asking.commit_all(answers).await;
        let inherits = self.fork("inherits", &asking).await;
        self.fork("inherits-too", &inherits).await;
        let mut running = self.thread("running").await;
        running.commit_all(script().into_iter().take(15)).await;
        let mut removed = self.secrets("removed", 9).await;
        remove(&mut removed).await;
        let new = NewThread {
            title: Some("a\0title".into()),
            metadata: Some(json!({"a": "\0"}).into()),
            ..NewThread::new("nulls\0", Some("k\0\u{1}"))
        };
        let mut nulls = Author::new(&self.store, "acme", new).await;
        nulls.commit(keep("i\0")).await;
        self.file("acme", "f1", &[0, 255, 10, 13]).await;
        self.file("acme", "f2", &[0, 255, 10, 13]).await;
        self.file("acme", "empty", &[]).await;
        self.checkpoint("acme", "s1", "{\"n\" :1}".to_owned()).await;
        self.checkpoint("acme", "s2", "{}".to_owned()).await;
        Author::new(&self.store, "other", NewThread::new("theirs", None)).await;
        self.file("other", "f1", &[0, 255, 10, 13]).await;
    }

    pub(crate) async fn findings(&self) -> Vec<StoreFault> {
        self.durable.findings().await.unwrap()
    }

    pub(crate) async fn assert_sound(&self) {
        assert_eq!(self.findings().await, Vec::new());
    }
}

/// Removes the message and the answer of a thread with secrets.
pub(crate) async fn remove(author: &mut Author) {
    let name = author.thread.to_string();
    for what in [
        Removed::Item(format!("{name}-item").as_str().into()),
        Removed::Step(format!("{name}-step").as_str().into()),
    ] {
        author.commit(Command::Remove { what }).await;
    }
}
