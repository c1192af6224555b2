//! Vectors as providers pack them.

use crate::content::BASE64;
use crate::error::{Code, Error, Modality};
use base64::Engine;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::fmt;

/// Reads a vector of little-endian 32-bit floats in base64 (UPP §19). Fails with `INVALID_RESPONSE` for
/// any other text.
pub fn vector_from_base64(provider: &str, text: &str) -> Result<Vec<f64>, Error> {
    unpack(text).map_err(|problem| {
        let error = Error::new(Code::InvalidResponse, provider, problem.to_string());
        error.with_modality(Modality::Embedding).caused_by(problem)
    })
}

/// Why a packed vector can't be read.
#[derive(Debug, thiserror::Error)]
enum Unpacked {
    #[error("an embedding is not base64")]
    NotBase64(#[source] base64::DecodeError),
    #[error("an embedding is no whole number of 32-bit floats")]
    Rest,
    #[error("an embedding holds a number that is not finite")]
    NotFinite,
}

fn unpack(text: &str) -> Result<Vec<f64>, Unpacked> {
    let bytes = BASE64.decode(text).map_err(Unpacked::NotBase64)?;
    let (floats, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Unpacked::Rest);
    }
    let vector = floats.iter().map(|bytes| f32::from_le_bytes(*bytes));
    if vector.clone().any(|number| !number.is_finite()) {
        return Err(Unpacked::NotFinite);
    }
    Ok(vector.map(f64::from).collect())
}

/// A vector in an answer: a list of numbers, or packed. It is read in one pass, because an answer
/// may hold millions of numbers.
pub(super) struct Numbers(pub(super) Vec<f64>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor).map(Self)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Vec<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers or base64 text")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<f64>, E> {
        unpack(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<f64>, A::Error> {
        let mut vector = Vec::new();
        while let Some(number) = numbers.next_element()? {
            vector.push(number);
        }
        Ok(vector)
    }
}
