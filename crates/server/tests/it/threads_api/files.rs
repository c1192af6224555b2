//! Files.

use super::{Client, object, refused};
use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use interop::ids::THREAD;
use jiff::Timestamp;
use loomline_server::DEV_TENANT;
use runtime::objects::NewObject;
use serde_json::{Value, json};

/// The smallest things that are taken for what they are.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const SCHEMA: &str = "OpenAIFile";

/// Uploads a file with these text fields.
pub(super) async fn upload(
    client: &Client,
    fields: &[(&str, &str)],
    name: &str,
    content: &[u8],
) -> Answer {
    let mut body = Vec::new();
    for (name, value) in fields {
        let part =
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let part = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/html\r\n\r\n"
    );
    body.extend_from_slice(part.as_bytes());
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--b--\r\n");
    let request = client.0.request("POST", "/v1/files");
    let request = request.header(header::CONTENT_TYPE, "multipart/form-data; boundary=b");
    client.0.send(request.body(Body::from(body)).unwrap()).await
}

pub(super) async fn kept(client: &Client, purpose: &str, name: &str, content: &[u8]) -> Value {
    object(
        &upload(client, &[("purpose", purpose)], name, content).await,
        SCHEMA,
    )
}

pub(super) fn id(object: &Value) -> &str {
    object["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_file_is_kept_given_back_and_deleted() {
    let client = Client::new().await;
    let file = kept(&client, "assistants", "notes.txt", b"a note").await;
    assert_eq!(
        (&file["bytes"], &file["filename"]),
        (&json!(6), &json!("notes.txt"))
    );
    let path = format!("/files/{}", id(&file));
    assert_eq!(client.get(&path, SCHEMA).await, file);
    let content = client.0.get(&format!("/v1{path}/content")).await;
    assert_eq!(content.text, "a note");
    // A page of a browser that is led here runs nothing.
    assert_eq!(content.headers["content-type"], "application/octet-stream");
    assert_eq!(content.headers["content-disposition"], "attachment");
    let deleted = object(&client.delete(&path).await, "DeleteFileResponse");
    assert_eq!(
        deleted,
        json!({"id": file["id"], "object": "file", "deleted": true})
    );
    for gone in [format!("/v1{path}"), format!("/v1{path}/content")] {
        let message = format!("No file found with id '{}'.", id(&file));
        assert_eq!(refused(&client.0.get(&gone).await), (404, message, None));
    }
    assert_eq!(client.delete(&path).await.status, 404);
}

#[tokio::test]
async fn a_file_that_is_not_what_its_name_says_is_no_image_and_for_no_model() {
    let client = Client::new().await;
    let vision = [("purpose", "vision")];
    let answer = upload(&client, &vision, "a.png", b"<script>").await;
    let message = "Invalid 'file': the name 'a.png' says image/png, but the content is text/plain.";
    assert_eq!(
        refused(&answer),
        (400, message.to_owned(), Some("file".to_owned()))
    );
    // Elsewhere it is kept, and a model is told its name alone.
    let stub = kept(&client, "assistants", "a.pdf", b"x").await;
    let content = client
        .0
        .get(&format!("/v1/files/{}/content", id(&stub)))
        .await;
    assert_eq!(content.text, "x");
    let thread = client.thread(&[]).await;
    let path = format!("/threads/{thread}/messages");
    let attached = json!({"role": "user", "content": "see", "attachments": [
        {"file_id": id(&stub), "tools": []}]});
    client.post(&path, attached, "MessageObject").await;
    let key = THREAD.read(&thread).into_owned();
    let there = format!("/api/v1/threads/{key}/messages");
    let there = client.0.get(&there).await.json();
    let part = &there["messages"][0]["content"][1];
    assert_eq!(part, &json!({"type": "input_file", "file_id": id(&stub)}));
    let shows = json!({"role": "user", "content": [
        {"type": "image_file", "image_file": {"file_id": id(&stub)}}]});
    assert_eq!(refused(&client.ask(&path, shows).await).0, 400);
    let answer = upload(&client, &[("purpose", "vision")], "a", b"text").await;
    assert_eq!(refused(&answer).0, 400);
    assert_eq!(
        upload(&client, &[("purpose", "vision")], "a", PNG)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_form_that_can_not_be_taken_is_refused_with_its_place() {
    let client = Client::new().await;
    let no_purpose = upload(&client, &[], "a.txt", b"x").await;
    let (status, _, param) = refused(&no_purpose);
    assert_eq!((status, param.as_deref()), (400, Some("purpose")));
    let request = client.0.request("POST", "/v1/files");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let answer = client.0.send(request.body(Body::from("{}")).unwrap()).await;
    assert_eq!(refused(&answer).0, 400);
    let request = client.0.request("POST", "/v1/files");
    let request = request.header(header::CONTENT_TYPE, "multipart/form-data; boundary=b");
    let form = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nvision\r\n--b--\r\n";
    let answer = client.0.send(request.body(Body::from(form)).unwrap()).await;
    assert_eq!(refused(&answer).2.as_deref(), Some("file"));
}

#[tokio::test]
async fn a_file_is_no_longer_than_is_configured() {
    let client = Client(Server::new("[server]\nmax_file_bytes = 10").await);
    let purpose = [("purpose", "assistants")];
    assert_eq!(
        upload(&client, &purpose, "a.txt", &[b'a'; 10]).await.status,
        200
    );
    for n_bytes in [11, 200_000] {
        let answer = upload(&client, &purpose, "a.txt", &vec![b'a'; n_bytes]).await;
        assert_eq!(refused(&answer).0, 413, "{n_bytes}");
    }
    let list = client.get("/files", "ListFilesResponse").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn pages_of_files_show_each_once_and_only_those_of_a_purpose() {
    let client = Client::new().await;
    let mut all = Vec::new();
    for n in 0..5 {
        let purpose = if n % 2 == 0 {
            "assistants"
        } else {
            "user_data"
        };
        let file = kept(&client, purpose, "a.txt", b"same").await;
        all.push(id(&file).to_owned());
    }
    let (page, more) = client
        .ids("/files?order=asc&limit=2", "ListFilesResponse")
        .await;
    assert_eq!((page.as_slice(), more), (&all[..2], true));
    let path = format!("/files?order=asc&after={}", page[1]);
    assert_eq!(
        client.ids(&path, "ListFilesResponse").await,
        (all[2..].to_vec(), false)
    );
    let (of_users, _) = client
        .ids("/files?purpose=user_data", "ListFilesResponse")
        .await;
    assert_eq!(of_users, [all[3].clone(), all[1].clone()]);
    let made_here = client.get("/files?purpose=assistants_output", "ListFilesResponse");
    assert_eq!(made_here.await["data"], json!([]));
    assert_eq!(client.0.get("/v1/files?after=file-none").await.status, 404);
}

/// Has the time of a file be up since so many seconds.
pub(super) async fn expired(client: &Client, file: &Value, seconds: i64) {
    let (objects, tenant) = (client.0.app.default_runtime().objects(), DEV_TENANT.into());
    let kept = objects.get(&tenant, "file", id(file)).await;
    let kept = kept.unwrap().unwrap();
    let mut json: Value = serde_json::from_str(&kept.json).unwrap();
    json["expires_at"] = json!(Timestamp::now().as_second() - seconds);
    let object = NewObject {
        kind: "file".to_owned(),
        id: kept.id,
        created_at: kept.created_at,
        json: json.to_string(),
        content: Some(b"y".to_vec()),
        thread: None,
        is_limited: true,
    };
    objects.put(&tenant, object).await.unwrap();
}

#[tokio::test]
async fn files_whose_time_is_up_are_shown_to_nobody_and_deleted_a_day_later() {
    let client = Client::new().await;
    let (runtime, tenant) = (client.0.app.default_runtime(), DEV_TENANT.into());
    let stays = kept(&client, "assistants", "a.txt", b"x").await;
    let gone = kept(&client, "assistants", "b.txt", b"y").await;
    let is_kept = async || {
        let kept = runtime.objects().get(&tenant, "file", id(&gone)).await;
        let kept = kept.unwrap();
        // The content is gone at once.
        assert_eq!(kept.as_ref().and_then(|it| it.bytes), None);
        kept.is_some()
    };
    for (seconds, expected) in [(1, true), (23 * 3600, true), (25 * 3600, false)] {
        expired(&client, &gone, seconds).await;
        let read = client.0.get(&format!("/v1/files/{}", id(&gone))).await;
        assert_eq!(read.status, 404);
        let (listed, _) = client.ids("/files", "ListFilesResponse").await;
        assert_eq!(listed, [id(&stays)]);
        assert_eq!(is_kept().await, expected, "{seconds}");
    }
}

#[tokio::test]
async fn a_page_goes_on_after_a_file_whose_time_is_up() {
    let client = Client::new().await;
    let mut all = Vec::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        all.push(kept(&client, "assistants", name, b"x").await);
    }
    let (page, _) = client
        .ids("/files?order=asc&limit=2", "ListFilesResponse")
        .await;
    assert_eq!(page, [id(&all[0]), id(&all[1])]);
    expired(&client, &all[1], 1).await;
    // Somebody else looks meanwhile.
    client.ids("/files", "ListFilesResponse").await;
    let read = client.0.get(&format!("/v1/files/{}", id(&all[1]))).await;
    assert_eq!(read.status, 404);
    let next = format!("/files?order=asc&after={}", page[1]);
    let (rest, _) = client.ids(&next, "ListFilesResponse").await;
    assert_eq!(rest, [id(&all[2])]);
}

#[tokio::test]
async fn what_is_asked_for_again_needs_no_file_and_no_assistant_any_more() {
    let client = Client::new().await;
    let notes = kept(&client, "assistants", "notes.txt", b"a note").await;
    let body = json!({"model": "scripted"});
    let assistant = client.post("/assistants", body, "AssistantObject").await;
    let says = json!([{"role": "user", "content": "see", "attachments": [
        {"file_id": notes["id"], "tools": []}]}]);
    let thread = client.thread(&["hello"]).await;
    let asked = [
        ("/threads".to_owned(), json!({"messages": says})),
        (format!("/threads/{thread}/messages"), says[0].clone()),
        (
            format!("/threads/{thread}/runs"),
            json!({"assistant_id": assistant["id"], "additional_messages": says}),
        ),
        (
            "/threads/runs".to_owned(),
            json!({"assistant_id": assistant["id"], "thread": {"messages": says}}),
        ),
    ];
    let mut first = Vec::new();
    for (path, body) in &asked {
        let answer = client.ask_once(path, body.clone(), "t").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        first.push(answer.json());
    }
    client.rest(&thread).await;
    client.delete(&format!("/files/{}", id(&notes))).await;
    client
        .delete(&format!("/assistants/{}", id(&assistant)))
        .await;
    for ((path, body), first) in asked.iter().zip(first) {
        let again = client.ask_once(path, body.clone(), "t").await;
        assert_eq!(
            (again.status.as_u16(), again.json()),
            (200, first),
            "{path}"
        );
    }
    let other = client.ask_once(&asked[2].0, asked[2].1.clone(), "u").await;
    assert_eq!(other.status, 404, "{}", other.text);
}

#[tokio::test]
async fn files_of_a_message_reach_the_model_and_are_shown_by_name() {
    let client = Client::new().await;
    let image = kept(&client, "vision", "a.png", PNG).await;
    let notes = kept(&client, "assistants", "notes.txt", b"a note").await;
    let binary = kept(&client, "assistants", "a.zip", b"PK\x03\x04").await;
    let thread = client.thread(&[]).await;
    let tools = json!([{"type": "file_search"}]);
    let body = json!({
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_file", "image_file": {"file_id": image["id"], "detail": "low"}},
        ],
        "attachments": [
            {"file_id": notes["id"], "tools": tools}, {"file_id": binary["id"], "tools": tools},
        ],
    });
    let path = format!("/threads/{thread}/messages");
    let said = client.post(&path, body, "MessageObject").await;
    assert_eq!(
        said["content"][1]["image_file"],
        json!({"file_id": image["id"], "detail": "low"})
    );
    assert_eq!(
        said["attachments"][0],
        json!({"file_id": notes["id"], "tools": tools})
    );
    assert!(!said.to_string().contains("base64"), "{said}");
    // The contents are in the log: they stay when the files go.
    for file in [&image, &notes] {
        client.delete(&format!("/files/{}", id(file))).await;
    }
    assert_eq!(client.ran(&thread, json!({})).await["status"], "completed");
    let key = THREAD.read(&thread).into_owned();
    let kept = client
        .0
        .get(&format!("/api/v1/threads/{key}/messages"))
        .await
        .json();
    let parts = &kept["messages"][0]["content"];
    assert_eq!(
        parts[1]["image_url"],
        "data:image/png;base64,iVBORw0KGgpyZXN0"
    );
    assert_eq!(parts[2]["file_data"], "data:text/plain;base64,YSBub3Rl");
    assert_eq!(parts[2]["filename"], "notes.txt");
    assert_eq!(parts[3].get("file_data"), None, "a model takes no archive");
}

#[tokio::test]
async fn a_message_with_a_file_that_is_not_there_or_no_image_is_refused() {
    let client = Client::new().await;
    let thread = client.thread(&[]).await;
    let path = format!("/threads/{thread}/messages");
    let shows = |id: &str| json!({"role": "user", "content": [{"type": "image_file", "image_file": {"file_id": id}}]});
    let (status, message, _) = refused(&client.ask(&path, shows("file-none")).await);
    assert_eq!(
        (status, message.as_str()),
        (404, "No file found with id 'file-none'.")
    );
    let notes = kept(&client, "assistants", "notes.txt", b"a note").await;
    assert_eq!(refused(&client.ask(&path, shows(id(&notes))).await).0, 400);
    assert_eq!(
        client.get(&path, "ListMessagesResponse").await["data"],
        json!([])
    );
}
