//! Merging two branches of a document that have a common ancestor (TP-16).
//!
//! A change of one side is applied. If both sides change the same thing differently, the result has
//! a [`Conflict`]. The conflict holds all three values; [`ConflictKind`] defines which of them the
//! merged document has.
//!
//! The units of a change are: a part; a member of the root, an agent's configuration, a turn or a
//! message; a value in `metadata` or `client_metadata`, at any depth of objects; a link. Turns,
//! messages and parts are aligned as [`diff()`](crate::diff()) aligns them. In addition:
//! - If both sides insert at one place, the document has our items, then theirs, and a conflict.
//!   Items that both insert alike appear once, without a conflict.
//! - Links are a set: the document has the links of both sides, and there is no conflict.
//! - `updated_at` is the later of the two.
//! - If one side removes something and the other changes it, it stays. An agent that one side
//!   removes stays if the merged turns name it.
//! - A change of form only gives way to a change of meaning. Integers of 2^53 and more are equal
//!   only if all digits are, as in a diff.
//!
//! Two changes in different places can still break the protocol together: one side interrupts a
//! turn, the other sets `completed_at`. Without other conflicts, the merged document is therefore
//! validated with [`Profile::Strict`]. Every error that neither side had becomes a conflict. A
//! merge of valid documents without conflicts is thus valid. If there are other conflicts, validate
//! the document after you have resolved them.
//!
//! Merging adds no event and no link of its own: the branches are one thread.

mod agents;
mod form;
mod sequence;
mod walk;

use crate::document::Thread;
use crate::json::Json;
use crate::validate::{Profile, Rule, Severity, validate};
use std::collections::BTreeSet;

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The merged document.
    pub thread: Thread,
    /// The conflicts to review.
    pub conflicts: Vec<Conflict>,
}

/// Something that the two sides do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The kind of the conflict.
    pub kind: ConflictKind,
    /// Its JSON Pointer in the merged document.
    pub pointer: String,
    /// The value in the common ancestor, if it had one.
    pub base: Option<Json>,
    /// Our value, if we have one; an array of items if both put some in one place.
    pub ours: Option<Json>,
    /// Their value, likewise.
    pub theirs: Option<Json>,
}

/// The kind of a conflict: the changes of both sides, and the value in the merged document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// Both sides changed or added it, differently. The document has our value.
    BothChanged,
    /// Both sides appended to one sequence. The document has our items, then theirs. The pointer is
    /// that of the first.
    BothAppended,
    /// Both sides inserted at one place of a sequence. The document has our items, then theirs. The
    /// pointer is that of the first.
    BothInserted,
    /// One side removed it; the other changed it or still uses it. The document has it, as changed.
    RemovedAndChanged,
    /// The changes of both sides are in the document and break the protocol together.
    Breach {
        /// The rule that is broken.
        rule: Rule,
        /// The violation, described for people.
        message: String,
    },
}

/// The error for two documents that are not branches of a third.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread {found:?} is neither the thread {expected:?} nor forked from it")]
pub struct Unrelated {
    /// The thread of the common ancestor.
    pub expected: String,
    /// The thread of the branch.
    pub found: String,
}

/// Checks whether two documents can be branches of a third: they belong to its thread, or to a
/// thread `spawned_from` it. A document without `thread_id` passes.
///
/// ```
/// use loomline_thread::Thread;
/// use loomline_thread::merge::check_related;
///
/// let thread = |id: &str| Thread::decode(&format!(r#"{{"thread_id":"{id}","turns":[]}}"#));
/// let base = thread("a")?;
/// assert!(check_related(&base, [&base, &thread("a")?]).is_ok());
/// assert_eq!(check_related(&base, [&base, &thread("b")?]).unwrap_err().found, "b");
/// # Ok::<(), loomline_thread::DecodeError>(())
/// ```
pub fn check_related(base: &Thread, branches: [&Thread; 2]) -> Result<(), Unrelated> {
    for branch in branches {
        let (Some(expected), Some(found)) = (base.thread_id(), branch.thread_id()) else {
            continue;
        };
        let is_fork = parents(branch).any(|parent| parent == expected);
        if expected != found && !is_fork {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            return Err(Unrelated { expected, found });
        }
    }
    Ok(())
}

/// The threads from which a document was forked.
fn parents(thread: &Thread) -> impl Iterator<Item = &str> {
    let links = thread
        .root()
        .get("relationships")
        .and_then(|it| it.get("links"));
    let links = links.and_then(Json::as_array).unwrap_or_default().iter();
    links.filter_map(|link| {
        let relation = link.get("relation")?.as_str()?;
        let id = link.get("thread_id")?.as_str()?;
        (relation == "spawned_from").then_some(id)
    })
}

/// Merges two branches of a document.
///
/// ```
/// use loomline_thread::merge::{ConflictKind, merge};
/// use loomline_thread::Thread;
///
/// let thread = |title: &str, said: &[&str]| {
///     let turns: Vec<_> = said.iter().map(|said| format!(
///         r#"{{"turn_type":"user","parts":[{{"part_kind":"user-prompt","content":"{said}"}}]}}"#
///     )).collect();
///     Thread::decode(&format!(r#"{{"title":"{title}","turns":[{}]}}"#, turns.join(",")))
/// };
/// let base = thread("Looms", &["Does it fit?"])?;
/// let ours = thread("Looms", &["Does it fit?", "And when?"])?;
///
/// let merged = merge(&base, &ours, &thread("A loom", &["Does it fit?"])?);
/// assert_eq!(merged.thread, thread("A loom", &["Does it fit?", "And when?"])?);
/// assert!(merged.conflicts.is_empty());
///
/// let merged = merge(&base, &ours, &thread("Looms", &["Does it fit?", "How much?"])?);
/// assert_eq!(merged.thread, thread("Looms", &["Does it fit?", "And when?", "How much?"])?);
/// assert_eq!(merged.conflicts[0].kind, ConflictKind::BothAppended);
/// assert_eq!(merged.conflicts[0].pointer, "/turns/1");
/// # Ok::<(), loomline_thread::DecodeError>(())
/// ```
#[must_use]
pub fn merge(base: &Thread, ours: &Thread, theirs: &Thread) -> Merged {
    let whole = |thread: &Thread| Merged {
        thread: thread.clone(),
        conflicts: Vec::new(),
    };
    if base == ours {
        return whole(theirs);
    }
    if base == theirs || ours == theirs {
        return whole(ours);
    }
    let mut walk = walk::Walk::default();
    let roots = [base, ours, theirs].map(Thread::root);
    let root = walk.root(roots);
    let mut merged = Merged {
        thread: Thread::from_root(root),
        conflicts: walk.conflicts,
    };
    agents::restore(&mut merged, roots);
    if merged.conflicts.is_empty() {
        merged.conflicts = breaches(&merged.thread, [ours, theirs]);
    }
    merged
}

/// The errors that neither side had.
fn breaches(merged: &Thread, sides: [&Thread; 2]) -> Vec<Conflict> {
    let errors = |thread| {
        let violations = validate(thread, Profile::Strict).into_iter();
        violations.filter(|violation| violation.severity == Severity::Error)
    };
    let found: Vec<_> = errors(merged).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let known: BTreeSet<_> = sides
        .into_iter()
        .flat_map(errors)
        .map(|violation| (violation.rule, violation.message))
        .collect();
    let breach = |violation: crate::validate::Violation| {
        let (rule, message) = (violation.rule, violation.message);
        let known = known.contains(&(rule, message.clone()));
        (!known).then_some(Conflict {
            kind: ConflictKind::Breach { rule, message },
            pointer: violation.pointer,
            base: None,
            ours: None,
            theirs: None,
        })
    };
    found.into_iter().filter_map(breach).collect()
}
