//! The losses of an import: the data of a document that an export would not restore.

use super::export::to_document;
use super::import::{ImportError, Imported};
use crate::{Loss, Losses};
use jiff::Timestamp;
use thread::json::Step;
use thread::{Json, Thread};
use timeline::{Command, NewThread, Record, Rejected, Seq, State, Transcript};

/// Replays an import on a fresh thread and lists the differences of the exported document.
pub(super) fn losses(document: &Thread, imported: &Imported) -> Result<Vec<Loss>, ImportError> {
    let transcript = imported.transcript(document.thread_id().unwrap_or_default())?;
    let back = to_document(&transcript).value;
    Ok(differences(
        document.root().clone().into(),
        back.into_root().into(),
    ))
}

impl Imported {
    /// The transcript of a fresh thread that has only this conversation.
    ///
    /// # Errors
    ///
    /// If the log refuses a command.
    pub fn transcript(&self, thread_id: &str) -> Result<Transcript, Rejected> {
        let mut thread = NewThread::new(thread_id, None);
        thread.title.clone_from(&self.title);
        thread.metadata.clone_from(&self.metadata);
        let context_id = "context".into();
        let create = Command::Create { thread, context_id };
        let first = self.created_at.unwrap_or(Timestamp::UNIX_EPOCH);
        let mut state = State::default();
        let mut transcript = Transcript::default();
        let mut seq = Seq::ZERO;
        for (at, command) in std::iter::once((first, create)).chain(self.commands.iter().cloned()) {
            for event in state.decide(command, at)? {
                seq = seq.next();
                state.apply(&event);
                transcript.apply(&Record { seq, at, event });
            }
        }
        Ok(transcript)
    }
}

/// The differences between two values, at the deepest pointers.
fn differences(original: Json, back: Json) -> Vec<Loss> {
    let mut losses = Losses::default();
    let mut open = vec![(String::new(), original, back)];
    while let Some((pointer, original, back)) = open.pop() {
        if original == back {
            continue;
        }
        match (original, back) {
            (Json::Object(original), Json::Object(mut back)) => {
                let same_keys = original.keys().eq(back.keys());
                let n_open = open.len();
                let mut n_missing = 0;
                for (key, value) in original {
                    let pointer = format!("{pointer}{}", thread::json::pointer([Step::Key(&key)]));
                    match back.get_mut(&key).map(std::mem::take) {
                        None => {
                            n_missing += 1;
                            losses.push(pointer, "not carried");
                        }
                        Some(other) if other != value => open.push((pointer, value, other)),
                        Some(_) => {}
                    }
                }
                if !same_keys && open.len() == n_open && n_missing == 0 {
                    losses.push(pointer, "keys in another order, or more of them");
                }
            }
            (Json::Array(original), Json::Array(back)) if original.len() == back.len() => {
                for (place, pair) in original.into_iter().zip(back).enumerate() {
                    open.push((format!("{pointer}/{place}"), pair.0, pair.1));
                }
            }
            (Json::Array(original), Json::Array(back)) => {
                let what = format!("{} elements became {}", original.len(), back.len());
                losses.push(pointer, what);
            }
            _ => losses.push(pointer, "changed"),
        }
    }
    let mut losses = losses.into_vec();
    losses.reverse();
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_listed_where_they_are() {
        let json = |text: &str| Json::parse(text).unwrap();
        let original = json(r#"{"a":[{"x":1,"y":2},3],"b":[1],"c":{"d":1,"e":2}}"#);
        let back = json(r#"{"a":[{"x":1},4],"b":[],"c":{"e":2,"d":1}}"#);
        let found: Vec<_> = differences(original, back)
            .into_iter()
            .map(|loss| loss.pointer)
            .collect();
        assert_eq!(found, ["/a/0/y", "/a/1", "/b", "/c"]);
    }
}
