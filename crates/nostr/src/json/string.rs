//! JSON strings: borrowed if nothing is escaped, otherwise unescaped into the arena.

use bumpalo::Bump;
use bumpalo::collections::String as BumpString;
use kernels::json;

use crate::{DecodeError, Reason};

/// Reads the text up to the closing quote; returns it and the number of bytes of `rest` read, including the
/// quote.
#[inline]
pub(super) fn read<'a>(rest: &'a str, arena: &'a Bump) -> Result<(&'a str, usize), DecodeError> {
    let len = json::plain_len(rest.as_bytes());
    match rest.as_bytes().get(len) {
        Some(b'"') => Ok((&rest[..len], len + 1)),
        Some(b'\\') => unescape(rest, len, arena),
        other => Err(unterminated(len, other)),
    }
}

fn unescape<'a>(
    rest: &'a str,
    mut at: usize,
    arena: &'a Bump,
) -> Result<(&'a str, usize), DecodeError> {
    let mut text = BumpString::with_capacity_in(2 * at + EXTRA_CAPACITY, arena);
    text.push_str(&rest[..at]);
    loop {
        match rest.as_bytes().get(at) {
            Some(b'"') => {
                if text.capacity() > 2 * text.len() {
                    text.shrink_to_fit();
                }
                return Ok((text.into_bump_str(), at + 1));
            }
            Some(b'\\') => {
                let (character, len) =
                    escaped(&rest[at..]).map_err(|reason| DecodeError::new(at, reason))?;
                text.push(character);
                at += len;
            }
            other => return Err(unterminated(at, other)),
        }
        let plain = json::plain_len(&rest.as_bytes()[at..]);
        text.push_str(&rest[at..at + plain]);
        at += plain;
    }
}

/// Reads the escape at the start of `rest`; returns its character and its length in bytes.
fn escaped(rest: &str) -> Result<(char, usize), Reason> {
    let character = match rest.as_bytes().get(1).ok_or(Reason::Truncated)? {
        b'u' => return unicode(rest),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        quoted @ (b'"' | b'\\' | b'/') => char::from(*quoted),
        _ => return Err(Reason::Expected("a known escape")),
    };
    Ok((character, 2))
}

/// Reads `\uXXXX`, or two of them that are a surrogate pair.
fn unicode(rest: &str) -> Result<(char, usize), Reason> {
    let first = unit(rest)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let lone = Reason::Expected("a surrogate pair");
    let second = rest.get(6..).filter(|rest| rest.starts_with("\\u")).ok_or(lone)?;
    let second = unit(second)?;
    let is_pair = first < 0xdc00 && (0xdc00..0xe000).contains(&second);
    let code = 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
    char::from_u32(code).filter(|_| is_pair).map(|character| (character, 12)).ok_or(lone)
}

/// Reads the four digits of `\uXXXX`, in either case.
fn unit(rest: &str) -> Result<u32, Reason> {
    let digits = rest.as_bytes().get(2..6).ok_or(Reason::Truncated)?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16);
        Ok(16 * unit + digit.ok_or(Reason::Expected("four hexadecimal digits"))?)
    })
}

#[cold]
fn unterminated(offset: usize, at: Option<&u8>) -> DecodeError {
    let reason = match at {
        None => Reason::Truncated,
        Some(_) => Reason::Expected("an escaped control character"),
    };
    DecodeError::new(offset, reason)
}

/// First capacity of an unescaped text in bytes, beyond twice the part before its first escape.
const EXTRA_CAPACITY: usize = 64;
