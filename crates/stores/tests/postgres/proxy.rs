//! An append whose answer was lost is resolved.

use crate::subject::{Opened, Schema, client, server};
use futures_util::StreamExt as _;
use loomline_stores::{Erasure as _, PostgresStore};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use store::objects::NewObject;
use store::suite::Subject as _;
use store::suite::script::{Author, first, keep, tenant};
use store::{Filter, Hint, Store};
use timeline::{NewThread, Seq};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// When a proxy cuts connections.
#[derive(Default)]
struct Cuts {
    /// The next commit reaches the server, but its answer does not come back.
    answer: AtomicBool,
    /// The next commit does not reach the server.
    request: AtomicBool,
    n_cut: AtomicUsize,
    /// Connections are open, and nothing reaches the server.
    silent: AtomicBool,
}

/// Passes bytes between clients and the server for tests, until a test cuts it.
struct Proxy {
    address: SocketAddr,
    cuts: Arc<Cuts>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::<Cuts>::default();
        let shared = cuts.clone();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let cuts = shared.clone();
                tokio::spawn(async move { pass_on(client, &cuts).await });
            }
        });
        Self { address, cuts }
    }

    /// The server's URL with the proxy's address.
    fn url(&self) -> String {
        let server = server();
        let (head, rest) = server.split_once('@').unwrap();
        let (_, path) = rest.split_once('/').unwrap();
        format!("{head}@{}/{path}", self.address)
    }
}

fn has_commit(bytes: &[u8]) -> bool {
    bytes.windows(7).any(|it| it == b"COMMIT\0")
}

async fn pass_on(client: TcpStream, cuts: &Cuts) {
    let config: tokio_postgres::Config = server().parse().unwrap();
    let port = config.get_ports()[0];
    let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_cut = AtomicBool::new(false);
    let cut = Notify::new();
    let up = async {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
            if cuts.silent.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if has_commit(&bytes[..n]) {
                if cuts.request.swap(false, Ordering::SeqCst) {
                    cuts.n_cut.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if cuts.answer.swap(false, Ordering::SeqCst) {
                    cuts.n_cut.fetch_add(1, Ordering::SeqCst);
                    is_cut.store(true, Ordering::SeqCst);
                    to_server.write_all(&bytes[..n]).await.unwrap();
                    // The server commits in this time; its answers are dropped.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    cut.notify_one();
                    return;
                }
            }
            if to_server.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    };
    let down = async {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
            if !is_cut.load(Ordering::SeqCst) && to_client.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
        if is_cut.load(Ordering::SeqCst) {
            cut.notified().await;
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

async fn behind(proxy: &Proxy) -> (Schema, Arc<dyn Store>) {
    let schema = Schema::new().await;
    let options = loomline_stores::PostgresOptions {
        url: schema.at(&proxy.url()),
        ..schema.options()
    };
    let store = PostgresStore::open(&options).await.unwrap();
    (schema, Arc::new(store))
}

/// The number of events of a thread that the database has.
async fn n_events(store: &Arc<dyn Store>, author: &Author) -> usize {
    let log = store
        .read(&author.thread, Seq::ZERO, 100, Filter::All)
        .await;
    log.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_answer_is_lost_has_landed_once() {
    let proxy = Proxy::start().await;
    let (_schema, store) = behind(&proxy).await;
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    proxy.cuts.answer.store(true, Ordering::SeqCst);
    author.commit(keep("i1")).await;
    assert_eq!(proxy.cuts.n_cut.load(Ordering::SeqCst), 1);
    assert_eq!(n_events(&store, &author).await, 3);
    author.commit(keep("i2")).await;
    assert_eq!(n_events(&store, &author).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_answer_is_lost_is_announced() {
    let proxy = Proxy::start().await;
    let (schema, store) = behind(&proxy).await;
    let other = PostgresStore::open(&schema.options()).await.unwrap();
    let other: Arc<dyn Store> = Arc::new(other);
    let mut hints = other.hints();
    // From then on it hears everything.
    assert_eq!(hints.next().await, Some(Hint::Lost));
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    proxy.cuts.answer.store(true, Ordering::SeqCst);
    author.commit(keep("i1")).await;
    assert_eq!(proxy.cuts.n_cut.load(Ordering::SeqCst), 1);
    let grown = Hint::Grown(author.thread.clone(), author.tail);
    let heard = async { while hints.next().await != Some(grown.clone()) {} };
    tokio::time::timeout(Duration::from_secs(20), heard)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_whose_answer_is_lost_is_known_to_its_node() {
    let proxy = Proxy::start().await;
    let (_schema, store) = behind(&proxy).await;
    let node = store.join("a").await.unwrap();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    proxy.cuts.answer.store(true, Ordering::SeqCst);
    author.take(node, keep("i1")).await;
    assert_eq!(proxy.cuts.n_cut.load(Ordering::SeqCst), 1);
    let head = store.head(&author.thread).await.unwrap();
    assert_eq!((head.epoch, head.owner), (author.epoch, Some(node)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_does_not_reach_the_database_is_sent_again() {
    let proxy = Proxy::start().await;
    let (_schema, store) = behind(&proxy).await;
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    proxy.cuts.request.store(true, Ordering::SeqCst);
    author.commit(keep("i1")).await;
    assert_eq!(proxy.cuts.n_cut.load(Ordering::SeqCst), 1);
    assert_eq!(n_events(&store, &author).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_thread_whose_answer_is_lost_is_still_new_to_its_maker() {
    let proxy = Proxy::start().await;
    let (_schema, store) = behind(&proxy).await;
    for cut in [&proxy.cuts.answer, &proxy.cuts.request] {
        let n = proxy.cuts.n_cut.load(Ordering::SeqCst);
        let id = format!("t{n}");
        cut.store(true, Ordering::SeqCst);
        let records = first(
            NewThread::new(id.as_str(), Some(&id)),
            jiff::Timestamp::UNIX_EPOCH,
        );
        let made = store.get_or_create(&tenant(), records, None, None).await;
        assert!(made.unwrap().is_new());
        assert_eq!(proxy.cuts.n_cut.load(Ordering::SeqCst), n + 1);
    }
}

/// A store whose first host is the proxy. The second one is the server, if there is a second one.
async fn behind_first(
    proxy: &Proxy,
    has_second: bool,
    patience: Duration,
) -> (Schema, Arc<dyn Store>) {
    let schema = Schema::new().await;
    let server = server();
    let (head, rest) = server.split_once('@').unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let second = if has_second {
        format!(",{address}")
    } else {
        String::new()
    };
    let url = schema.at(&format!("{head}@{}{second}/{path}", proxy.address));
    let options = loomline_stores::PostgresOptions {
        url: format!("{url}&connect_timeout=1"),
        patience,
        ..schema.options()
    };
    let store = PostgresStore::open(&options).await.unwrap();
    (schema, Arc::new(store))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_to_a_silent_host_lands_at_the_next_host() {
    let proxy = Proxy::start().await;
    let (schema, store) = behind_first(&proxy, true, Duration::from_secs(12)).await;
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    proxy.cuts.silent.store(true, Ordering::SeqCst);
    author.commit(keep("i1")).await;
    let direct = PostgresStore::open(&schema.options()).await.unwrap();
    assert_eq!(
        n_events(&(Arc::new(direct) as Arc<dyn Store>), &author).await,
        3
    );
    // A store that opens now does not wait for the first host either.
    let (_other, opened) = behind_first(&proxy, true, Duration::from_secs(12)).await;
    Author::new(&opened, "acme", NewThread::new("t", Some("k"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_from_a_silent_host_have_an_end() {
    let proxy = Proxy::start().await;
    let (_schema, store) = behind_first(&proxy, false, Duration::from_secs(1)).await;
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    proxy.cuts.silent.store(true, Ordering::SeqCst);
    // More than there are connections, so that some wait for a place and some for a new connection.
    let mut reads = JoinSet::new();
    for _ in 0..20 {
        let (store, thread) = (store.clone(), author.thread.clone());
        reads.spawn(async move { store.head(&thread).await.is_err() });
    }
    let ended = tokio::time::timeout(Duration::from_secs(10), reads.join_all()).await;
    assert_eq!(ended.unwrap(), vec![true; 20]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_reclaimed_is_known_after_a_failed_connect() {
    let proxy = Proxy::start().await;
    let schema = Schema::new().await;
    let options = loomline_stores::PostgresOptions {
        url: format!("{}&connect_timeout=1", schema.at(&proxy.url())),
        ..schema.options()
    };
    let store = Arc::new(PostgresStore::open(&options).await.unwrap());
    let shared: Arc<dyn Store> = store.clone();
    let author = Author::new(&shared, "acme", NewThread::new("t", Some("k"))).await;
    let deleted = shared.delete(&tenant(), &author.thread, None).await;
    deleted.unwrap();
    proxy.cuts.silent.store(true, Ordering::SeqCst);
    assert!(store.reclaim().await.is_err());
    assert!(store.has_deleted());
    proxy.cuts.silent.store(false, Ordering::SeqCst);
    store.reclaim().await.unwrap();
    assert!(!store.has_deleted());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_objects_behind_a_lock_have_an_end() {
    let proxy = Proxy::start().await;
    let (schema, store) = behind_first(&proxy, false, Duration::from_secs(1)).await;
    let object = || NewObject {
        kind: "kind".into(),
        id: "o".into(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        json: "{}".into(),
        content: None,
        thread: None,
        is_limited: false,
    };
    store.objects().put(&tenant(), object()).await.unwrap();
    let hold = client(&schema.url()).await;
    hold.batch_execute("BEGIN; LOCK TABLE tenant_objects IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let tenant = tenant();
    let put = store.objects().put(&tenant, object());
    let ended = tokio::time::timeout(Duration::from_secs(10), put).await;
    assert!(ended.unwrap().is_err());
}

/// Ends the backends of a store again and again, while something is done.
async fn while_backends_die<T>(opened: &Opened, work: impl Future<Output = T>) -> T {
    let (client, schema) = (client(&server()).await, opened.schema());
    let sql =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
    let kill_all = async || -> i64 { client.query_one(sql, &[&schema]).await.unwrap().get(0) };
    // Some die in any case, however soon the work is done.
    let mut n_killed = kill_all().await;
    let kill = async {
        loop {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(20..100))).await;
            n_killed += kill_all().await;
        }
    };
    let done = tokio::select! {
        never = kill => never,
        done = work => done,
    };
    assert!(n_killed > 0);
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_outlive_the_backends_of_their_connections() {
    let opened = Opened::new().await;
    let store = opened.store();
    let ids: Vec<_> = (0..8).map(|n| format!("t{n}")).collect();
    let make = async {
        for id in &ids {
            let new = NewThread::new(id.as_str(), Some(id));
            let records = first(new, jiff::Timestamp::UNIX_EPOCH);
            let made = store.get_or_create(&tenant(), records, None, None).await;
            assert!(made.unwrap().is_new());
        }
    };
    while_backends_die(&opened, make).await;

    // Only writes outlive their connections, so reads have connections of their own.
    let reader = opened.again().await;
    let mut tasks = JoinSet::new();
    for id in &ids {
        let mut author = Author::of(&reader, id.as_str().into(), jiff::Timestamp::UNIX_EPOCH).await;
        author.store = store.clone();
        tasks.spawn(async move {
            for n in 0..30 {
                author.commit(keep(&format!("i{n}"))).await;
            }
            author
        });
    }
    let authors = while_backends_die(&opened, tasks.join_all()).await;
    let reader = opened.again().await;
    for author in authors {
        assert_eq!(n_events(&reader, &author).await, 32);
    }
}
