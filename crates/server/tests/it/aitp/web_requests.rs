//! Requests on the pages of the web interface.

use super::{Meeting, address, join, quote, seat};
use crate::harness::{Answer, Server};
use crate::html_form::{HtmlForm, forms, plausible};
use crate::reference::reference;
use futures_util::StreamExt as _;
use http::header;
use interop::aitp::{Kind, Message, Purpose};
use serde_json::{Value, json};
use std::time::Duration;

/// The page of a thread.
async fn page(client: &Server, key: &str) -> String {
    let request = client.request("GET", &format!("/chat/{key}"));
    let request = request.header(header::ACCEPT, "text/html");
    let answer = client.send(request.body("".into()).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text
}

/// Sends the fields of a form, as a browser or as the page's script.
async fn submit(
    client: &Server,
    action: &str,
    fields: &[(String, String)],
    accept: &str,
) -> Answer {
    let pairs = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    let request = client
        .request("POST", action)
        .header(header::ACCEPT, accept)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    client.send(request.body(body.into()).unwrap()).await
}

async fn first_form(client: &Server) -> HtmlForm {
    let html = page(client, "t").await;
    let mut found = forms(&html, "/ui/request").into_iter();
    found.next().unwrap_or_else(|| panic!("no form: {html}"))
}

/// Fills in the first form of `t` as a browser without scripts.
async fn fill_in(client: &Server) -> Answer {
    let fields = first_form(client).await.filled(plausible);
    submit(client, "/ui/request", &fields, "text/html").await
}

#[tokio::test]
async fn the_form_of_every_published_request_answers_it() {
    let Some(path) = reference("the published examples") else {
        return;
    };
    let text = std::fs::read_to_string(path.join("schemas/aitp/doc-examples.json")).unwrap();
    let examples: Vec<Value> = serde_json::from_str(&text).unwrap();
    let meeting = Meeting::keys("").await;
    let user = &meeting.user;
    let mut n_forms = 0;
    for (n, example) in examples.iter().enumerate() {
        // The offers of the examples have ended.
        let text = example["message"]
            .to_string()
            .replace("2025-03-01", "2050-03-01");
        let kind = Message::read(&text).unwrap().kind;
        let Some(Purpose::Ask(topic)) = kind.map(Kind::purpose) else {
            continue;
        };
        if example["valid"] == false {
            continue;
        }
        let key = format!("t{n}");
        user.post("/api/v1/threads", json!({ "key": key })).await;
        let path = format!("/v1/threads/{key}/messages");
        let body = json!({"role": "assistant", "content": text});
        let recorded = user.post(&path, body).await;
        assert_eq!(recorded.status, 200, "{}", recorded.text);
        let html = page(user, &key).await;
        assert!(html.contains("<details class=\"data\"><summary>JSON</summary>"));
        let form = forms(&html, "/ui/request").remove(0);
        let fields = form.filled(plausible);
        let sent = submit(user, "/ui/request", &fields, "text/html").await;
        assert_eq!(sent.status, 303, "{text}\n{fields:?}\n{}", sent.text);
        let requests = user
            .get(&format!("/api/v1/threads/{key}/requests?state=answered"))
            .await;
        let request = requests.json()["requests"][0].clone();
        assert_eq!(request["topic"], topic.name(), "{text}");
        // A second click of the same form does nothing.
        let again = submit(user, "/ui/request", &fields, "application/json").await;
        assert_eq!(again.status, 200, "{}", again.text);
        assert_eq!(request["nAnswers"], 1);
        assert!(page(user, &key).await.contains("Answered by"));
        n_forms += 1;
    }
    assert!(n_forms > 30, "{n_forms}");
}

#[tokio::test]
async fn an_answer_with_errors_is_refused_with_the_fields_that_are_wrong() {
    let meeting = Meeting::new().await;
    meeting.ask(&address()).await;
    let form = first_form(&meeting.user).await;
    let fields = form.filled(|control| match control.get("name") {
        "f.city" => Some("<i>Bonn".to_owned()),
        "f.floor" => Some("third".to_owned()),
        _ => None,
    });
    let refused = submit(&meeting.user, "/ui/request", &fields, "application/json").await;
    let error = refused.json()["error"].clone();
    assert_eq!(refused.status, 422, "{error}");
    let expected = json!([{"pointer": "/floor", "expected": "a number"}]);
    assert_eq!(error["details"]["violations"], expected);
    let refused = submit(&meeting.user, "/ui/request", &fields, "text/html").await;
    assert_eq!(refused.status, 422);
    let html = &refused.text;
    for part in [
        "autofocus",
        "expected a number",
        "value=\"third\"",
        "&lt;i&gt;Bonn",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(refused.headers.contains_key("content-security-policy"));
    // The page that was refused can be sent with other values.
    let again = forms(html, "/ui/request").remove(0).filled(plausible);
    let sent = submit(&meeting.user, "/ui/request", &again, "text/html").await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let location = sent.headers["location"].to_str().unwrap();
    assert!(location.starts_with("/chat/t#r-"), "{location}");
}

#[tokio::test]
async fn a_declined_request_is_shown_with_its_reason() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let html = page(&meeting.user, "t").await;
    let form = forms(&html, "/ui/decline").remove(0);
    let fields =
        form.filled(|control| (control.get("name") == "reason").then(|| "No <b>flights".into()));
    let sent = submit(&meeting.user, "/ui/decline", &fields, "text/html").await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let request = meeting.request("decision:seat").await;
    assert_eq!(
        (&request["state"], &request["reason"]),
        (&json!("declined"), &json!("No <b>flights"))
    );
    let html = page(&meeting.user, "t").await;
    assert!(html.contains("Declined by") && html.contains("No &lt;b&gt;flights"));
    assert!(forms(&html, "/ui/request").is_empty());
}

#[tokio::test]
async fn an_expired_request_has_no_form_and_an_old_form_is_late() {
    let meeting = Meeting::new().await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1_500);
    meeting.ask(&seat(Some(&soon.to_string()))).await;
    let form = first_form(&meeting.user).await;
    tokio::time::sleep(Duration::from_millis(1_700)).await;
    let html = page(&meeting.user, "t").await;
    assert!(html.contains("data-state=\"expired\"") && forms(&html, "/ui/request").is_empty());
    let fields = form.filled(plausible);
    let late = submit(&meeting.user, "/ui/request", &fields, "application/json").await;
    assert_eq!(super::reason(&late).2, "late");
    let late = submit(&meeting.user, "/ui/request", &fields, "text/html").await;
    assert_eq!(late.status, 409);
    assert!(late.text.contains("expired"), "{}", late.text);
}

#[tokio::test]
async fn the_form_of_a_superseded_request_answers_nothing() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let old = first_form(&meeting.user).await.filled(plausible);
    meeting.ask(&seat(None)).await;
    let refused = submit(&meeting.user, "/ui/request", &old, "application/json").await;
    assert_eq!(super::reason(&refused).2, "late");
    assert_eq!(meeting.request("decision:seat").await["state"], "open");
    let html = page(&meeting.user, "t").await;
    assert!(html.contains("replaced by a newer request"));
    assert_eq!(fill_in(&meeting.user).await.status, 303);
}

#[tokio::test]
async fn each_key_answers_its_requests_and_is_told_why_not_others() {
    let meeting = Meeting::new().await;
    // The helper declared decisions only.
    meeting.ask(&address()).await;
    let html = page(&meeting.helper, "t").await;
    assert!(forms(&html, "/ui/request").is_empty());
    assert!(html.contains("did not declare the capability"), "{html}");
    let fields = first_form(&meeting.user).await.filled(plausible);
    let refused = submit(&meeting.helper, "/ui/request", &fields, "application/json").await;
    assert_eq!(
        super::reason(&refused),
        (403, "request_forbidden".into(), json!("not_declared"))
    );
    // Its author may not answer it either.
    let html = page(&meeting.shop, "t").await;
    assert!(
        forms(&html, "/ui/request").is_empty() && html.contains("somebody else than the asker")
    );
    assert_eq!(fill_in(&meeting.user).await.status, 303);
    meeting.ask(&seat(None)).await;
    let html = page(&meeting.helper, "t").await;
    let form = forms(&html, "/ui/request").remove(0);
    assert_eq!(form.control("actor").unwrap().get("value"), "helper");
    let sent = submit(
        &meeting.helper,
        "/ui/request",
        &form.filled(plausible),
        "text/html",
    )
    .await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let request = meeting.request("decision:seat").await;
    assert_eq!(request["answer"]["by"]["id"], "helper");
}

#[tokio::test]
async fn a_payment_is_paid_once_from_its_page() {
    let meeting = Meeting::new().await;
    meeting.ask(&quote()).await;
    let html = page(&meeting.user, "t").await;
    assert!(html.contains("Pay 12.50 USD</button>"), "{html}");
    let fields = forms(&html, "/ui/request").remove(0).filled(plausible);
    for _ in 0..2 {
        let sent = submit(&meeting.user, "/ui/request", &fields, "text/html").await;
        assert_eq!(sent.status, 303, "{}", sent.text);
    }
    let request = meeting.request("payment:hat").await;
    assert_eq!(request["nAnswers"], 1);
    let html = page(&meeting.user, "t").await;
    assert!(
        html.contains("has not confirmed the payment") && forms(&html, "/ui/request").is_empty()
    );
}

#[tokio::test]
async fn a_key_that_only_reads_sees_no_form() {
    let reads = super::keys(&[
        ("user", "llk_user", ""),
        ("reader", "llk_reader", "scopes = [\"read\"]"),
    ]);
    let server = Server::new(&reads).await;
    let user = server.with_key("llk_user");
    let reader = server.with_key("llk_reader");
    user.say("t", "hello").await;
    join(&user, "shop", &[]).await;
    let body = json!({"role": "assistant", "content": seat(None).to_string(), "metadata": {"actor": "shop"}});
    user.post("/v1/threads/t/messages", body).await;
    let html = page(&reader, "t").await;
    assert!(forms(&html, "/ui/request").is_empty() && html.contains("this key may only read"));
}

#[tokio::test]
async fn an_open_page_gets_requests_and_their_answers() {
    let meeting = Meeting::new().await;
    let html = page(&meeting.user, "t").await;
    let after = html.split_once("data-after=\"").unwrap().1;
    let after = after.split_once('"').unwrap().0;
    let request = meeting
        .user
        .request("GET", &format!("/ui/live?thread=t&after={after}"));
    let (status, mut stream) = meeting.user.open(request.body("".into()).unwrap()).await;
    assert_eq!(status, 200);
    let mut seen = String::new();
    let mut until = async |words: &str| {
        while !seen.contains(words) {
            let frame = tokio::time::timeout(Duration::from_secs(10), stream.next()).await;
            let frame = frame.unwrap_or_else(|_| panic!("{words}: {seen}"));
            seen.push_str(&String::from_utf8_lossy(&frame.unwrap().unwrap()));
        }
        seen.clear();
    };
    meeting.ask(&seat(None)).await;
    until("/ui/request").await;
    assert_eq!(fill_in(&meeting.user).await.status, 303);
    until("Answered by").await;
}

#[tokio::test]
async fn the_requests_of_a_past_event_are_as_they_were() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let list = meeting.user.get("/api/v1/threads/t/requests").await.json();
    let at = list["seq"].clone();
    assert_eq!(fill_in(&meeting.user).await.status, 303);
    let read = async |query: &str| {
        let path = format!("/api/v1/threads/t/requests?state=all&{query}");
        meeting.user.get(&path).await
    };
    let now = read("").await.json();
    assert_eq!(now["requests"][0]["state"], "answered");
    let then = read(&format!("at={at}")).await.json();
    assert_eq!(
        (&then["requests"][0]["state"], &then["seq"]),
        (&json!("open"), &at)
    );
    let before = read("at=1").await.json();
    assert_eq!(before["requests"], json!([]));
    let refused = read("at=100000").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    // A page of the past shows the request without its form.
    let html = page(&meeting.user, &format!("t?at={at}")).await;
    assert!(html.contains("data-state=\"open\"") && html.contains("this is the past"));
    assert!(forms(&html, "/ui/request").is_empty() && forms(&html, "/ui/decline").is_empty());
}

#[tokio::test]
async fn the_file_of_a_message_is_read_by_its_page() {
    let server = Server::new("").await;
    let parts = json!([
        {"type": "input_text", "text": "A note"},
        {"type": "input_file", "file_data": "data:text/html;base64,PGI+", "filename": "a.html"},
    ]);
    let body = json!({"content": parts, "stream": true});
    let said = server.post("/api/v1/threads/t/messages", body).await;
    assert_eq!(said.status, 200, "{}", said.text);
    let html = page(&server, "t").await.replace("&amp;", "&");
    let path = html.split_once("href=\"/ui/file?").unwrap().1;
    let path = format!("/ui/file?{}", path.split_once('"').unwrap().0);
    assert!(path.ends_with("&part=1"), "{path}");
    let file = server.get(&path).await;
    assert_eq!((file.status.as_u16(), file.text.as_str()), (200, "<b>"));
    assert_eq!(file.headers["content-disposition"], "attachment");
    assert_eq!(
        file.headers["content-security-policy"],
        "sandbox; default-src 'none'"
    );
    for (query, status) in [
        ("part=0", 404),
        ("part=9", 404),
        ("part=1&step=s", 400),
        ("part=x", 400),
    ] {
        let path = path.replace("part=1", query);
        assert_eq!(server.get(&path).await.status, status, "{query}");
    }
}
