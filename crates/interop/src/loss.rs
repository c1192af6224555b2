//! Conversion losses.

/// One piece of data that the target format can't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its position in the source: a JSON Pointer.
    pub pointer: String,
    /// The data that was lost.
    pub what: String,
}

/// The value of a conversion, and the losses.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted<T> {
    /// The value.
    pub value: T,
    /// The losses, in the order of the source.
    pub losses: Vec<Loss>,
}

impl<T> Converted<T> {
    /// A value that carries everything.
    pub fn whole(value: T) -> Self {
        Self {
            value,
            losses: Vec::new(),
        }
    }

    /// Converts the value and keeps the losses.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Converted<U> {
        Converted {
            value: change(self.value),
            losses: self.losses,
        }
    }
}

/// The losses of a conversion so far, in the order in which it found them.
#[derive(Debug, Default)]
pub(crate) struct Losses(Vec<Loss>);

impl Losses {
    /// Records that `what` was lost at `pointer`.
    pub(crate) fn push(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.0.push(Loss {
            pointer: pointer.into(),
            what: what.into(),
        });
    }

    /// Adds the losses of another conversion.
    pub(crate) fn extend(&mut self, losses: impl IntoIterator<Item = Loss>) {
        self.0.extend(losses);
    }

    /// The value that was made, with the losses.
    pub(crate) fn with<T>(self, value: T) -> Converted<T> {
        Converted {
            value,
            losses: self.0,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Loss> {
        self.0
    }
}

impl IntoIterator for Losses {
    type Item = Loss;
    type IntoIter = std::vec::IntoIter<Loss>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
