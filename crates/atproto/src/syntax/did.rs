//! Decentralized identifiers: `did:`, a method, `:`, and what the method makes of the rest.
//!
//! | part | symbols |
//! |---|---|
//! | method | `a-z`, at least one |
//! | the rest | `a-zA-Z0-9._:%-`, at least one, the last neither `:` nor `%` |
//!
//! At most 2,048 bytes. Whether percent signs are followed by digits is not asked, and no letter
//! changes its case. Any method is well formed; the AT Protocol resolves `plc` and `web`.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::symbols::{self, LOWER};
use super::text::{borrowed, owned};

borrowed! {
    /// A DID.
    ///
    /// ```
    /// use wireproof_atproto::syntax::Did;
    /// let did = Did::parse("did:web:localhost%3A1234")?;
    /// assert_eq!((did.method(), did.identifier()), ("web", "localhost%3A1234"));
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    Did, DidBuf
}

owned! {
    /// A DID, owned.
    DidBuf, Did, as_did
}

impl<'a> Did<'a> {
    /// The most bytes there can be.
    pub const MAX_LEN: usize = 2048;

    /// The method: `plc`, `web` or another.
    pub fn method(self) -> &'a str {
        self.split().0
    }

    /// What follows the method and its colon.
    pub fn identifier(self) -> &'a str {
        self.split().1
    }

    /// Whether this is a DID of the method `plc` as its directory makes them: 24 base32 symbols.
    pub fn is_plc(self) -> bool {
        let is_base32 = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
        let identifier = self.0.strip_prefix("did:plc:");
        identifier.is_some_and(|text| text.len() == 24 && text.bytes().all(is_base32))
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0[PREFIX.len()..].split_once(':').expect("checked when it was made")
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > Did::MAX_LEN {
        return fail(SyntaxKind::Did, SyntaxRule::TooLong, Did::MAX_LEN);
    }
    let Some(rest) = bytes.strip_prefix(PREFIX.as_bytes()) else {
        return fail(SyntaxKind::Did, SyntaxRule::Prefix, 0);
    };
    let colon = PREFIX.len() + LOWER.prefix_len(rest);
    match bytes.get(colon) {
        None => fail(SyntaxKind::Did, SyntaxRule::TooShort, colon),
        Some(b':') if colon > PREFIX.len() => check_identifier(bytes, colon + 1),
        Some(b':') => fail(SyntaxKind::Did, SyntaxRule::EmptyPart, colon),
        Some(_) => fail(SyntaxKind::Did, SyntaxRule::Symbol, colon),
    }
}

#[inline(always)]
fn check_identifier(bytes: &[u8], start: usize) -> Result<(), SyntaxError> {
    let end = start + symbols::DID.prefix_len(&bytes[start..]);
    if end < bytes.len() {
        return fail(SyntaxKind::Did, SyntaxRule::Symbol, end);
    }
    match bytes[start..] {
        [] => fail(SyntaxKind::Did, SyntaxRule::TooShort, start),
        [.., b':' | b'%'] => fail(SyntaxKind::Did, SyntaxRule::TooShort, end),
        _ => Ok(()),
    }
}

const PREFIX: &str = "did:";
