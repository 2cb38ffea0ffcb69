//! What is a tag's value: text, or the bytes that its digits spell?

use std::borrow::Cow;

use kernels::hex;

/// A value of a tag. Two are equal if their texts are.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// The text itself.
    Text(&'a str),
    /// The text is the lower-case hexadecimal of these bytes.
    Hex(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Bytes of the text.
    pub fn text_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Hex(bytes) => 2 * bytes.len(),
        }
    }

    /// The text.
    pub fn to_text(&self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Hex(bytes) => Cow::Owned(hex::encode(bytes)),
        }
    }

    /// Appends the text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Hex(bytes) => hex::encode_into(bytes, out),
        }
    }

    /// How many bytes its digits spell, if the text is lower-case hexadecimal of an even number of
    /// digits and of `least_digits` at least; that is the rule by which formats compact values.
    pub fn hex_len(&self, least_digits: usize) -> Option<usize> {
        let digits = self.text_len();
        if digits < least_digits {
            return None;
        }
        match self {
            Self::Hex(bytes) => Some(bytes.len()),
            Self::Text(text) => hex::is_lower(text.as_bytes()).then_some(digits / 2),
        }
    }

    /// Appends the bytes that the digits spell.
    ///
    /// # Panics
    /// If [`hex_len`](Self::hex_len) says that they spell none.
    pub fn write_hex_bytes(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hex(bytes) => out.extend_from_slice(bytes),
            Self::Text(text) => assert!(hex::decode_into(text.as_bytes(), out), "asked before"),
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
    fn only_lower_case_pairs_of_digits_spell_bytes() {
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
