//! Decides on a draft of the ledger whether a message may be posted, and its effect.

use super::find::Found;
use super::request::{
    Refusing, RequestProgress, RequestState, RequestStatus, RequestTerms, Settlement,
};
use super::verdict::{MessageVerdict, RequestEffect, RequestRefusal};
use super::{Key, Ledger, MAX_ANSWERS, MAX_OPEN, MAX_REASON};
use crate::aitp::choice::instant;
use crate::aitp::kind::{Kind, Purpose};
use crate::aitp::meaning::{check_answer, id_of, no_id};
use crate::aitp::message::Message;
use crate::aitp::participants::Party;
use crate::aitp::violation::MessageViolation;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The effect of a message, and the request that it changes.
pub(super) struct Step {
    pub(super) verdict: MessageVerdict,
    pub(super) change: Option<Changed>,
}

/// The change of one request.
pub(super) enum Changed {
    /// It is new, and replaces another open request if `supersedes` names one.
    Opened {
        ask: Arc<RequestTerms>,
        life: RequestProgress,
        supersedes: Option<u64>,
    },
    /// It has this life from now on, and one answer more.
    Lives {
        number: u64,
        life: RequestProgress,
        is_answer: bool,
    },
}

/// The ledger as it is after the messages that were decided.
pub(super) struct Draft<'a> {
    pub(super) base: &'a Ledger,
    pub(super) changed: BTreeMap<u64, (Arc<RequestTerms>, RequestProgress)>,
    pub(super) named: BTreeMap<Key, u64>,
    pub(super) by: Party,
    next: u64,
    // Of the speaker's requests, those that these messages opened, and those that they closed.
    n_opened: usize,
    n_closed: usize,
}

impl<'a> Draft<'a> {
    pub(super) fn new(base: &'a Ledger, by: &Party) -> Self {
        Self {
            base,
            changed: BTreeMap::new(),
            named: BTreeMap::new(),
            by: base.roster.known(by),
            next: base.next,
            n_opened: 0,
            n_closed: 0,
        }
    }

    /// Decides a message and applies it to the draft.
    pub(super) fn decide(
        &mut self,
        message: &Message,
        now: Timestamp,
    ) -> Result<Step, RequestRefusal> {
        if message.capability.is_none() {
            return Ok(Step {
                verdict: MessageVerdict::Passes,
                change: None,
            });
        }
        let kind = message.kind.ok_or(RequestRefusal::NotOneMessage)?;
        let payload = message.payload().ok_or(RequestRefusal::NotOneMessage)?;
        let step = match kind.purpose() {
            Purpose::Notice => Step {
                verdict: MessageVerdict::Passes,
                change: None,
            },
            Purpose::Ask(_) => self.ask(message, kind, payload, now)?,
            Purpose::Answer(topic) => {
                let id = id_of(kind, payload);
                if id.is_none() && payload.get(kind.id_field()).is_some_and(|it| !it.is_null()) {
                    return Err(RequestRefusal::Unfit(vec![no_id(kind)]));
                }
                let found = self.meant(topic, id, now)?;
                self.answer(&found, kind, message, payload, now)?
            }
            Purpose::Outcome(topic) => {
                let id = id_of(kind, payload);
                let id = id.ok_or_else(|| RequestRefusal::Unfit(vec![no_id(kind)]))?;
                let found = self.named(topic, id);
                let found = found.ok_or_else(|| RequestRefusal::Unknown(id.to_owned()))?;
                outcome(found, kind, payload, &self.by)?
            }
            Purpose::Control => {
                let found = self.controlled(kind, payload, now)?;
                self.control(kind, found, payload, now)?
            }
        };
        self.take(&step);
        Ok(step)
    }

    fn take(&mut self, step: &Step) {
        match &step.change {
            None => {}
            Some(Changed::Opened {
                ask,
                life,
                supersedes,
            }) => {
                self.n_opened += 1;
                if let Some(found) = supersedes.and_then(|number| self.get(number)) {
                    self.n_closed += 1;
                    let life = RequestProgress {
                        status: RequestStatus::Superseded,
                        ..found.life
                    };
                    self.changed.insert(found.number, (found.ask, life));
                }
                self.named.insert(ask.key.clone(), self.next);
                let kept = (Arc::clone(ask), life.clone());
                self.changed.insert(self.next, kept);
                self.next += 1;
            }
            Some(Changed::Lives { number, life, .. }) => {
                if let Some(found) = self.get(*number) {
                    let closes = found.life.status == RequestStatus::Open
                        && life.status != RequestStatus::Open;
                    self.n_closed += usize::from(closes && found.ask.by == self.by);
                    self.changed.insert(*number, (found.ask, life.clone()));
                }
            }
        }
    }

    fn ask(
        &self,
        message: &Message,
        kind: Kind,
        payload: &Value,
        now: Timestamp,
    ) -> Result<Step, RequestRefusal> {
        let ask = RequestTerms::of(message, self.by.clone()).map_err(RequestRefusal::Unfit)?;
        let ask = ask.ok_or_else(|| RequestRefusal::Unfit(vec![no_id(kind)]))?;
        let key = ask.key.clone();
        let former = self.named(key.topic, &key.id);
        // An id is its first asker's, also when nothing is open under it any more: who answers late
        // answers nobody else.
        if let Some(former) = former.as_ref().filter(|it| it.ask.by != ask.by) {
            return passed_on(former, &ask, now);
        }
        let former = former.filter(|it| it.life.state(now) == RequestState::Open);
        let n_open = self.base.index.n_open(&self.by, now) + self.n_opened;
        if former.is_none() && n_open.saturating_sub(self.n_closed) >= MAX_OPEN {
            return Err(RequestRefusal::TooManyOpen);
        }
        let effect = if former.is_some() {
            RequestEffect::Supersedes
        } else {
            RequestEffect::Opens
        };
        let life = RequestProgress {
            expires_at: ask.expires_at(payload),
            ..RequestProgress::default()
        };
        Ok(Step {
            verdict: MessageVerdict::Does {
                effect,
                request: key,
            },
            change: Some(Changed::Opened {
                ask: Arc::new(ask),
                life,
                supersedes: former.map(|former| former.number),
            }),
        })
    }

    fn answer(
        &self,
        found: &Found,
        kind: Kind,
        message: &Message,
        payload: &Value,
        now: Timestamp,
    ) -> Result<Step, RequestRefusal> {
        self.base.may_answer(&found.ask, &self.by)?;
        let key = found.ask.key.clone();
        let state = found.life.state(now);
        let effect = match state {
            RequestState::Open => RequestEffect::Answers,
            RequestState::Answered => {
                let failed = found.life.settlement == Some(Settlement::Failure);
                if !key.topic.may_be_answered_again() && !failed {
                    return Err(RequestRefusal::AnsweredBefore(key));
                }
                if found.life.is_over(now) {
                    return Err(late(found, RequestState::Expired));
                }
                RequestEffect::Replaces
            }
            RequestState::Declined
            | RequestState::Cancelled
            | RequestState::Expired
            | RequestState::Superseded => {
                return Err(late(found, state));
            }
        };
        if found.life.n_answers >= MAX_ANSWERS {
            return Err(RequestRefusal::TooManyAnswers);
        }
        let asked = found.ask.question().ok_or(RequestRefusal::NotOneMessage)?;
        let wrong = check_answer(asked, message, now);
        if !wrong.is_empty() {
            return Err(RequestRefusal::Unfit(wrong));
        }
        // Who says that the payment failed has not paid, and may try again.
        let failed = kind == Kind::PaymentAuthorization
            && Settlement::of(payload) == Some(Settlement::Failure);
        let life = RequestProgress {
            status: RequestStatus::Answered,
            settlement: failed.then_some(Settlement::Failure),
            n_answers: found.life.n_answers + 1,
            ..found.life.clone()
        };
        Ok(lives(found.number, key, life, effect, true))
    }

    fn control(
        &self,
        kind: Kind,
        found: Found,
        payload: &Value,
        now: Timestamp,
    ) -> Result<Step, RequestRefusal> {
        let text = |key: &str| match payload.get(key).and_then(Value::as_str) {
            Some(text) if text.len() > MAX_REASON => {
                let pointer = format!("/{}/{key}", kind.key());
                let wrong = MessageViolation::new(pointer, format!("at most {MAX_REASON} bytes"));
                Err(RequestRefusal::Unfit(vec![wrong]))
            }
            text => Ok(text.map(str::to_owned)),
        };
        let key = found.ask.key.clone();
        let state = found.life.state(now);
        if state != RequestState::Open {
            return Err(late(&found, state));
        }
        let mut life = found.life;
        let effect = if kind == Kind::Cancel {
            life.status = RequestStatus::Cancelled(text("reason")?);
            RequestEffect::Cancels
        } else if kind == Kind::Expire {
            let end = payload.get("expires_at").and_then(instant);
            let end = end.ok_or_else(|| {
                let wrong = MessageViolation::new("/expire/expires_at", "an instant (RFC 3339)");
                RequestRefusal::Unfit(vec![wrong])
            })?;
            life.expires_at = Some(end);
            RequestEffect::Limits(end)
        } else {
            let is_error = kind == Kind::Error;
            life.status = RequestStatus::Declined(Refusing {
                by: self.by.clone(),
                reason: text(if is_error { "message" } else { "reason" })?,
                code: text("code")?.filter(|_| is_error),
            });
            if is_error {
                RequestEffect::Fails
            } else {
                RequestEffect::Declines
            }
        };
        Ok(lives(found.number, key, life, effect, false))
    }
}

fn lives(
    number: u64,
    request: Key,
    life: RequestProgress,
    effect: RequestEffect,
    is_answer: bool,
) -> Step {
    Step {
        verdict: MessageVerdict::Does { effect, request },
        change: Some(Changed::Lives {
            number,
            life,
            is_answer,
        }),
    }
}

fn outcome(
    found: Found,
    kind: Kind,
    payload: &Value,
    party: &Party,
) -> Result<Step, RequestRefusal> {
    let key = found.ask.key.clone();
    if *party != found.ask.by {
        return Err(RequestRefusal::NotTheAsker(key));
    }
    if found.life.status != RequestStatus::Answered {
        return Err(RequestRefusal::NotAnswered(key));
    }
    let settlement = Settlement::of(payload).ok_or_else(|| {
        let pointer = format!("/{}/result", kind.key());
        let wrong = MessageViolation::new(pointer, "success, failure or pending");
        RequestRefusal::Unfit(vec![wrong])
    })?;
    let life = RequestProgress {
        settlement: Some(settlement),
        ..found.life
    };
    let effect = RequestEffect::Settles(settlement);
    Ok(lives(found.number, key, life, effect, false))
}

/// Handles a request under another party's id: it forwards that request, or it is refused because the
/// id is in use.
fn passed_on(former: &Found, ask: &RequestTerms, now: Timestamp) -> Result<Step, RequestRefusal> {
    let request = former.ask.key.clone();
    if !former.ask.is_passed_on_as(ask) {
        return Err(RequestRefusal::IdInUse(request));
    }
    let state = former.life.state(now);
    if state != RequestState::Open {
        return Err(RequestRefusal::Late { request, state });
    }
    let effect = RequestEffect::Forwards;
    Ok(Step {
        verdict: MessageVerdict::Does { effect, request },
        change: None,
    })
}

fn late(found: &Found, state: RequestState) -> RequestRefusal {
    RequestRefusal::Late {
        request: found.ask.key.clone(),
        state,
    }
}
