//! Logging in to the pages: what a session opens, and what ends it.

mod ends;
mod limits;
mod requests;

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use loomline_server::auth::hash_text;

/// A tenant with a key that may do everything (`llk_all`), and one with these rights (`llk_some`).
fn config(rights: &str) -> String {
    let (all, some) = (hash_text("llk_all"), hash_text("llk_some"));
    format!(
        "[tenants.a.keys.all]\nhash = \"{all}\"\n[tenants.a.keys.some]\nhash = \"{some}\"\n{rights}\n"
    )
}

/// A browser of a person.
struct Browser<'a> {
    server: &'a Server,
    cookie: Option<String>,
}

impl<'a> Browser<'a> {
    fn new(server: &'a Server) -> Self {
        Self {
            server,
            cookie: None,
        }
    }

    /// A browser that has logged in with this key.
    async fn with(server: &'a Server, key: &str) -> Self {
        let mut browser = Self::new(server);
        let answer = browser.log_in(key).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        browser
    }

    /// A request as browsers send it.
    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let request = self
            .server
            .request(method, path)
            .header(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8");
        match &self.cookie {
            Some(cookie) => request.header(header::COOKIE, format!("theme=dark; {cookie}")),
            None => request,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        let request = self.request("GET", path);
        self.server.send(request.body(Body::empty()).unwrap()).await
    }

    async fn post(&self, path: &str, form: &str) -> Answer {
        let request = self.request("POST", path);
        self.server.send(form_body(request, form)).await
    }

    /// Sends the form of the log-in page, and keeps the cookie.
    async fn log_in(&mut self, key: &str) -> Answer {
        let answer = self.post("/login", &format!("key={key}&to=%2Fchat")).await;
        if let Some(cookie) = answer.headers.get(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
            self.cookie = Some(cookie.to_owned());
        }
        answer
    }

    /// The secret in the cookie.
    fn secret(&self) -> String {
        let cookie = self.cookie.as_ref().unwrap();
        cookie.rsplit('.').next().unwrap().to_owned()
    }
}

fn form_body(request: http::request::Builder, form: &str) -> http::Request<Body> {
    let kind = "application/x-www-form-urlencoded";
    let request = request.header(header::CONTENT_TYPE, kind);
    request.body(Body::from(form.to_owned())).unwrap()
}

fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{}", answer.text);
    answer.headers["location"].to_str().unwrap()
}

/// Checks that a browser is not logged in.
async fn is_out(browser: &Browser<'_>) {
    let answer = browser.get("/chat").await;
    assert_eq!(location(&answer), "/login?to=%2Fchat");
}

#[tokio::test]
async fn a_log_in_sets_a_cookie_that_opens_the_pages() {
    let server = Server::new(&config("")).await;
    let mut browser = Browser::new(&server);
    is_out(&browser).await;
    let page = browser.get("/login?to=%2Fchat%2Ft").await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("autocomplete=\"current-password\""));
    assert!(page.text.contains("name=\"to\" value=\"/chat/t\""));
    assert!(!page.text.contains("HTTPS"));
    let answer = browser.log_in("llk_all").await;
    assert_eq!(location(&answer), "/chat");
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    let (value, attributes) = cookie.split_once("; ").unwrap();
    let value = value.strip_prefix("__Host-loomline=YQ.").unwrap();
    assert!(value.len() == 64 && value.bytes().all(|it| it.is_ascii_hexdigit()));
    assert_eq!(
        attributes,
        "Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200"
    );
    let page = browser.get("/chat").await;
    assert_eq!(page.status, 200);
    for part in [
        "id=\"composer\"",
        "action=\"/logout\"",
        "href=\"/console\"",
        "Loomline",
    ] {
        assert!(page.text.contains(part), "{part}");
    }
    let sent = browser.post("/ui/send", "thread=t&text=hello").await;
    assert_eq!(location(&sent), "/chat/t");
    assert!(browser.get("/chat/t").await.text.contains("hello"));
    // A person who is logged in goes on at once.
    assert_eq!(location(&browser.get("/login?to=/chat/t").await), "/chat/t");
}

#[tokio::test]
async fn a_session_has_the_rights_of_its_key() {
    let server = Server::new(&config("scopes = [\"read\"]\nthreads = [\"mine-*\"]")).await;
    let all = Browser::with(&server, "llk_all").await;
    for thread in ["mine-1", "other"] {
        let form = format!("thread={thread}&text=hello");
        assert_eq!(all.post("/ui/send", &form).await.status, 303);
    }
    let some = Browser::with(&server, "llk_some").await;
    let page = some.get("/chat/mine-1").await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("This key may only read."));
    assert!(page.text.contains("<body class=\"read-only\">"));
    for part in ["id=\"composer\"", "/chat/other", "href=\"/console\""] {
        assert!(!page.text.contains(part), "{part}");
    }
    let refused = some.get("/chat/other").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text.contains("forbidden_thread"));
    let refused = some.post("/ui/send", "thread=mine-1&text=hello").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text.contains("missing_scope"));
}

#[tokio::test]
async fn a_new_chat_of_a_restricted_key_is_one_of_its_threads() {
    let server = Server::new(&config("threads = [\"one\", \"mine-*\"]")).await;
    let some = Browser::with(&server, "llk_some").await;
    let sent = some.post("/ui/send", "text=hello").await;
    assert!(location(&sent).starts_with("/chat/mine-"));
    assert_eq!(some.get(location(&sent)).await.status, 200);
}

#[tokio::test]
async fn a_new_configuration_changes_open_sessions() {
    let server = Server::new(&config("")).await;
    let some = Browser::with(&server, "llk_some").await;
    assert!(some.get("/chat").await.text.contains("id=\"composer\""));
    let less = loomline_server::Config::parse(&config("scopes = [\"read\"]"), &|_| None);
    server.app.replace_tenants(&less.unwrap().tenants).unwrap();
    let page = some.get("/chat").await;
    assert_eq!(page.status, 200);
    assert!(!page.text.contains("id=\"composer\""));
}

#[tokio::test]
async fn the_console_needs_the_scope_inspect() {
    let both = config("scopes = [\"read\", \"inspect\"]");
    let server = Server::new(&both).await;
    let some = Browser::with(&server, "llk_some").await;
    assert!(some.get("/chat").await.text.contains("href=\"/console\""));
    let server = Server::new(&format!("[web]\nconsole = false\n{both}")).await;
    let some = Browser::with(&server, "llk_some").await;
    assert!(!some.get("/chat").await.text.contains("href=\"/console\""));
}

#[tokio::test]
async fn a_token_opens_a_session_with_its_claims() {
    use crate::tokens::{Signer, claims, inline, now};
    use serde_json::json;
    let signer = Signer::new("k", jsonwebtoken::Algorithm::ES256);
    let server = Server::new(&inline(&[&signer])).await;
    server.with_key("llk_a").say("mine-1", "by key").await;
    server.with_key("llk_a").say("other", "by key").await;
    let own = json!({"scope": "read", "threads": ["mine-*"], "exp": now() + 3});
    let token = signer.sign(&claims(own));
    let browser = Browser::with(&server, &token).await;
    assert_eq!(browser.get("/chat/mine-1").await.status, 200);
    assert_eq!(browser.get("/chat/other").await.status, 403);
    assert_eq!(browser.post("/ui/send", "text=a").await.status, 403);
    let wrong = signer.sign(&claims(json!({"exp": now() - 10})));
    assert_eq!(Browser::new(&server).log_in(&wrong).await.status, 401);
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    is_out(&browser).await;
}
