//! Tables of a checked file as their types.
//!
//! Purpose: [`typed`] fills a struct from a table, field by field. Place: every key has been
//! checked and has its default, so this refuses little and says little about it. `toml`'s own
//! conversion is for any type of any file; for the lab's structs its code is 80 KB larger, which
//! the page downloads.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde::de::{IntoDeserializer, value::StringDeserializer};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};

/// The struct that a table has the fields of. Keys that are no field are left out.
///
/// # Errors
/// A field is missing that is no `Option`, or has another type.
pub(super) fn typed<T: DeserializeOwned>(table: Table) -> Result<T, Error> {
    T::deserialize(Reader(Some(Value::Table(table))))
}

/// A value, or none where a field has no key.
struct Reader(Option<Value>);

impl Reader {
    fn integer(&self) -> Result<i64, Error> {
        let value = self.0.as_ref().and_then(Value::as_integer);
        value.ok_or_else(other_type)
    }
}

/// What reads an integer: its visitor checks the range.
macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_i64(self.integer()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Error;

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    /// For values of several types.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Integer(value)) => visitor.visit_i64(value),
            Some(Value::String(value)) => visitor.visit_string(value),
            _ => Err(other_type()),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = self.0.as_ref().and_then(Value::as_bool);
        visitor.visit_bool(value.ok_or_else(other_type)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Float(value)) => visitor.visit_f64(value),
            _ => visitor.visit_f64(self.integer()? as f64),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(text(self.0)?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            None => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let name: StringDeserializer<Error> = text(self.0)?.into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Array(values)) => visitor.visit_seq(Elements(values.into_iter())),
            _ => Err(other_type()),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    /// The values in the order of the fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Table(table)) => visitor.visit_seq(Fields {
                table,
                names: fields.iter(),
            }),
            _ => Err(other_type()),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 f32 char str bytes byte_buf unit unit_struct newtype_struct tuple_struct map
        identifier ignored_any
    }
}

/// The elements of an array.
struct Elements(std::vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Elements {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let next = self.0.next();
        next.map(|value| seed.deserialize(Reader(Some(value))))
            .transpose()
    }
}

/// The values of a struct's fields.
struct Fields {
    table: Table,
    names: std::slice::Iter<'static, &'static str>,
}

impl<'de> SeqAccess<'de> for Fields {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        let value = self.table.remove(*name);
        let of_field = |error| Error::custom(format_args!("{name}: {error}"));
        seed.deserialize(Reader(value)).map(Some).map_err(of_field)
    }
}

fn text(value: Option<Value>) -> Result<String, Error> {
    match value {
        Some(Value::String(text)) => Ok(text),
        _ => Err(other_type()),
    }
}

#[cold]
fn other_type() -> Error {
    Error::custom("it is missing, or of another type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Bulk,
        Udp,
    }

    #[derive(serde::Deserialize, PartialEq, Debug)]
    struct Keys {
        kind: Kind,
        count: u8,
        share: f64,
        whole: f64,
        is_on: bool,
        name: Option<String>,
        absent: Option<u16>,
        links: Vec<(usize, usize, f64)>,
        end: Value,
    }

    const TEXT: &str = r#"
        share = 0.5
        whole = 2
        extra = "left out"
        count = 7
        kind = "udp"
        is_on = true
        name = "n"
        links = [[0, 1, -62.5], [1, 0, -62]]
        end = "host"
    "#;

    fn read(text: &str) -> Result<Keys, Error> {
        typed(text.parse().expect("TOML"))
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let keys = Keys {
            kind: Kind::Udp,
            count: 7,
            share: 0.5,
            whole: 2.0,
            is_on: true,
            name: Some("n".to_owned()),
            absent: None,
            links: vec![(0, 1, -62.5), (1, 0, -62.0)],
            end: Value::from("host"),
        };
        assert_eq!(read(TEXT), Ok(keys));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (from, to, field) in [
            ("count = 7", "count = 256", "count"),
            ("count = 7", "count = \"7\"", "count"),
            ("count = 7", "", "count"),
            ("\"udp\"", "\"tcp\"", "kind"),
            ("share = 0.5", "share = true", "share"),
            ("is_on = true", "is_on = 1", "is_on"),
            ("name = \"n\"", "name = 1", "name"),
            ("[1, 0, -62]", "[1, 0]", "links"),
            ("end = \"host\"", "end = 1.5", "end"),
        ] {
            let error = read(&TEXT.replace(from, to)).expect_err(to);
            assert!(
                error.to_string().starts_with(&format!("{field}: ")),
                "{error}"
            );
        }
        assert_eq!(Kind::Bulk, typed_kind("bulk"));
    }

    fn typed_kind(name: &str) -> Kind {
        use serde::Deserialize;
        Kind::deserialize(Reader(Some(Value::from(name)))).expect("a name")
    }
}
