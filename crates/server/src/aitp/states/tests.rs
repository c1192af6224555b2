//! Desks of threads that go meanwhile.

use super::*;
use agents::{Agent, AgentOptions};
use futures_util::FutureExt as _;
use runtime::{AgentReactor, MemoryStore, RuntimeOptions, Store};
use serde_json::json;
use std::pin::pin;
use store::suite::Author;
use timeline::{Command, NewItem, NewThread};

fn over(store: &Arc<dyn Store>) -> Runtime {
    let agent = Agent::new(AgentOptions::new("a", Arc::new(upp::Scripted::new()))).unwrap();
    let reactors = Arc::new(Arc::new(AgentReactor::new(agent)));
    Runtime::new(Arc::clone(store), reactors, RuntimeOptions::default())
}

#[tokio::test]
async fn a_thread_that_is_deleted_while_it_is_looked_at_has_nothing_to_be_folded() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let desks = AitpStates::new(over(&store), false);
    let held = desks.at(&author.thread, author.tail).await.unwrap();
    let content = json!([{"type": "input_text", "text": "hi"}]);
    let item = NewItem::user("said", content.into());
    author.commit(Command::Record { item }).await;
    let tenant = "acme".into();
    let mut warms = pin!(desks.warm(&author.thread, author.tail));
    assert!(warms.as_mut().now_or_never().is_none());
    store.delete(&tenant, &author.thread, None).await.unwrap();
    drop(held);
    warms.await.unwrap();
}
