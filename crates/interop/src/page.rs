//! Pages of lists, cut out of what is listed as it comes: a page costs what was walked for it, and not
//! what there is.

use std::ops::ControlFlow;

/// An object with an id, for lists.
pub trait Named {
    /// Its id.
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

/// A page while its objects come, in the order of the walk. It needs one object more than it shows.
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
    /// An empty page of at most so many objects.
    pub(crate) fn of(limit: usize, is_backward: bool, until: Option<String>) -> Self {
        Self {
            data: Vec::new(),
            limit,
            is_backward,
            until,
            has_more: false,
        }
    }

    /// Takes the next object; breaks when nothing more is needed.
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

    /// The objects in the order of the list, and whether it goes on after them.
    pub(crate) fn finish(mut self) -> (Vec<T>, bool) {
        if self.is_backward {
            self.data.reverse();
        }
        (self.data, self.has_more)
    }
}
