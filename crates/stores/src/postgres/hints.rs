//! Hints between the nodes that share a store. They are notifications of PostgreSQL, never part of a commit.

use super::connection::{Conn, Connector};
use super::tasks::Tasks;
use super::value::Param;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::objects::sha256;
use store::{Hint, StoreError};
use timeline::{Seq, ThreadId};
use tokio::sync::{Notify, broadcast};
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;

/// At most one notification in this time.
const PACE: Duration = Duration::from_millis(10);

const NOTIFY: &str = "SELECT pg_notify($1, $2)";

/// PostgreSQL refuses payloads of 8,000 bytes and more.
const PAYLOAD: usize = 7900;

/// Hints that a listener may be behind before it misses some.
const BEHIND: usize = 4096;

/// The longest wait between two tries to connect.
const WAIT: Duration = Duration::from_secs(1);

/// The channel of a schema.
pub(super) fn channel(schema: &str) -> String {
    let hash = sha256(schema.as_bytes());
    let digits = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
    format!("loomline_{}", digits.collect::<String>())
}

/// Collects hints, and sends them.
#[derive(Clone)]
pub(super) struct Notifier {
    /// Distinguishes this handle of the store from others.
    sender: String,
    pending: Arc<Mutex<Pending>>,
    has_some: Arc<Notify>,
    is_closing: Arc<AtomicBool>,
}

#[derive(Default, PartialEq)]
struct Pending {
    grown: BTreeMap<ThreadId, Seq>,
    gone: BTreeSet<ThreadId>,
    erased: BTreeSet<ThreadId>,
    watched: BTreeSet<ThreadId>,
    is_due: bool,
}

impl Notifier {
    pub(super) fn new() -> Self {
        Self {
            sender: format!("{:016x}", fastrand::u64(..)),
            pending: Arc::default(),
            has_some: Arc::default(),
            is_closing: Arc::default(),
        }
    }

    /// Lets [`run`](Self::run) end when it has sent what is pending.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.has_some.notify_one();
    }

    fn note(&self, note: impl FnOnce(&mut Pending)) {
        note(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.has_some.notify_one();
    }

    pub(super) fn grown(&self, thread: &ThreadId, tail: Seq) {
        self.note(|pending| {
            pending.grown.insert(thread.clone(), tail);
        });
    }

    pub(super) fn gone(&self, thread: &ThreadId) {
        self.note(|pending| {
            pending.grown.remove(thread);
            pending.gone.insert(thread.clone());
        });
    }

    pub(super) fn erased(&self, thread: &ThreadId) {
        self.note(|pending| {
            pending.erased.insert(thread.clone());
        });
    }

    pub(super) fn watched(&self, thread: &ThreadId) {
        self.note(|pending| {
            pending.watched.insert(thread.clone());
        });
    }

    pub(super) fn due(&self) {
        self.note(|pending| pending.is_due = true);
    }

    fn has_pending(&self) -> bool {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) != Pending::default()
    }

    /// The payload of what is pending, which is pending no longer.
    fn payload(&self) -> String {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        self.payload_of(&std::mem::take(&mut *pending))
    }

    fn payload_of(&self, pending: &Pending) -> String {
        let grown = pending.grown.iter();
        let grown: Vec<_> = grown
            .map(|(id, tail)| json!([id.as_str(), tail.0]))
            .collect();
        let ids =
            |of: &BTreeSet<ThreadId>| json!(of.iter().map(ThreadId::as_str).collect::<Vec<_>>());
        let (gone, watched) = (ids(&pending.gone), ids(&pending.watched));
        let erased = ids(&pending.erased);
        let from = &self.sender;
        let payload = json!({
            "from": from, "grown": grown, "gone": gone, "erased": erased, "watched": watched,
            "due": pending.is_due,
        });
        let payload = payload.to_string();
        if payload.len() > PAYLOAD {
            return json!({"from": from, "lost": true}).to_string();
        }
        payload
    }

    /// Sends the hint that content of a thread was erased, at once: the process may end before others are sent.
    pub(super) async fn send_erased(
        &self,
        conn: &Conn,
        channel: &str,
        thread: &ThreadId,
    ) -> Result<(), StoreError> {
        let pending = Pending {
            erased: BTreeSet::from([thread.clone()]),
            ..Pending::default()
        };
        let payload = self.payload_of(&pending);
        let values: [Param<'_>; 2] = [(&channel, Type::TEXT), (&payload, Type::TEXT)];
        conn.execute(NOTIFY, &values).await
    }

    /// Sends hints until the notifier is closed or the task is aborted. Hints are lost while the database can't be
    /// reached: listeners lose their connections then, too.
    pub(super) async fn run(self, connector: Connector, channel: String) {
        let mut conn = None;
        loop {
            self.has_some.notified().await;
            let is_last = self.is_closing.load(Ordering::Acquire);
            if is_last && !self.has_pending() {
                return;
            }
            if conn.is_none() {
                conn = connector.connect().await.ok();
                if let Some(conn) = &conn {
                    conn.set_brief(true);
                }
            }
            let payload = self.payload();
            if let Some(connected) = &conn {
                let values: [Param<'_>; 2] = [(&channel, Type::TEXT), (&payload, Type::TEXT)];
                let sent = connected.execute(NOTIFY, &values).await;
                if sent.is_err() {
                    conn = None;
                }
            }
            if is_last {
                return;
            }
            sleep(PACE).await;
        }
    }
}

/// The hints of other handles.
fn hints(sender: &str, payload: &str) -> Vec<Hint> {
    let Ok(said) = serde_json::from_str::<Value>(payload) else {
        return vec![Hint::Lost];
    };
    if said.get("from").and_then(Value::as_str) == Some(sender) {
        return Vec::new();
    }
    if said.get("lost").is_some() {
        return vec![Hint::Lost];
    }
    let list = |name| {
        said.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let grown = list("grown").filter_map(|grown| {
        let tail = Seq(grown.get(1)?.as_u64()?);
        Some(Hint::Grown(grown.get(0)?.as_str()?.into(), tail))
    });
    let gone = list("gone").filter_map(|gone| Some(Hint::Gone(gone.as_str()?.into())));
    let erased = list("erased").filter_map(|it| Some(Hint::Erased(it.as_str()?.into())));
    let watched = list("watched").filter_map(|it| Some(Hint::Watched(it.as_str()?.into())));
    let due = said.get("due").and_then(Value::as_bool) == Some(true);
    let all = grown.chain(gone).chain(erased).chain(watched);
    all.chain(due.then_some(Hint::Due)).collect()
}

/// Receives the hints of other handles. It connects when somebody asks for hints.
pub(super) struct Listener {
    connector: Connector,
    pub(super) channel: String,
    sender: String,
    hints: broadcast::Sender<Hint>,
    tasks: Tasks,
    is_listening: AtomicBool,
}

impl Listener {
    pub(super) fn new(connector: Connector, channel: String, notifier: &Notifier) -> Self {
        Self {
            connector,
            channel,
            sender: notifier.sender.clone(),
            hints: broadcast::Sender::new(BEHIND),
            tasks: Tasks::default(),
            is_listening: AtomicBool::new(false),
        }
    }

    /// The hints from now on.
    pub(super) fn hints(&self) -> BoxStream<'static, Hint> {
        let receiver = self.hints.subscribe();
        if !self.is_listening.swap(true, Ordering::AcqRel) {
            let listen = listen(
                self.connector.clone(),
                self.channel.clone(),
                self.sender.clone(),
                self.hints.clone(),
            );
            self.tasks.spawn(listen);
        }
        stream::unfold(receiver, async |mut receiver| {
            let hint = match receiver.recv().await {
                Ok(hint) => hint,
                Err(broadcast::error::RecvError::Lagged(_)) => Hint::Lost,
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            Some((hint, receiver))
        })
        .boxed()
    }

    pub(super) fn close(&self) {
        self.tasks.abort();
    }
}

/// Listens for ever. Hints are lost while nobody listens.
async fn listen(
    connector: Connector,
    channel: String,
    sender: String,
    to: broadcast::Sender<Hint>,
) {
    let mut wait = PACE;
    loop {
        if let Ok((conn, mut notifications)) = connector.listen().await
            && let Ok(Ok(())) = timeout(WAIT * 5, conn.batch(&format!("LISTEN {channel}"))).await
        {
            wait = PACE;
            // Nobody may be waiting at the moment.
            let _ = to.send(Hint::Lost);
            while let Some(notification) = notifications.recv().await {
                for hint in hints(&sender, notification.payload()) {
                    let _ = to.send(hint);
                }
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(WAIT);
    }
}
