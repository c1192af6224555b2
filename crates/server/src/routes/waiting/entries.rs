//! The entries of one thread: its own calls that wait, and its open requests.

use super::page::WaitingReader;
use super::view::{WaitingKind, WaitingView};
use crate::auth::Scope;
use crate::error::ApiError;
use crate::hex::hex;
use crate::routes::aitp::answerer::answering_actors;
use crate::routes::aitp::looked;
use crate::threads::ThreadRef;
use interop::aitp::{AitpState, Party, Request};
use interop::parts::ToolPart;
use jiff::Timestamp;
use runtime::objects::sha256;
use runtime::{Run, RuntimeError, StoreError, ThreadRow, WaitingRow};
use serde_json::Value;
use timeline::{Execution, OpenCall, OpenKind, StepId, ThreadStatus};

/// Maximum length of a summary, in characters.
const SUMMARY: usize = 120;
/// Maximum size of the arguments that a summary is made of, in bytes.
const ARGUMENTS: usize = 64 << 10;
/// Number of bytes of an entry's id.
const ID_BYTES: usize = 8;

impl WaitingReader {
    /// Reads the entries of a thread; none if the thread can't be read. A thread that is deleted meanwhile
    /// has none.
    pub(super) async fn read(
        &self,
        row: &WaitingRow,
        now: Timestamp,
    ) -> Result<Option<Vec<WaitingView>>, ApiError> {
        let runtime = self.api.runtime(&self.caller.tenant);
        let thread = ThreadRef::authorise(runtime, &self.caller, row.row.clone())?;
        match self.read_thread(row, &thread, now).await {
            Ok(entries) => Ok(Some(entries)),
            Err(error) if is_gone(&error) => Ok(Some(Vec::new())),
            Err(error) => {
                // The other threads are listed all the same.
                tracing::warn!(thread = thread.key(), %error, "a thread in the inbox can't be read");
                Ok(None)
            }
        }
    }

    async fn read_thread(
        &self,
        row: &WaitingRow,
        thread: &ThreadRef,
        now: Timestamp,
    ) -> Result<Vec<WaitingView>, ApiError> {
        let mut entries = Vec::new();
        if let Some(since) = row.calls_since {
            entries = self.calls(thread, since).await?;
        }
        if row.may_ask {
            let requests = self.requests(thread, now).await?;
            if requests.is_empty() && thread.row().thread.status != ThreadStatus::Streaming {
                self.settle(thread.row()).await;
            }
            entries.extend(requests);
        }
        Ok(entries)
    }

    /// The thread's own calls. A sub-agent's are answered on the thread that led to it.
    async fn calls(
        &self,
        thread: &ThreadRef,
        since: Timestamp,
    ) -> Result<Vec<WaitingView>, ApiError> {
        let (open, _) = thread.open_calls().await?;
        let Some(open) = open else {
            return Ok(Vec::new());
        };
        // A person may have begun a run of their own on the thread of a sub-agent.
        let is_for_parent = Run::of(open.execution.run.as_ref()).parent.is_some();
        let (root, calls) = if is_for_parent {
            self.calls_of_child(thread).await?
        } else {
            (thread.clone(), open.calls)
        };
        let views = calls.iter().filter_map(|call| {
            let kind = match call.kind {
                OpenKind::Approval => WaitingKind::Approval,
                OpenKind::External => WaitingKind::External,
                OpenKind::Others | OpenKind::Child => return None,
            };
            Some(self.call((&root, thread), (&open.execution, call), (kind, since)))
        });
        Ok(views.collect())
    }

    /// The thread that led to a sub-agent's thread, and those of the latter's calls that it waits for.
    async fn calls_of_child(
        &self,
        thread: &ThreadRef,
    ) -> Result<(ThreadRef, Vec<OpenCall>), ApiError> {
        let rights = self.caller.rights.clone();
        let may_see = move |key: &str| rights.cover(key);
        let row = thread.outermost(&may_see).await?;
        let root = ThreadRef::authorise(thread.runtime(), &self.caller, row)?;
        let (pending, _) = root.pending().await?;
        let own = pending.into_iter();
        let own = own.filter(|it| it.address.thread_id == *thread.id());
        Ok((root, own.map(|it| it.call).collect()))
    }

    fn call(
        &self,
        (root, thread): (&ThreadRef, &ThreadRef),
        (execution, call): (&Execution, &OpenCall),
        (kind, since): (WaitingKind, Timestamp),
    ) -> WaitingView {
        let id = &call.tool_call_id;
        let tool = ToolPart::read(&call.part);
        // Providers use an id again, and a call that an answer leaves waiting has another execution then.
        let origin = call.origin.as_ref().map(StepId::as_str);
        let origin = origin.unwrap_or(execution.id.as_str());
        WaitingView {
            id: entry_id(&[thread.id().as_str(), origin, id]),
            kind,
            thread_key: root.key().to_owned(),
            title: root.row().thread.title.clone(),
            agent: Run::of(execution.run.as_ref()).agent,
            tool_name: tool.as_ref().map(|tool| tool.tool_name().to_owned()),
            tool_call_id: Some(id.clone()),
            call_thread_key: Some(thread.key().to_owned()),
            request_id: None,
            topic: None,
            summary: tool.and_then(|tool| first_argument(tool.arguments())),
            since,
            expires_at: None,
            may_answer: self.caller.check_scope(Scope::Write).is_ok()
                && self.caller.may_answer_calls(),
        }
    }

    /// The open requests of a thread.
    async fn requests(
        &self,
        thread: &ThreadRef,
        now: Timestamp,
    ) -> Result<Vec<WaitingView>, ApiError> {
        looked(&self.api, thread, |desk| {
            let open = desk.ledger().pending(now).into_iter();
            open.map(|request| self.request(thread, desk, request))
                .collect()
        })
        .await
    }

    fn request(&self, thread: &ThreadRef, desk: &AitpState, request: &Request) -> WaitingView {
        let terms = &request.ask;
        let id = terms.key.text();
        let agent = match &terms.by {
            Party::Agent(name) => Some(name.clone()),
            Party::Initiator | Party::Actor(_) | Party::Assistant => None,
        };
        let seq = request.seq.to_string();
        let title = terms.payload.str_field("title");
        WaitingView {
            id: entry_id(&[thread.id().as_str(), &id, &seq]),
            kind: WaitingKind::Request,
            thread_key: thread.key().to_owned(),
            title: thread.row().thread.title.clone(),
            agent,
            tool_name: None,
            tool_call_id: None,
            call_thread_key: None,
            request_id: Some(id),
            topic: Some(terms.key.topic),
            summary: title.map(|title| one_line(&title)),
            since: request.at,
            expires_at: request.life.expires_at,
            may_answer: answering_actors(&self.api, thread, desk, request).is_ok(),
        }
    }

    /// Settles a thread without open requests. If that fails, the thread is judged again by the next reader.
    pub(super) async fn settle(&self, row: &ThreadRow) {
        let store = self.api.runtime(&self.caller.tenant).store();
        let settled = store.settle(&row.thread.id, row.tail).await;
        if let Err(error) = settled {
            tracing::debug!(%error, "the store keeps looking for requests in a thread");
        }
    }
}

fn is_gone(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::Runtime(RuntimeError::Store(StoreError::NotFound))
    )
}

/// The id of an entry: it has no character that needs an escape, whatever the ids of others have.
fn entry_id(parts: &[&str]) -> String {
    let hash = sha256(parts.join("\n").as_bytes());
    hex(hash.get(..ID_BYTES).unwrap_or_default())
}

/// The first argument of a call as one line of text.
fn first_argument(arguments: &str) -> Option<String> {
    if arguments.len() > ARGUMENTS {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let (name, value) = arguments.as_object()?.iter().next()?;
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    Some(one_line(&format!("{name}: {text}")))
}

fn one_line(text: &str) -> String {
    let chars = text.chars();
    let chars = chars.map(|c| if c.is_control() { ' ' } else { c });
    chars.take(SUMMARY).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_line_of_the_first_argument() {
        let first = |text| first_argument(text);
        let expected = Some("city: Lis bon");
        assert_eq!(first(r#"{"city":"Lis\nbon","n":1}"#).as_deref(), expected);
        assert_eq!(first("{}"), None);
        assert_eq!(first("no JSON"), None);
        let long = format!(r#"{{"a":"{}"}}"#, "ä".repeat(999));
        assert_eq!(first(&long).unwrap().chars().count(), SUMMARY);
    }
}
