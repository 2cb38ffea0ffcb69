//! Encoding to canonical DAG-CBOR.

use super::known_key::KnownKey;
use super::value::{Map, Value, WideInteger};
use super::{MAX_DEPTH, item};
use crate::cid::{Cid, CidRef};

/// Why a value has no canonical bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// NaN, an infinity or negative zero.
    #[error("a float must be finite and not negative zero")]
    Float,
    /// More containers inside each other than a decoder accepts.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    Depth,
}

/// The canonical bytes of `value`.
///
/// # Errors
/// If `value` holds a float without canonical form, or is nested deeper than a decoder accepts.
pub fn encode(value: &Value<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new();
    encoder.value(value)?;
    Ok(encoder.into_bytes())
}

/// Appends items one by one in canonical form. The caller is responsible for the order of map
/// keys and for the counts of containers.
///
/// ```
/// use wireproof::codec::cbor::{Encoder, validate};
/// let mut encoder = Encoder::new();
/// encoder.map(2).text("t").text("#commit").text("op").integer(1);
/// assert!(validate(encoder.as_bytes()).is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
}

impl Encoder {
    /// An encoder without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// An encoder that appends to `out`.
    pub fn appending_to(out: Vec<u8>) -> Self {
        Self { out }
    }

    /// Removes all bytes after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// The bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Appends an integer.
    #[inline]
    pub fn integer(&mut self, integer: i64) -> &mut Self {
        match u64::try_from(integer) {
            Ok(number) => self.head(item::UNSIGNED, number),
            Err(_) => self.head(item::NEGATIVE, !integer as u64),
        }
    }

    /// Appends text.
    #[inline]
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.head(item::TEXT, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends a byte string.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(item::BYTES, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
        self
    }

    /// Appends a map key that was encoded before.
    #[inline]
    pub fn known_key(&mut self, key: &KnownKey) -> &mut Self {
        // Sixteen bytes of which too many are taken back: a copy of a fixed length is two stores, another is a call.
        match key.first_bytes() {
            Some(first) => {
                let end = self.out.len() + key.encoded().len();
                self.out.extend_from_slice(&first);
                self.out.truncate(end);
            }
            None => self.out.extend_from_slice(key.encoded()),
        }
        self
    }

    /// Appends a CID link.
    #[inline]
    pub fn link(&mut self, cid: CidRef<'_>) -> &mut Self {
        // Nearly all: two copies of fixed lengths.
        if let Ok(cid) = <&[u8; Cid::LEN]>::try_from(cid.as_bytes()) {
            self.out.reserve(5 + Cid::LEN);
            self.out.extend_from_slice(b"\xd8\x2a\x58\x25\0");
            self.out.extend_from_slice(cid);
            return self;
        }
        self.head(item::TAG, 42);
        self.head(item::BYTES, cid.as_bytes().len() as u64 + 1);
        self.out.push(0);
        self.out.extend_from_slice(cid.as_bytes());
        self
    }

    /// Appends a link, or null for none.
    pub fn link_or_null(&mut self, cid: Option<CidRef<'_>>) -> &mut Self {
        match cid {
            Some(cid) => self.link(cid),
            None => self.null(),
        }
    }

    /// Appends null.
    #[inline]
    pub fn null(&mut self) -> &mut Self {
        self.out.push(0xf6);
        self
    }

    /// Appends false or true.
    #[inline]
    pub fn boolean(&mut self, boolean: bool) -> &mut Self {
        self.out.push(0xf4 + u8::from(boolean));
        self
    }

    /// Appends the head of an array; `count` items must follow.
    #[inline]
    pub fn array(&mut self, count: usize) -> &mut Self {
        self.head(item::ARRAY, count as u64)
    }

    /// Appends the head of a map; `count` keys in canonical order must follow, with their values.
    #[inline]
    pub fn map(&mut self, count: usize) -> &mut Self {
        self.head(item::MAP, count as u64)
    }

    /// Appends a value and everything in it.
    ///
    /// # Errors
    /// As [`encode`]; the bytes so far are then incomplete.
    pub fn value(&mut self, value: &Value<'_>) -> Result<&mut Self, EncodeError> {
        self.nested(value, 0)?;
        Ok(self)
    }

    fn nested(&mut self, value: &Value<'_>, depth: u32) -> Result<(), EncodeError> {
        match *value {
            Value::Null => self.null(),
            Value::Boolean(boolean) => self.boolean(boolean),
            Value::Integer(integer) => self.integer(integer),
            Value::WideInteger(WideInteger::Positive(number)) => self.head(item::UNSIGNED, number),
            Value::WideInteger(WideInteger::Negative(number)) => self.head(item::NEGATIVE, number),
            Value::Float(float) => return self.float(float),
            Value::Text(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Link(cid) => self.link(cid),
            Value::Array(items) => return self.items(items, depth),
            Value::Map(map) => return self.entries(map, depth),
        };
        Ok(())
    }

    fn items(&mut self, items: &[Value<'_>], depth: u32) -> Result<(), EncodeError> {
        check_depth(depth)?;
        self.array(items.len());
        items.iter().try_for_each(|value| self.nested(value, depth + 1))
    }

    fn entries(&mut self, map: Map<'_>, depth: u32) -> Result<(), EncodeError> {
        check_depth(depth)?;
        self.map(map.len());
        map.iter().try_for_each(|(key, value)| self.text(key).nested(value, depth + 1))
    }

    fn float(&mut self, float: f64) -> Result<(), EncodeError> {
        if !float.is_finite() || float.to_bits() == (-0.0f64).to_bits() {
            return Err(EncodeError::Float);
        }
        self.out.push(0xfb);
        self.out.extend_from_slice(&float.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn head(&mut self, kind: u8, number: u64) -> &mut Self {
        match number {
            0..24 => self.out.push(kind << 5 | number as u8),
            24..=0xff => self.out.extend_from_slice(&[kind << 5 | 24, number as u8]),
            _ => self.long_head(kind, number),
        }
        self
    }

    fn long_head(&mut self, kind: u8, number: u64) {
        let kind = kind << 5;
        match number {
            0..=0xffff => {
                self.out.push(kind | 25);
                self.out.extend((number as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.out.push(kind | 26);
                self.out.extend((number as u32).to_be_bytes());
            }
            _ => {
                self.out.push(kind | 27);
                self.out.extend(number.to_be_bytes());
            }
        }
    }
}

fn check_depth(depth: u32) -> Result<(), EncodeError> {
    if depth < MAX_DEPTH { Ok(()) } else { Err(EncodeError::Depth) }
}
