//! Requests to the real server whose refusals are answers too.

use super::server::{Server, position};
use serde_json::Value;
use std::time::Duration;

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: ureq::http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }

    /// The data of the events of a stream, each of which has its position as its id.
    pub(crate) fn frames(&self) -> Vec<Value> {
        let frames = self
            .text
            .split_terminator("\n\n")
            .filter(|frame| !frame.starts_with(':'));
        let read = |frame: &str| -> Value {
            let lines = |name: &str| -> Vec<&str> {
                let lines = frame.lines();
                lines.filter_map(|line| line.strip_prefix(name)).collect()
            };
            let data: Value = serde_json::from_str(&lines("data: ").join("\n")).unwrap();
            let ids = lines("id: ");
            let (seq, n_ahead) = position(ids.first().unwrap());
            assert_eq!(
                (ids.len(), seq + n_ahead),
                (1, data["seq"].as_u64().unwrap())
            );
            data
        };
        frames.map(read).collect()
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_mins(1)))
        .http_status_as_error(false)
        .build()
        .into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let mut response = response.unwrap();
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.body_mut().read_to_string().unwrap(),
    }
}

pub(crate) fn get(server: &Server, path: &str, accept: &str) -> Answer {
    answer(
        agent()
            .get(server.url(path))
            .header("accept", accept)
            .call(),
    )
}

/// A request with an API key.
#[cfg(all(unix, feature = "postgres"))]
pub(crate) fn get_as(server: &Server, path: &str, key: &str) -> Answer {
    let request = agent().get(server.url(path));
    let request = request.header("authorization", format!("Bearer {key}"));
    answer(request.header("accept", "application/json").call())
}

/// Uploads a file with an API key.
#[cfg(all(unix, feature = "postgres"))]
pub(crate) fn upload(server: &Server, path: &str, file: &std::path::Path, key: &str) -> Answer {
    let content = std::fs::read_to_string(file).unwrap();
    let body = format!(
        "--limit\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nassistants\r\n\
         --limit\r\ncontent-disposition: form-data; name=\"file\"; filename=\"note.txt\"\r\n\
         content-type: text/plain\r\n\r\n{content}\r\n--limit--\r\n"
    );
    let request = agent().post(server.url(path));
    let request = request.header("content-type", "multipart/form-data; boundary=limit");
    answer(
        request
            .header("authorization", format!("Bearer {key}"))
            .send(body),
    )
}

pub(crate) fn post(server: &Server, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = agent()
        .post(server.url(path))
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answer(request.send(body))
}
