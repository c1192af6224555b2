//! The story of one seed: clients and faults, then calm, then the last checks.

use crate::clients::Clients;
use crate::follower::Follower;
use crate::nodes::Nodes;
use crate::world::{Faults, World};
use std::sync::Arc;
use std::time::Duration;
use store::{EventLog as _, Filter, ThreadTable as _};
use timeline::{OpenKind, Seq, ThreadId};
use tokio_util::task::TaskTracker;

/// The time in which a calm world comes to rest.
const SETTLES: Duration = Duration::from_mins(5);
const MOMENT: Duration = Duration::from_millis(500);

/// What a seed has come to.
pub(crate) struct Outcome {
    pub(crate) hash: u64,
    pub(crate) violation: Option<String>,
    pub(crate) trace: String,
}

/// Runs the seed in a runtime of its own, with a clock that only moves when nothing else can.
pub(crate) fn run(seed: u64, shows_all: bool) -> Outcome {
    run_biased(seed, shows_all, |_| {})
}

/// Runs the seed with other faults than its own.
pub(crate) fn run_biased(seed: u64, shows_all: bool, bias: impl FnOnce(&mut Faults)) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::new(seed, bias);
        let violation = story(&world).await.err().or_else(|| world.violation());
        Outcome {
            hash: world.hash(),
            trace: if violation.is_some() || shows_all {
                world.trace(shows_all)
            } else {
                String::new()
            },
            violation,
        }
    })
}

/// Waits until this is so. Fails if it takes too long, or if a check has failed.
async fn until(
    world: &World,
    what: &str,
    mut is_so: impl AsyncFnMut() -> bool,
) -> Result<(), String> {
    let began = world.elapsed();
    while !is_so().await {
        if let Some(violation) = world.violation() {
            return Err(violation);
        }
        if world.elapsed() > began + SETTLES {
            return Err(format!("it takes too long until {what}"));
        }
        tokio::time::sleep(MOMENT).await;
    }
    Ok(())
}

async fn story(world: &Arc<World>) -> Result<(), String> {
    let nodes = Nodes::new(world);
    for place in 0..nodes.len() {
        nodes.start(place).await;
    }
    let clients = Clients::new(&nodes);
    let followers: Vec<_> = clients
        .keys()
        .iter()
        .map(|key| Follower::new(&nodes, key))
        .collect();
    let tasks = TaskTracker::new();
    for follower in followers.clone() {
        tasks.spawn(async move { follower.run().await });
    }
    let n_clients = 1 + world.index(3);
    let asking = TaskTracker::new();
    for _ in 0..n_clients {
        let (clients, n) = (Arc::clone(&clients), 2 + world.index(8));
        asking.spawn(async move { Box::pin(clients.run(n)).await });
    }
    asking.close();
    let trouble = TaskTracker::new();
    let maker = Arc::clone(&nodes);
    trouble.spawn(async move { maker.trouble().await });
    until(world, "all requests are answered", async || {
        asking.is_empty()
    })
    .await?;
    nodes.calm(&trouble).await;
    for _ in 0..40 {
        let at_rest = async || world.store.unfinished().await.unwrap().is_empty();
        if let Err(error) = until(world, "all runs have ended", at_rest).await {
            return Err(format!("{error}: {}", unfinished(world).await));
        }
        tokio::time::sleep(4 * MOMENT).await;
        if !clients.answer_any().await {
            break;
        }
    }
    let behind = async || followers.iter().all(|it| it.is_at_the_end());
    until(world, "all followers have read everything", behind)
        .await
        .map_err(|error| {
            let about: Vec<String> = followers
                .iter()
                .filter(|it| !it.is_at_the_end())
                .map(|it| it.about())
                .collect();
            format!("{error}: {}", about.join(", "))
        })?;
    for follower in &followers {
        follower.check();
    }
    clients.check_texts();
    check_logs(world).await;
    Ok(())
}

/// The threads with work, and the owners of their runs.
async fn unfinished(world: &World) -> String {
    let mut list = Vec::new();
    for thread in world.store.unfinished().await.unwrap() {
        let head = world.store.head(&thread).await.unwrap();
        let runs = head.state.active().map(|it| it.execution.id.to_string());
        let n_waiting = head.state.waiting().len();
        list.push(format!(
            "{thread} of {:?} at {} runs {runs:?}, {n_waiting} wait",
            head.owner, head.tail
        ));
    }
    list.join("; ")
}

/// The store has the logs that the appends have made, and each child's end is heard.
async fn check_logs(world: &World) {
    let seen: Vec<(ThreadId, usize, bool)> = {
        let logs = world.logs.lock().unwrap();
        logs.iter()
            .map(|(thread, log)| (thread.clone(), log.records.len(), log.is_deleted))
            .collect()
    };
    for (thread, n, is_deleted) in seen {
        let Ok(head) = world.store.head(&thread).await else {
            world.check(is_deleted, || format!("{thread} is gone"));
            continue;
        };
        world.check(!is_deleted && head.tail.0 == n as u64, || {
            format!("{thread} ends at {}, not at {n}", head.tail)
        });
        let mut after = Seq::ZERO;
        while let Ok(page) = world.store.read(&thread, after, 100, Filter::All).await
            && let Some(last) = page.last()
        {
            let logs = world.logs.lock().unwrap();
            let start = usize::try_from(after.0).unwrap();
            let is_same = logs[&thread].records[start..start + page.len()] == page[..];
            drop(logs);
            world.check(is_same, || {
                format!("the log of {thread} has changed after {after}")
            });
            after = last.record.seq;
        }
        let calls = head.state.open().into_iter().flat_map(|open| &open.calls);
        for call in calls.filter(|call| call.kind == OpenKind::Child) {
            for child in call.children.iter().filter(|child| !child.is_over) {
                let waits = match world.store.head(&child.thread_id).await {
                    Ok(head) => head.state.open().is_some(),
                    Err(_) => false,
                };
                world.check(waits, || {
                    format!(
                        "{thread} waits for its child {}, which has ended",
                        child.thread_id
                    )
                });
            }
        }
    }
}
