//! The page of the inbox.

use super::pages::PageParts;
use super::reading::pending_call;
use super::reply::page;
use super::request_view::read_request;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::waiting::{
    WaitingCursor, WaitingFilter, WaitingKind, WaitingReader, WaitingView,
};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use interop::aitp::Message;
use jiff::{SignedDuration, Timestamp};
use runtime::search::text_of_part;
use runtime::{Filter, PageRequest, Position, Run};
use serde::Deserialize;
use timeline::{Entry, ItemType};
use web::{
    Area, InboxAge, InboxEntry, InboxFilter, InboxKind, InboxPage, LeadingMessage, Markup,
    OpenedEntry, Shell,
};

/// Number of entries on a page.
const ENTRIES: usize = 50;
/// Number of messages that are shown before an opened entry.
const LEADING_MESSAGES: usize = 3;
/// Maximum length of such a message, in characters.
const LEADING_CHARS: usize = 600;

/// Which part of the inbox a page shows. An empty filter is none.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct FilterQuery {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    age: String,
}

/// The address of the page.
#[derive(Debug, Deserialize)]
pub(super) struct InboxQuery {
    #[serde(flatten)]
    filter: FilterQuery,
    /// The id of the opened entry.
    open: Option<String>,
    /// The cursor of a later page.
    cursor: Option<String>,
}

impl FilterQuery {
    /// The filter of the page.
    pub(super) fn read(&self) -> Result<InboxFilter, ApiError> {
        let kind = "kind: expected approval, external or request";
        let age = "age: expected recent, hour or day";
        Ok(InboxFilter {
            kind: named(&self.kind, InboxKind::find, kind)?,
            agent: Some(self.agent.clone()).filter(|agent| !agent.is_empty()),
            age: named(&self.age, InboxAge::find, age)?,
        })
    }
}

/// The value with a name; none for an empty name.
fn named<T>(
    name: &str,
    find: fn(&str) -> Option<T>,
    expected: &str,
) -> Result<Option<T>, ApiError> {
    if name.is_empty() {
        return Ok(None);
    }
    let refused = || ApiError::InvalidQuery {
        what: expected.to_owned(),
    };
    find(name).map(Some).ok_or_else(refused)
}

/// The filter of the list that a page's filter is now.
fn waiting_filter(filter: &InboxFilter, now: Timestamp) -> WaitingFilter {
    let before = |hours| now.checked_sub(SignedDuration::from_hours(hours)).ok();
    let (since, until) = match filter.age {
        None => (None, None),
        Some(InboxAge::Recent) => (before(1), None),
        Some(InboxAge::Hour) => (None, before(1)),
        Some(InboxAge::Day) => (None, before(24)),
    };
    WaitingFilter {
        kind: filter.kind.map(|kind| match kind {
            InboxKind::Approval => WaitingKind::Approval,
            InboxKind::External => WaitingKind::External,
            InboxKind::Request => WaitingKind::Request,
        }),
        agent: filter.agent.clone(),
        prefix: None,
        since,
        until,
    }
}

/// All entries of an inbox.
pub(super) struct AllEntries {
    pub(super) entries: Vec<InboxEntry>,
    /// Whether a thread could not be read: some entries may be missing.
    pub(super) is_partial: bool,
}

/// The entries with a filter; `None` if they are more than one page.
pub(super) async fn all_entries(
    reader: &mut WaitingReader,
    filter: &InboxFilter,
) -> Result<Option<AllEntries>, ApiError> {
    let filter = waiting_filter(filter, Timestamp::now());
    let page = reader.page(&filter, None, ENTRIES).await?;
    let is_partial = page.is_partial;
    let entries = page.entries.into_iter().map(entry).collect();
    let all = AllEntries {
        entries,
        is_partial,
    };
    Ok(page.next.is_none().then_some(all))
}

/// The page of all that waits for a person.
pub(super) async fn inbox(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<InboxQuery>,
) -> Result<Response, ApiError> {
    let filter = query.filter.read()?;
    let cursor = query.cursor.as_deref().map(WaitingCursor::read);
    let cursor = cursor.transpose()?;
    let is_later = cursor.is_some();
    let mut reader = WaitingReader::new(&api, &caller);
    let wanted = waiting_filter(&filter, Timestamp::now());
    let found = reader.page(&wanted, cursor, ENTRIES).await?;
    let opened = query.open.as_ref().and_then(|id| {
        let mut entries = found.entries.iter();
        entries.find(|entry| entry.id == *id)
    });
    let opened = match opened {
        Some(entry) => opened_entry(&api, &caller, entry, &filter.path()).await?,
        None => None,
    };
    let next = found.next.map(|next| next.to_string());
    let entries: Vec<InboxEntry> = found.entries.into_iter().map(entry).collect();
    let agents = api.app().agent_names();
    let parts = PageParts::read_with((&api, &caller), &mut reader).await?;
    let title = match parts.waiting() {
        0 => "Inbox".to_owned(),
        n => format!("({}) Inbox", web::count_text(n)),
    };
    let shown = InboxPage {
        shell: Shell {
            area: Area::Inbox,
            ..parts.shell(&title, None)
        },
        entries: &entries,
        filter: &filter,
        agents: &agents,
        opened: opened.as_ref(),
        is_later,
        next: next.as_deref(),
    };
    Ok(page(shown.html()))
}

fn entry(view: WaitingView) -> InboxEntry {
    InboxEntry {
        id: view.id,
        kind: match view.kind {
            WaitingKind::Approval => InboxKind::Approval,
            WaitingKind::External => InboxKind::External,
            WaitingKind::Request => InboxKind::Request,
        },
        tool: view.tool_name,
        topic: view.topic,
        summary: view.summary,
        thread_key: view.thread_key,
        title: view.title,
        agent: view.agent,
        since: view.since,
        expires_at: view.expires_at,
        may_answer: view.may_answer,
    }
}

/// The messages before an entry, and its form. `None` if it waits no longer.
async fn opened_entry(
    api: &Api,
    caller: &Caller,
    entry: &WaitingView,
    back: &str,
) -> Result<Option<OpenedEntry>, ApiError> {
    let thread = ThreadKey::new(api, caller, &entry.thread_key)?;
    let (form, source) = match (&entry.request_id, &entry.call_thread_key) {
        (Some(request), _) => {
            let mut request = read_request(api, &thread.find().await?, request).await?;
            request.back = Some(back.to_owned());
            (Some(request.html()), thread)
        }
        (None, Some(key)) => {
            let form = call_form(&thread, entry, back).await?;
            let source = thread.descendant(key);
            (form, source)
        }
        (None, None) => (None, thread),
    };
    let Some(form) = form else {
        return Ok(None);
    };
    Ok(Some(OpenedEntry {
        id: entry.id.clone(),
        led: leading_messages(&source).await?,
        form,
    }))
}

async fn call_form(
    thread: &ThreadKey,
    entry: &WaitingView,
    back: &str,
) -> Result<Option<Markup>, ApiError> {
    let (pending, _) = thread.pending().await?;
    let mut calls = pending.into_iter().filter_map(pending_call);
    let call = calls.find(|call| {
        Some(&call.call_id) == entry.tool_call_id.as_ref()
            && Some(&call.thread_key) == entry.call_thread_key.as_ref()
    });
    Ok(call.map(|call| {
        if entry.may_answer {
            web::call_form(&call, &entry.thread_key, back)
        } else {
            web::call_facts(&call)
        }
    }))
}

/// The last messages of a thread, without those that are forms.
async fn leading_messages(thread: &ThreadKey) -> Result<Vec<LeadingMessage>, ApiError> {
    let request = PageRequest::Before {
        before: Position::END,
        n: 2,
    };
    let page = thread.page(request, Filter::Facts).await?;
    let mut found = Vec::new();
    for entry in &page.transcript.entries {
        match entry {
            Entry::Item(item) if item.item_type == ItemType::Message => {
                let text = item.content.as_ref().map(web::message_text);
                found.extend(text.map(|text| (None, text)));
            }
            Entry::Item(_) => {}
            Entry::Reaction(reaction) => {
                let agent = Run::of(reaction.execution.run.as_ref()).agent;
                let agent = agent.unwrap_or_else(|| "Agent".to_owned());
                let parts = reaction.steps.iter().flat_map(|step| &step.parts);
                let texts = parts.filter_map(|part| text_of_part(part.part.text()));
                found.extend(texts.map(|text| (Some(agent.clone()), text)));
            }
        }
    }
    found.retain(|(_, text)| !text.trim().is_empty() && Message::read(text).is_none());
    let start = found.len().saturating_sub(LEADING_MESSAGES);
    let last = found.split_off(start);
    let short = |text: String| -> String {
        let mut short: String = text.chars().take(LEADING_CHARS).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    };
    let last = last.into_iter();
    let last = last.map(|(agent, text)| LeadingMessage {
        agent,
        text: short(text),
    });
    Ok(last.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_the_page_is_a_filter_of_the_list() {
        let query = FilterQuery {
            kind: "external".to_owned(),
            agent: String::new(),
            age: "day".to_owned(),
        };
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let filter = waiting_filter(&query.read().unwrap(), now);
        assert_eq!(filter.kind, Some(WaitingKind::External));
        assert_eq!(filter.agent, None);
        let day_before: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!((filter.since, filter.until), (None, Some(day_before)));
        let wrong = FilterQuery {
            kind: "all".to_owned(),
            ..FilterQuery::default()
        };
        assert!(wrong.read().is_err());
    }
}
