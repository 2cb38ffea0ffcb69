//! URIs of any scheme, RFC 3986 §3, loosely: a scheme, a colon, and then visible ASCII.
//!
//! The scheme starts with a letter and goes on with letters, digits, `+`, `.` and `-`, 81 bytes at most.
//! What follows is not taken apart, but must be there. At most 8,192 bytes in all.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::symbols::{ALPHANUMERIC, LETTER};
use super::text::{borrowed, owned};

borrowed! {
    /// A URI.
    ///
    /// ```
    /// use wireproof_atproto::syntax::Uri;
    /// let uri = Uri::parse("dns:example.com")?;
    /// assert_eq!((uri.scheme(), uri.scheme_specific()), ("dns", "example.com"));
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    Uri, UriBuf
}

owned! {
    /// A URI, owned.
    UriBuf, Uri, as_uri
}

impl<'a> Uri<'a> {
    /// The most bytes there can be.
    pub const MAX_LEN: usize = 8192;

    /// What stands before the first colon.
    pub fn scheme(self) -> &'a str {
        self.split().0
    }

    /// What stands behind the first colon.
    pub fn scheme_specific(self) -> &'a str {
        self.split().1
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0.split_once(':').expect("checked when it was made")
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > Uri::MAX_LEN {
        return fail(SyntaxKind::Uri, SyntaxRule::TooLong, Uri::MAX_LEN);
    }
    let colon = end_of_scheme(bytes)?;
    let rest = &bytes[colon + 1..];
    match rest.iter().position(|byte| !byte.is_ascii_graphic()) {
        Some(at) => fail(SyntaxKind::Uri, SyntaxRule::Symbol, colon + 1 + at),
        None if rest.is_empty() => fail(SyntaxKind::Uri, SyntaxRule::TooShort, bytes.len()),
        None => Ok(()),
    }
}

/// Where the colon stands.
fn end_of_scheme(bytes: &[u8]) -> Result<usize, SyntaxError> {
    match bytes.first() {
        None => return fail(SyntaxKind::Uri, SyntaxRule::TooShort, 0),
        Some(first) if !LETTER.has(*first) => return fail(SyntaxKind::Uri, SyntaxRule::Letter, 0),
        Some(_) => {}
    }
    let is_symbol = |byte: u8| ALPHANUMERIC.has(byte) || matches!(byte, b'+' | b'.' | b'-');
    let end = bytes.iter().position(|byte| !is_symbol(*byte)).unwrap_or(bytes.len());
    match bytes.get(end) {
        _ if end > MAX_SCHEME_LEN => fail(SyntaxKind::Uri, SyntaxRule::LongPart, MAX_SCHEME_LEN),
        Some(b':') => Ok(end),
        Some(_) => fail(SyntaxKind::Uri, SyntaxRule::Symbol, end),
        None => fail(SyntaxKind::Uri, SyntaxRule::TooShort, end),
    }
}

const MAX_SCHEME_LEN: usize = 81;
