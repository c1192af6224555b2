//! The chat within pages of other sites: its frame, and its tokens.

use crate::harness::{Answer, Server};
use crate::tenants::all_guarded_routes;
use axum::body::Body;
use http::header;
use loomline_server::auth::hash_text;
use runtime::TenantId;
use runtime::objects::{NewObject, ObjectPage};
use serde_json::{Value, json};

const TOKENS: &str = "/api/v1/web/tokens";

/// A tenant with a key that may do everything (`llk_all`), and one with these rights (`llk_some`).
fn config(rights: &str) -> String {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    format!(
        "[web]\nembed_origins = [\"https://shop.example\", \"http://localhost:3000\"]\n\
         [tenants.a.keys.all]\nhash = \"{all}\"\n[tenants.a.keys.some]\nhash = \"{some}\"\n{rights}\n"
    )
}

/// A token that a key has made.
async fn token(server: &Server, key: &'static str, body: Value) -> String {
    let made = server.with_key(key).post(TOKENS, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json()["token"].as_str().unwrap().to_owned()
}

/// Sends a form with a token, as the script of the frame does.
async fn post(server: &Server, token: &str, path: &str, form: &str) -> Answer {
    let request = server
        .request("POST", path)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json");
    server
        .send(request.body(Body::from(form.to_owned())).unwrap())
        .await
}

/// Opens the conversation of a thread with a token.
async fn open(server: &Server, token: &str, thread: &str) -> Answer {
    let form = format!("agent=demo&thread={thread}");
    post(server, token, "/ui/embedded", &form).await
}

#[tokio::test]
async fn without_origins_there_is_no_widget() {
    let server = Server::new(&config("").replace("embed_origins", "starters")).await;
    let all = server.with_key("llk_all");
    for path in ["/embed.js", "/embed/demo?thread=t"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let body = json!({"agent": "demo", "threadPrefix": "shop-"});
    assert_eq!(all.post(TOKENS, body).await.status, 404);
    let form = "agent=demo&thread=t";
    let opened = post(&server, "llk_all", "/ui/embedded", form).await;
    assert_eq!(opened.status, 404);
}

#[tokio::test]
async fn only_configured_origins_may_frame_the_widget_and_nothing_else() {
    let server = Server::new(&config("")).await;
    let frame = server.get("/embed/demo?thread=shop-1").await;
    assert_eq!(frame.status, 200);
    let policy = frame.headers[header::CONTENT_SECURITY_POLICY]
        .to_str()
        .unwrap();
    let ancestors = "frame-ancestors https://shop.example http://localhost:3000;";
    assert!(policy.contains(ancestors), "{policy}");
    let origins = "data-embed-origins=\"https://shop.example http://localhost:3000\"";
    assert!(frame.text.contains(origins));
    assert_eq!(server.get("/embed/none?thread=t").await.status, 404);
    for path in ["/login", "/chat"] {
        let page = server.with_key("llk_all").get(path).await;
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str();
        assert!(policy.unwrap().contains("frame-ancestors 'none'"));
    }
    let script = server.get("/embed.js").await;
    assert_eq!(
        script.headers["cross-origin-resource-policy"],
        "cross-origin"
    );
    assert!(script.text.len() < 2_048);
}

#[tokio::test]
async fn a_token_reaches_its_threads_only_and_speaks_as_its_actor() {
    let server = Server::new(&config("")).await;
    let all = server.with_key("llk_all");
    all.say("other", "a secret").await;
    let body = json!({"agent": "demo", "threadPrefix": "shop-", "actor": "ada"});
    let token = token(&server, "llk_all", body).await;
    let opened = open(&server, &token, "shop-1").await;
    assert_eq!(opened.status, 200, "{}", opened.text);
    let html = opened.json()["html"].as_str().unwrap().to_owned();
    assert!(html.contains("id=\"composer\"") && html.contains("data-thread=\"shop-1\""));
    assert!(!html.contains("class=\"rail\"") && !html.contains("<html"));
    let sent = post(&server, &token, "/ui/send", "thread=shop-1&text=hello").await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    all.at_rest("shop-1").await;
    let messages = all.get("/api/v1/threads/shop-1/messages").await.json();
    assert_eq!(messages["messages"][0]["metadata"]["actor"], "ada");
    assert!(open(&server, &token, "shop-1").await.text.contains("hello"));
    for (path, form) in [
        ("/ui/embedded", "agent=demo&thread=other"),
        ("/ui/send", "thread=other&text=hello"),
    ] {
        let refused = post(&server, &token, path, form).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_token_opens_no_route_of_a_protocol() {
    let server = Server::new(&config("")).await;
    let token = token(
        &server,
        "llk_all",
        json!({"agent": "demo", "threadPrefix": "x"}),
    )
    .await;
    for (method, path) in all_guarded_routes() {
        let path = path.replace(['{', '}'], "");
        let request = server
            .request(&method, &path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json");
        let answer = server.send(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
    }
    // A token is no cookie, and the secret of a token is none of a session.
    let value = token.strip_prefix("llw_").unwrap();
    let request = server
        .request("GET", "/chat")
        .header(header::COOKIE, format!("__Host-loomline={value}"))
        .header(header::ACCEPT, "text/html");
    let page = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(page.status, 303);
}

#[tokio::test]
async fn a_token_may_do_no_more_than_its_key() {
    let rights = "scopes = [\"read\", \"write\"]\nthreads = [\"shop-*\"]\nactors = [\"ada\"]";
    let server = Server::new(&config(rights)).await;
    let some = server.with_key("llk_some");
    for (body, status) in [
        (
            json!({"agent": "demo", "threadPrefix": "shop-ada-", "actor": "ada"}),
            201,
        ),
        (
            json!({"agent": "demo", "threadPrefix": "shop-", "scopes": ["read"]}),
            201,
        ),
        (json!({"agent": "demo", "threadPrefix": "sho"}), 403),
        (json!({"agent": "demo", "threadPrefix": "other-"}), 403),
        (
            json!({"agent": "demo", "threadPrefix": "shop-", "actor": "eve"}),
            403,
        ),
        (json!({"agent": "demo", "threadPrefix": ""}), 422),
        (json!({"agent": "demo", "threadPrefix": "shop-*"}), 422),
        (
            json!({"agent": "demo", "threadPrefix": "shop-", "scopes": ["write"]}),
            422,
        ),
        (
            json!({"agent": "demo", "threadPrefix": "shop-", "scopes": ["read", "delete"]}),
            422,
        ),
        (json!({}), 422),
    ] {
        let made = some.post(TOKENS, body.clone()).await;
        assert_eq!(made.status, status, "{body}: {}", made.text);
    }
    let config = config("scopes = [\"read\"]");
    let server = Server::new(&config).await;
    let refused = server.with_key("llk_some");
    let refused = refused
        .post(TOKENS, json!({"agent": "demo", "threadPrefix": "x"}))
        .await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_token_to_read_neither_writes_nor_begins_a_thread() {
    let server = Server::new(&config("")).await;
    let body = json!({"agent": "demo", "threadPrefix": "shop-", "scopes": ["read"]});
    let token = token(&server, "llk_all", body).await;
    assert_eq!(open(&server, &token, "shop-1").await.status, 404);
    server.with_key("llk_all").say("shop-1", "hello").await;
    let opened = open(&server, &token, "shop-1").await;
    assert!(opened.text.contains("This key may only read."));
    let refused = post(&server, &token, "/ui/send", "thread=shop-1&text=a").await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_token_ends_with_its_time_and_with_its_key() {
    let server = Server::new(&config("")).await;
    let body = json!({"agent": "demo", "threadPrefix": "shop-"});
    let first = token(&server, "llk_all", body.clone()).await;
    assert_eq!(open(&server, &first, "shop-1").await.status, 200);
    let (objects, tenant) = (server.app.default_runtime().objects(), TenantId::from("a"));
    let page = ObjectPage {
        limit: 10,
        ..ObjectPage::default()
    };
    let stored = objects.list(&tenant, "web-token", page).await.unwrap();
    let mut json: Value = serde_json::from_str(&stored[0].json).unwrap();
    assert!(!stored[0].json.contains(first.rsplit('.').next().unwrap()));
    json["expiresAt"] = "2020-01-01T00:00:00Z".into();
    let over = NewObject {
        kind: "web-token".to_owned(),
        id: stored[0].id.clone(),
        created_at: stored[0].created_at,
        json: json.to_string(),
        content: None,
        thread: None,
        is_limited: true,
    };
    objects.put(&tenant, over).await.unwrap();
    let refused = open(&server, &first, "shop-1").await;
    assert_eq!(refused.error(), (401, "not_logged_in".into(), None));
    let second = token(&server, "llk_some", body).await;
    assert_eq!(open(&server, &second, "shop-1").await.status, 200);
    let less = config("scopes = [\"read\"]");
    let less = loomline_server::Config::parse(&less, &|_| None).unwrap();
    server.app.replace_tenants(&less.tenants).unwrap();
    assert_eq!(open(&server, &second, "shop-1").await.status, 401);
}

#[tokio::test]
async fn a_token_is_for_one_agent_and_answers_calls_only_if_it_may() {
    let server = Server::new(&config("")).await;
    let body = json!({"agent": "nobody", "threadPrefix": "shop-"});
    let refused = server.with_key("llk_all").post(TOKENS, body).await;
    assert_eq!(
        (refused.status.as_u16(), refused.error().2),
        (422, Some("/agent".into()))
    );
    let body = json!({"agent": "careful", "threadPrefix": "shop-"});
    let token = token(&server, "llk_all", body.clone()).await;
    let form = "thread=shop-1&agent=demo";
    let other = post(&server, &token, "/ui/embedded", form).await;
    assert_eq!(other.status, 422, "{}", other.text);
    let thread = server
        .with_key("llk_all")
        .get("/api/v1/threads/shop-1")
        .await;
    assert_eq!(thread.status, 404, "{}", thread.text);
    let form = "thread=shop-1&agent=careful";
    let opened = post(&server, &token, "/ui/embedded", form).await;
    assert!(
        opened.text.contains("data-answers=\\\"no\\\""),
        "{}",
        opened.text
    );
    // The form names another agent: the token's answers.
    let form = "thread=shop-1&agent=demo&text=use+compute+6+*+7";
    assert_eq!(post(&server, &token, "/ui/send", form).await.status, 200);
    let all = server.with_key("llk_all");
    all.at_rest("shop-1").await;
    let pending = all.get("/api/v1/threads/shop-1/pending").await.json();
    let call = pending["calls"][0]["toolCallId"].as_str().unwrap();
    let form = format!("thread=shop-1&call={call}&verdict=allow");
    let refused = post(&server, &token, "/ui/answer", &form).await;
    assert_eq!(
        (refused.status.as_u16(), refused.error().1),
        (403, "forbidden_answer".into())
    );
    let mut body = body;
    body["mayAnswer"] = true.into();
    let token = self::token(&server, "llk_all", body).await;
    assert_eq!(post(&server, &token, "/ui/answer", &form).await.status, 200);
}
