//! What clients of every protocol ask of a thread with the key `k`.

use crate::harness::Server;
use axum::body::Body;
use http::Request;
use timeline::{Event, ItemType, Record};

/// A request without a body.
pub(super) struct Get {
    method: &'static str,
    path: String,
    /// Where its stream is taken up.
    after: Option<String>,
}

impl Get {
    fn new(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            after: None,
        }
    }

    fn post(path: impl Into<String>) -> Self {
        Self {
            method: "POST",
            ..Self::new(path)
        }
    }

    fn after(path: impl Into<String>, after: &impl ToString) -> Self {
        Self {
            after: Some(after.to_string()),
            ..Self::new(path)
        }
    }

    pub(super) fn request(&self, server: &Server) -> Request<Body> {
        let mut request = server.request(self.method, &self.path);
        if self.method == "POST" {
            request = request.header("content-type", "application/json");
        }
        if let Some(after) = &self.after {
            request = request.header("last-event-id", after);
        }
        request
            .header("a2a-version", "1.0")
            .body(Body::empty())
            .unwrap()
    }
}

impl std::fmt::Display for Get {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        match &self.after {
            Some(after) => write!(f, " after {after}"),
            None => Ok(()),
        }
    }
}

const MODES: &str = "stream_mode=values&stream_mode=updates&stream_mode=messages&stream_mode=messages-tuple&stream_mode=custom";

/// What of a log requests name.
struct Named {
    thread: String,
    executions: Vec<String>,
    /// The messages of users.
    said: Vec<String>,
    middle: u64,
}

impl Named {
    /// An id in the protocol's spelling, of the thread and of something in it, or of that alone.
    fn id(&self, prefix: &str, id: &str) -> String {
        let in_thread = ["resp_", "task_"].contains(&prefix);
        let thread = if in_thread { self.thread.as_str() } else { "" };
        format!("{prefix}{thread}{id}").replace('-', "")
    }

    fn of(records: &[Record]) -> Self {
        let mut named = Self {
            thread: String::new(),
            executions: Vec::new(),
            said: Vec::new(),
            middle: records.len() as u64 / 2,
        };
        for record in records {
            if let Event::ThreadCreated { thread } = &record.event {
                named.thread = thread.id.to_string();
            }
            if let Event::ExecutionCreated { execution } = &record.event {
                named.executions.push(execution.id.to_string());
            }
            if let Event::ItemCreated { item } = &record.event
                && item.item_type == ItemType::Message
                && item.execution_id.is_none()
            {
                named.said.push(item.id.to_string());
            }
        }
        named
    }
}

/// What is asked of a thread at rest.
pub(super) fn at_rest(records: &[Record]) -> Vec<Get> {
    let named = Named::of(records);
    let mut gets = native(&named);
    gets.extend(
        [
            "/api/chat/k/messages",
            "/api/chat/k/stream",
            "/ag-ui/threads/k/messages",
        ]
        .map(Get::new),
    );
    gets.extend(responses(&named));
    gets.extend(threads(&named));
    gets.extend(langgraph(&named));
    gets.push(Get::new("/a2a/v1/tasks?includeArtifacts=true"));
    for item in &named.said {
        let task = named.id("task_", item);
        gets.push(Get::new(format!("/a2a/v1/tasks/{task}")));
    }
    gets
}

fn native(named: &Named) -> Vec<Get> {
    let of_thread = [
        "",
        "/messages",
        "/runs",
        "/pending",
        "/document",
        "/branches",
        "/events?until=rest",
    ];
    let mut gets = vec![Get::new("/api/v1/threads")];
    gets.extend(of_thread.map(|path| Get::new(format!("/api/v1/threads/k{path}"))));
    let events = "/api/v1/threads/k/events?until=rest";
    gets.push(Get::after(events, &named.middle));
    for execution in &named.executions {
        gets.push(Get::new(format!("/api/v1/threads/k/runs/{execution}")));
    }
    gets
}

fn responses(named: &Named) -> Vec<Get> {
    let mut gets = Vec::new();
    for execution in &named.executions {
        let path = format!("/v1/responses/{}", named.id("resp_", execution));
        gets.push(Get::new(path.as_str()));
        gets.push(Get::new(format!(
            "{path}?include[]=reasoning.encrypted_content&include[]=loomline:items"
        )));
        gets.push(Get::new(format!("{path}?stream=true")));
        for after in [0, 3, 7] {
            gets.push(Get::new(format!(
                "{path}?stream=true&starting_after={after}"
            )));
        }
        gets.push(Get::new(format!("{path}/input_items?order=asc")));
    }
    gets.push(Get::new("/v1/conversations/k"));
    gets.push(Get::new("/v1/conversations/k/items?order=asc&limit=100"));
    gets
}

fn threads(named: &Named) -> Vec<Get> {
    let thread = format!("/v1/threads/{}", named.thread);
    let mut gets = vec![
        Get::new(thread.as_str()),
        Get::new(format!("{thread}/messages?order=asc")),
        Get::new(format!("{thread}/runs?order=asc")),
    ];
    for execution in &named.executions {
        let run = format!("{thread}/runs/{}", named.id("run_", execution));
        gets.push(Get::new(run.as_str()));
        gets.push(Get::new(format!("{run}/steps?order=asc")));
    }
    gets
}

fn langgraph(named: &Named) -> Vec<Get> {
    let thread = format!("/threads/{}", named.thread);
    let of_thread = ["", "/state", "/history", "/runs"];
    let mut gets: Vec<Get> = of_thread
        .map(|path| Get::new(format!("{thread}{path}")))
        .into();
    for execution in &named.executions {
        let run = format!("{thread}/runs/{execution}");
        gets.push(Get::new(run.as_str()));
        gets.push(Get::new(format!("{run}/join")));
        let stream = format!("{run}/stream?{MODES}");
        gets.push(Get::new(stream.as_str()));
        gets.push(Get::new(format!("{run}/stream")));
        gets.push(Get::after(stream, &format!("{}-1", named.middle)));
    }
    gets
}

/// What is asked of a thread whose run goes on.
pub(super) fn in_the_midst(records: &[Record]) -> Vec<Get> {
    let named = Named::of(records);
    let mut gets = vec![
        Get::new("/api/v1/threads/k/events?until=rest"),
        Get::after("/api/v1/threads/k/events?until=rest", &named.middle),
        Get::new("/api/v1/threads/k/messages"),
        Get::new("/api/chat/k/messages"),
        Get::new("/ag-ui/threads/k/messages"),
        Get::new("/v1/conversations/k/items?order=asc&limit=100"),
        Get::new(format!("/v1/threads/{}/messages?order=asc", named.thread)),
        Get::new(format!("/threads/{}/state", named.thread)),
    ];
    gets.extend([7, 6, 5].map(|major| Get::new(format!("/api/chat/k/stream?ai={major}"))));
    for execution in &named.executions {
        let run = format!("/v1/responses/{}", named.id("resp_", execution));
        gets.push(Get::new(run.as_str()));
        gets.push(Get::new(format!("{run}?stream=true")));
        gets.push(Get::new(format!("{run}?stream=true&starting_after=4")));
        let run = format!("/threads/{}/runs/{execution}", named.thread);
        gets.push(Get::new(format!("{run}/stream?{MODES}")));
        gets.push(Get::after(format!("{run}/stream?{MODES}"), &"13-1"));
    }
    for item in &named.said {
        let task = named.id("task_", item);
        gets.push(Get::new(format!("/a2a/v1/tasks/{task}")));
        gets.push(Get::post(format!("/a2a/v1/tasks/{task}:subscribe")));
    }
    gets
}
