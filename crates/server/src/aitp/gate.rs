//! Checks of messages, under the thread's lock.

use super::refused::{Link, Refused, Why, check_rights};
use super::states::AitpStates;
use crate::auth::Caller;
use crate::outbound::OutboundConfig;
use futures_util::future::BoxFuture;
use interop::aitp::{
    AitpState, MayNotSpeak, MessageRefusal, ParticipantChange, Party, RequestTerms, Strictness,
};
use interop::model::linked_files;
use jiff::Timestamp;
use runtime::{Gate, GateRequest, Landmark, RuntimeError};
use std::sync::Arc;
use timeline::{Event, ItemType, NewItem, Payload, Record, Role, Seq, ThreadId};

/// The caller that posts, and the strictness of the checks.
#[derive(Clone)]
pub(super) struct PartyBinding {
    pub(super) caller: Caller,
    pub(super) strictness: Strictness,
    /// The allowed destinations of files in content.
    pub(super) links: OutboundConfig,
}

impl PartyBinding {
    /// Checks one message, and returns it as it is stored.
    fn check_item(&self, desk: &AitpState, item: &NewItem, now: Timestamp) -> Result<NewItem, Why> {
        let metadata = item.metadata.as_ref();
        let named = metadata.and_then(|metadata| metadata.str_field("actor"));
        if let Some(actor) = &named {
            check_rights(&self.caller, actor)?;
        }
        let principal = self.caller.principal();
        let accepted = desk.judge_as(principal, item, self.strictness, now)?;
        self.check_initiator(desk, &accepted.voice.party, named.as_deref())?;
        Ok(accepted.item)
    }

    /// A message without an actor in the initiator's role is the initiator's, if that is an actor.
    fn check_initiator(
        &self,
        desk: &AitpState,
        party: &Party,
        named: Option<&str>,
    ) -> Result<(), Why> {
        if let Party::Initiator = party
            && named.is_none()
            && let Some(initiator) = desk.participants().initiator()
        {
            check_rights(&self.caller, initiator)?;
        }
        Ok(())
    }

    /// Checks that the caller may answer a request as an actor, or without one as the initiator.
    pub(super) fn check_answerer(
        &self,
        desk: &AitpState,
        actor: Option<&str>,
        terms: &RequestTerms,
    ) -> Result<(), Why> {
        if let Some(actor) = actor {
            check_rights(&self.caller, actor)?;
        }
        let role = actor.is_none().then_some(Role::User);
        let principal = self.caller.principal();
        let speaker = desk.participants().may_speak(principal, actor, role);
        let party = speaker.map_err(MessageRefusal::PartyBinding)?.party;
        self.check_initiator(desk, &party, actor)?;
        let refused = |refusal| MessageRefusal::Refused { place: 0, refusal };
        let may = desk.ledger().may_answer(terms, &party);
        Ok(may.map_err(refused)?)
    }

    /// Refuses content with a file whose URL is private or has credentials.
    pub(super) fn check_links(&self, content: Option<&Payload>) -> Result<(), Why> {
        for (place, url) in content.map(linked_files).unwrap_or_default() {
            if let Err(error) = self.links.check_link(&url) {
                return Err(Why::Link(Box::new(Link {
                    index: place,
                    url,
                    error,
                })));
            }
        }
        Ok(())
    }

    /// Checks messages in order, each against the state after the ones before it. Other items pass.
    pub(super) fn judge_all(
        &self,
        desk: &AitpState,
        items: &mut [NewItem],
        now: Timestamp,
    ) -> Result<(), Refused> {
        let mut draft = None;
        let n_items = items.len();
        for (place, item) in items.iter_mut().enumerate() {
            let linked = self.check_links(item.content.as_ref());
            linked.map_err(|why| Refused::new(why, place))?;
            if item.item_type != ItemType::Message {
                continue;
            }
            let so_far = draft.as_ref().unwrap_or(desk);
            let judged = self.check_item(so_far, item, now);
            *item = judged.map_err(|why| Refused::new(why, place))?;
            if place + 1 < n_items {
                let draft = draft.get_or_insert_with(|| desk.clone());
                draft.apply(&record(draft, item.clone(), now));
            }
        }
        Ok(())
    }
}

/// Whom a change is about.
pub(super) fn actor_of(change: &ParticipantChange) -> &str {
    match change {
        ParticipantChange::Join { actor, .. } => &actor.id,
        ParticipantChange::Leave { actor_id } | ParticipantChange::Declare { actor_id, .. } => {
            actor_id
        }
    }
}

/// The record that an item would become.
pub(super) fn record(desk: &AitpState, item: NewItem, at: Timestamp) -> Record {
    Record {
        seq: desk.seq().next(),
        at,
        event: Event::ItemCreated {
            item: item.stored(at),
        },
    }
}

/// Judges messages.
pub(super) struct SpeechGate {
    pub(super) states: Arc<AitpStates>,
    pub(super) speaker: PartyBinding,
    /// The named answerer of calls, if there is one.
    pub(super) answerer: Option<String>,
}

impl SpeechGate {
    fn check(&self, desk: &AitpState, entering: &mut GateRequest<'_>) -> Result<(), Refused> {
        if let Some(actor) = &self.answerer {
            self.check_responder(desk, actor)
                .map_err(|why| Refused::new(why, 0))?;
        }
        self.speaker.judge_all(desk, entering.items, entering.at)
    }

    /// Checks the answerer of calls. It need not be a participant; but the key must have the right to
    /// speak as it, and it must not be bound to another key.
    fn check_responder(&self, desk: &AitpState, actor: &str) -> Result<(), Why> {
        check_rights(&self.speaker.caller, actor)?;
        let principal = self.speaker.caller.principal();
        match desk.participants().may_speak(principal, Some(actor), None) {
            Err(error @ MayNotSpeak::NotBoundToIt(_)) => {
                Err(MessageRefusal::PartyBinding(error).into())
            }
            Ok(_)
            | Err(
                MayNotSpeak::Unknown(_)
                | MayNotSpeak::Left(_)
                | MayNotSpeak::Unnamed(_)
                | MayNotSpeak::OtherRole { .. }
                | MayNotSpeak::Nobody,
            ) => Ok(()),
        }
    }

    /// Whether the thread has the refused item already. Then the store reports the duplicate.
    async fn is_known(
        &self,
        entering: &GateRequest<'_>,
        refused: &Refused,
    ) -> Result<bool, RuntimeError> {
        let item = entering.items.get(refused.item);
        let Some((thread, item)) = entering.thread.zip(item) else {
            return Ok(false);
        };
        let store = self.states.runtime().store();
        let place = store.position_of(thread, Landmark::Item(&item.id)).await?;
        Ok(place.is_some())
    }
}

impl Gate for SpeechGate {
    fn prepare<'a>(
        &'a self,
        thread: &'a ThreadId,
        tail: Seq,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(self.states.warm(thread, tail))
    }

    fn check<'a>(
        &'a self,
        mut entering: GateRequest<'a>,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let is_said = entering
                .items
                .iter()
                .any(|it| it.item_type == ItemType::Message);
            if !is_said && self.answerer.is_none() {
                return Ok(self.speaker.judge_all(
                    &AitpState::default(),
                    entering.items,
                    entering.at,
                )?);
            }
            let held = match entering.thread {
                Some(thread) => Some(self.states.at(thread, entering.tail).await?),
                None => None,
            };
            let none = AitpState::default();
            let desk = held.as_ref().and_then(|held| held.get()).unwrap_or(&none);
            match self.check(desk, &mut entering) {
                Ok(()) => Ok(()),
                Err(refused) if self.is_known(&entering, &refused).await? => Ok(()),
                Err(refused) => Err(refused.into()),
            }
        })
    }
}

/// Checks changes of participants, each against the state after the ones before it.
pub(super) struct ChangeGate {
    pub(super) states: Arc<AitpStates>,
    pub(super) caller: Caller,
    pub(super) changes: Vec<ParticipantChange>,
}

impl ChangeGate {
    fn check(&self, desk: &AitpState, entering: &mut GateRequest<'_>) -> Result<(), Refused> {
        let mut desk = desk.clone();
        let items = entering.items.iter_mut();
        for (place, (change, item)) in self.changes.iter().zip(items).enumerate() {
            let refused = |why: Why| Refused::new(why, place);
            check_rights(&self.caller, actor_of(change)).map_err(refused)?;
            let id = item.id.clone();
            let principal = self.caller.principal();
            let judged = desk.judge_change(principal, change.clone(), id.as_str());
            *item = judged.map_err(|why| refused(why.into()))?.item;
            let record = record(&desk, item.clone(), entering.at);
            desk.apply(&record);
        }
        Ok(())
    }
}

impl Gate for ChangeGate {
    fn prepare<'a>(
        &'a self,
        thread: &'a ThreadId,
        tail: Seq,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(self.states.warm(thread, tail))
    }

    fn check<'a>(
        &'a self,
        mut entering: GateRequest<'a>,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let held = match entering.thread {
                Some(thread) => Some(self.states.at(thread, entering.tail).await?),
                None => None,
            };
            let none = AitpState::default();
            let desk = held.as_ref().and_then(|held| held.get()).unwrap_or(&none);
            Ok(self.check(desk, &mut entering)?)
        })
    }
}
