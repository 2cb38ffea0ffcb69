//! What does one field of a message say, without the others?

use super::*;
use crate::input::kind;
use crate::{Field, Reason, Value};

/// A message whose fields are looked for when they are asked for, from the front.
///
/// A field that is asked for is held to its own rules; what stands behind it is not looked at, so
/// that a field comes twice, only [`Schema::decode`] sees.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    schema: Schema,
    input: Input<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of the message in `bytes`.
    pub fn new(schema: Schema, bytes: &'a [u8]) -> Self {
        Self { schema, input: Input::new(bytes) }
    }

    /// The id.
    ///
    /// # Errors
    /// If it is missing or of a wrong form, or the bytes before it are no message.
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        self.fixed(ID, Field::Id)
    }

    /// The author's key.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        self.fixed(PUBKEY, Field::Pubkey)
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// If the bytes up to the field are no message.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(self.varint(CREATED_AT)?.map_or(0, |(_, seconds)| seconds as i64))
    }

    /// The kind.
    ///
    /// # Errors
    /// If it is out of range, or the bytes before it are no message.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        self.varint(KIND)?.map_or(Ok(0), |(offset, value)| kind(value, offset))
    }

    /// The tags, one by one.
    pub fn tags(&self) -> Tags<'a> {
        Tags { schema: self.schema, input: Some(self.input) }
    }

    #[inline]
    fn fixed<const N: usize>(&self, number: u32, field: Field) -> Result<[u8; N], DecodeError> {
        match find(number, self.input)? {
            Some((key, mut input)) => reader::fixed(self.schema, key, &mut input, field),
            None => Err(self.input.fault(Reason::Missing(field))),
        }
    }

    #[inline]
    fn varint(&self, number: u32) -> Result<Option<(usize, u64)>, DecodeError> {
        let Some((key, mut input)) = find(number, self.input)? else { return Ok(None) };
        Ok(Some((input.offset(), wire::varint(key, &mut input)?)))
    }
}

/// The first field of that number, from the front of `input`.
#[inline]
fn find(number: u32, mut input: Input<'_>) -> Result<Option<(Key, Input<'_>)>, DecodeError> {
    while let Some(key) = wire::key(&mut input)? {
        if key.number() == number {
            return Ok(Some((key, input)));
        }
        wire::skip(key, &mut input)?;
    }
    Ok(None)
}

/// The tags of a message, one by one; ends behind the first fault.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    schema: Schema,
    // None behind a fault.
    input: Option<Input<'a>>,
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<Values<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = find(TAGS, self.input.take()?).transpose()?;
        let tag = found.and_then(|(key, mut input)| {
            let tag = wire::message(key, &mut input)?;
            self.input = Some(input);
            Ok(Values { schema: self.schema, input: Some(tag) })
        });
        Some(tag)
    }
}

/// The values of a tag, one by one; ends behind the first fault.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    schema: Schema,
    // None behind a fault.
    input: Option<Input<'a>>,
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Value<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut input = self.input.take()?;
        let value = tags::next_value(self.schema, &mut input).transpose()?;
        self.input = value.is_ok().then_some(input);
        Some(value.map(|(_, value)| value))
    }
}
