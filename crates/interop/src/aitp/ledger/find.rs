//! Which request a message is about.

use super::Key;
use super::check::Draft;
use super::request::{RequestProgress, RequestState, RequestTerms};
use super::verdict::RequestRefusal;
use crate::aitp::family::capability_of;
use crate::aitp::kind::{Kind, Topic};
use crate::aitp::meaning::no_id;
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Maximum number of requests listed for an ambiguous message.
const MAX_NAMED: usize = 8;

/// One request as a draft sees it.
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) ask: Arc<RequestTerms>,
    pub(super) life: RequestProgress,
}

impl Draft<'_> {
    pub(super) fn get(&self, number: u64) -> Option<Found> {
        let found = |ask: &Arc<RequestTerms>, life: &RequestProgress| Found {
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
        let kept = || self.base.index.latest(&key);
        let number = self.named.get(&key).copied().or_else(kept)?;
        self.get(number)
    }

    /// The request that an answer refers to: the one it names, or the only open one of its topic.
    pub(super) fn meant(
        &self,
        topic: Topic,
        id: Option<&str>,
        now: Timestamp,
    ) -> Result<Found, RequestRefusal> {
        if let Some(id) = id {
            let found = self.named(topic, id);
            return found.ok_or_else(|| RequestRefusal::Unknown(id.to_owned()));
        }
        let kept = self.base.index.open(topic, now);
        let kept = kept.filter(|number| !self.changed.contains_key(number));
        let changed = self.changed.keys().copied();
        let all = kept.chain(changed).filter_map(|number| self.get(number));
        only(
            all.filter(|it| it.ask.key.topic == topic && it.life.state(now) == RequestState::Open),
        )?
        .ok_or(RequestRefusal::NothingOpen(topic))
    }

    /// The request that a message of our extension refers to: the one with its id that the author may
    /// control.
    pub(super) fn controlled(
        &self,
        kind: Kind,
        payload: &Value,
        now: Timestamp,
    ) -> Result<Found, RequestRefusal> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str);
        let id = text("request_id").ok_or_else(|| RequestRefusal::Unfit(vec![no_id(kind)]))?;
        let message_type = text("request_type");
        let family = text("request_schema").map(|url| capability_of(url).map(|(it, _)| it));
        let topics = Topic::ALL.into_iter();
        let found = topics.filter_map(|topic| self.named(topic, id));
        let fits = |found: &Found| {
            message_type.is_none_or(|it| it == found.ask.message_type)
                && family.is_none_or(|it| it == Some(found.ask.family))
        };
        let mut refused = RequestRefusal::Unknown(id.to_owned());
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        for found in found.filter(fits) {
            match self.may_control(kind, &found.ask) {
                Err(refusal) => refused = refusal,
                Ok(()) if found.life.state(now) == RequestState::Open => open.push(found),
                Ok(()) => closed.push(found),
            }
        }
        let among = if open.is_empty() { closed } else { open };
        only(among)?.ok_or(refused)
    }

    /// Only the requester cancels and sets an end. Only a party that may answer declines and reports
    /// an error.
    fn may_control(&self, kind: Kind, ask: &RequestTerms) -> Result<(), RequestRefusal> {
        if !matches!(kind, Kind::Cancel | Kind::Expire) {
            self.base.may_answer(ask, &self.by)
        } else if ask.by == self.by {
            Ok(())
        } else {
            Err(RequestRefusal::NotTheAsker(ask.key.clone()))
        }
    }
}

/// The only one, if there is one; the first few where there are several.
fn only(found: impl IntoIterator<Item = Found>) -> Result<Option<Found>, RequestRefusal> {
    let mut found: Vec<Found> = found.into_iter().take(MAX_NAMED).collect();
    if found.len() > 1 {
        let keys = found.into_iter().map(|it| it.ask.key.clone());
        return Err(RequestRefusal::Ambiguous(keys.collect()));
    }
    Ok(found.pop())
}
