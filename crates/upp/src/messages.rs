//! A conversation that grows without being copied.

use crate::message::Message;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A conversation: a persistent list. Appending and cloning share the existing messages: a clone costs
/// O(1), an append O(log n).
///
/// Messages are stored in chunks that clones share. The first clone to append to the end of a chunk
/// fills its next free place; the other clones don't see it. A second clone that appends copies the
/// chunk, which is one pointer per message. So a list may hold up to 31 messages of another list with
/// the same beginning in memory.
#[derive(Clone, Default)]
pub struct Messages {
    /// The full chunks; `None` in a short conversation, as most are.
    full: Option<rpds::VectorSync<Chunk>>,
    tail: Option<Chunk>,
    n_in_tail: usize,
}

type Chunk = Arc<[OnceLock<Message>]>;

/// How many messages a full chunk has.
const FULL: usize = 32;

/// Capacities of the last chunk as it grows. Most conversations are short, and so are most additions to
/// a shared list.
const ROOMS: [usize; 3] = [8, 16, FULL];

/// A chunk with room for `room` messages that begins with `messages`.
fn chunk(room: usize, mut messages: impl Iterator<Item = Message>) -> Chunk {
    let place = |_| messages.next().map_or_else(OnceLock::new, OnceLock::from);
    (0..room).map(place).collect()
}

impl Messages {
    /// An empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.n_in_full().saturating_add(self.n_in_tail)
    }

    fn n_in_full(&self) -> usize {
        let full = self.full.as_ref();
        full.map_or(0, |full| full.len().saturating_mul(FULL))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.tail.is_none()
    }

    /// The message at this place.
    pub fn get(&self, at: usize) -> Option<&Message> {
        let Some(in_tail) = at.checked_sub(self.n_in_full()) else {
            return self.full.as_ref()?.get(at / FULL)?.get(at % FULL)?.get();
        };
        if in_tail >= self.n_in_tail {
            return None;
        }
        self.tail.as_ref()?.get(in_tail)?.get()
    }

    /// The first message.
    pub fn first(&self) -> Option<&Message> {
        self.get(0)
    }

    /// The last message.
    pub fn last(&self) -> Option<&Message> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The messages, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            messages: self,
            places: 0..self.len(),
        }
    }

    /// A copy with a message at its end.
    #[must_use]
    pub fn push_back(&self, message: Message) -> Self {
        let mut longer = self.clone();
        longer.push_back_mut(message);
        longer
    }

    /// Appends a message.
    pub fn push_back_mut(&mut self, message: Message) {
        let message = match self.free() {
            Some(free) => match free.set(message) {
                Ok(()) => {
                    self.n_in_tail += 1;
                    return;
                }
                Err(message) => message,
            },
            None => message,
        };
        let tail = self.tail.take();
        let next = match tail {
            Some(tail) if self.n_in_tail >= FULL => {
                self.full.get_or_insert_default().push_back_mut(tail);
                self.n_in_tail = 0;
                chunk(ROOMS[0], std::iter::once(message))
            }
            tail => {
                let room = ROOMS.iter().find(|room| **room > self.n_in_tail);
                let kept = tail.iter().flat_map(|tail| tail.iter());
                let kept = kept.map_while(OnceLock::get).take(self.n_in_tail);
                chunk(*room.unwrap_or(&FULL), kept.cloned().chain([message]))
            }
        };
        self.n_in_tail += 1;
        self.tail = Some(next);
    }

    /// The messages without the last one; `None` if the list is empty.
    #[must_use]
    pub fn drop_last(&self) -> Option<Self> {
        Some(self.first_n(self.len().checked_sub(1)?))
    }

    /// The first `n` messages, or all if there are fewer. They are shared, not copied.
    #[must_use]
    pub fn first_n(&self, n: usize) -> Self {
        if n >= self.len() {
            return self.clone();
        }
        let Some(last) = n.checked_sub(1) else {
            return Self::new();
        };
        let place = last / FULL;
        let n_full = self.full.as_ref().map_or(0, rpds::VectorSync::len);
        let tail = self.full.as_ref().and_then(|full| full.get(place));
        let tail = tail.or(self.tail.as_ref()).cloned();
        let full = self.full.as_ref().filter(|_| place > 0).map(|full| {
            let n_dropped = n_full.saturating_sub(place);
            if place < n_dropped {
                return full.iter().take(place).cloned().collect();
            }
            let mut full = full.clone();
            for _ in 0..n_dropped {
                full.drop_last_mut();
            }
            full
        });
        Self {
            full,
            tail,
            n_in_tail: last % FULL + 1,
        }
    }

    /// The length of the common beginning of two conversations, compared with `is_same`. Shared chunks
    /// are not compared.
    pub fn n_common(&self, other: &Self, is_same: impl Fn(&Message, &Message) -> bool) -> usize {
        let n = self.len().min(other.len());
        let mut at = 0;
        while at < n {
            let shared = self.chunk_at(at).zip(other.chunk_at(at));
            if shared.is_some_and(|(a, b)| Arc::ptr_eq(a, b)) {
                at = at.saturating_add(FULL);
                continue;
            }
            let end = n.min(at.saturating_add(FULL));
            for at in at..end {
                let pair = self.get(at).zip(other.get(at));
                if !pair.is_some_and(|(a, b)| is_same(a, b)) {
                    return at;
                }
            }
            at = end;
        }
        n
    }

    /// The chunk that a message is in.
    fn chunk_at(&self, at: usize) -> Option<&Chunk> {
        let full = self.full.as_ref().and_then(|full| full.get(at / FULL));
        full.or(self.tail.as_ref())
    }

    /// Replaces the message at this index; returns whether the index exists.
    pub fn set_mut(&mut self, at: usize, message: Message) -> bool {
        let (place, in_chunk) = (at / FULL, at % FULL);
        let full = self.full.as_ref().and_then(|full| full.get(place));
        let Some(old) = full.or(self.tail.as_ref()).filter(|_| at < self.len()) else {
            return false;
        };
        let n = full.map_or(self.n_in_tail, |_| FULL);
        let mut message = Some(message);
        let messages = old.iter().map_while(OnceLock::get).take(n).enumerate();
        let messages = messages.map(|(at, old)| {
            let new = message.take_if(|_| at == in_chunk);
            new.unwrap_or_else(|| old.clone())
        });
        let new = chunk(old.len(), messages);
        let is_full = full.is_some();
        match &mut self.full {
            Some(full) if is_full => full.set_mut(place, new),
            Some(_) | None => {
                self.tail = Some(new);
                true
            }
        }
    }

    /// The free place after the last message, if its chunk has one.
    fn free(&self) -> Option<&OnceLock<Message>> {
        self.tail.as_ref()?.get(self.n_in_tail)
    }
}

/// The messages of a conversation, in order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    messages: &'a Messages,
    places: Range<usize>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        self.messages.get(self.places.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<&'a Message> {
        self.messages.get(self.places.nth(n)?)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.messages.get(self.places.next_back()?)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.messages.get(self.places.nth_back(n)?)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Message> for Messages {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        messages
            .into_iter()
            .for_each(|message| self.push_back_mut(message));
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut all = Self::new();
        all.extend(messages);
        all
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl serde::Serialize for Messages {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(messages: &Messages) -> Vec<String> {
        messages.iter().map(Message::joined_text).collect()
    }

    proptest! {
        /// Many versions of one conversation, each made from some earlier one.
        #[test]
        fn no_list_sees_what_is_appended_to_another(
            steps in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..40), 1..20),
        ) {
            let mut versions = vec![(Messages::new(), Vec::<String>::new())];
            for (number, (from, n)) in steps.into_iter().enumerate() {
                let (mut messages, mut expected) = from.get(&versions).clone();
                for at in 0..n {
                    let text = format!("{number}.{at}");
                    messages.push_back_mut(Message::from(text.as_str()));
                    expected.push(text);
                }
                versions.push((messages, expected));
                for (messages, expected) in &versions {
                    prop_assert_eq!(&texts(messages), expected);
                    prop_assert_eq!(messages.len(), expected.len());
                    prop_assert_eq!(messages.is_empty(), expected.is_empty());
                    let last = messages.last().map(Message::joined_text);
                    prop_assert_eq!(last.as_ref(), expected.last());
                    prop_assert!(messages.get(expected.len()).is_none());
                    let shorter = messages.drop_last().map(|shorter| texts(&shorter));
                    prop_assert_eq!(
                        shorter.as_deref(),
                        expected.split_last().map(|(_, before)| before)
                    );
                    let back: Vec<String> = messages.iter().rev().map(Message::joined_text).collect();
                    prop_assert!(back.iter().eq(expected.iter().rev()));
                }
            }
        }
    }

    #[test]
    fn the_first_messages_are_shared_and_go_on_apart() {
        let messages: Messages = (0..3 * FULL + 3)
            .map(|at| Message::from(at.to_string()))
            .collect();
        let all = texts(&messages);
        for n in [
            0,
            1,
            ROOMS[0],
            FULL,
            FULL + 1,
            2 * FULL,
            3 * FULL,
            3 * FULL + 2,
        ] {
            let mut first = messages.first_n(n);
            assert_eq!(texts(&first), all[..n], "{n}");
            assert_eq!(first.is_empty(), n == 0);
            assert_eq!(first.n_common(&messages, |_, _| false), n, "not looked at");
            first.push_back_mut(Message::from("other"));
            assert_eq!(first.len(), n + 1);
            assert_eq!(first.last().unwrap().joined_text(), "other");
            assert_eq!(first.n_common(&messages, Message::eq), n, "{n}");
            assert_eq!(texts(&messages), all);
        }
        assert_eq!(messages.first_n(all.len() + 1).len(), all.len());
    }

    #[test]
    fn what_is_skipped_is_not_looked_at() {
        let messages: Messages = (0..FULL + 3)
            .map(|at| Message::from(at.to_string()))
            .collect();
        let text = |message: Option<&Message>| message.map(Message::joined_text);
        let mut iter = messages.iter();
        assert_eq!(text(iter.nth(FULL)), Some(FULL.to_string()));
        assert_eq!(text(iter.nth_back(0)), Some((FULL + 2).to_string()));
        assert_eq!((iter.len(), text(iter.nth(1))), (1, None));
    }

    #[test]
    fn a_message_in_place_of_another_is_in_one_list_alone() {
        let numbers = |n: usize| (0..n).map(|at| Message::from(at.to_string()));
        for n in [1, ROOMS[0], ROOMS[1], FULL, FULL + 3, 3 * FULL] {
            for at in [0, n / 2, n - 1] {
                let messages: Messages = numbers(n).collect();
                let mut changed = messages.clone();
                let mut longer = messages.clone();
                longer.push_back_mut(Message::from("more"));
                assert!(changed.set_mut(at, Message::from("other")));
                let mut expected = texts(&messages);
                assert_eq!(texts(&longer).len(), n + 1);
                expected[at] = "other".to_owned();
                assert_eq!(texts(&changed), expected);
                changed.push_back_mut(Message::from("last"));
                assert_eq!(changed.last().unwrap().joined_text(), "last");
                assert_eq!(texts(&messages)[at], at.to_string());
                assert!(!changed.set_mut(n + 1, Message::from("nowhere")));
            }
        }
    }

    #[test]
    fn an_append_to_the_latest_copies_nothing() {
        let mut messages = Messages::new();
        for at in 0..FULL {
            messages.push_back_mut(Message::from(at.to_string()));
        }
        let before = messages.clone();
        messages.push_back_mut(Message::from("more"));
        assert!(Arc::ptr_eq(
            messages.full.as_ref().unwrap().get(0).unwrap(),
            before.tail.as_ref().unwrap()
        ));
        let tail = messages.tail.clone().unwrap();
        messages.push_back_mut(Message::from("and more"));
        assert!(Arc::ptr_eq(&tail, messages.tail.as_ref().unwrap()));
    }
}
