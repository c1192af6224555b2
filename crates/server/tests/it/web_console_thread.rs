//! The console's pages of one thread, of the agents and of the server.

use crate::harness::{Answer, Server, TEAM};
use http::header;
use loomline_server::auth::hash_text;
use serde_json::json;

const DECISIONS: &str = "https://aitp.dev/v1/decisions/schema.json";
/// The ends of the paths of a thread's pages.
const PAGES: [&str; 5] = ["branches", "diff", "document", "requests", "connect"];

/// Loads a page as a browser does.
async fn load(client: &Server, path: &str) -> Answer {
    let request = client.request("GET", path);
    let request = request.header(header::ACCEPT, "text/html");
    client.send(request.body("".into()).unwrap()).await
}

/// The HTML of a page.
async fn page(client: &Server, path: &str) -> String {
    let answer = load(client, path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    assert!(answer.headers.contains_key("content-security-policy"));
    answer.text
}

/// The page of an error: its status, and its HTML.
async fn refusal(client: &Server, path: &str) -> (u16, String) {
    let answer = load(client, path).await;
    assert!(
        answer.text.contains("main class=\"error\""),
        "{path}: {}",
        answer.text
    );
    (answer.status.as_u16(), answer.text)
}

fn has(html: &str, parts: &[&str]) {
    for part in parts {
        assert!(html.contains(part), "{part}: {html}");
    }
}

async fn fork(server: &Server, from: &str, key: &str) {
    let path = format!("/api/v1/threads/{from}/fork");
    let made = server.post(&path, json!({ "key": key })).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

/// A server whose keys are for all threads, for some, and without the scope `operator`.
async fn with_keys() -> Server {
    let [all, some, reader] = ["llk_all", "llk_some", "llk_reader"].map(hash_text);
    let config = format!(
        "[tenants.a]\nkey_hashes = [\"{all}\"]\n\
         [tenants.a.keys.some]\nhash = \"{some}\"\nthreads = [\"mine-*\"]\n\
         [tenants.a.keys.reader]\nhash = \"{reader}\"\nscopes = [\"read\"]\n"
    );
    Server::new(&config).await.with_key("llk_all")
}

#[tokio::test]
async fn the_page_of_branches_has_forks_and_sub_agents() {
    let server = Server::new(TEAM).await;
    server.say("t", r#"use find {"query": "hello"}"#).await;
    server.at_rest("t").await;
    fork(&server, "t", "f").await;
    let html = page(&server, "/console/t/t/branches").await;
    let parts = [
        "this thread",
        "fork of <bdi>t</bdi>",
        "sub-agent of <bdi>t</bdi>",
        "href=\"/console/t/t/diff?with=f\"",
        "action=\"/ui/compare\"",
        "href=\"/api/v1/threads/t/tree\"",
    ];
    has(&html, &parts);
    let short = page(&server, "/console/t/f/branches?limit=1").await;
    has(&short, &["These are the first 1 threads", "?limit=1000"]);
}

#[tokio::test]
async fn a_form_leads_to_the_differences_of_two_branches() {
    let server = Server::new("").await;
    server.say("t", "Good morning").await;
    fork(&server, "t", "f").await;
    server.say("t", "a window seat").await;
    server.say("f", "an aisle seat").await;
    let chosen = load(&server, "/ui/compare?left=t&right=f").await;
    assert_eq!(chosen.status, 303);
    let location = chosen.headers["location"].to_str().unwrap();
    assert_eq!(location, "/console/t/t/diff?with=f");
    let html = page(&server, location).await;
    let parts = [
        "The same up to turn 2.",
        "<del>a window</del> seat",
        "<ins>an aisle</ins> seat",
        "Hash of its text",
        "href=\"/api/v1/threads/t/diff?with=f\"",
    ];
    has(&html, &parts);
    let native = server.get("/api/v1/threads/t/diff?with=f").await.json();
    has(
        &html,
        &[
            native["from"].as_str().unwrap(),
            native["to"].as_str().unwrap(),
        ],
    );
    has(
        &page(&server, "/console/t/t/diff").await,
        &["Compare with which thread?"],
    );
    has(
        &page(&server, "/console/t/t/diff?with=t").await,
        &["All turns are the same."],
    );
}

#[tokio::test]
async fn the_page_of_a_document_has_verdict_hash_and_losses() {
    let server = Server::new("").await;
    server.say("t", "use compute 6 * 7").await;
    let native = server
        .get("/api/v1/threads/t/document?check=strict")
        .await
        .json();
    let html = page(&server, "/console/t/t/document").await;
    let hash = native["hash"].as_str().unwrap();
    let parts = [
        hash,
        ">valid<",
        "This version holds everything",
        "href=\"/ui/document/t\"",
        "<span class=\"key\" dir=\"auto\">turns</span>",
    ];
    has(&html, &parts);
    let old = page(&server, "/console/t/t/document?version=2.0.0&check=lenient").await;
    has(
        &old,
        &["<option value=\"2.0.0\" selected>", "aria-label=\"Losses\""],
    );
    let part = page(&server, "/console/t/t/document?at=%2Fturns%2F0").await;
    has(&part, &["user-prompt", "The whole document"]);
    let late = page(&server, "/console/t/t/document?at=%2Fturns&from=1").await;
    has(&late, &["Back to the beginning"]);
}

#[tokio::test]
async fn the_page_of_requests_has_actors_and_their_requests() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    let actor = json!({"actor": {"id": "shop", "capabilities": [DECISIONS]}});
    let joined = server.post("/api/v1/threads/t/actors", actor).await;
    assert_eq!(joined.status, 201, "{}", joined.text);
    let asked = json!({"$schema": DECISIONS, "request_decision": {
        "id": "seat", "title": "Which <b>seat?", "options": [{"id": "window"}],
        "expires_at": "2050-01-01T00:00:00Z",
    }});
    let message =
        json!({"role": "assistant", "content": asked.to_string(), "metadata": {"actor": "shop"}});
    let posted = server.post("/v1/threads/t/messages", message).await;
    assert_eq!(posted.status, 200, "{}", posted.text);
    let html = page(&server, "/console/t/t/requests").await;
    let parts = [
        "<bdi>shop</bdi>",
        "your key",
        DECISIONS,
        "decision:seat",
        ">open<",
        "In the words of shop",
        "Which &lt;b&gt;seat?",
        "2050-01-01",
        "href=\"/chat/t#r-",
    ];
    has(&html, &parts);
}

/// The words of a command, as a shell reads them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.replace("\\\n", " ").chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The commands of a page that begin with `curl`.
fn curls(html: &str) -> Vec<Vec<String>> {
    let samples = html.split("<code>").skip(1);
    let samples = samples.filter_map(|rest| rest.split_once("</code>"));
    let text = |html: &str| {
        let unescaped = html
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">");
        unescaped.replace("&amp;", "&")
    };
    let commands = samples.filter(|(code, _)| code.starts_with("curl "));
    commands.map(|(code, _)| words(&text(code))).collect()
}

/// Sends the request of a command.
async fn run(client: &Server, command: &[String]) -> Answer {
    let (mut path, mut body, mut headers) = (None, None, Vec::new());
    let mut words = command.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-N" => {}
            "-H" => headers.push(words.next().unwrap().clone()),
            "-d" => body = words.next().cloned(),
            url => path = Some(url.strip_prefix("http://localhost").unwrap().to_owned()),
        }
    }
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut request = client.request(method, &path.unwrap());
    for header in &headers {
        let (name, value) = header.split_once(": ").unwrap();
        if name != "authorization" {
            request = request.header(name, value);
        }
    }
    client
        .send(request.body(body.unwrap_or_default().into()).unwrap())
        .await
}

#[tokio::test]
async fn each_curl_sample_is_answered() {
    let server = Server::new("").await;
    // A key that needs quotes in paths, in JSON and in the shell.
    let key = "a b/\u{e9}";
    let path = web_path(key);
    server.say(&path, "hello").await;
    let html = page(&server, &format!("/console/t/{path}/connect")).await;
    assert!(!html.contains("LOOMLINE_KEY"));
    let commands = curls(&html);
    assert!(commands.len() >= 8, "{commands:?}");
    for command in &commands {
        let answer = run(&server, command).await;
        assert_eq!(answer.status, 200, "{command:?}: {}", answer.text);
    }
    let threads = server.get("/api/v1/threads").await.json();
    let threads = threads["threads"].as_array().unwrap().clone();
    assert_eq!(
        threads.len(),
        1,
        "all samples are about one thread: {threads:?}"
    );
    let messages = server
        .get(&format!("/api/v1/threads/{path}/messages"))
        .await;
    // The native API, Responses and A2A send one each.
    let n = messages.text.matches("\"text\":\"Good morning\"").count();
    assert_eq!(n, 3, "{}", messages.text);
}

fn web_path(key: &str) -> String {
    form_urlencoded::byte_serialize(key.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

#[tokio::test]
async fn samples_have_a_place_holder_for_the_key() {
    let server = with_keys().await;
    server.say("t", "hello").await;
    let html = page(&server, "/console/t/t/connect").await;
    has(&html, &["$LOOMLINE_KEY", "os.environ["]);
    assert!(!html.contains("llk_"));
    for command in curls(&html) {
        let answer = run(&server, &command).await;
        assert_eq!(answer.status, 200, "{command:?}: {}", answer.text);
    }
}

#[tokio::test]
async fn the_page_of_agents_has_tools_and_relations() {
    let remote = "[agents.far]\ndescription = \"Elsewhere.\"\n\
         remote = { protocol = \"responses\", url = \"https://agents.example.org/secret/v1\", agent = \"there\" }\n";
    let server = Server::new(&format!("{TEAM}{remote}")).await;
    let html = page(&server, "/console/agents").await;
    let parts = [
        "lead",
        "compute",
        "needed",
        "agents.example.org",
        "href=\"/chat?agent=finder\"",
        "default",
    ];
    has(&html, &parts);
    assert!(!html.contains("secret"));
    let chat = page(&server, "/chat?agent=finder").await;
    has(&chat, &["<option value=\"finder\" selected>"]);
    let (status, html) = refusal(&server, "/chat?agent=nobody").await;
    assert_eq!(status, 400);
    has(&html, &["no agent"]);
}

#[tokio::test]
async fn the_page_of_health_is_for_operators() {
    let server = with_keys().await;
    server.say("t", "hello").await;
    let html = page(&server, "/console/health").await;
    has(
        &html,
        &[
            ">ready<",
            ">healthy<",
            env!("CARGO_PKG_VERSION"),
            "Write-ahead log",
            "Open streams",
        ],
    );
    for key in ["llk_reader", "llk_some"] {
        let (status, _) = refusal(&server.with_key(key), "/console/health").await;
        assert_eq!(status, 403, "{key}");
    }
}

#[tokio::test]
async fn a_key_sees_pages_of_its_own_threads_only() {
    let server = with_keys().await;
    server.say("secret", "hello").await;
    server.say("mine-1", "hello").await;
    let some = server.with_key("llk_some");
    for end in PAGES {
        let (status, _) = refusal(&some, &format!("/console/t/secret/{end}")).await;
        assert_eq!(status, 403, "{end}");
        page(&some, &format!("/console/t/mine-1/{end}")).await;
    }
    for path in [
        "/console/t/mine-1/diff?with=secret",
        "/ui/compare?left=mine-1&right=secret",
    ] {
        assert_eq!(refusal(&some, path).await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn a_page_of_an_unknown_thread_is_a_404() {
    let server = Server::new("").await;
    for end in PAGES {
        let (status, html) = refusal(&server, &format!("/console/t/none/{end}")).await;
        assert_eq!(status, 404, "{end}");
        has(&html, &["Not found"]);
    }
    server.say("t", "hello").await;
    assert_eq!(refusal(&server, "/console/t/t/diff?with=none").await.0, 404);
}

#[tokio::test]
async fn bad_parameters_of_a_page_are_named() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    for (query, name) in [
        ("diff?with=..", "with: a key"),
        ("document?version=9.9.9", "version"),
        ("document?version=1.0.0", "version"),
        ("document?check=odd", "check"),
        ("document?at=%2Fnone", "at: the document"),
        ("document?from=x", "from"),
        ("branches?limit=x", "limit"),
    ] {
        let (status, html) = refusal(&server, &format!("/console/t/t/{query}")).await;
        assert_eq!(status, 400, "{query}");
        has(&html, &[name]);
    }
}
