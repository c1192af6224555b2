//! Pages of lists. A page stops the walk over the list as soon as it is complete, so its cost is
//! that of the objects walked.

use std::ops::ControlFlow;

/// An object with an id, for lists.
pub trait Named {
    /// The id of the object.
    fn id(&self) -> &str;
}

/// The order of a list, by the place in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest first.
    Ascending,
    /// The newest first.
    #[default]
    Descending,
}

impl Order {
    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

/// A page under construction: it receives objects in the order of the walk, and needs one more than
/// it shows.
#[derive(Debug)]
pub struct Page<T> {
    data: Vec<T>,
    limit: usize,
    /// Whether the walk goes against the order of the list.
    is_backward: bool,
    /// The object that ends the page before its limit.
    until: Option<String>,
    has_more: bool,
}

impl<T: Named> Page<T> {
    /// An empty page of at most `limit` objects.
    pub(crate) fn of(limit: usize, is_backward: bool, until: Option<String>) -> Self {
        Self {
            data: Vec::new(),
            limit,
            is_backward,
            until,
            has_more: false,
        }
    }

    /// Adds the next object; breaks when the page is complete.
    pub fn push(&mut self, object: T) -> ControlFlow<()> {
        if self.until.as_deref() == Some(object.id()) {
            return ControlFlow::Break(());
        }
        if self.data.len() == self.limit {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        self.data.push(object);
        ControlFlow::Continue(())
    }

    /// The objects in the order of the list, and whether more follow.
    pub(crate) fn finish(mut self) -> (Vec<T>, bool) {
        if self.is_backward {
            self.data.reverse();
        }
        (self.data, self.has_more)
    }
}
