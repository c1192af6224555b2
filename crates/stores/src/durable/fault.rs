//! Faults that the check of a store finds.

use std::fmt::{Display, Formatter, Result};

/// A fault of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFault {
    /// The thread, if it is about one.
    pub thread: Option<String>,
    /// The first event of the part of the log that is damaged, if it is the log.
    pub event: Option<u64>,
    /// The object, if it is about one: tenant, kind and id.
    pub object: Option<String>,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: Remedy,
}

/// The remedy for a fault of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The log is sound: the tables can be rebuilt from it.
    Rebuild,
    /// Nothing in the store has what was lost.
    Restore,
    /// It can be deleted, or restored from a backup.
    Delete,
}

impl Display for Remedy {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Rebuild => "rebuild the tables",
            Self::Restore => "restore a backup",
            Self::Delete => "delete it, or restore a backup",
        })
    }
}

impl Display for StoreFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match (&self.thread, self.event) {
            (Some(thread), Some(event)) => write!(f, "thread {thread}, event {event}: ")?,
            (Some(thread), None) => write!(f, "thread {thread}: ")?,
            (None, _) => {}
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl StoreFault {
    /// A fault of the file.
    pub(crate) fn of_store(what: impl Into<String>, remedy: Remedy) -> Self {
        Self {
            thread: None,
            event: None,
            object: None,
            what: what.into(),
            remedy,
        }
    }

    /// A fault of a thread. Damage of a log names its event.
    pub(crate) fn of_thread(thread: &str, what: impl Into<String>, remedy: Remedy) -> Self {
        let what = what.into();
        let place = what
            .strip_prefix("thread ")
            .and_then(|rest| rest.strip_prefix(thread)?.strip_prefix(", event "))
            .and_then(|rest| rest.split_once(": "))
            .and_then(|(event, what)| Some((event.parse().ok()?, what.to_owned())));
        let (event, what) = match place {
            Some((event, what)) => (Some(event), what),
            None => (None, what),
        };
        Self {
            thread: Some(thread.to_owned()),
            event,
            object: None,
            what,
            remedy,
        }
    }

    /// A fault of an object or a checkpoint.
    pub(crate) fn of_object(object: String, what: impl Into<String>) -> Self {
        Self {
            object: Some(object),
            ..Self::of_store(what, Remedy::Delete)
        }
    }
}
