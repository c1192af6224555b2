//! Nodes: processes that start, crash, freeze, lose their connection, and start again.

use crate::agents::{self, Process};
use crate::link::Link;
use crate::world::{SimClock, SimIds, World};
use jiff::SignedDuration;
use loomline_runtime as runtime;
use runtime::{AgentReactors, Runtime, RuntimeError, RuntimeOptions, Sources};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Store, StoreError};
use tokio_util::task::TaskTracker;

/// The time after which a client gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a client hears.
#[derive(Debug)]
pub(crate) enum Heard<T> {
    Done(T),
    /// Nothing was written.
    Refused(RuntimeError),
    /// It may have taken effect.
    Nothing,
}

#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) runtime: Runtime,
    pub(crate) link: Arc<Link>,
}

impl Running {
    /// Asks the process as a client does that has a connection to it.
    pub(crate) async fn ask<T>(
        &self,
        request: impl AsyncFnOnce(&Runtime) -> Result<T, RuntimeError>,
    ) -> Heard<T> {
        let life = &self.link.life;
        let asked = async {
            life.pass().await;
            let answer = request(&self.runtime).await;
            life.pass().await;
            answer
        };
        let answer = tokio::select! {
            biased;
            () = life.ended() => return Heard::Nothing,
            answer = tokio::time::timeout(PATIENCE, asked) => answer,
        };
        match answer {
            Ok(Ok(done)) => Heard::Done(done),
            Err(_)
            | Ok(Err(
                RuntimeError::Store(StoreError::Failed(_) | StoreError::Closed)
                | RuntimeError::BrokenOff,
            )) => Heard::Nothing,
            Ok(Err(refused)) => Heard::Refused(refused),
        }
    }
}

pub(crate) struct Nodes {
    pub(crate) world: Arc<World>,
    places: Vec<Mutex<Option<Running>>>,
    skews: Vec<i64>,
    tasks: TaskTracker,
}

impl Nodes {
    pub(crate) fn new(world: &Arc<World>) -> Arc<Self> {
        let n = world.pick(&[2, 2, 3]);
        let skews = (0..n).map(|_| world.pick(&[0, 0, -2_000, 1_500]));
        Arc::new(Self {
            world: Arc::clone(world),
            places: (0..n).map(|_| Mutex::default()).collect(),
            skews: skews.collect(),
            tasks: TaskTracker::new(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn at(&self, place: usize) -> Option<Running> {
        let running = self.places[place].lock().unwrap().clone();
        running.filter(|running| !running.link.life.is_dead())
    }

    /// One of the processes that run, as far as a load balancer sees.
    pub(crate) async fn any(&self) -> Running {
        loop {
            let place = self.world.index(self.len());
            if let Some(running) = self.at(place) {
                return running;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Starts a process, and another one if that can't join.
    pub(crate) async fn start(&self, place: usize) {
        while !self.starts(place).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn starts(&self, place: usize) -> bool {
        let world = &self.world;
        let link = Link::new(world, place);
        let store: Arc<dyn Store> = link.clone();
        let process = Process {
            world: Arc::clone(world),
            life: Arc::clone(&link.life),
            place,
        };
        let reactors = AgentReactors::new(agents::all(&process), "lead").unwrap();
        let options = RuntimeOptions {
            max_starts: u32::MAX,
            restart_pause: Duration::from_millis(100),
            ..RuntimeOptions::default()
        };
        let sources = Sources {
            clock: Arc::new(SimClock {
                world: Arc::clone(world),
                skew: SignedDuration::from_millis(self.skews[place]),
            }),
            ids: Arc::new(SimIds(Arc::clone(world))),
            node: format!("node-{place}"),
            ..Sources::default()
        };
        let runtime = Runtime::with_sources(store, Arc::new(reactors), options, sources);
        world.note(format_args!("n{place} starts"));
        let running = Running { runtime, link };
        let joined = running.runtime.recover().await;
        if let Err(error) = &joined {
            world.note(format_args!(
                "n{place} ends, for it could not join: {error}"
            ));
            running.link.life.die();
        }
        let is_joined = joined.is_ok();
        *self.places[place].lock().unwrap() = Some(running).filter(|_| is_joined);
        is_joined
    }

    fn crash(&self, place: usize) {
        if let Some(running) = self.at(place) {
            self.world.note(format_args!("n{place} crashes"));
            running.link.life.die();
        }
    }

    /// Faults, until the world is calm.
    pub(crate) async fn trouble(&self) {
        let world = &self.world;
        let weights = world.faults.weights;
        loop {
            world.pause(2 * world.faults.calm_ms).await;
            if world.is_calm() {
                return;
            }
            let place = world.index(self.len());
            let mut left = world.roll(weights.iter().sum::<u64>() + 1);
            let kind = weights.iter().position(|weight| {
                let is_it = left < *weight;
                left = left.saturating_sub(*weight);
                is_it
            });
            let Some(running) = self.at(place) else {
                if world.happens(500) {
                    self.start(place).await;
                }
                continue;
            };
            let length = Duration::from_millis(world.roll(world.pick(&[500, 5_000, 30_000])));
            match kind {
                Some(0) => {
                    self.crash(place);
                    if world.happens(500) {
                        self.start(place).await;
                    }
                }
                Some(1) => {
                    world.note(format_args!("n{place} freezes for {length:?}"));
                    running.link.life.freeze();
                    let life = Arc::clone(&running.link.life);
                    let (world, thaw) = (Arc::clone(world), async move {
                        tokio::time::sleep(length).await;
                        life.thaw();
                    });
                    self.tasks.spawn(async move {
                        thaw.await;
                        world.note(format_args!("n{place} thaws"));
                    });
                }
                Some(2) => {
                    world.note(format_args!("n{place} is cut off for {length:?}"));
                    running.link.cut(length);
                }
                Some(_) => {
                    world.note(format_args!("n{place} shuts down"));
                    *self.places[place].lock().unwrap() = None;
                    let life = Arc::clone(&running.link.life);
                    let down = async move {
                        let _ = tokio::time::timeout(PATIENCE, running.runtime.shutdown()).await;
                        life.die();
                    };
                    self.tasks.spawn(down);
                }
                None => {}
            }
        }
    }

    /// Ends the faults: frozen nodes continue, broken links work again, and dead nodes start.
    pub(crate) async fn calm(&self, trouble: &TaskTracker) {
        let world = &self.world;
        world
            .is_calm
            .store(true, std::sync::atomic::Ordering::Relaxed);
        world.note(format_args!("all is calm"));
        while !trouble.is_empty() {
            self.mend();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.mend();
        for place in 0..self.len() {
            if self.at(place).is_none() {
                self.start(place).await;
            }
        }
    }

    fn mend(&self) {
        for running in (0..self.len()).filter_map(|place| self.at(place)) {
            running.link.mend();
            running.link.life.thaw();
        }
    }
}
