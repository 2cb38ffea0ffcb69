//! Events, tags and values, borrowed and owned.

use std::borrow::Cow;

use bumpalo::Bump;
use kernels::hex;

/// An event of NIP-01, borrowed from its encoded bytes and the arena that it was decoded into.
///
/// The event is well formed; [`verify`] checks that the id and the signature are valid.
///
/// [`verify`]: Event::verify
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// SHA-256 of the [canonical form](crate::canonical).
    pub id: [u8; 32],
    /// X-only public key of the author.
    pub pubkey: [u8; 32],
    /// Seconds since 1970, by the author's clock.
    pub created_at: i64,
    /// Kind of the event.
    pub kind: u16,
    /// Tags in order; a tag may be empty.
    pub tags: &'a [Tag<'a>],
    /// Content.
    pub content: &'a str,
    /// BIP-340 signature over the id.
    pub sig: [u8; 64],
}

/// A tag: its name and its values, in order.
pub type Tag<'a> = &'a [Value<'a>];

/// A value of a tag. Two values are equal if their texts are.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// Text that is the lower-case hexadecimal of these bytes.
    Hex(&'a [u8]),
}

/// The owned form of [`Event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEvent {
    /// SHA-256 of the [canonical form](crate::canonical).
    pub id: [u8; 32],
    /// X-only public key of the author.
    pub pubkey: [u8; 32],
    /// Seconds since 1970, by the author's clock.
    pub created_at: i64,
    /// Kind of the event.
    pub kind: u16,
    /// Tags in order, every tag a name and values.
    pub tags: Vec<Vec<String>>,
    /// Content.
    pub content: String,
    /// BIP-340 signature over the id.
    pub sig: [u8; 64],
}

impl Event<'_> {
    /// Copies the event, with all values as text.
    pub fn to_owned(&self) -> OwnedEvent {
        let tag = |tag: &Tag<'_>| tag.iter().map(|value| value.to_text().into_owned()).collect();
        OwnedEvent {
            id: self.id,
            pubkey: self.pubkey,
            created_at: self.created_at,
            kind: self.kind,
            tags: self.tags.iter().map(tag).collect(),
            content: self.content.to_owned(),
            sig: self.sig,
        }
    }
}

impl OwnedEvent {
    /// Borrows the event; its lists are allocated in `arena`.
    pub fn borrow_in<'a>(&'a self, arena: &'a Bump) -> Event<'a> {
        let tag = |tag: &'a Vec<String>| -> Tag<'a> {
            arena.alloc_slice_fill_iter(tag.iter().map(|value| Value::Text(value)))
        };
        Event {
            id: self.id,
            pubkey: self.pubkey,
            created_at: self.created_at,
            kind: self.kind,
            tags: arena.alloc_slice_fill_iter(self.tags.iter().map(tag)),
            content: &self.content,
            sig: self.sig,
        }
    }
}

impl<'a> Value<'a> {
    /// Length of the text in bytes.
    #[inline]
    pub fn text_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Hex(bytes) => 2 * bytes.len(),
        }
    }

    /// The text.
    #[inline]
    pub fn to_text(&self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Hex(bytes) => Cow::Owned(hex::encode(bytes)),
        }
    }

    /// Appends the text.
    #[inline]
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Hex(bytes) => hex::encode_into(bytes, out),
        }
    }

    /// Length in bytes of the value as hexadecimal, if formats may store it so: its text is lower-case
    /// hexadecimal with an even number of digits, at least `min_digits`.
    #[inline]
    pub fn hex_len(&self, min_digits: usize) -> Option<usize> {
        let digits = self.text_len();
        if digits < min_digits {
            return None;
        }
        match self {
            Self::Hex(bytes) => Some(bytes.len()),
            Self::Text(text) => hex::is_lower(text.as_bytes()).then_some(digits / 2),
        }
    }

    /// Appends the bytes that the digits encode.
    ///
    /// # Panics
    /// If [`hex_len`](Self::hex_len) is `None`.
    #[inline]
    pub fn write_hex_bytes(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hex(bytes) => out.extend_from_slice(bytes),
            Self::Text(text) => {
                assert!(hex::decode_into(text.as_bytes(), out), "the caller checked `hex_len`");
            }
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Hex(one), Self::Hex(other)) => one == other,
            (Self::Text(text), Self::Hex(bytes)) | (Self::Hex(bytes), Self::Text(text)) => {
                text.len() == 2 * bytes.len() && hex::encode(bytes) == **text
            }
        }
    }
}

impl Eq for Value<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_if_their_texts_are() {
        let [text, bytes] = [Value::Text("00ff"), Value::Hex(&[0, 255])];
        assert_eq!(text, bytes);
        assert_eq!(bytes, text);
        assert_ne!(Value::Text("00FF"), bytes);
        assert_ne!(Value::Text("00f"), bytes);
        assert_eq!((text.to_text(), bytes.to_text()), ("00ff".into(), "00ff".into()));
    }

    #[test]
    fn only_lower_case_pairs_of_digits_encode_bytes() {
        for (text, len) in [("cafe", Some(2)), ("", Some(0)), ("caf", None), ("CAFE", None)] {
            assert_eq!(Value::Text(text).hex_len(0), len, "{text}");
        }
        assert_eq!(Value::Text("cafe").hex_len(8), None);
        assert_eq!(Value::Hex(&[1, 2, 3]).hex_len(8), None);
        let mut bytes = Vec::new();
        Value::Text("cafe").write_hex_bytes(&mut bytes);
        assert_eq!(bytes, [0xca, 0xfe]);
    }
}
