//! Sums of what is stored: of blocks, each over all blocks before it, and of rows.

use sha2::{Digest as _, Sha256};

/// The sum of a block, and of everything before it in its thread.
pub(crate) type Sum = [u8; 16];

/// The sum that the first block of a thread continues.
pub(crate) fn seed(tenant: &str, thread_id: &str) -> Sum {
    Summing::of("thread_blocks")
        .text(tenant)
        .text(thread_id)
        .end()
}

/// The input of a block's sum, without the sum before it.
pub(crate) struct Summed {
    pub(crate) first: i64,
    pub(crate) n: i64,
    pub(crate) facts: i64,
    pub(crate) epoch: i64,
    /// The SHA-256 of the body.
    pub(crate) digest: [u8; 32],
}

impl Summed {
    /// The sum of the block.
    pub(crate) fn after(&self, before: Sum) -> Sum {
        let mut hash = Sha256::new();
        hash.update(before);
        for number in [self.first, self.n, self.facts, self.epoch] {
            hash.update(number.to_le_bytes());
        }
        hash.update(self.digest);
        first_half(hash.finalize().into())
    }
}

/// The digests of an erased block: the SHA-256 of the body that was written, and that of the body in its place.
pub(crate) type Erased = [u8; 64];

/// The digest of a body that the chain has: of an erased block, that of the body before. `None` if the body is
/// not what was written.
pub(crate) fn digest(body: &[u8], erased: Option<&Erased>) -> Option<[u8; 32]> {
    let found: [u8; 32] = Sha256::digest(body).into();
    let Some((written, stored)) = erased.and_then(|it| it.split_first_chunk::<32>()) else {
        return Some(found);
    };
    (*stored == found).then_some(*written)
}

/// The digest of the body that a block had when it was written.
pub(crate) fn written(body: &[u8], erased: Option<&Erased>) -> [u8; 32] {
    let written = erased.and_then(|it| it.first_chunk::<32>());
    written.map_or_else(|| Sha256::digest(body).into(), |it| *it)
}

/// The digests of a block with this body, if another body had the first digest.
pub(crate) fn erased(written: [u8; 32], body: &[u8]) -> Erased {
    let stored: [u8; 32] = Sha256::digest(body).into();
    let mut erased = [0; 64];
    let both = written.into_iter().chain(stored);
    erased
        .iter_mut()
        .zip(both)
        .for_each(|(to, byte)| *to = byte);
    erased
}

/// A sum in the making: each value with its kind and its length.
pub(crate) struct Summing(Sha256);

impl Summing {
    /// The sum of a row of this table.
    pub(crate) fn of(table: &str) -> Self {
        Self(Sha256::new()).text(table)
    }

    pub(crate) fn int(mut self, value: i64) -> Self {
        self.0.update([1]);
        self.0.update(value.to_le_bytes());
        self
    }

    /// A text if there is one. Without it nothing is added.
    pub(crate) fn texts(self, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(value),
            None => self,
        }
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.update([2]);
        self.0.update((value.len() as u64).to_le_bytes());
        self.0.update(value);
        self
    }

    pub(crate) fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn optional<T>(
        mut self,
        value: Option<T>,
        with: impl FnOnce(Self, T) -> Self,
    ) -> Self {
        if let Some(value) = value {
            return with(self, value);
        }
        self.0.update([0]);
        self
    }

    pub(crate) fn end(self) -> Sum {
        first_half(self.0.finalize().into())
    }
}

/// The first 16 bytes of a SHA-256.
pub(crate) fn first_half(hash: [u8; 32]) -> Sum {
    let mut sum = Sum::default();
    sum.iter_mut().zip(hash).for_each(|(to, byte)| *to = byte);
    sum
}
