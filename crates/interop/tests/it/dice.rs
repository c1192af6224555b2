//! Choices out of bytes, so that proptest shrinks conversations.

pub(crate) struct Dice<'a>(std::slice::Iter<'a, u8>);

impl<'a> Dice<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    /// A number below `sides`; 0 once the bytes are used up.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % sides)
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == sides - 1
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())].clone()
    }
}
