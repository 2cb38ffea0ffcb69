//! Which values travel as the bytes that their digits spell?
//!
//! Those that are lower-case hexadecimal with an even number of digits, and with as many as the format
//! asks for at least. No other spelling comes back from bytes as it was, so all else stays text.

use kernels::hex;

use crate::{Reason, Value};

/// How a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As its text.
    Text,
    /// As the bytes that its digits spell.
    Bytes,
}

/// Appends `value` behind the head that `head` appends for its form and the bytes that follow.
#[inline(always)]
pub(crate) fn write(
    value: &Value<'_>,
    least_digits: usize,
    out: &mut Vec<u8>,
    head: impl Fn(Form, usize, &mut Vec<u8>),
) {
    match value {
        Value::Text(text) => write_text(text.as_bytes(), least_digits, out, head),
        Value::Hex(bytes) if 2 * bytes.len() >= least_digits => {
            head(Form::Bytes, bytes.len(), out);
            out.extend_from_slice(bytes);
        }
        Value::Hex(bytes) => {
            head(Form::Text, 2 * bytes.len(), out);
            hex::encode_into(bytes, out);
        }
    }
}

/// Appends `text` as [`write`] does.
#[inline(always)]
pub(crate) fn write_text(
    text: &[u8],
    least_digits: usize,
    out: &mut Vec<u8>,
    head: impl Fn(Form, usize, &mut Vec<u8>),
) {
    if may_be_digits(text, least_digits) && write_bytes(text, out, &head) {
        return;
    }
    head(Form::Text, text.len(), out);
    match text {
        // The names of tags, half of all values: a store, and no call to copy.
        [byte] => out.push(*byte),
        _ => out.extend_from_slice(text),
    }
}

/// Appends what `digits` spell; `false`, and nothing is appended, if they spell nothing.
#[inline(always)]
fn write_bytes(digits: &[u8], out: &mut Vec<u8>, head: impl Fn(Form, usize, &mut Vec<u8>)) -> bool {
    if digits.len() == 64 {
        // Ids and keys, most of the digits there are: their length is known when this is compiled.
        let mut bytes = [0; 32];
        let is_hex = hex::decode(digits, &mut bytes);
        if is_hex {
            head(Form::Bytes, 32, out);
            out.extend_from_slice(&bytes);
        }
        return is_hex;
    }
    let start = out.len();
    head(Form::Bytes, digits.len() / 2, out);
    let is_hex = hex::decode_into(digits, out);
    if !is_hex {
        out.truncate(start);
    }
    is_hex
}

/// Refuses a value in the form that [`write`] would not have chosen for it.
#[inline(always)]
pub(crate) fn only_form(value: &Value<'_>, least_digits: usize) -> Result<(), Reason> {
    match value {
        Value::Text(text) if is_digits(text.as_bytes(), least_digits) => {
            Err(Reason::NotCanonical("digits that must be bytes"))
        }
        Value::Hex(bytes) if 2 * bytes.len() < least_digits => {
            Err(Reason::NotCanonical("bytes that must be digits"))
        }
        _ => Ok(()),
    }
}

#[inline(always)]
fn is_digits(text: &[u8], least_digits: usize) -> bool {
    may_be_digits(text, least_digits) && hex::is_lower(text)
}

/// False for most of what is no digits: a look at its length and its ends.
#[inline(always)]
fn may_be_digits(text: &[u8], least_digits: usize) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() >= least_digits
        && text.len().is_multiple_of(2)
        && text.first().is_some_and(is_digit)
        && text.last().is_some_and(is_digit)
}

/// Digits that are worth bytes, at least, in most formats.
pub(crate) const LEAST_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn form(value: Value<'_>, least_digits: usize) -> (Form, Vec<u8>) {
        let mut out = Vec::new();
        write(&value, least_digits, &mut out, |form, len, out| {
            out.extend([u8::from(form == Form::Bytes), len as u8]);
        });
        let form = if out[0] == 1 { Form::Bytes } else { Form::Text };
        assert_eq!(usize::from(out[1]), out.len() - 2);
        (form, out.split_off(2))
    }

    #[test]
    fn only_enough_lower_case_pairs_of_digits_become_bytes() {
        assert_eq!(form(Value::Text("cafebabe"), 8), (Form::Bytes, vec![0xca, 0xfe, 0xba, 0xbe]));
        assert_eq!(form(Value::Hex(&[0xca, 0xfe]), 2), (Form::Bytes, vec![0xca, 0xfe]));
        assert_eq!(form(Value::Hex(&[0xca, 0xfe]), 8), (Form::Text, b"cafe".to_vec()));
        assert_eq!(form(Value::Hex(&[]), 2), (Form::Text, vec![]));
        for text in
            ["", "cafe", "cafebab", "CAFEBABE", "cafEbabe", "cafe-abe", "cafebabg", "gafebabe"]
        {
            assert_eq!(form(Value::Text(text), 8), (Form::Text, text.into()), "{text}");
            assert!(!is_digits(text.as_bytes(), 8), "{text}");
        }
        assert!(is_digits(b"cafebabe", 8));
    }
}
