//! Vectors as providers pack them.

use crate::content::BASE64;
use crate::error::{Code, Error, Modality};
use base64::Engine;

/// Reads a vector of little-endian 32-bit floats in base64 (UPP §19). Anything else is
/// `INVALID_RESPONSE`.
pub fn vector_from_base64(provider: &str, text: &str) -> Result<Vec<f64>, Error> {
    let invalid = |text: &str| {
        Error::new(Code::InvalidResponse, provider, text).with_modality(Modality::Embedding)
    };
    let bytes = BASE64
        .decode(text)
        .map_err(|cause| invalid("an embedding is not base64").caused_by(cause))?;
    let (floats, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(invalid("an embedding is no whole number of 32-bit floats"));
    }
    let vector = floats.iter().map(|bytes| f32::from_le_bytes(*bytes));
    if vector.clone().any(|number| !number.is_finite()) {
        return Err(invalid("an embedding holds a number that is not finite"));
    }
    Ok(vector.map(f64::from).collect())
}
