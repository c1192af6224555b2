//! Estimates the number of tokens of a message.

use std::io::{self, Write};
use std::sync::Arc;
use upp::{Message, Messages};

/// Bytes of JSON that count as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// Estimates the number of tokens of a message.
///
/// The default is a quarter of the bytes of its JSON (UAP §6.2). The bytes are counted without
/// storing the JSON. Images and other media count like text, which is far too much; supply a
/// model-specific count if that matters.
#[derive(Clone)]
pub struct Estimate(Arc<dyn Fn(&Message) -> u64 + Send + Sync>);

impl Estimate {
    /// Estimates by a function, which is called once for each message and request.
    pub fn new(estimate: impl Fn(&Message) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(estimate))
    }

    /// The tokens of one message.
    pub fn of(&self, message: &Message) -> u64 {
        (self.0)(message)
    }

    /// The tokens of each message, and their sum.
    pub(super) fn of_all(&self, messages: &Messages) -> (Vec<u64>, u64) {
        let each: Vec<u64> = messages.iter().map(|message| self.of(message)).collect();
        let sum = each.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
        (each, sum)
    }
}

impl Default for Estimate {
    fn default() -> Self {
        Self::new(|message| n_bytes(message) / BYTES_PER_TOKEN)
    }
}

impl std::fmt::Debug for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Estimate")
    }
}

/// The size of a value's JSON, in bytes.
pub(super) fn n_bytes(value: &impl serde::Serialize) -> u64 {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // What can't be written can't be sent either; the model call will say so.
        Err(_) => 0,
    }
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.0 = self.0.saturating_add(n);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
