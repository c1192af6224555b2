//! A TCP proxy whose traffic a test delays, holds, cuts and refuses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The server commits in this time.
const COMMITTING: Duration = Duration::from_millis(200);

/// How bytes pass at present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// Each piece is late by this time, in each direction.
    pub(crate) delay: Duration,
    /// Bytes pass to the server. Otherwise they wait.
    pub(crate) to_server: bool,
    /// Bytes pass to the client. Otherwise they wait.
    pub(crate) to_client: bool,
    /// Connections are open. Otherwise they are cut, and new ones refused.
    pub(crate) is_open: bool,
}

impl Traffic {
    /// Everything passes at once.
    pub(crate) const FREE: Self = Self {
        delay: Duration::ZERO,
        to_server: true,
        to_client: true,
        is_open: true,
    };
    /// Connections are open, and nothing passes in either direction.
    pub(crate) const HALF_OPEN: Self = Self {
        to_server: false,
        to_client: false,
        ..Self::FREE
    };
    /// Nothing is connected.
    pub(crate) const REFUSED: Self = Self {
        is_open: false,
        ..Self::FREE
    };
}

/// Passes bytes between clients and a server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    traffic: watch::Sender<Traffic>,
    loses_answer: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let traffic = watch::Sender::new(Traffic::FREE);
        let loses_answer = Arc::<AtomicBool>::default();
        let (of_all, answer) = (traffic.subscribe(), Arc::clone(&loses_answer));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (traffic, answer) = (of_all.clone(), Arc::clone(&answer));
                connections.spawn(async move { pass(client, server, traffic, &answer).await });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            traffic,
            loses_answer,
            _tasks: tasks,
        }
    }

    pub(crate) fn set(&self, traffic: Traffic) {
        self.traffic.send_replace(traffic);
    }

    /// Cuts the connections that are open. New ones pass.
    pub(crate) async fn cut(&self) {
        self.set(Traffic::REFUSED);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.set(Traffic::FREE);
    }

    /// The next commit reaches the server. Its answer does not come back: the connection is cut.
    pub(crate) fn lose_next_answer(&self) {
        self.loses_answer.store(true, Ordering::SeqCst);
    }

    /// Whether that has not happened yet.
    pub(crate) fn loses_answer(&self) -> bool {
        self.loses_answer.load(Ordering::SeqCst)
    }
}

async fn pass(
    client: TcpStream,
    server: SocketAddr,
    mut traffic: watch::Receiver<Traffic>,
    loses_answer: &AtomicBool,
) {
    if !traffic.borrow().is_open {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let is_lost = AtomicBool::new(false);
    let up = Pump {
        traffic: traffic.clone(),
        is_open: |traffic| traffic.to_server,
        loses_answer: Some(loses_answer),
        is_lost: &is_lost,
    };
    let down = Pump {
        traffic: traffic.clone(),
        is_open: |traffic| traffic.to_client,
        loses_answer: None,
        is_lost: &is_lost,
    };
    tokio::select! {
        () = up.run(from_client, to_server) => {}
        () = down.run(from_server, to_client) => {}
        _ = traffic.wait_for(|traffic| !traffic.is_open) => {}
    }
}

/// Passes the bytes of one direction.
struct Pump<'a> {
    traffic: watch::Receiver<Traffic>,
    is_open: fn(&Traffic) -> bool,
    loses_answer: Option<&'a AtomicBool>,
    is_lost: &'a AtomicBool,
}

impl Pump<'_> {
    async fn run(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from.read(&mut bytes).await {
            let piece = &bytes[..n];
            let delay = match self.traffic.wait_for(self.is_open).await {
                Ok(traffic) => traffic.delay,
                Err(_) => return,
            };
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let is_commit = piece.windows(7).any(|it| it == b"COMMIT\0");
            let loses = self.loses_answer.filter(|_| is_commit);
            let loses = loses.is_some_and(|it| it.swap(false, Ordering::SeqCst));
            if loses {
                self.is_lost.store(true, Ordering::SeqCst);
            }
            if !loses && self.loses_answer.is_none() && self.is_lost.load(Ordering::SeqCst) {
                continue;
            }
            if to.write_all(piece).await.is_err() {
                return;
            }
            if loses {
                return tokio::time::sleep(COMMITTING).await;
            }
        }
    }
}
