//! The actors of a thread, and its capability requests.

use super::frame::ConsoleFrame;
use crate::elements::badge;
use crate::link::chat_path;
use crate::requests::{CapabilityRequest, ThreadParty, topic_words};
use crate::words::counted;
use crate::{json, time};
use interop::aitp::RequestState;
use maud::{Markup, html};

/// Maximum number of requests on a page.
const MAX_REQUESTS: usize = 200;

/// The key that an actor is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActorBinding {
    /// Any key may post as the actor.
    Nobody,
    /// The reader's key.
    Own,
    /// Another key, by its name if the reader may know it.
    Other(Option<String>),
}

/// An actor of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorEntry {
    /// Its id.
    pub id: String,
    /// The application that it uses.
    pub client: Option<String>,
    /// Whether it is the thread's initiator.
    pub is_initiator: bool,
    /// The key that it is bound to.
    pub binding: ActorBinding,
    /// The schemas of the capabilities that it declares.
    pub capabilities: Vec<String>,
}

/// The page of the actors and requests of a thread.
#[derive(Debug)]
pub struct RequestsPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The key of the thread.
    pub key: &'a str,
    /// The actors, by id.
    pub actors: &'a [ActorEntry],
    /// The requests, in the order of their messages.
    pub requests: &'a [CapabilityRequest],
}

impl RequestsPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            section aria-labelledby="actors" {
                h2 id="actors" { "Actors" }
                @if self.actors.is_empty() {
                    p { "No actor has joined this thread." }
                    p class="quiet" { "An actor joins with " code { "POST /api/v1/threads/KEY/actors" } ", or by its first message." }
                } @else { (self.actor_table()) }
            }
            section aria-labelledby="requests" {
                h2 id="requests" { "Requests" }
                @if self.requests.is_empty() {
                    p { "Nobody has requested a decision, data, a payment or a signature in this thread." }
                    p class="quiet" { "Agents and actors use AITP capability messages for this." }
                } @else { (self.request_table()) }
            }
        })
    }

    fn actor_table(&self) -> Markup {
        html! {
            div class="scroll" tabindex="0" role="region" aria-label="Actors" {
                table {
                    thead { tr {
                        th scope="col" { "Actor" }
                        th scope="col" { "Bound to" }
                        th scope="col" { "Application" }
                        th scope="col" { "Capabilities" }
                    } }
                    tbody { @for actor in self.actors { (actor_row(actor)) } }
                }
            }
        }
    }

    /// The requests as a table: those that are open, then the others, the newest first.
    fn request_table(&self) -> Markup {
        let mut requests: Vec<&CapabilityRequest> = self.requests.iter().rev().collect();
        requests.sort_by_key(|request| request.state != RequestState::Open);
        html! {
            div class="scroll" tabindex="0" role="region" aria-label="Requests" {
                table {
                    thead { tr {
                        th scope="col" { "Request" }
                        th scope="col" { "State" }
                        th scope="col" { "Requested by" }
                        th scope="col" { "Answer" }
                        th scope="col" { "Made" }
                        th scope="col" { "Ends" }
                    } }
                    tbody {
                        @for request in requests.iter().take(MAX_REQUESTS) { (self.request_row(request)) }
                    }
                }
            }
            @if requests.len() > MAX_REQUESTS {
                p class="note" { "Not shown: " (counted(requests.len() - MAX_REQUESTS, "older request")) "." }
            }
        }
    }

    fn request_row(&self, request: &CapabilityRequest) -> Markup {
        let chat = format!("{}#{}", chat_path(self.key), request.element());
        html! {
            tr {
                th scope="row" {
                    a href=(chat) { "Request for " (topic_words(request.topic)) }
                    " " code { (json::visible(&request.id)) }
                    (theirs(request))
                }
                td { (state(request.state)) }
                td { (request.by.html()) }
                td { (answer(request)) }
                td { (time::instant(request.created_at)) }
                td {
                    @match request.expires_at { Some(end) => (time::instant(end)), None => "never" }
                }
            }
        }
    }
}

fn actor_row(actor: &ActorEntry) -> Markup {
    html! {
        tr {
            th scope="row" {
                bdi { (json::visible(&actor.id)) }
                @if actor.is_initiator { " " span class="badge" { "began the thread" } }
            }
            td {
                @match &actor.binding {
                    ActorBinding::Nobody => span class="warn" { "not bound to a key" },
                    ActorBinding::Own => "your key",
                    ActorBinding::Other(None) => "another key",
                    ActorBinding::Other(Some(name)) => { "the key " bdi { (json::visible(name)) } },
                }
            }
            td {
                @match &actor.client { Some(client) => bdi { (json::visible(client)) }, None => "–" }
            }
            td {
                @if actor.capabilities.is_empty() { "none declared" } @else {
                    ul class="plain-list" { @for schema in &actor.capabilities { li { code dir="auto" { (json::visible(schema)) } } } }
                }
            }
        }
    }
}

/// The title of the asker, marked as its own words.
fn theirs(request: &CapabilityRequest) -> Markup {
    html! {
        @if let Some(title) = &request.title {
            blockquote class="theirs" {
                p class="label" { "In the words of " (request.by.words()) }
                p dir="auto" { (json::visible(title)) }
            }
        }
    }
}

fn state(state: RequestState) -> Markup {
    let (kind, words) = match state {
        RequestState::Open => ("waits", "open"),
        RequestState::Answered => ("ok", "answered"),
        RequestState::Declined => ("error", "declined"),
        RequestState::Cancelled => ("closed", "cancelled"),
        RequestState::Expired => ("closed", "expired"),
        RequestState::Superseded => ("closed", "replaced"),
    };
    badge((kind, words))
}

/// The party that has answered or declined, or those that may.
fn answer(request: &CapabilityRequest) -> Markup {
    let names = |parties: &[ThreadParty]| {
        let words: Vec<String> = parties.iter().map(ThreadParty::words).collect();
        words.join("; ")
    };
    html! {
        @if let Some(answer) = &request.answer {
            "by " (answer.by.html()) " " (time::instant(answer.at))
        } @else if let Some(by) = &request.closing.by {
            "declined by " (by.html())
        } @else if request.state == RequestState::Open {
            @if request.answerers.is_empty() { "nobody may answer" }
            @else { "expected from " bdi { (names(&request.answerers)) } }
        } @else { "none" }
    }
}
