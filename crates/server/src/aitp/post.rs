//! Posting to threads, with AITP's checks.

use super::gate::{ChangeGate, PartyBinding, SpeechGate};
use super::refused::{BodyPointers, Why, found_in, placed};
use super::started::StartedAitpState;
use super::states::{AitpStates, LockedAitpState};
use crate::auth::Caller;
use crate::state::Api;
use crate::threads::ThreadRef;
use futures_util::FutureExt as _;
use interop::aitp::{AitpState, ParticipantChange, RequestTerms, Strictness};
use interop::document::Imported;
use jiff::Timestamp;
use runtime::{
    Accepted, AnswerRequest, Preconditions, ReactRequest, Runtime, RuntimeError, ThreadRow,
};
use std::sync::Arc;
use timeline::{Command, Fork, NewItem, Payload, Seq};

/// Posts messages of one speaker to the threads of one runtime. All protocols use it, so that the same
/// rules hold in each.
///
/// A message is checked under its thread's lock, so nothing changes between the check and the append.
/// `place` maps the messages of a request to JSON pointers in its body, for the errors.
pub(crate) struct MessagePost<'a> {
    desks: &'a Arc<AitpStates>,
    speaker: PartyBinding,
}

#[expect(clippy::disallowed_methods, reason = "this is the way in")]
impl<'a> MessagePost<'a> {
    /// For threads that are stored.
    pub(crate) fn new(api: &'a Api, caller: &Caller) -> Self {
        Self::on(api, api.aitp_states(&caller.tenant), caller)
    }

    /// For threads in memory only.
    pub(crate) fn ephemeral(api: &'a Api, caller: &Caller) -> Self {
        Self::on(api, api.ephemeral_aitp_states(), caller)
    }

    fn on(api: &Api, desks: &'a Arc<AitpStates>, caller: &Caller) -> Self {
        let strictness = if api.app().config().aitp.strict {
            Strictness::Strict
        } else {
            Strictness::Lenient
        };
        let speaker = PartyBinding {
            caller: caller.clone(),
            strictness,
            links: api.app().config().outbound.clone(),
        };
        Self { desks, speaker }
    }

    /// The runtime of the threads.
    pub(crate) fn runtime(&self) -> &'a Runtime {
        self.desks.runtime()
    }

    fn gate(&self, answerer: Option<String>) -> Arc<SpeechGate> {
        Arc::new(SpeechGate {
            states: Arc::clone(self.desks),
            speaker: self.speaker.clone(),
            answerer,
        })
    }

    /// Posts a message to an agent. With `last`, only if no message was posted and nothing ran after
    /// that event.
    pub(crate) async fn react(
        &self,
        request: ReactRequest,
        last: Option<Seq>,
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<Accepted, RuntimeError> {
        let terms = self.terms(None, last);
        let accepted = self.runtime().react_on(request, terms).boxed().await;
        self.kept(accepted, place).await
    }

    /// Posts answers to calls, and messages with them; `answerer` is the actor of the answers.
    pub(crate) async fn answer(
        &self,
        request: AnswerRequest,
        (answerer, last): (Option<String>, Option<Seq>),
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<Accepted, RuntimeError> {
        let terms = self.terms(answerer, last);
        let accepted = self.runtime().answer_on(request, terms).boxed().await;
        self.kept(accepted, place).await
    }

    fn terms(&self, answerer: Option<String>, after: Option<Seq>) -> Preconditions {
        Preconditions {
            gate: Some(self.gate(answerer)),
            after,
        }
    }

    async fn kept(
        &self,
        accepted: Result<Accepted, RuntimeError>,
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<Accepted, RuntimeError> {
        let accepted = accepted.map_err(|error| placed(error, place))?;
        self.desks.keep_due(&accepted.thread_id).boxed().await?;
        Ok(accepted)
    }

    /// Posts messages without starting an agent. With `after`, nothing may have been posted or run after this event.
    pub(crate) async fn record(
        &self,
        thread: &ThreadRef,
        items: Vec<NewItem>,
        after: Option<Seq>,
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<Seq, RuntimeError> {
        let (tenant, key) = (thread.tenant(), thread.key());
        let kept = self
            .runtime()
            .record_on(tenant, key, items, self.terms(None, after))
            .boxed()
            .await;
        let seq = kept.map_err(|error| placed(error, place))?;
        self.desks.keep_due(thread.id()).boxed().await?;
        Ok(seq)
    }

    /// Changes the participants, all or none, and returns the items of the changes in order.
    pub(crate) async fn change(
        &self,
        thread: &ThreadRef,
        changes: Vec<(ParticipantChange, String)>,
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<Seq, RuntimeError> {
        let items = changes
            .iter()
            .map(|(change, id)| change.clone().into_item(id));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let gate = Arc::new(ChangeGate {
            states: Arc::clone(self.desks),
            caller: self.speaker.caller.clone(),
            changes: changes.into_iter().map(|(change, _)| change).collect(),
        });
        let (tenant, key) = (thread.tenant(), thread.key());
        let kept = self
            .runtime()
            .record_on(tenant, key, items, Preconditions::through(gate))
            .boxed()
            .await;
        let seq = kept.map_err(|error| placed(error, place))?;
        self.desks.keep_due(thread.id()).boxed().await?;
        Ok(seq)
    }

    /// Checks the first messages of a new thread, so that a refused one creates no thread. Fills in the
    /// recorded forms.
    pub(crate) async fn begin(
        &self,
        metadata: Option<Payload>,
        fork: Option<&Fork>,
        commands: &mut [(Timestamp, Command)],
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<(), RuntimeError> {
        let (from, now) = (self.forked(fork).await?, Timestamp::now());
        let begun = StartedAitpState::new(from, metadata, now)?;
        let desk = begun.check(&self.speaker, commands, now);
        desk.map(drop).map_err(|error| placed(error, place))
    }

    /// Checks a message for a thread that is to be created with earlier messages. Of those, only the
    /// speakers and the URLs of files are checked.
    pub(crate) fn judge_after(
        &self,
        past: &[(Timestamp, Command)],
        item: &NewItem,
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<(), RuntimeError> {
        let judged = self.speaker.judge_past(None, past);
        judged.map_err(|error| placed(error, &place))?;
        let now = Timestamp::now();
        let desk = StartedAitpState::new(AitpState::default(), None, now)?.after(past)?;
        let judged = self.speaker.judge_all(&desk, &mut [item.clone()], now);
        judged.map_err(|refused| placed(refused.into(), place))
    }

    /// Checks a history that is to become a thread: its speakers and the URLs of its files. The returned
    /// closure may run on another thread; `json` is the text that the history was read from.
    pub(crate) fn judge_import(
        &self,
    ) -> impl FnOnce(&Imported, &str) -> Result<(), RuntimeError> + Send + 'static {
        let speaker = self.speaker.clone();
        move |imported, json| {
            let judged = speaker.judge_past(imported.metadata.clone(), &imported.commands);
            judged.map_err(|error| found_in(error, json))
        }
    }

    /// Checks messages that are to be appended to a thread like posted ones, and replaces them by their
    /// stored forms. The returned closure may run on another thread; `json` is their text.
    pub(crate) async fn judge_append(
        &self,
        thread: &ThreadRef,
    ) -> Result<
        impl FnOnce(&mut Imported, &str) -> Result<(), RuntimeError> + Send + 'static,
        RuntimeError,
    > {
        let speaker = self.speaker.clone();
        let state = self.desks.of(thread.row()).await?;
        let desk = state.get().cloned().unwrap_or_default();
        Ok(move |imported: &mut Imported, json: &str| {
            let judged = speaker.judge_appended(&desk, &mut imported.commands, json);
            judged.map_err(|error| found_in(error, json))
        })
    }

    async fn forked(&self, fork: Option<&Fork>) -> Result<AitpState, RuntimeError> {
        match fork {
            Some(fork) => self.desks.until(&fork.thread_id, fork.seq).await,
            None => Ok(AitpState::default()),
        }
    }

    /// Checks that the caller may answer a request as an actor, or without one as the initiator. An
    /// answer to it is checked the same way when it is posted.
    pub(crate) fn check_answerer(
        &self,
        desk: &AitpState,
        actor: Option<&str>,
        terms: &RequestTerms,
    ) -> Result<(), Why> {
        self.speaker.check_answerer(desk, actor, terms)
    }

    /// The current AITP state of a thread.
    pub(crate) async fn locked_state(
        &self,
        row: &ThreadRow,
    ) -> Result<LockedAitpState, RuntimeError> {
        self.desks.of(row).await
    }
}
