//! Servers over one database, each with a proxy between it and the database.

use super::proxy::{Proxy, Traffic};
use crate::support::server::Server;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Runtime;

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// It is killed, and starts again.
    Killed,
    /// It ends in order, and starts again.
    Stopped,
    /// It ends in order, and starts as the program of the tests.
    Upgraded,
    /// It ends in order, and starts as the program before the upgrade.
    Downgraded,
    /// It is frozen for a part of a second.
    Frozen,
    /// It is frozen for longer than its lease.
    FrozenForLong,
    /// Its connections to the database are cut.
    Cut,
    /// Its connections to the database are open, and nothing passes.
    Silent,
    /// A commit reaches the database, and its answer does not come back.
    AnswerLost,
    /// The database takes longer.
    Slow,
    /// The caller's command: the database ends without a checkpoint, or fails over.
    OfDatabase,
}

impl Trouble {
    pub(super) fn any(random: &mut fastrand::Rng) -> Self {
        match random.u8(0..20) {
            0..11 => Self::Killed,
            11..13 => Self::Stopped,
            13..15 => Self::Frozen,
            15..17 => Self::Cut,
            17..18 => Self::Silent,
            18..19 => Self::AnswerLost,
            _ => Self::Slow,
        }
    }
}

/// A node and what it needs to start again.
struct Node {
    home: PathBuf,
    program: Mutex<PathBuf>,
    /// One for each member of the database.
    proxies: Vec<Proxy>,
    server: Mutex<Server>,
    base: Mutex<String>,
}

impl Node {
    fn start_again(&self, server: &mut Server) {
        *server = start(&self.program.lock().unwrap(), &self.home);
        self.base.lock().unwrap().clone_from(&server.base);
    }

    fn replace(&self, server: &mut Server, program: PathBuf) {
        server.stop();
        *self.program.lock().unwrap() = program;
        self.start_again(server);
    }
}

fn start(program: &Path, home: &Path) -> Server {
    Server::start_program(program, home, &home.join("loomline.toml"))
}

/// The program of the tests.
pub(super) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_loomline").into()
}

/// The program before an upgrade: an older one, if the caller gives one.
pub(super) fn former_program() -> PathBuf {
    #[allow(clippy::disallowed_methods, reason = "a soak sets it")]
    let given = std::env::var_os("LOOMLINE_FORMER_BIN");
    given.map_or_else(program, PathBuf::from)
}

/// Servers over one database.
pub(super) struct Cluster {
    directory: tempfile::TempDir,
    nodes: Vec<Node>,
    // The proxies run on it.
    proxying: Runtime,
}

/// The URL of the server for tests.
fn database_server() -> String {
    #[allow(clippy::disallowed_methods, reason = "the test step sets it")]
    let url = std::env::var("LOOMLINE_POSTGRES");
    url.expect("LOOMLINE_POSTGRES is not set: `export $(scripts/postgres start DIR)` starts a server and sets it")
}

/// A command that brings the database into trouble and waits until it is over, if the caller gives one.
pub(super) fn trouble_of_database() -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "a soak sets it")]
    std::env::var("LOOMLINE_DATABASE_TROUBLE").ok()
}

impl Cluster {
    /// Starts servers over a new schema. Their agent has the tool `record`, which writes to a ledger.
    pub(super) fn start(n_nodes: usize, effect: &str, program: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let url = database_server();
        let schema = format!("nodes_{}_{:08x}", std::process::id(), fastrand::u32(..));
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
                .await
                .unwrap();
            let sql = format!("CREATE SCHEMA {schema}");
            let (made, _) = tokio::join!(
                async {
                    let made = client.batch_execute(&sql).await;
                    drop(client);
                    made
                },
                connection
            );
            made.unwrap();
        });
        let (head, rest) = url.split_once('@').unwrap();
        let (members, path) = rest.split_once('/').unwrap();
        let members: Vec<SocketAddr> = members.split(',').map(|it| it.parse().unwrap()).collect();
        let directory = tempfile::tempdir().unwrap();
        let ledger = directory.path().join("ledger.txt");
        let mut nodes = Vec::new();
        for n in 0..n_nodes {
            let home = directory.path().join(format!("node{n}"));
            std::fs::create_dir(&home).unwrap();
            let members = members.iter();
            let proxies: Vec<_> = members
                .map(|member| runtime.block_on(Proxy::start(*member)))
                .collect();
            let through: Vec<_> = proxies.iter().map(|it| it.address.to_string()).collect();
            let through = through.join(",");
            let config = format!(
                "default_agent = \"worker\"\n[limits]\nrestart_pause_ms = 10\n\
                 [store]\nurl = \"{head}@{through}/{path}?options=-csearch_path%3D{schema}&sslmode=disable\"\n\
                 [models.offline]\nprovider = \"scripted\"\ndelay_ms = 2\n\
                 [agents.worker]\nmodel = \"offline\"\ntools = [\"record\", \"compute\"]\n\
                 [tools]\nledger = \"{}\"\nledger_effect = {effect:?}\n",
                ledger.display()
            );
            std::fs::write(home.join("loomline.toml"), config).unwrap();
            let server = start(program, &home);
            nodes.push(Node {
                program: Mutex::new(program.to_owned()),
                base: Mutex::new(server.base.clone()),
                server: Mutex::new(server),
                home,
                proxies,
            });
        }
        Self {
            directory,
            nodes,
            proxying: runtime,
        }
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn ledger(&self) -> PathBuf {
        self.directory.path().join("ledger.txt")
    }

    /// The server of a node. No trouble meets it meanwhile.
    pub(super) fn node(&self, n: usize) -> MutexGuard<'_, Server> {
        self.nodes[n].server.lock().unwrap()
    }

    /// The address of any node.
    pub(super) fn any(&self, random: &mut fastrand::Rng) -> String {
        let node = &self.nodes[random.usize(0..self.nodes.len())];
        node.base.lock().unwrap().clone()
    }

    /// Kills a node for good.
    pub(super) fn kill(&self, n: usize) {
        self.node(n).kill();
    }

    /// Lets a trouble meet a node, and waits until it is over.
    pub(super) fn meet(&self, trouble: Trouble, n: usize, random: &mut fastrand::Rng) {
        let node = &self.nodes[n];
        let mut server = self.node(n);
        let pass = |traffic: Traffic, time: Duration| {
            node.proxies.iter().for_each(|proxy| proxy.set(traffic));
            std::thread::sleep(time);
            node.proxies
                .iter()
                .for_each(|proxy| proxy.set(Traffic::FREE));
        };
        match trouble {
            Trouble::Killed => {
                server.kill();
                node.start_again(&mut server);
            }
            Trouble::Stopped => {
                server.stop();
                node.start_again(&mut server);
            }
            Trouble::Upgraded => node.replace(&mut server, program()),
            Trouble::Downgraded => node.replace(&mut server, former_program()),
            Trouble::Frozen => freeze(&server, Duration::from_millis(random.u64(20..900))),
            Trouble::FrozenForLong => freeze(&server, Duration::from_secs(15)),
            Trouble::Cut => node
                .proxies
                .iter()
                .for_each(|proxy| self.proxying.block_on(proxy.cut())),
            Trouble::Silent => pass(
                Traffic::HALF_OPEN,
                Duration::from_millis(random.u64(100..2_000)),
            ),
            Trouble::AnswerLost => {
                node.proxies.iter().for_each(Proxy::lose_next_answer);
                // A node without work commits nothing.
                for _ in 0..100 {
                    if !node.proxies.iter().all(Proxy::loses_answer) {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            Trouble::Slow => {
                let delay = Duration::from_millis(random.u64(1..30));
                let slow = Traffic {
                    delay,
                    ..Traffic::FREE
                };
                pass(slow, Duration::from_millis(random.u64(100..1_000)));
            }
            Trouble::OfDatabase => {
                let command = trouble_of_database().expect("the caller gave a command");
                let status = Command::new("sh").args(["-c", &command]).status();
                assert!(status.unwrap().success(), "{command}");
            }
        }
    }
}

fn freeze(server: &Server, time: Duration) {
    server.signal("STOP");
    std::thread::sleep(time);
    server.signal("CONT");
}
