//! A conversation that grows without being copied.

use crate::message::Message;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A conversation: a list that never changes what it has. Appending and cloning share what is there:
/// a clone costs O(1), an append O(log n).
///
/// Messages lie in chunks that clones share. Who appends first to the end of a chunk takes the place
/// after it, and no clone sees more than it had; who comes second copies the chunk's messages, of
/// which each is a pointer. So a list may keep alive up to 31 messages of another one that began
/// like it.
#[derive(Clone, Default)]
pub struct Messages {
    /// The chunks that are full; none where a conversation is short, as most are.
    full: Option<rpds::VectorSync<Chunk>>,
    tail: Option<Chunk>,
    n_in_tail: usize,
}

type Chunk = Arc<[OnceLock<Message>]>;

/// How many messages a full chunk has.
const FULL: usize = 32;

/// How many the last chunk has room for as it grows: most conversations are short, and what many
/// lists add to one that they share is.
const ROOMS: [usize; 3] = [8, 16, FULL];

/// A chunk with room for so many messages, that begins with these.
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

    /// Whether there are none.
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

    /// The same with a message at its end.
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

    /// The same without its last message; none where there is none.
    #[must_use]
    pub fn drop_last(&self) -> Option<Self> {
        let mut shorter = self.clone();
        shorter.n_in_tail = self.n_in_tail.checked_sub(1)?;
        if shorter.n_in_tail == 0 {
            shorter.tail = shorter.full.as_ref().and_then(|full| full.last().cloned());
            if shorter
                .full
                .as_mut()
                .is_some_and(rpds::VectorSync::drop_last_mut)
            {
                shorter.n_in_tail = FULL;
            }
        }
        Some(shorter)
    }

    /// Puts another message in this place; gives whether there is such a place.
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

    /// The place after the last message, where its chunk has one.
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
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.messages.get(self.places.next_back()?)
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
