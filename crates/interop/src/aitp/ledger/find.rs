//! Which request a message is about.

use super::Key;
use super::check::{Draft, no_id};
use super::request::{Ask, Life, State};
use super::verdict::Refusal;
use crate::aitp::kind::{Kind, Topic};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// One request as a draft sees it.
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) ask: Arc<Ask>,
    pub(super) life: Life,
}

impl Draft<'_> {
    pub(super) fn get(&self, number: u64) -> Option<Found> {
        let found = |ask: &Arc<Ask>, life: &Life| Found {
            number,
            ask: Arc::clone(ask),
            life: life.clone(),
        };
        if let Some((ask, life)) = self.changed.get(&number) {
            return Some(found(ask, life));
        }
        let request = self.base.requests.get(&number)?;
        Some(found(&request.ask, &request.life))
    }

    pub(super) fn named(&self, topic: Topic, id: &str) -> Option<Found> {
        let key = Key {
            topic,
            id: id.to_owned(),
        };
        let kept = || self.base.latest.get(&topic)?.get(id).copied();
        let number = self.named.get(&key).copied().or_else(kept)?;
        self.get(number)
    }

    /// The request that an answer is for: the one it names, or the only open one of its topic.
    pub(super) fn meant(
        &self,
        topic: Topic,
        id: Option<&str>,
        now: Timestamp,
    ) -> Result<Found, Refusal> {
        if let Some(id) = id {
            let found = self.named(topic, id);
            return found.ok_or_else(|| Refusal::Unknown(id.to_owned()));
        }
        let kept = self.base.open_numbers(topic);
        let kept = kept.filter(|number| !self.changed.contains_key(number));
        let changed = self.changed.keys().copied();
        let all = kept.chain(changed).filter_map(|number| self.get(number));
        let mut open: Vec<Found> = all
            .filter(|it| it.ask.key.topic == topic && it.life.state(now) == State::Open)
            .collect();
        match open.pop() {
            None => Err(Refusal::NothingOpen(topic)),
            Some(only) if open.is_empty() => Ok(only),
            Some(last) => {
                open.push(last);
                Err(ambiguous(&open))
            }
        }
    }

    /// The request that a message of our extension is about.
    pub(super) fn controlled(&self, payload: &Value, now: Timestamp) -> Result<Found, Refusal> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str);
        let id = text("request_id").ok_or_else(|| no_id(Kind::Decline))?;
        let message_type = text("request_type");
        let fits = |found: &Found| message_type.is_none_or(|it| it == found.ask.message_type);
        let topics = Topic::ALL.into_iter();
        let found = topics.filter_map(|topic| self.named(topic, id));
        let (mut open, mut closed): (Vec<Found>, Vec<Found>) = found
            .filter(fits)
            .partition(|it| it.life.state(now) == State::Open);
        let among = if open.is_empty() {
            &mut closed
        } else {
            &mut open
        };
        match among.pop() {
            None => Err(Refusal::Unknown(id.to_owned())),
            Some(only) if among.is_empty() => Ok(only),
            Some(last) => {
                among.push(last);
                Err(ambiguous(among))
            }
        }
    }
}

fn ambiguous(found: &[Found]) -> Refusal {
    Refusal::Ambiguous(found.iter().map(|it| it.ask.key.clone()).collect())
}
