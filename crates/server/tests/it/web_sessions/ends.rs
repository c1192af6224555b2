//! What ends a session, and what does not.

use super::{Browser, config, is_out, location};
use crate::harness::Server;
use axum::body::Body;
use http::header;
use http_body_util::BodyExt as _;
use loomline_server::Config;
use loomline_server::auth::hash_text;
use runtime::TenantId;
use runtime::objects::{NewObject, ObjectPage, SidecarObject};
use std::path::Path;

const KIND: &str = "web-session";

async fn sessions(server: &Server) -> Vec<SidecarObject> {
    let page = ObjectPage {
        limit: 10,
        ..ObjectPage::default()
    };
    let objects = server.app.default_runtime().objects();
    objects
        .list(&TenantId::from("a"), KIND, page)
        .await
        .unwrap()
}

/// Replaces the keys of a running server.
fn replace(server: &Server, text: &str) {
    let config = Config::parse(text, &|_| None).unwrap();
    server.app.replace_tenants(&config.tenants).unwrap();
}

/// Whether a file below a directory contains a text.
fn is_found(directory: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().path()).any(|path| {
        if path.is_dir() {
            return is_found(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap();
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    })
}

#[tokio::test]
async fn a_session_survives_a_restart() {
    let server = Server::new(&config("")).await;
    let cookie = Browser::with(&server, "llk_all").await.cookie;
    server.app.shutdown().await.unwrap();
    let Server {
        directory,
        app,
        router,
        ..
    } = server;
    drop((app, router));
    let again = Server::at(directory, &config("")).await;
    let browser = Browser {
        server: &again,
        cookie,
    };
    assert_eq!(browser.get("/chat").await.status, 200);
}

#[tokio::test]
async fn the_store_has_the_hash_of_a_session_and_no_secret() {
    let server = Server::new(&config("")).await;
    let browser = Browser::with(&server, "llk_all").await;
    let stored = sessions(&server).await;
    let id = format!("sha256:{}", stored[0].id);
    assert_eq!(id, hash_text(&browser.secret()));
    let key = hash_text("llk_all");
    assert!(stored[0].json.contains(&key), "{}", stored[0].json);
    server.app.shutdown().await.unwrap();
    let directory = server.directory.path();
    assert!(is_found(directory, &stored[0].id));
    for secret in [&browser.secret(), "llk_all"] {
        assert!(!is_found(directory, secret), "{secret}");
    }
}

#[tokio::test]
async fn a_session_ends_for_good_with_its_key() {
    let server = Server::new(&config("")).await;
    let some = Browser::with(&server, "llk_some").await;
    let all = Browser::with(&server, "llk_all").await;
    let only_all = format!(
        "[tenants.a.keys.all]\nhash = \"{}\"\n",
        hash_text("llk_all")
    );
    replace(&server, &only_all);
    is_out(&some).await;
    assert_eq!(all.get("/chat").await.status, 200);
    replace(&server, &config(""));
    is_out(&some).await;
    // A successor of the same name has sessions of its own.
    let successor = config("").replace(&hash_text("llk_all"), &hash_text("llk_next"));
    replace(&server, &successor);
    is_out(&all).await;
}

#[tokio::test]
async fn a_key_of_another_tenant_opens_no_session_of_this_one() {
    let server = Server::new(&config("")).await;
    let some = Browser::with(&server, "llk_some").await;
    replace(&server, &config("").replace("tenants.a.", "tenants.b."));
    is_out(&some).await;
}

#[tokio::test]
async fn a_session_expires() {
    let server = Server::new(&config("")).await;
    let browser = Browser::with(&server, "llk_all").await;
    let stored = sessions(&server).await.remove(0);
    let mut json: serde_json::Value = serde_json::from_str(&stored.json).unwrap();
    json["expiresAt"] = "2020-01-01T00:00:00Z".into();
    let object = NewObject {
        kind: KIND.to_owned(),
        id: stored.id,
        created_at: stored.created_at,
        json: json.to_string(),
        content: None,
        thread: None,
        is_limited: true,
    };
    let objects = server.app.default_runtime().objects();
    let tenant = TenantId::from("a");
    objects.put(&tenant, object.clone()).await.unwrap();
    is_out(&browser).await;
    assert!(sessions(&server).await.is_empty());
    // The next log-in deletes what nobody has asked for since.
    objects.put(&tenant, object.clone()).await.unwrap();
    Browser::with(&server, "llk_all").await;
    let left = sessions(&server).await;
    assert!(left.len() == 1 && left[0].id != object.id);
}

#[tokio::test]
async fn a_session_ends_when_its_key_expires() {
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let server = Server::new(&config(&format!("expires = {soon}"))).await;
    let browser = Browser::with(&server, "llk_some").await;
    assert_eq!(browser.get("/chat").await.status, 200);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    is_out(&browser).await;
    assert_eq!(Browser::new(&server).log_in("llk_some").await.status, 401);
}

#[tokio::test]
async fn a_log_out_ends_the_session_and_its_streams() {
    let server = Server::new(&config("")).await;
    let mut browser = Browser::with(&server, "llk_all").await;
    let other = Browser::with(&server, "llk_all").await;
    browser.post("/ui/send", "thread=t&text=hello").await;
    server.with_key("llk_all").at_rest("t").await;
    let live = server
        .request("GET", "/ui/live?thread=t&after=1")
        .header(header::ACCEPT, "text/event-stream")
        .header(header::COOKIE, browser.cookie.clone().unwrap())
        .body(Body::empty())
        .unwrap();
    let (status, stream) = server.open(live).await;
    assert_eq!(status, 200);
    let out = browser.post("/logout", "").await;
    assert_eq!(location(&out), "/login");
    let cleared = out.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cleared.starts_with("__Host-loomline=; ") && cleared.ends_with("Max-Age=0"));
    let ended = Body::from_stream(stream).collect().await.unwrap();
    let ended = String::from_utf8(ended.to_bytes().into()).unwrap();
    let last = ended.split_terminator("\n\n").last().unwrap();
    assert!(last.starts_with("event: refused\n"), "{last}");
    assert!(last.contains("not_logged_in"), "{last}");
    is_out(&browser).await;
    assert_eq!(other.get("/chat").await.status, 200);
    // Logging in again ends the session that the browser had.
    browser.log_in("llk_all").await;
    let former = Browser {
        server: &server,
        cookie: browser.cookie.clone(),
    };
    browser.log_in("llk_all").await;
    is_out(&former).await;
    assert_eq!(browser.get("/chat").await.status, 200);
}
