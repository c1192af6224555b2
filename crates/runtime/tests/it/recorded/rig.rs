//! A runtime whose time passes only where it waits, and whose ids are counted.

use crate::children::rig::{KEY, at_rest, children, tenant};
use crate::durable::rig::answer_item;
use crate::mortal::Mortal;
use agents::Agent;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use loomline_runtime as runtime;
use runtime::{
    Accepted, AgentReactors, AnswerRequest, Clock, Ids, MemoryStore, ReactRequest, Reactors, Run,
    Runtime, RuntimeOptions, Sources, Store, SubagentEvent, Until, Watched,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timeline::{Event, Interruption, NewItem, OpenCall, Record, Seq};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The time of tokio, from a fixed instant on.
struct Paused {
    began: Timestamp,
    start: Instant,
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.start.elapsed()).unwrap();
        self.began + passed
    }
}

/// Ids in the order in which they were made.
#[derive(Default)]
struct Counted(AtomicU64);

/// What every counted id begins with.
const COUNTED: &str = "00000000-0000-7000-8000-";

impl Ids for Counted {
    fn mint(&self) -> String {
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{COUNTED}{n:012}")
    }
}

pub(super) struct Rig {
    memory: Arc<MemoryStore>,
    process: Arc<Mortal>,
    reactors: Arc<dyn Reactors>,
    sources: Sources,
    options: RuntimeOptions,
    pub(super) runtime: Runtime,
    /// The events of sub-agents that a live watcher received.
    live: Arc<Mutex<Option<Vec<SubagentEvent>>>>,
    watcher: Mutex<JoinSet<()>>,
}

impl Rig {
    /// A runtime of these agents, of which the first is the default.
    pub(super) fn new(agents: Vec<Agent>) -> Self {
        let default = agents[0].name().to_owned();
        Self::over(Arc::new(AgentReactors::new(agents, &default).unwrap()))
    }

    pub(super) fn over(reactors: Arc<dyn Reactors>) -> Self {
        let memory = Arc::new(MemoryStore::new());
        let sources = Sources {
            clock: Arc::new(Paused {
                began: "2026-01-02T03:04:05.006Z".parse().unwrap(),
                start: Instant::now(),
            }),
            ids: Arc::new(Counted::default()),
            ..Sources::default()
        };
        let options = RuntimeOptions {
            max_starts: 2,
            max_handoffs: 2,
            restart_pause: Duration::ZERO,
            ..RuntimeOptions::default()
        };
        let (process, runtime) = start(&memory, &reactors, options, &sources);
        Self {
            memory,
            process,
            reactors,
            sources,
            options,
            runtime,
            live: Arc::default(),
            watcher: Mutex::default(),
        }
    }

    /// The process dies where it stands, and another one takes over. All that was shown is stored
    /// before, so that the log has it.
    pub(super) async fn crash(&mut self) {
        let tenant = tenant();
        let nothing = self.runtime.append_past(&tenant, KEY, Vec::new(), None);
        nothing.await.unwrap();
        self.process.die();
        let _ = self.runtime.shutdown().await;
        self.begin_again().await;
    }

    /// The process ends in order, and another one takes over.
    pub(super) async fn restart(&mut self) {
        self.runtime.shutdown().await.unwrap();
        self.begin_again().await;
    }

    async fn begin_again(&mut self) {
        pass(1_000).await;
        let (process, runtime) = start(&self.memory, &self.reactors, self.options, &self.sources);
        (self.process, self.runtime) = (process, runtime);
        self.runtime.recover().await.unwrap();
    }

    pub(super) fn message(&self, text: &str) -> ReactRequest {
        self.content(json!([{"type": "input_text", "text": text}]))
    }

    pub(super) fn content(&self, content: Value) -> ReactRequest {
        ReactRequest::new(
            tenant(),
            KEY,
            NewItem::user(self.runtime.mint(), content.into()),
        )
    }

    pub(super) async fn react(&self, request: ReactRequest) -> Accepted {
        let accepted = self.runtime.react(request).await.unwrap();
        let is_watched = self.live.lock().unwrap().is_some();
        if !is_watched {
            *self.live.lock().unwrap() = Some(Vec::new());
            let watch = self.watch(Until::Forever).await;
            let live = Arc::clone(&self.live);
            self.watcher
                .lock()
                .unwrap()
                .spawn(watch.for_each(move |event| {
                    live.lock().unwrap().get_or_insert_default().push(event);
                    std::future::ready(())
                }));
        }
        accepted
    }

    /// The events of sub-agents that a watcher of the thread receives.
    async fn watch(&self, until: Until) -> BoxStream<'static, SubagentEvent> {
        let tenant = tenant();
        let watch = self.runtime.watch(&tenant, KEY, Seq::ZERO, until);
        let events = watch
            .await
            .unwrap()
            .filter_map(async |watched| match watched {
                Ok(Watched::Subagent(event)) => Some(*event),
                Ok(Watched::Record(_)) | Err(_) => None,
            });
        events.boxed()
    }

    /// What a watcher is told of sub-agents: one as it happened, and one that comes when all is over.
    pub(super) async fn watched(&self) -> String {
        let live = self.live.lock().unwrap().take().unwrap_or_default();
        let late: Vec<SubagentEvent> = self.watch(Until::Rest).await.collect().await;
        let mut plain = Plain::default();
        let mut text = String::new();
        for (name, events) in [("live", live), ("late", late)] {
            writeln!(text, "== {name}").unwrap();
            for event in events {
                let event = event.into_event(0, "agent".into());
                let event = serde_json::to_string(&event).unwrap();
                text.push_str(&plain.line(&event));
                text.push('\n');
            }
        }
        text
    }

    /// Says something and does not wait.
    pub(super) async fn begin(&self, text: &str) -> Accepted {
        self.react(self.message(text)).await
    }

    /// Says something that is answered as these parameters say, and waits for the answer.
    pub(super) async fn ask(&self, text: &str, params: Value) {
        let run = Run {
            params: Some(params),
            ..Run::default()
        };
        let message = self.message(text);
        self.react(ReactRequest { run, ..message }).await;
        self.rest().await;
    }

    /// Says something and waits for the answer.
    pub(super) async fn say(&self, text: &str) -> Accepted {
        let accepted = self.begin(text).await;
        self.rest().await;
        accepted
    }

    pub(super) async fn rest(&self) {
        at_rest(&self.runtime, KEY).await;
        pass(100).await;
        at_rest(&self.runtime, KEY).await;
    }

    /// Stops what runs or waits, as a person does.
    pub(super) async fn cancel(&self) {
        let (tenant, why) = (tenant(), Interruption::USER_CANCELLED);
        let cancel = self.runtime.cancel(&tenant, KEY, None, why);
        cancel.await.unwrap();
        self.rest().await;
    }

    /// Waits for the n-th such event of the thread.
    pub(super) async fn until(&self, n: usize, wanted: impl Fn(&Event) -> bool) {
        let tenant = tenant();
        let follow = self.runtime.follow(&tenant, KEY, Seq::ZERO, Until::Forever);
        let mut follow = follow.await.unwrap();
        let mut n_seen = 0;
        while n_seen < n {
            let next = tokio::time::timeout(Duration::from_mins(1), follow.next());
            let logged = next.await.expect("it comes").unwrap().unwrap();
            n_seen += usize::from(wanted(&logged.record.event));
        }
    }

    /// Waits for the n-th chunk of this type.
    pub(super) async fn until_chunk(&self, n: usize, kind: &str) {
        self.until(
            n,
            |event| matches!(event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == kind),
        )
        .await;
    }

    /// The calls that a thread has left open, by their places.
    pub(super) async fn open(&self, key: &str) -> Vec<OpenCall> {
        let (open, _) = self.runtime.open_calls(&tenant(), key).await.unwrap();
        open.map(|open| open.calls).unwrap_or_default()
    }

    /// Answers the n-th call that is open as these members say.
    pub(super) async fn answer_nth(&self, key: &str, n: usize, says: Value) {
        let call = self.open(key).await.swap_remove(n);
        self.answer(key, vec![said_of(&call, says)]).await;
    }

    pub(super) async fn answer(&self, key: &str, parts: Vec<Value>) {
        let request = AnswerRequest {
            run: None,
            tenant: tenant(),
            key: key.into(),
            item: answer_item(self.runtime.mint(), &parts.into()),
            token: None,
        };
        self.runtime.answer(request).await.unwrap();
        self.rest().await;
    }
}

/// An answer to a call.
pub(super) fn said_of(call: &OpenCall, mut says: Value) -> Value {
    says["type"] = timeline::ANSWER.into();
    says["toolCallId"] = call.tool_call_id.as_str().into();
    says
}

fn start(
    memory: &Arc<MemoryStore>,
    reactors: &Arc<dyn Reactors>,
    options: RuntimeOptions,
    sources: &Sources,
) -> (Arc<Mortal>, Runtime) {
    let process = Mortal::new(memory, usize::MAX, true, false);
    let store = Arc::clone(&process) as Arc<dyn Store>;
    let runtime = Runtime::with_sources(store, Arc::clone(reactors), options, sources.clone());
    (process, runtime)
}

/// Lets the time pass.
pub(super) async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// The logs of a scene's threads, by their names.
pub(super) async fn logs(name: &str, rig: &Rig) -> BTreeMap<String, String> {
    let mut plain = Plain::default();
    let mut logs = BTreeMap::new();
    let records = at_rest(&rig.runtime, KEY).await;
    logs.insert(name.to_owned(), plain.text(&records));
    for (n, key) in children(&rig.runtime).await.into_iter().enumerate() {
        let records = at_rest(&rig.runtime, &key).await;
        logs.insert(format!("{name}.child{}", n + 1), plain.text(&records));
    }
    logs
}

/// Writes logs with numbers for ids and one duration for all.
#[derive(Default)]
struct Plain {
    ids: BTreeMap<String, usize>,
}

impl Plain {
    /// One record a line: its place, its time and its event.
    fn text(&mut self, records: &[Record]) -> String {
        let mut text = String::new();
        for record in records {
            let event = self.line(&record.event.encode().unwrap());
            writeln!(text, "{} {} {event}", record.seq, record.at).unwrap();
        }
        text
    }

    fn line(&mut self, event: &str) -> String {
        assert!(!event.contains(['§', '¤']));
        let event = without_durations(event);
        let (mut text, mut rest) = (String::new(), event.as_str());
        while let Some(at) = next_uuid(rest) {
            let (before, id) = rest.split_at(at);
            let (id, after) = id.split_at(36);
            text.push_str(before);
            text.push_str(&self.id(id));
            rest = after;
        }
        text.push_str(rest);
        text
    }

    /// A counted id is `§` and its number, a random one `¤` and one: files are read by people.
    fn id(&mut self, id: &str) -> String {
        if let Some(n) = id.strip_prefix(COUNTED) {
            let n: u64 = n.parse().unwrap();
            return format!("§{n:03}");
        }
        // Version 4 is random; others follow from other ids.
        if !id[14..].starts_with('4') {
            return id.to_owned();
        }
        let next = self.ids.len() + 1;
        let n = self.ids.entry(id.to_owned()).or_insert(next);
        format!("¤{n:03}")
    }
}

/// Where the next UUID begins.
fn next_uuid(text: &str) -> Option<usize> {
    let is_uuid = |bytes: &[u8]| {
        bytes.iter().enumerate().all(|(n, byte)| match n {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    text.as_bytes().windows(36).position(is_uuid)
}

/// How long tools ran is measured on the system's clock.
fn without_durations(event: &str) -> String {
    let name = "\"durationMs\":";
    let mut pieces = event.split(name);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        write!(text, "{name}7{rest}").unwrap();
    }
    text
}
