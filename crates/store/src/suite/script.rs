//! Writing a thread, command by command.

use crate::{Append, Epoch, NewRecord, NodeId, Ownership, Store, StoreError, TenantId};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::sync::Arc;
use timeline::{
    ANSWER, Command, Ending, Event, Fork, Interruption, ItemType, NewChunk, NewItem, NewThread,
    OpenCall, OpenKind, Payload, Seq, State, StepOutcome, ThreadId, Trigger,
};

/// The writer of one thread, in the role of the runtime.
pub struct Author {
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Its thread.
    pub thread: ThreadId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The log's tail.
    pub tail: Seq,
    /// The fold of what was appended.
    pub state: State,
    at: Timestamp,
}

impl Author {
    /// Makes a thread.
    pub async fn new(store: &Arc<dyn Store>, tenant: &str, thread: NewThread) -> Self {
        Self::begin(store, tenant, thread, Timestamp::UNIX_EPOCH).await
    }

    /// Creates a thread whose time starts at `at`.
    pub async fn begin(
        store: &Arc<dyn Store>,
        tenant: &str,
        thread: NewThread,
        at: Timestamp,
    ) -> Self {
        let created = store
            .get_or_create(&tenant.into(), first(thread, at), None, None)
            .await
            .unwrap();
        assert!(created.is_new());
        Self::of(store, created.thread, at).await
    }

    /// Continues a thread at `at`.
    pub async fn of(store: &Arc<dyn Store>, thread: ThreadId, at: Timestamp) -> Self {
        let head = store.head(&thread).await.unwrap();
        Self {
            store: store.clone(),
            thread,
            epoch: head.epoch,
            tail: head.tail,
            state: head.state,
            at,
        }
    }

    /// The append of a command, one second later than the previous one.
    pub fn append_of(&mut self, command: Command) -> Append {
        self.at = self
            .at
            .saturating_add(SignedDuration::from_secs(1))
            .unwrap();
        let events = self.state.decide(command, self.at).unwrap();
        self.append_with(events)
    }

    /// An append of these events.
    pub fn append_with(&self, events: Vec<Event>) -> Append {
        let records = events
            .into_iter()
            .map(|event| record(event, self.at))
            .collect();
        Append {
            thread: self.thread.clone(),
            epoch: self.epoch,
            tail: self.tail,
            ownership: Ownership::Keep,
            records,
            token: None,
            is_limited: true,
            unmoved: Vec::new(),
        }
    }

    /// Appends and, if that is done, folds.
    pub async fn append(&mut self, append: Append) -> Result<Seq, StoreError> {
        let appended = self.store.append(append.clone()).await?;
        for record in &append.records {
            self.state.apply(record.event());
        }
        self.tail = appended.tail;
        self.epoch = appended.epoch;
        Ok(appended.tail)
    }

    /// Does a command.
    pub async fn commit(&mut self, command: Command) {
        let append = self.append_of(command);
        self.append(append).await.unwrap();
    }

    /// Does a command as this node, which owns the thread's run from then on.
    pub async fn take(&mut self, node: NodeId, command: Command) {
        let append = Append {
            ownership: Ownership::Take(node),
            ..self.append_of(command)
        };
        self.append(append).await.unwrap();
    }

    /// Does those of these commands that the thread accepts.
    pub async fn commit_some(&mut self, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            if self.state.decide(command.clone(), self.at).is_ok() {
                self.commit(command).await;
            }
        }
    }

    /// Does many commands.
    pub async fn commit_all(&mut self, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            self.commit(command).await;
        }
    }
}

/// The first records of a thread.
pub fn first(thread: NewThread, at: Timestamp) -> Vec<NewRecord> {
    let context_id = format!("{}-context", thread.id).as_str().into();
    let create = Command::Create { thread, context_id };
    let events = State::default().decide(create, at).unwrap();
    events.into_iter().map(|event| record(event, at)).collect()
}

/// A record of an event.
pub fn record(event: Event, at: Timestamp) -> NewRecord {
    NewRecord::new(at, event).unwrap()
}

/// The tenant of most tests.
pub fn tenant() -> TenantId {
    "acme".into()
}

/// A place in a thread to fork at.
pub fn fork(of: &str, seq: u64) -> Fork {
    Fork {
        thread_id: of.into(),
        seq: Seq(seq),
    }
}

/// A message of a user.
pub fn item(id: &str) -> NewItem {
    NewItem::user(
        id,
        json!([{"type": "input_text", "text": "héllo\n"}]).into(),
    )
}

/// Records a message without starting an execution.
pub fn keep(id: &str) -> Command {
    Command::Record { item: item(id) }
}

/// Queues a message.
pub fn enqueue(id: &str) -> Command {
    Command::Enqueue {
        item: item(id),
        run: json!({"agent": "demo", "n": 1.0}).into(),
    }
}

/// Starts an execution and its first step; their ids have the prefix `name`.
pub fn start(name: &str, trigger: Trigger) -> Command {
    Command::Start {
        trigger,
        run: Some(json!({"agent": "demo"}).into()),
        execution_id: format!("{name}-execution").into(),
        reaction_item_id: format!("{name}-reaction").into(),
        step_id: format!("{name}-step-0").into(),
        workflow_run_id: None,
    }
}

/// Emits chunks of these types.
pub fn emit(chunks: &[&str]) -> Command {
    let chunk = |name: &&str| NewChunk {
        chunk_type: (*name).to_owned(),
        data: Some(json!({"delta": "so"}).into()),
    };
    Command::Emit {
        chunks: chunks.iter().map(chunk).collect(),
    }
}

/// A response with a text and a call of the tool `weather`.
pub fn respond() -> Command {
    let call = json!({"type": "tool-weather", "toolCallId": "c1", "state": "input-available", "input": {"city": "Lima"}});
    Command::Respond {
        parts: vec![
            json!({"type": "output_text", "text": "let me see"}).into(),
            call.into(),
        ],
        response: json!({
            "model": "m", "provider": "p", "stopReason": "tool_use",
            "usage": {"inputTokens": 12, "outputTokens": 7},
        })
        .into(),
    }
}

/// Starts the response's call.
pub fn tool_started() -> Command {
    Command::StartTool {
        tool_call_id: "c1".into(),
    }
}

/// The result of the response's call.
pub fn tool_result() -> Command {
    let part = json!({"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {"city": "Lima"}, "output": 1.50});
    Command::PutPart {
        idx: 1,
        part: part.into(),
    }
}

/// A completed step that may lack fields, as earlier versions wrote it.
pub fn complete_step(next: Option<&str>) -> Command {
    Command::ImportStep {
        outcome: StepOutcome::default(),
        next: next.map(Into::into),
    }
}

/// The end of a step whose call waits for an approval.
pub fn leave_open() -> Command {
    let part = json!({"type": "tool-weather", "toolCallId": "c1", "state": "approval-requested"});
    let call = OpenCall {
        tool_call_id: "c1".into(),
        kind: OpenKind::Approval,
        part: part.into(),
        origin: None,
        children: Vec::new(),
    };
    let outcome = StepOutcome {
        agent_state: Payload::from_text(r#"{"step": 1.0, "x": null}"#.into()).ok(),
        open_calls: Payload::write(&[call]).ok(),
        ..StepOutcome::default()
    };
    Command::ImportStep {
        outcome,
        next: None,
    }
}

/// An item that allows the call.
pub fn answer(id: &str) -> NewItem {
    let part = json!({"type": ANSWER, "toolCallId": "c1", "approved": true});
    NewItem {
        item_type: ItemType::ActionResult,
        role: None,
        content: Some(json!([part]).into()),
        ..item(id)
    }
}

/// Completes the execution.
pub fn end() -> Command {
    Command::End {
        ending: Ending::Completed,
    }
}

/// A thread's life: two turns with tools, a dead attempt, items that wait, a failure and a cancel.
pub fn script() -> Vec<Command> {
    let why = || Interruption {
        reason: "error".into(),
        detail: Some("it broke".into()),
    };
    vec![
        keep("kept-0"),
        start("one", Trigger::New(item("ask-1"))),
        emit(&["text-delta", "text-delta"]),
        respond(),
        tool_started(),
        enqueue("ask-2"),
        tool_result(),
        keep("kept-1"),
        complete_step(Some("one-step-1")),
        emit(&["text-delta"]),
        respond(),
        Command::ResetStep,
        emit(&["text-delta"]),
        enqueue("ask-3"),
        Command::PutPart {
            idx: 0,
            part: json!({"type": "output_text", "text": "dry"}).into(),
        },
        complete_step(Some("one-step-2")),
        complete_step(None),
        end(),
        keep("kept-2"),
        start("two", Trigger::Waiting),
        respond(),
        tool_started(),
        Command::End {
            ending: Ending::Failed(why()),
        },
        start("three", Trigger::Waiting),
        keep("kept-3"),
        Command::End {
            ending: Ending::Stopped(why()),
        },
        start("four", Trigger::New(item("ask-4"))),
        complete_step(None),
        end(),
        Command::Close,
    ]
}

/// A script of pending calls: answered, open again, abandoned.
pub fn script_of_answers() -> Vec<Command> {
    vec![
        start("zero", Trigger::New(item("ask-0"))),
        respond(),
        leave_open(),
        end(),
        start("five", Trigger::New(answer("yes-1"))),
        respond(),
        complete_step(Some("five-step-1")),
        leave_open(),
        enqueue("ask-9"),
        end(),
        start("six", Trigger::Waiting),
        respond(),
        leave_open(),
        end(),
        Command::Enqueue {
            item: answer("yes-2"),
            run: json!({"agent": "demo"}).into(),
        },
        start("seven", Trigger::Waiting),
        leave_open(),
        end(),
        keep("kept-9"),
    ]
}
