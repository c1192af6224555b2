//! A client of a server's HTTP API.

mod answers;
mod frames;

pub(crate) use answers::{Branch, Compaction, FoundRow, Imported, Listed, Snippet};
pub(crate) use frames::Frames;

use crate::args::Exchanged;
use crate::documents::Source;
use crate::environment::environment;
use crate::error::CliError;
use answers::{
    Accepted, Branches, Compactions, EventPage, Failure, FoundPage, Key, Thread, ThreadPage,
};
use interop::Loss;
use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder, Response, Url};
use runtime::{Cut, Filter, Logged, ThreadFilter};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use server::purge::{PURGE_PATH, Purge, Purged};
use server::{LocalServer, TENANT_HEADER};
use std::time::Duration;
use timeline::{Seq, Transcript};

/// The variable with the file of further certificates to trust, in PEM form.
const CERTIFICATES: &str = "SSL_CERT_FILE";
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// The most threads of a page.
const PAGE: usize = 500;
/// The most found threads of a page.
const FOUND_PAGE: usize = 100;

/// A server, and what opens it.
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<SecretString>,
    tenant: Option<String>,
}

impl Client {
    /// A client of the server at this URL; the key determines the tenant.
    pub(crate) fn at(url: &str, key: Option<SecretString>) -> Result<Self, CliError> {
        let usage = |what: String| CliError::Usage { what };
        let base: Url = url
            .parse()
            .map_err(|error| usage(format!("--server {url:?} is no URL: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(usage(format!(
                "--server {url:?} is no URL of a server; expected http:// or https://"
            )));
        }
        Self::new(base, key, None, |builder| builder)
    }

    /// The server that serves the data directory, opened by its own key for the tenant that is named.
    pub(crate) fn local(server: LocalServer, tenant: Option<String>) -> Result<Self, CliError> {
        let base = server.url.parse().map_err(|_| CliError::Usage {
            what: format!(
                "the running server has published {:?}, which is no URL",
                server.url
            ),
        })?;
        // A proxy can't reach the loopback address of this machine.
        Self::new(
            base,
            Some(server.key),
            tenant,
            reqwest::ClientBuilder::no_proxy,
        )
    }

    fn new(
        base: Url,
        key: Option<SecretString>,
        tenant: Option<String>,
        with: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, CliError> {
        let set_up = |source: Box<dyn std::error::Error + Send + Sync>| CliError::Client { source };
        let roots = match environment(CERTIFICATES) {
            Some(file) if base.scheme() == "https" => std::fs::read(&file).map_err(
                CliError::io(format!("read {file}, which {CERTIFICATES} names")),
            )?,
            Some(_) | None => Vec::new(),
        };
        let builder = upp::http_client_builder_trusting("server", &roots);
        let builder = builder.map_err(|error| set_up(error.into()))?;
        let http = with(builder.connect_timeout(CONNECT)).build();
        Ok(Self {
            http: http.map_err(|error| set_up(error.into()))?,
            base,
            key,
            tenant,
        })
    }

    /// A request to the native API.
    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.request_with(method, path, &[])
    }

    /// A request with a query.
    fn request_with(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self
            .http
            .request(method, url)
            .header(ACCEPT, "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        match &self.tenant {
            Some(tenant) => request.header(TENANT_HEADER, tenant),
            None => request,
        }
    }

    /// Sends a request about a thread, if one is named; a refusal is an error.
    async fn send(&self, request: RequestBuilder, thread: &str) -> Result<Response, CliError> {
        let response = request
            .send()
            .await
            .map_err(|source| self.unreached(source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = self.text(response).await?;
        let failure = serde_json::from_str(&text).unwrap_or_else(|_| Failure::of_status(status));
        Err(failure.into_error(thread))
    }

    async fn text(&self, response: Response) -> Result<String, CliError> {
        response
            .text()
            .await
            .map_err(|source| self.unreached(source))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        thread: &str,
    ) -> Result<T, CliError> {
        let text = self.text(self.send(request, thread).await?).await?;
        answers::read(&text)
    }

    fn unreached(&self, source: reqwest::Error) -> CliError {
        CliError::Unreached {
            server: self.base.to_string(),
            source: source.without_url().into(),
        }
    }

    /// Posts a message to a thread; its run starts or is queued.
    pub(crate) async fn post_message(
        &self,
        key: &str,
        (text, agent, max_steps): (&str, Option<&str>, Option<u32>),
    ) -> Result<Accepted, CliError> {
        let mut body = json!({ "content": [{ "type": "input_text", "text": text }] });
        if let Some(agent) = agent {
            body["agent"] = agent.into();
        }
        if let Some(max_steps) = max_steps {
            body["maxSteps"] = max_steps.into();
        }
        let request = self.request(Method::POST, &["threads", key, "messages"]);
        let accepted = self.json(request.json(&body), key).await;
        accepted.map_err(|error| match (error, agent) {
            (CliError::Refused { code, .. }, Some(agent)) if code == "unknown_agent" => {
                CliError::UnknownAgent {
                    agent: agent.to_owned(),
                }
            }
            (error, _) => error,
        })
    }

    /// The events of a thread after this position, including those of sub-agents. With `until_rest` the
    /// stream ends when the thread is idle; otherwise it never ends.
    pub(crate) async fn events(
        &self,
        key: &str,
        after: Seq,
        until_rest: bool,
    ) -> Result<Frames, CliError> {
        let after = after.to_string();
        let mut query = vec![("after", after.as_str())];
        if until_rest {
            query.extend([("until", "rest"), ("uap", "true")]);
        }
        let request = self.request_with(Method::GET, &["threads", key, "events"], &query);
        let request = request.header(ACCEPT, "text/event-stream");
        let response = self.send(request, key).await?;
        Ok(Frames::new(response, self.base.to_string()))
    }

    /// Some events of a thread after one of them, and whether there are more.
    pub(crate) async fn records(
        &self,
        key: &str,
        after: Seq,
    ) -> Result<(Vec<Logged>, bool), CliError> {
        let after = after.to_string();
        let path = ["threads", key, "events"];
        let request = self.request_with(Method::GET, &path, &[("after", &after)]);
        let page: EventPage = self.json(request, key).await?;
        let events = page.events.iter().map(|event| event.text().to_owned());
        let records = events.map(answers::logged).collect::<Result<_, _>>()?;
        Ok((records, page.more))
    }

    /// The first threads whose keys have this prefix, the last changed first.
    pub(crate) async fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Listed>, CliError> {
        let (mut threads, mut cursor) = (Vec::new(), None);
        loop {
            let n = (limit - threads.len()).min(PAGE).to_string();
            let mut query = vec![("limit", n.as_str()), ("prefix", prefix)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let request = self.request_with(Method::GET, &["threads"], &query);
            let page: ThreadPage = self.json(request, "").await?;
            threads.extend(page.threads);
            cursor = page.next;
            if cursor.is_none() || threads.len() >= limit {
                threads.truncate(limit);
                return Ok(threads);
            }
        }
    }

    /// Whether the server refuses the requests of the tenant, because its data moves.
    #[cfg(feature = "postgres")]
    pub(crate) async fn is_paused(&self) -> Result<bool, CliError> {
        match self.list("", 1).await {
            Ok(_) => Ok(false),
            Err(CliError::Refused { code, .. }) if code == "tenant_paused" => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The threads with a text or a title that has these words.
    pub(crate) async fn search(
        &self,
        words: &str,
        filter: &ThreadFilter,
        limit: usize,
    ) -> Result<Vec<FoundRow>, CliError> {
        let status = filter.status.map(|it| it.to_string());
        let since = filter.since.map(|it| it.to_string());
        let filters = [
            ("status", status.as_deref()),
            ("since", since.as_deref()),
            ("agent", filter.agent.as_deref()),
        ];
        let (mut threads, mut cursor) = (Vec::new(), None);
        loop {
            let n = (limit - threads.len()).min(FOUND_PAGE).to_string();
            let mut query = vec![("q", words), ("limit", n.as_str())];
            let options = filters.into_iter().chain([("cursor", cursor.as_deref())]);
            query.extend(options.filter_map(|(name, value)| Some((name, value?))));
            let request = self.request_with(Method::GET, &["threads"], &query);
            let page: FoundPage = self.json(request, "").await?;
            threads.extend(page.threads);
            cursor = page.next;
            if cursor.is_none() || threads.len() >= limit {
                return Ok(threads);
            }
        }
    }

    /// Whether something runs on a thread.
    pub(crate) async fn is_running(&self, key: &str) -> Result<bool, CliError> {
        let request = self.request(Method::GET, &["threads", key]);
        let thread: Listed = self.json(request, key).await?;
        Ok(thread.status == timeline::ThreadStatus::Streaming)
    }

    /// The conversation of a thread: what it has of the threads that it was forked from, then its own.
    pub(crate) async fn transcript(
        &self,
        key: &str,
        filter: Filter,
    ) -> Result<Transcript, CliError> {
        let request = self.request(Method::GET, &["threads", key]);
        let thread: Thread = self.json(request, key).await?;
        let mut chain = vec![(key.to_owned(), Seq(u64::MAX))];
        if let Some(mut fork) = thread.fork {
            let branches = self.branches(key).await?;
            let key_of = |id: &timeline::ThreadId| {
                let found = branches.iter().find(|branch| branch.id == *id);
                found.map(|branch| branch.key.clone())
            };
            while let Some(key) = key_of(&fork.thread_id) {
                chain.push((key.clone(), fork.seq));
                let request = self.request(Method::GET, &["threads", &key]);
                let above: Thread = self.json(request, &key).await?;
                let Some(next) = above.fork else { break };
                fork = next;
            }
        }
        let mut transcript = Transcript::default();
        while let Some((key, end)) = chain.pop() {
            let above = transcript.continued();
            transcript = self.continued(above, (&key, end), filter).await?;
        }
        Ok(transcript.without_removed())
    }

    /// The transcript with the events of a thread, up to one of them.
    async fn continued(
        &self,
        mut transcript: Transcript,
        (key, end): (&str, Seq),
        filter: Filter,
    ) -> Result<Transcript, CliError> {
        let mut after = Seq::ZERO;
        loop {
            let (events, more) = self.records(key, after).await?;
            for logged in events {
                after = logged.record.seq;
                if after > end {
                    return Ok(transcript);
                }
                if filter.keeps(&logged.record.event) {
                    transcript.apply(&logged.record);
                }
            }
            if !more {
                return Ok(transcript);
            }
        }
    }

    /// The branches of the conversation that a thread belongs to, the root first.
    pub(crate) async fn branches(&self, key: &str) -> Result<Vec<Branch>, CliError> {
        let request = self.request(Method::GET, &["threads", key, "branches"]);
        let list: Branches = self.json(request, key).await?;
        Ok(list.branches)
    }

    /// Forks a thread; returns the fork's key.
    pub(crate) async fn fork(
        &self,
        key: &str,
        new_key: Option<String>,
        at: Option<u64>,
    ) -> Result<String, CliError> {
        let members = [
            ("key", new_key.map(Value::from)),
            ("at", at.map(Value::from)),
        ];
        let given = members
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let body: serde_json::Map<_, _> = given
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let request = self.request(Method::POST, &["threads", key, "fork"]);
        let fork: Key = self.json(request.json(&body), key).await?;
        Ok(fork.key)
    }

    /// Represents the oldest runs of a thread by a summary.
    pub(crate) async fn compact(
        &self,
        key: &str,
        cut: &Cut,
        summary: &str,
    ) -> Result<Compaction, CliError> {
        let body = match cut {
            Cut::Through(execution) => json!({"summary": summary, "executionId": execution}),
            Cut::At(event) => json!({"summary": summary, "event": event}),
            Cut::KeepRuns(n) => json!({"summary": summary, "keepRuns": n}),
        };
        let request = self.request(Method::POST, &["threads", key, "compactions"]);
        self.json(request.json(&body), key).await
    }

    /// A page of the compactions of a thread, newest first.
    pub(crate) async fn compactions(
        &self,
        key: &str,
        before: Option<u64>,
    ) -> Result<Compactions, CliError> {
        let before = before.map(|before| before.to_string());
        let query = before.as_deref().map(|before| ("before", before));
        let path = ["threads", key, "compactions"];
        let request = self.request_with(Method::GET, &path, query.as_slice());
        self.json(request, key).await
    }

    /// Withdraws a compaction.
    pub(crate) async fn withdraw_compaction(&self, key: &str, id: &str) -> Result<(), CliError> {
        let request = self.request(Method::DELETE, &["threads", key, "compactions", id]);
        self.send(request, key).await.map(drop)
    }

    /// Deletes a thread.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), CliError> {
        let request = self.request(Method::DELETE, &["threads", key]);
        self.send(request, key).await.map(drop)
    }

    /// Purges data of the tenant. Only a server on this machine does it.
    pub(crate) async fn purge(&self, purge: &Purge) -> Result<Purged, CliError> {
        let mut url = self.base.clone();
        url.set_path(PURGE_PATH);
        let mut request = self.http.post(url).json(purge);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        self.json(request, "").await
    }

    /// A thread in a form, and what that form has no place for.
    pub(crate) async fn export(
        &self,
        key: &str,
        to: Exchanged,
    ) -> Result<(String, Vec<Loss>), CliError> {
        let query = [("format", to.name())];
        let request = self.request_with(Method::GET, &["threads", key, "document"], &query);
        let response = self.send(request, key).await?;
        let losses = answers::losses(response.headers());
        Ok((self.text(response).await?, losses))
    }

    /// Reads the conversation of a file into a new thread.
    pub(crate) async fn import(
        &self,
        source: &Source,
        key: Option<&str>,
        text: String,
    ) -> Result<Imported, CliError> {
        let mut query = vec![("from", source.from.name())];
        query.extend(key.map(|key| ("key", key)));
        let attribution = answers::attribution(&source.attribution);
        query.extend(attribution.as_deref().map(|list| ("attribution", list)));
        let request = self.request_with(Method::POST, &["import"], &query);
        let request = request.header(reqwest::header::CONTENT_TYPE, "application/json");
        self.json(request.body(text), key.unwrap_or_default()).await
    }
}
