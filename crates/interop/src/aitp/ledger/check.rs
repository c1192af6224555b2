//! Whether a message can be said, and what it does: decided on a draft of the ledger.

use super::find::Found;
use super::request::{Ask, Life, Refusing, Settlement, Standing, State, id_of};
use super::verdict::{Effect, Refusal, Verdict};
use super::{Key, Ledger, MAX_ANSWERS, MAX_OPEN, Speaker};
use crate::aitp::form::instant;
use crate::aitp::kind::{Kind, Purpose};
use crate::aitp::meaning::{check_answer, check_request};
use crate::aitp::message::Message;
use crate::aitp::roster::Party;
use crate::aitp::violation::Violation;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a message does, and to what.
pub(super) struct Step {
    pub(super) verdict: Verdict,
    pub(super) change: Option<Changed>,
}

/// What becomes of one request.
pub(super) enum Changed {
    /// It is new, and takes the place of another that was open.
    Opened {
        ask: Arc<Ask>,
        life: Life,
        supersedes: Option<u64>,
    },
    /// It has this life from now on, and one answer more.
    Lives {
        number: u64,
        life: Life,
        is_answer: bool,
    },
}

/// The ledger as it is after the messages that were decided.
pub(super) struct Draft<'a> {
    pub(super) base: &'a Ledger,
    pub(super) changed: BTreeMap<u64, (Arc<Ask>, Life)>,
    pub(super) named: BTreeMap<Key, u64>,
    next: u64,
}

impl<'a> Draft<'a> {
    pub(super) fn new(base: &'a Ledger) -> Self {
        Self {
            base,
            changed: BTreeMap::new(),
            named: BTreeMap::new(),
            next: base.next_number(),
        }
    }

    /// Decides a message and takes it in.
    pub(super) fn decide(
        &mut self,
        message: &Message,
        speaker: Speaker<'_>,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        if message.capability.is_none() {
            return Ok(Step {
                verdict: Verdict::Passes,
                change: None,
            });
        }
        let kind = message.kind.ok_or(Refusal::NotOneMessage)?;
        let payload = message.payload().ok_or(Refusal::NotOneMessage)?;
        let party = self.base.roster.party(speaker.actor, speaker.role);
        let step = match kind.purpose() {
            Purpose::Notice => Step {
                verdict: Verdict::Passes,
                change: None,
            },
            Purpose::Ask(_) => self.ask(message, kind, party, now)?,
            Purpose::Answer(topic) => {
                let found = self.meant(topic, id_of(kind, payload), now)?;
                self.answer(&found, message, &party, now)?
            }
            Purpose::Outcome(topic) => {
                let id = id_of(kind, payload).ok_or_else(|| no_id(kind))?;
                let found = self.named(topic, id);
                let found = found.ok_or_else(|| Refusal::Unknown(id.to_owned()))?;
                outcome(found, payload, &party)?
            }
            Purpose::Control => {
                let found = self.controlled(payload, now)?;
                self.control(kind, found, payload, party, now)?
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
                if let Some(found) = supersedes.and_then(|number| self.get(number)) {
                    let life = Life {
                        standing: Standing::Superseded,
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
                    self.changed.insert(*number, (found.ask, life.clone()));
                }
            }
        }
    }

    fn ask(
        &self,
        message: &Message,
        kind: Kind,
        party: Party,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let wrong = check_request(message);
        if !wrong.is_empty() {
            return Err(Refusal::Unfit(wrong));
        }
        let ask = Ask::of(message, party).ok_or_else(|| no_id(kind))?;
        let key = ask.key.clone();
        let life = Life {
            expires_at: ask.expires_at(),
            ..Life::default()
        };
        let former = self.named(key.topic, &key.id);
        let former = former.filter(|it| it.life.state(now) == State::Open);
        let mut effect = Effect::Opens;
        if let Some(former) = &former {
            if former.ask.by == ask.by {
                effect = Effect::Supersedes;
            } else if is_passed_on(&former.ask, &ask) {
                let verdict = Verdict::Does {
                    effect: Effect::Forwards,
                    request: key,
                };
                return Ok(Step {
                    verdict,
                    change: None,
                });
            } else {
                return Err(Refusal::IdInUse(key));
            }
        } else if self.base.n_open(now) + self.named.len() >= MAX_OPEN {
            return Err(Refusal::TooManyOpen);
        }
        Ok(Step {
            verdict: Verdict::Does {
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
        message: &Message,
        party: &Party,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        self.base.may_answer(&found.ask, party)?;
        let key = found.ask.key.clone();
        let state = found.life.state(now);
        let effect = match state {
            State::Open => Effect::Answers,
            State::Answered => {
                let failed = found.life.settlement == Some(Settlement::Failure);
                if !key.topic.may_be_answered_again() && !failed {
                    return Err(Refusal::AnsweredBefore(key));
                }
                if found.life.is_over(now) {
                    return Err(late(found, State::Expired));
                }
                Effect::Replaces
            }
            State::Declined | State::Cancelled | State::Expired | State::Superseded => {
                return Err(late(found, state));
            }
        };
        if found.life.n_answers >= MAX_ANSWERS {
            return Err(Refusal::TooManyAnswers);
        }
        let asked = found.ask.payload.value();
        let wrong = check_answer(key.topic, &asked, message, now);
        if !wrong.is_empty() {
            return Err(Refusal::Unfit(wrong));
        }
        let life = Life {
            standing: Standing::Answered,
            settlement: None,
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
        party: Party,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
        let key = found.ask.key.clone();
        let is_askers = matches!(kind, Kind::Cancel | Kind::Expire);
        if !is_askers {
            self.base.may_answer(&found.ask, &party)?;
        } else if party != found.ask.by {
            return Err(Refusal::NotTheAsker(key));
        }
        let state = found.life.state(now);
        if state != State::Open {
            return Err(late(&found, state));
        }
        let mut life = found.life;
        let effect = if kind == Kind::Cancel {
            life.standing = Standing::Cancelled(text("reason"));
            Effect::Cancels
        } else if kind == Kind::Expire {
            let end = payload.get("expires_at").and_then(instant);
            let end = end.ok_or_else(|| {
                let wrong = Violation::new("/expire/expires_at", "an instant (RFC 3339)");
                Refusal::Unfit(vec![wrong])
            })?;
            life.expires_at = Some(end);
            Effect::Limits(end)
        } else {
            let is_error = kind == Kind::Error;
            life.standing = Standing::Declined(Refusing {
                by: party,
                reason: text(if is_error { "message" } else { "reason" }),
                code: text("code").filter(|_| is_error),
            });
            if is_error {
                Effect::Fails
            } else {
                Effect::Declines
            }
        };
        Ok(lives(found.number, key, life, effect, false))
    }
}

fn lives(number: u64, request: Key, life: Life, effect: Effect, is_answer: bool) -> Step {
    Step {
        verdict: Verdict::Does { effect, request },
        change: Some(Changed::Lives {
            number,
            life,
            is_answer,
        }),
    }
}

fn outcome(found: Found, payload: &Value, party: &Party) -> Result<Step, Refusal> {
    let key = found.ask.key.clone();
    if *party != found.ask.by {
        return Err(Refusal::NotTheAsker(key));
    }
    if found.life.standing != Standing::Answered {
        return Err(Refusal::NotAnswered(key));
    }
    let settlement = Settlement::of(payload).ok_or_else(|| {
        let wrong = Violation::new(
            "/payment_confirmation/result",
            "success, failure or pending",
        );
        Refusal::Unfit(vec![wrong])
    })?;
    let life = Life {
        settlement: Some(settlement),
        ..found.life
    };
    let effect = Effect::Settles(settlement);
    Ok(lives(found.number, key, life, effect, false))
}

/// Whether a request is another's that somebody passes on: the same, or a quote with a wrapping.
fn is_passed_on(former: &Ask, ask: &Ask) -> bool {
    let quote = |ask: &Ask| crate::aitp::meaning::quote_of(&ask.payload.value()).clone();
    former.family == ask.family && quote(former) == quote(ask)
}

fn late(found: &Found, state: State) -> Refusal {
    Refusal::Late {
        request: found.ask.key.clone(),
        state,
    }
}

pub(super) fn no_id(kind: Kind) -> Refusal {
    let pointer = format!("/{}/{}", kind.key(), kind.id_field());
    Refusal::Unfit(vec![Violation::new(pointer, "the id of the request")])
}
