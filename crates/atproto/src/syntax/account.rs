//! Identifiers of accounts: DIDs, handles, and at-identifiers, which are either.
//!
//! A DID is `did:`, a method, `:`, and an identifier whose meaning the method defines:
//!
//! | part | characters |
//! |---|---|
//! | method | `a-z`, at least one |
//! | identifier | `a-zA-Z0-9._:%-`, at least one, the last neither `:` nor `%` |
//!
//! At most 2,048 bytes. Percent encodings are not checked, and letters keep their case. Any method is well
//! formed; the AT Protocol resolves `plc` and `web`.
//!
//! A handle is a domain name: two labels or more, of letters, digits and hyphens, 1 to 63 bytes a label and
//! no hyphen first or last; the last label starts with a letter; 253 bytes at most. Case is insignificant.
//!
//! An at-identifier that starts with `did:` must be a DID, any other a handle.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::{DID_CHARS, LETTER, LOWER, end_of_label, text_type};

text_type! {
    /// A DID.
    ///
    /// ```
    /// use wireproof::atproto::syntax::Did;
    /// let did = Did::parse("did:web:localhost%3A1234")?;
    /// assert_eq!((did.method(), did.identifier()), ("web", "localhost%3A1234"));
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    Did, DidBuf, as_did, check_did
}

impl<'a> Did<'a> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 2048;

    /// The method: `plc`, `web` or another.
    pub fn method(self) -> &'a str {
        self.split().0
    }

    /// The part after the method and its colon.
    pub fn identifier(self) -> &'a str {
        self.split().1
    }

    /// Whether this is a DID of the method `plc` as its directory creates them: 24 base32 characters.
    pub fn is_plc(self) -> bool {
        let is_base32 = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
        let identifier = self.0.strip_prefix("did:plc:");
        identifier.is_some_and(|text| text.len() == 24 && text.bytes().all(is_base32))
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0[DID_PREFIX.len()..].split_once(':').expect("checked when parsed")
    }
}

fn check_did(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > Did::MAX_LEN {
        return fail(SyntaxKind::Did, SyntaxRule::TooLong, Did::MAX_LEN);
    }
    let Some(rest) = bytes.strip_prefix(DID_PREFIX.as_bytes()) else {
        return fail(SyntaxKind::Did, SyntaxRule::Prefix, 0);
    };
    let colon = DID_PREFIX.len() + LOWER.prefix_len(rest);
    match bytes.get(colon) {
        None => fail(SyntaxKind::Did, SyntaxRule::TooShort, colon),
        Some(b':') if colon > DID_PREFIX.len() => check_did_identifier(bytes, colon + 1),
        Some(b':') => fail(SyntaxKind::Did, SyntaxRule::EmptyPart, colon),
        Some(_) => fail(SyntaxKind::Did, SyntaxRule::Symbol, colon),
    }
}

#[inline(always)]
fn check_did_identifier(bytes: &[u8], start: usize) -> Result<(), SyntaxError> {
    let end = start + DID_CHARS.prefix_len(&bytes[start..]);
    if end < bytes.len() {
        return fail(SyntaxKind::Did, SyntaxRule::Symbol, end);
    }
    match bytes[start..] {
        [] => fail(SyntaxKind::Did, SyntaxRule::TooShort, start),
        [.., b':' | b'%'] => fail(SyntaxKind::Did, SyntaxRule::TooShort, end),
        _ => Ok(()),
    }
}

const DID_PREFIX: &str = "did:";

text_type! {
    /// A handle.
    ///
    /// ```
    /// use wireproof::atproto::syntax::Handle;
    /// let handle = Handle::parse("Alice.Example.com")?;
    /// assert_eq!(handle.to_normalized(), "alice.example.com");
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    Handle, HandleBuf, as_handle, check_handle
}

impl<'a> Handle<'a> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 253;

    /// The placeholder for a handle that is not verified.
    pub const INVALID: Handle<'static> = Handle("handle.invalid");

    /// The labels, in the order of the text.
    pub fn labels(self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.0.split('.')
    }

    /// The lower-case form, in which handles are compared, stored and resolved.
    pub fn to_normalized(self) -> HandleBuf {
        HandleBuf(self.0.to_ascii_lowercase().into())
    }

    /// Whether the top-level domain is one that is never resolved, such as `local` or `invalid`. The
    /// domain `test`, for development, is not among them.
    pub fn is_reserved(self) -> bool {
        let top = self.labels().next_back().unwrap_or_default();
        RESERVED.iter().any(|reserved| top.eq_ignore_ascii_case(reserved))
    }
}

fn check_handle(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > Handle::MAX_LEN {
        return fail(SyntaxKind::Handle, SyntaxRule::TooLong, Handle::MAX_LEN);
    }
    let mut start = 0;
    loop {
        let end = end_of_label(SyntaxKind::Handle, bytes, start)?;
        if end == bytes.len() {
            break;
        }
        start = end + 1;
    }
    match bytes[start] {
        _ if start == 0 => fail(SyntaxKind::Handle, SyntaxRule::FewParts, bytes.len()),
        first if !LETTER.contains(first) => fail(SyntaxKind::Handle, SyntaxRule::Letter, start),
        _ => Ok(()),
    }
}

const RESERVED: [&str; 8] =
    ["alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion"];

text_type! {
    /// A DID or a handle.
    ///
    /// ```
    /// use wireproof::atproto::syntax::AtIdentifier;
    /// let identifier = AtIdentifier::parse("alice.example.com")?;
    /// assert_eq!(identifier.as_did(), None);
    /// assert!(identifier.as_handle().is_some());
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    AtIdentifier, AtIdentifierBuf, as_at_identifier, check_at_identifier
}

impl<'a> AtIdentifier<'a> {
    /// The DID, if it is one.
    pub fn as_did(self) -> Option<Did<'a>> {
        is_did(self.0).then(|| Did::trusted(self.0))
    }

    /// The handle, if it is one.
    pub fn as_handle(self) -> Option<Handle<'a>> {
        (!is_did(self.0)).then(|| Handle::trusted(self.0))
    }

    /// The form with a handle in lower case; a DID is unchanged.
    pub fn to_normalized(self) -> AtIdentifierBuf {
        match self.as_handle() {
            Some(handle) => AtIdentifier::from(handle.to_normalized().as_handle()).to_buf(),
            None => self.to_buf(),
        }
    }
}

impl<'a> From<Did<'a>> for AtIdentifier<'a> {
    fn from(did: Did<'a>) -> Self {
        Self(did.as_str())
    }
}

impl<'a> From<Handle<'a>> for AtIdentifier<'a> {
    fn from(handle: Handle<'a>) -> Self {
        Self(handle.as_str())
    }
}

fn check_at_identifier(text: &str) -> Result<(), SyntaxError> {
    if is_did(text) { Did::parse(text).map(drop) } else { Handle::parse(text).map(drop) }
}

fn is_did(text: &str) -> bool {
    text.starts_with("did:")
}
