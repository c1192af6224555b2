//! Caps of connections, and what is closed to make room.

use super::Site;
use super::raw::Client;

#[tokio::test]
async fn the_connection_that_is_idle_the_longest_makes_room() {
    let site = Site::new("connections = 3\nconnections_per_address = 3").await;
    let mut first = site.idle().await;
    let mut second = site.idle().await;
    let mut third = site.idle().await;
    // The first is the youngest now.
    assert_eq!(first.get("/healthz").await.status, 200);
    let mut fourth = site.idle().await;
    assert_eq!(second.closed().await, "");
    let mut fifth = site.idle().await;
    assert_eq!(third.closed().await, "");
    for client in [&mut first, &mut fourth, &mut fifth] {
        assert!(client.is_open().await);
    }
    site.reaches("open_connections", 3).await;
    assert_eq!(site.figure("connections_closed_for_room_total").await, 2);
    assert_eq!(site.figure("connections_refused_total").await, 0);
}

#[tokio::test]
async fn a_connection_without_a_request_makes_room() {
    let site = Site::new("connections = 1\nconnections_per_address = 1").await;
    let mut silent = site.connect().await;
    site.reaches("open_connections", 1).await;
    let mut other = site.idle().await;
    assert_eq!(silent.closed().await, "");
    assert!(other.is_open().await);
}

#[tokio::test]
async fn a_stream_is_not_closed_for_room() {
    let site = Site::new("connections = 2\nconnections_per_address = 2").await;
    let mut follower = site.follower().await;
    let mut idle = site.idle().await;
    for _ in 0..5 {
        let mut other = site.idle().await;
        assert_eq!(idle.closed().await, "");
        assert!(follower.is_open().await);
        idle = other;
        other = site.connect().await;
        drop(other);
    }
}

#[tokio::test]
async fn health_is_answered_while_clients_hold_every_slot() {
    let site = Site::new("connections = 2\nconnections_per_address = 2").await;
    let mut followers = [site.follower().await, site.follower().await];
    for _ in 0..100 {
        let mut client = site.connect().await;
        let answer = client.get("/healthz").await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("connection: close"), "{answer:?}");
        assert_eq!(client.closed().await, "");
    }
    assert_eq!(site.connect().await.get("/readyz").await.status, 200);
    let refused = site.connect().await.get("/api/v1/threads").await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, "too_many_connections".to_owned())
    );
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    for follower in &mut followers {
        assert!(follower.is_open().await);
    }
    assert_eq!(site.figure("connections_refused_total").await, 102);
}

#[tokio::test]
async fn silent_connections_beyond_the_cap_keep_nobody_from_health() {
    let site = Site::new("connections = 1\nconnections_per_address = 1").await;
    let _follower = site.follower().await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(site.connect().await);
    }
    assert_eq!(site.connect().await.get("/healthz").await.status, 200);
    // 32 beyond the cap, of which the one that asked is closed.
    assert!(site.figure("open_connections").await <= 33);
}

#[tokio::test]
async fn a_closed_connection_releases_its_place() {
    let site = Site::new("connections = 2\nconnections_per_address = 2").await;
    for _ in 0..10 {
        let followers = [site.follower().await, site.follower().await];
        drop(followers);
        site.reaches("open_connections", 0).await;
    }
    assert_eq!(site.figure("connections_refused_total").await, 0);
}

#[tokio::test]
async fn one_address_can_not_take_every_connection() {
    let site = Site::new("connections = 10\nconnections_per_address = 2").await;
    let own = [site.follower().await, site.follower().await];
    assert_eq!(site.connect().await.get("/openapi.json").await.status, 503);
    let addr = site.served.addr;
    let mut other = Client::connect_from([127, 0, 0, 2], addr).await;
    assert_eq!(other.get("/openapi.json").await.status, 200);
    drop(own);
    site.reaches("open_connections", 1).await;
    assert_eq!(site.connect().await.get("/openapi.json").await.status, 200);
}

#[tokio::test]
async fn an_address_over_its_cap_loses_its_own_idle_connection() {
    let site = Site::new("connections = 10\nconnections_per_address = 1").await;
    let addr = site.served.addr;
    let mut other = Client::connect_from([127, 0, 0, 2], addr).await;
    assert_eq!(other.get("/healthz").await.status, 200);
    let mut first = site.idle().await;
    let mut second = site.idle().await;
    assert_eq!(first.closed().await, "");
    assert!(second.is_open().await && other.is_open().await);
}

#[tokio::test]
async fn the_cap_of_an_address_does_not_apply_to_trusted_proxies() {
    let limits =
        "connections = 3\nconnections_per_address = 1\ntrusted_proxies = [\"127.0.0.0/30\"]";
    let site = Site::new(limits).await;
    let mut held = vec![site.follower().await, site.follower().await];
    let mut third = site.connect().await;
    assert_eq!(third.get("/openapi.json").await.status, 200);
    // The cap of all connections does.
    held.push(site.follower().await);
    assert_eq!(third.closed().await, "");
    assert_eq!(site.connect().await.get("/openapi.json").await.status, 503);
}
