//! URIs and CIDs as strings of records.
//!
//! URIs of any scheme, RFC 3986 §3, loosely: a scheme, a colon, and then visible ASCII. The scheme starts
//! with a letter and continues with letters, digits, `+`, `.` and `-`, 81 bytes at most. The rest is not
//! parsed, but must not be empty. At most 8,192 bytes in all.
//!
//! CIDs in the schemas' format `cid`: 8 to 256 letters, digits, `+` and `=`, of any version, base, codec
//! and hash. Version 0, which starts with `Qmb`, is rejected, as is lower-case base32 (`b`) of bytes that are
//! no CID, such as one of SHA-256 with another length than 32 bytes. Where a block of a repository is meant, the
//! text must be a CID of version 1, DAG-CBOR or raw, SHA-256, in base32: [`to_cid`](CidText::to_cid).

use codec::cid::CidTextError;
use codec::{Cid, CidRef};
use kernels::base32;

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::{ALPHANUMERIC, LETTER, text_type};

text_type! {
    /// A URI.
    ///
    /// ```
    /// use wireproof::atproto::syntax::Uri;
    /// let uri = Uri::parse("dns:example.com")?;
    /// assert_eq!((uri.scheme(), uri.scheme_specific()), ("dns", "example.com"));
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    Uri, UriBuf, as_uri, check_uri
}

impl<'a> Uri<'a> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 8192;

    /// The part before the first colon.
    pub fn scheme(self) -> &'a str {
        self.split().0
    }

    /// The part after the first colon.
    pub fn scheme_specific(self) -> &'a str {
        self.split().1
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0.split_once(':').expect("checked when parsed")
    }
}

fn check_uri(text: &str) -> Result<(), SyntaxError> {
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

/// The offset of the colon.
fn end_of_scheme(bytes: &[u8]) -> Result<usize, SyntaxError> {
    match bytes.first() {
        None => return fail(SyntaxKind::Uri, SyntaxRule::TooShort, 0),
        Some(first) if !LETTER.contains(*first) => {
            return fail(SyntaxKind::Uri, SyntaxRule::Letter, 0);
        }
        Some(_) => {}
    }
    let is_symbol = |byte: u8| ALPHANUMERIC.contains(byte) || matches!(byte, b'+' | b'.' | b'-');
    let end = bytes.iter().position(|byte| !is_symbol(*byte)).unwrap_or(bytes.len());
    match bytes.get(end) {
        _ if end > MAX_SCHEME_LEN => fail(SyntaxKind::Uri, SyntaxRule::LongPart, MAX_SCHEME_LEN),
        Some(b':') => Ok(end),
        Some(_) => fail(SyntaxKind::Uri, SyntaxRule::Symbol, end),
        None => fail(SyntaxKind::Uri, SyntaxRule::TooShort, end),
    }
}

const MAX_SCHEME_LEN: usize = 81;

text_type! {
    /// A CID as text of any kind.
    CidText, CidTextBuf, as_cid_text, check_cid_text
}

impl CidText<'_> {
    /// The minimum length in bytes.
    pub const MIN_LEN: usize = 8;

    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 256;

    /// The CID, if it is of a kind that repositories use.
    ///
    /// # Errors
    /// If it is of another kind, or in another base.
    pub fn to_cid(self) -> Result<Cid, CidTextError> {
        self.0.parse()
    }
}

fn check_cid_text(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > CidText::MAX_LEN {
        return fail(SyntaxKind::CidText, SyntaxRule::TooLong, CidText::MAX_LEN);
    }
    let is_symbol = |byte: u8| ALPHANUMERIC.contains(byte) || byte == b'+' || byte == b'=';
    match bytes.iter().position(|byte| !is_symbol(*byte)) {
        Some(at) => fail(SyntaxKind::CidText, SyntaxRule::Symbol, at),
        None if bytes.len() < CidText::MIN_LEN => {
            fail(SyntaxKind::CidText, SyntaxRule::TooShort, bytes.len())
        }
        None if bytes.starts_with(b"Qmb") => fail(SyntaxKind::CidText, SyntaxRule::Reserved, 0),
        None if is_malformed_base32(text) => fail(SyntaxKind::CidText, SyntaxRule::Cid, 0),
        None => Ok(()),
    }
}

/// Whether a text is in the base of the protocol, and its bytes are not a CID. Other bases are not decoded.
fn is_malformed_base32(text: &str) -> bool {
    let bytes = text.strip_prefix('b').and_then(base32::decode);
    bytes.is_some_and(|bytes| CidRef::from_bytes(&bytes).is_none())
}
