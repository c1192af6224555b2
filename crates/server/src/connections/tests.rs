use super::connection::Due;
use super::*;
use ::http::Version;

const SECOND: Duration = Duration::from_secs(1);

fn admission(total: usize, per_address: usize) -> Admission {
    let limits = LimitsConfig {
        header_timeout: 10 * SECOND,
        idle_timeout: 75 * SECOND,
        stalled_reader: 30 * SECOND,
        trusted_proxies: AddressRange::parse("10.0.0.0/8").into_iter().collect(),
        ..LimitsConfig::default()
    };
    let caps = Caps { total, per_address };
    let shutdown = CancellationToken::new();
    Admission::new(&limits, caps, ConnectionFigures::default(), &shutdown)
}

fn client(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn later(due: Due) -> Duration {
    match due {
        Due::Later(at) => at - Instant::now(),
        Due::Idle | Due::Overdue => panic!("{due:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_the_header_timeout_for_its_first_request() {
    let connection = admission(1, 1).admit(client(1)).unwrap();
    tokio::time::advance(4 * SECOND).await;
    // Bytes do not extend it.
    connection.note_read();
    assert_eq!(later(connection.due(Instant::now())), 6 * SECOND);
    tokio::time::advance(6 * SECOND).await;
    assert_eq!(connection.due(Instant::now()), Due::Overdue);
}

#[tokio::test(start_paused = true)]
async fn a_connection_between_requests_has_the_idle_timeout_until_a_head_begins() {
    let connection = admission(1, 1).admit(client(1)).unwrap();
    let request = connection.begin(Version::HTTP_11).unwrap();
    tokio::time::advance(1_000 * SECOND).await;
    // A request has all the time that it needs, and is looked at again.
    assert_eq!(later(connection.due(Instant::now())), 10 * SECOND);
    drop(request);
    tokio::time::advance(74 * SECOND).await;
    assert_eq!(later(connection.due(Instant::now())), SECOND);
    connection.note_read();
    assert_eq!(later(connection.due(Instant::now())), 10 * SECOND);
    tokio::time::advance(5 * SECOND).await;
    connection.note_read();
    tokio::time::advance(5 * SECOND).await;
    assert_eq!(connection.due(Instant::now()), Due::Overdue);
    drop(connection.begin(Version::HTTP_11).unwrap());
    tokio::time::advance(75 * SECOND).await;
    assert_eq!(connection.due(Instant::now()), Due::Idle);
}

#[tokio::test(start_paused = true)]
async fn frames_of_http2_between_requests_begin_no_head() {
    let connection = admission(1, 1).admit(client(1)).unwrap();
    drop(connection.begin(Version::HTTP_2).unwrap());
    connection.note_read();
    tokio::time::advance(74 * SECOND).await;
    assert_eq!(later(connection.due(Instant::now())), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_accepts_nothing_is_overdue_even_in_a_request() {
    let connection = admission(1, 1).admit(client(1)).unwrap();
    let _request = connection.begin(Version::HTTP_11).unwrap();
    connection.note_blocked();
    tokio::time::advance(20 * SECOND).await;
    connection.note_written();
    connection.note_blocked();
    tokio::time::advance(29 * SECOND).await;
    connection.note_blocked();
    assert_eq!(later(connection.due(Instant::now())), SECOND);
    tokio::time::advance(SECOND).await;
    assert_eq!(connection.due(Instant::now()), Due::Overdue);
}

#[tokio::test]
async fn a_connection_that_was_closed_for_room_begins_no_request() {
    let admission = admission(1, 1);
    let first = admission.admit(client(1)).unwrap();
    let second = admission.admit(client(2)).unwrap();
    assert!(first.is_closed() && first.signal().is_cancelled());
    assert!(first.begin(Version::HTTP_11).is_none());
    // Its socket, which is closed a moment later, is not counted twice.
    first.release();
    assert_eq!(admission.all.len(), 1);
    assert_eq!(admission.shared.addresses.len(), 1);
    second.release();
    assert_eq!(admission.all.len(), 0);
    assert_eq!(admission.shared.figures.open.get(), 0);
}

#[tokio::test]
async fn busy_connections_are_kept_and_others_go_beyond_the_cap() {
    let admission = admission(2, 2);
    let busy = [1, 2].map(|n| admission.admit(client(n)).unwrap());
    let requests = busy
        .each_ref()
        .map(|it| it.begin(Version::HTTP_11).unwrap());
    let beyond: Vec<_> = (0..MAX_OVERFLOW)
        .map(|_| admission.admit(client(3)).unwrap())
        .collect();
    assert!(beyond.iter().all(|it| it.is_overflow()));
    // The one that waits the longest makes room for the next.
    assert!(admission.admit(client(3)).unwrap().is_overflow());
    let closed = beyond.iter().filter(|it| it.is_closed()).count();
    assert_eq!((closed, beyond[0].is_closed()), (1, true));
    // Where all have requests there is no place.
    let _asked: Vec<_> = beyond
        .iter()
        .filter_map(|it| it.begin(Version::HTTP_11))
        .collect();
    let _last = admission
        .admit(client(3))
        .map(|it| it.begin(Version::HTTP_11));
    drop(requests);
    assert!(!admission.admit(client(3)).unwrap().is_overflow());
    assert!(busy[0].is_closed() && !busy[1].is_closed());
}

#[tokio::test]
async fn trusted_proxies_have_no_cap_of_their_own() {
    let admission = admission(10, 1);
    let proxy = IpAddr::from([10, 0, 0, 1]);
    let connections: Vec<_> = (0..5).map(|_| admission.admit(proxy).unwrap()).collect();
    assert!(!connections.iter().any(|it| it.is_closed()));
    let own: Vec<_> = (0..5)
        .map(|_| admission.admit(client(1)).unwrap())
        .collect();
    let open = own.iter().filter(|it| !it.is_closed()).count();
    assert_eq!((open, admission.all.len()), (1, 6));
}

#[tokio::test]
async fn requests_leave_no_more_than_their_share_of_entries() {
    let admission = admission(4, 4);
    let connections = [1, 2].map(|n| admission.admit(client(n)).unwrap());
    for _ in 0..10_000 {
        for connection in &connections {
            drop(connection.begin(Version::HTTP_11).unwrap());
        }
    }
    assert!(admission.all.n_entries() <= 2 * 2 + 65);
    // The order survives the sifting.
    drop(connections[0].begin(Version::HTTP_11).unwrap());
    assert!(!admission.all.close_oldest_idle(SECOND));
    assert!(admission.all.close_oldest_idle(Duration::ZERO));
    assert!(connections[1].is_closed() && !connections[0].is_closed());
}
