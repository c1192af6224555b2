//! The requests of AITP in a conversation: each is below the message that makes it.

use super::conversation::{Conversation, Drawn};
use crate::ids;
use crate::patch::Patch;
use crate::requests::{self, CapabilityRequest};
use interop::aitp::RequestState;
use maud::Markup;

impl Conversation {
    /// Shows the requests of the thread below the messages that make them. Open requests of earlier
    /// messages are shown above the first message.
    pub fn note_requests(&mut self, requests: Vec<CapabilityRequest>) {
        self.requests = requests;
    }

    /// Updates the requests, and adds the patches that bring an open page up to date.
    pub fn update_requests(&mut self, requests: Vec<CapabilityRequest>, out: &mut Vec<Patch>) {
        let known = std::mem::replace(&mut self.requests, requests);
        let mut is_changed = false;
        for request in &self.requests {
            let id = request.element();
            let before = known.iter().rfind(|it| it.element() == id);
            if before.is_some_and(|before| request.is_same(before)) {
                continue;
            }
            is_changed = true;
            if before.is_some() {
                out.push(put(request));
                continue;
            }
            out.push(Patch::Before {
                id: ids::END_OF_LOG.to_owned(),
                html: request.html().into_string(),
            });
            if request.waits_for_caller() {
                out.push(Patch::Status {
                    words: format!("{} waits for you.", request.name()),
                });
            }
        }
        if is_changed {
            out.push(self.waiting_patch());
        }
    }

    /// The list of the requests that wait for the reader.
    pub(super) fn waiting(&self) -> Markup {
        requests::waiting(&self.requests)
    }

    pub(super) fn waiting_patch(&self) -> Patch {
        Patch::Put {
            id: ids::WAITING.to_owned(),
            html: self.waiting().into_string(),
        }
    }

    /// The requests that a message makes. The last one with an id counts.
    pub(super) fn requests_of<'c>(
        &'c self,
        entry: &'c Drawn,
    ) -> impl Iterator<Item = &'c CapabilityRequest> {
        self.current().filter(move |request| is_in(request, entry))
    }

    /// The requests of messages that the page does not have.
    pub(super) fn unanchored(&self) -> impl Iterator<Item = &CapabilityRequest> {
        let is_shown =
            |request: &CapabilityRequest| self.entries.iter().any(|entry| is_in(request, entry));
        self.current().filter(move |request| !is_shown(request))
    }

    /// The open ones among them.
    pub(super) fn earlier_requests(&self) -> impl Iterator<Item = &CapabilityRequest> {
        self.unanchored()
            .filter(|request| request.state == RequestState::Open)
    }

    /// Patches for the requests of messages that the page may have.
    pub(super) fn put_unanchored(&self) -> impl Iterator<Item = Patch> {
        self.unanchored().map(put)
    }

    /// The requests, without those that were replaced within one message.
    fn current(&self) -> impl Iterator<Item = &CapabilityRequest> {
        let requests = self.requests.iter().enumerate();
        let current = requests.filter(|(place, request)| {
            let later = self.requests.get(place + 1..).unwrap_or_default();
            let is_same =
                |it: &CapabilityRequest| it.anchor == request.anchor && it.id == request.id;
            !later.iter().any(is_same)
        });
        current.map(|(_, request)| request)
    }
}

fn put(request: &CapabilityRequest) -> Patch {
    Patch::Put {
        id: request.element(),
        html: request.html().into_string(),
    }
}

fn is_in(request: &CapabilityRequest, entry: &Drawn) -> bool {
    match entry {
        Drawn::Item(item) => item.id.as_str() == request.anchor,
        Drawn::Answer(answer) => answer.has_step(&request.anchor),
    }
}
