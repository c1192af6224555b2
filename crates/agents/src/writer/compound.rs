//! Arrays and objects.

use super::Writer;
use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant,
};
use serde_json::Error;

/// The name of the struct, and of its only field, by which `serde_json`'s `RawValue` marks its text
/// as JSON.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// An array or object that is being written.
pub(super) struct Compound<'a> {
    writer: &'a mut Writer,
    kind: Kind,
    is_empty: bool,
    /// Whether it is inside an object that names its variant.
    is_variant: bool,
}

enum Kind {
    Array,
    Object,
    /// Not an array or object here, but the text of some JSON.
    Raw,
}

impl<'a> Compound<'a> {
    fn new(writer: &'a mut Writer, kind: Kind) -> Self {
        Self {
            writer,
            kind,
            is_empty: true,
            is_variant: false,
        }
    }

    pub(super) fn array(writer: &'a mut Writer) -> Self {
        writer.open("[");
        Self::new(writer, Kind::Array)
    }

    pub(super) fn object(writer: &'a mut Writer) -> Self {
        writer.open("{");
        Self::new(writer, Kind::Object)
    }

    pub(super) fn raw(writer: &'a mut Writer) -> Self {
        Self::new(writer, Kind::Raw)
    }

    pub(super) fn of_variant(self) -> Self {
        Self {
            is_variant: true,
            ..self
        }
    }

    #[inline]
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.writer.json.push(',');
        }
    }

    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.separate();
        value.serialize(&mut *self.writer)
    }

    #[expect(clippy::inline_always, reason = "the name is known beforehand")]
    #[inline(always)]
    fn field(
        &mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        if matches!(self.kind, Kind::Raw) {
            self.writer.is_raw = true;
        } else {
            self.separate();
            self.writer.text(name)?;
            self.writer.json.push(':');
        }
        value.serialize(&mut *self.writer)
    }

    fn close(self) {
        match self.kind {
            Kind::Array => self.writer.close("]"),
            Kind::Object => self.writer.close("}"),
            Kind::Raw => {}
        }
        if self.is_variant {
            self.writer.close("}");
        }
    }
}

macro_rules! elements {
    ($($way:ident $one:ident,)*) => {
        $(
            impl $way for Compound<'_> {
                type Ok = ();
                type Error = Error;

                fn $one<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                    self.element(value)
                }

                fn end(self) -> Result<(), Error> {
                    self.close();
                    Ok(())
                }
            }
        )*
    };
}

elements! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! fields {
    ($($way:ident,)*) => {
        $(
            impl $way for Compound<'_> {
                type Ok = ();
                type Error = Error;

                #[inline(always)]
                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    name: &'static str,
                    value: &T,
                ) -> Result<(), Error> {
                    self.field(name, value)
                }

                fn end(self) -> Result<(), Error> {
                    self.close();
                    Ok(())
                }
            }
        )*
    };
}

fields! { SerializeStruct, SerializeStructVariant, }

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let start = self.writer.json.len();
        key.serialize(&mut *self.writer)?;
        match self.writer.json.get(start..) {
            Some(key) if key.starts_with('"') => Ok(()),
            _ => Err(Error::custom("a key of an object must be a text")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.writer.json.push(':');
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}
