//! An entry of the inbox: a call or a request that waits for a person.

use super::filter::InboxFilter;
use super::kind::InboxKind;
use super::opened::OpenedEntry;
use crate::link::chat_path;
use crate::patch::Patch;
use crate::requests::topic_words;
use crate::{ids, json, time};
use interop::aitp::Topic;
use jiff::Timestamp;
use maud::{Markup, html};

/// A call or a request that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxEntry {
    /// Its id: letters and digits.
    pub id: String,
    /// The kind of answer.
    pub kind: InboxKind,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The topic of a request.
    pub topic: Option<Topic>,
    /// One line about it, in the words of others.
    pub summary: Option<String>,
    /// The key of the thread to answer on.
    pub thread_key: String,
    /// The title of that thread.
    pub title: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// Since when it waits.
    pub since: Timestamp,
    /// The last instant at which an answer counts.
    pub expires_at: Option<Timestamp>,
    /// Whether the reader may answer it.
    pub may_answer: bool,
}

impl InboxEntry {
    fn thread_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.thread_key)
    }

    /// The call or the request.
    fn what(&self) -> Markup {
        let tool = self.tool.as_deref().unwrap_or_default();
        html! {
            @match self.kind {
                InboxKind::Approval => { "Allow " code { (json::visible(tool)) } }
                InboxKind::External => { "Result of " code { (json::visible(tool)) } }
                InboxKind::Request => { "Request for " (self.topic.map_or("an answer", topic_words)) }
            }
        }
    }

    /// The entry in the list, with its form if it is opened.
    pub(super) fn html(&self, filter: &InboxFilter, opened: Option<&OpenedEntry>) -> Markup {
        let id = ids::inbox_entry(&self.id);
        let path = match opened {
            Some(_) => filter.path(),
            None => format!("{}#{id}", filter.path_to(&self.id)),
        };
        html! {
            li class="entry" id=(id) data-entry=(self.id) data-kind=(self.kind.name()) data-opened[opened.is_some()] {
                h2 {
                    a class="what" href=(path) aria-expanded=(if opened.is_some() { "true" } else { "false" }) {
                        (self.what())
                        @if let Some(summary) = &self.summary { " " span class="first" dir="auto" { (json::visible(summary)) } }
                    }
                }
                p class="quiet meta" {
                    a href=(chat_path(&self.thread_key)) { span dir="auto" { (json::visible(self.thread_name())) } }
                    @if let Some(agent) = &self.agent { span dir="auto" { (json::visible(agent)) } }
                    span { "since " (time::instant(self.since)) }
                    @if let Some(end) = self.expires_at { span { "until " (time::instant(end)) } }
                    @if !self.may_answer { span { "You can't answer it" } }
                }
                @if let Some(opened) = opened { (opened.html()) }
            }
        }
    }

    /// Adds the entry to an open page, before the one that follows it.
    pub fn added(&self, filter: &InboxFilter, behind: Option<&Self>) -> [Patch; 2] {
        let words = format!(
            "A new {} waits in {}.",
            self.kind.noun(),
            json::visible(self.thread_name())
        );
        [
            Patch::Before {
                id: behind.map_or_else(
                    || ids::INBOX_END.to_owned(),
                    |behind| ids::inbox_entry(&behind.id),
                ),
                html: self.html(filter, None).into_string(),
            },
            Patch::Status { words },
        ]
    }
}

/// Removes an entry that waits no longer from an open page.
pub fn answered(id: &str) -> [Patch; 2] {
    [
        Patch::Drop {
            id: ids::inbox_entry(id),
        },
        Patch::Status {
            words: "An entry is done.".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_text_in_an_entry() {
        let evil = "<b onclick=x>\u{202e}\"";
        let entry = InboxEntry {
            id: "0f".to_owned(),
            kind: InboxKind::Approval,
            tool: Some(evil.to_owned()),
            topic: None,
            summary: Some(evil.to_owned()),
            thread_key: evil.to_owned(),
            title: Some(evil.to_owned()),
            agent: Some(evil.to_owned()),
            since: Timestamp::UNIX_EPOCH,
            expires_at: None,
            may_answer: false,
        };
        let html = entry.html(&InboxFilter::default(), None).into_string();
        assert!(!html.contains("<b") && !html.contains('\u{202e}'), "{html}");
        assert_eq!(
            html.matches("&lt;b onclick=x&gt;⟨U+202E⟩").count(),
            4,
            "{html}"
        );
        assert!(
            html.contains("href=\"/chat/%3Cb%20onclick%3Dx%3E%E2%80%AE%22\""),
            "{html}"
        );
        assert!(html.contains("You can't answer it"));
        let [_, told] = entry.added(&InboxFilter::default(), None);
        let words = "A new approval waits in <b onclick=x>⟨U+202E⟩\".".to_owned();
        assert_eq!(told, Patch::Status { words });
    }
}
