//! Writes JSON exactly like `serde_json`, and measures its nesting depth.
//!
//! `serde_json` checks each byte of a text separately and does not report the depth, so its output
//! had to be scanned again. This writer copies texts that need no escape and counts brackets as it
//! writes them. All other values go to `serde_json`. One difference: map keys that are no strings,
//! such as numbers, are refused here, while `serde_json` quotes them. No type that is written has
//! such keys.

mod compound;

use crate::depth;
use compound::Compound;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Error;
use std::fmt::{Display, Write};

/// JSON that was written.
pub(crate) struct Json {
    /// The text.
    pub(crate) text: String,
    /// The nesting depth in arrays and objects.
    pub(crate) depth: usize,
}

/// Writes a value whose text has about `n_bytes` bytes.
pub(crate) fn write(value: &(impl Serialize + ?Sized), n_bytes: usize) -> Result<Json, Error> {
    let mut writer = Writer {
        json: String::with_capacity(n_bytes),
        depth: 0,
        deepest: 0,
        is_raw: false,
    };
    value.serialize(&mut writer)?;
    Ok(Json {
        text: writer.json,
        depth: writer.deepest,
    })
}

struct Writer {
    json: String,
    /// Number of open brackets.
    depth: usize,
    deepest: usize,
    /// The next text is JSON.
    is_raw: bool,
}

/// Whether a text needs no escape in JSON.
#[expect(
    clippy::inline_always,
    reason = "most texts are names that are known beforehand"
)]
#[inline(always)]
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    if let Some(last) = bytes.last_chunk::<16>() {
        let (blocks, _) = bytes.as_chunks::<16>();
        return blocks.iter().all(are_plain) && are_plain(last);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) => are_plain(first) && are_plain(last),
            _ => are_plain(first) && are_plain(last),
        },
        _ => bytes.iter().all(|byte| !is_escaped(*byte)),
    }
}

/// Whether no byte of a block needs an escape. It has no early return, so that it compiles to a few
/// instructions for all bytes.
fn are_plain<const N: usize>(block: &[u8; N]) -> bool {
    !block
        .iter()
        .fold(false, |any, byte| any | is_escaped(*byte))
}

fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

impl Writer {
    fn open(&mut self, brackets: &str) {
        self.json.push_str(brackets);
        self.deepen(1);
    }

    fn close(&mut self, brackets: &str) {
        self.json.push_str(brackets);
        self.depth -= 1;
    }

    /// Adds this number of nesting levels at the current position.
    fn deepen(&mut self, n_levels: usize) {
        self.depth += n_levels;
        self.deepest = self.deepest.max(self.depth);
    }

    #[expect(
        clippy::inline_always,
        reason = "most texts are names that are known beforehand"
    )]
    #[inline(always)]
    fn text(&mut self, text: &str) -> Result<(), Error> {
        if is_plain(text) {
            self.json.push('"');
            self.json.push_str(text);
            self.json.push('"');
            return Ok(());
        }
        self.other(text)
    }

    /// Copies existing JSON text.
    fn raw(&mut self, json: &str) {
        self.deepest = self.deepest.max(self.depth + depth::of_text(json));
        self.json.push_str(json);
    }

    fn integer(&mut self, integer: impl Display) -> Result<(), Error> {
        write!(self.json, "{integer}").map_err(Error::custom)
    }

    /// Writes a value that is neither array nor object.
    fn other(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.json.push_str(&serde_json::to_string(value)?);
        Ok(())
    }

    /// The name of an enum's variant, whose content follows.
    fn variant(&mut self, name: &str) -> Result<(), Error> {
        self.open("{");
        self.text(name)?;
        self.json.push(':');
        Ok(())
    }
}

macro_rules! written {
    ($way:ident: $($name:ident $kind:ty,)*) => {
        $(
            fn $name(self, value: $kind) -> Result<(), Error> {
                self.$way(value)
            }
        )*
    };
}

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    written! { integer:
        serialize_i8 i8,
        serialize_i16 i16,
        serialize_i32 i32,
        serialize_i64 i64,
        serialize_i128 i128,
        serialize_u8 u8,
        serialize_u16 u16,
        serialize_u32 u32,
        serialize_u64 u64,
        serialize_u128 u128,
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.json.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.other(&value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.other(&value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.other(&value)
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if std::mem::take(&mut self.is_raw) {
            self.raw(value);
            return Ok(());
        }
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.json.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.close("}");
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(Compound::array(self))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, Error> {
        Ok(Compound::array(self))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, Error> {
        Ok(Compound::array(self))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        self.variant(variant)?;
        Ok(Compound::array(self).of_variant())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(Compound::object(self))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'a>, Error> {
        if name == compound::RAW {
            return Ok(Compound::raw(self));
        }
        Ok(Compound::object(self))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        self.variant(variant)?;
        Ok(Compound::object(self).of_variant())
    }
}

#[cfg(test)]
mod tests;
