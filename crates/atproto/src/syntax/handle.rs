//! Handles: domain names that stand for accounts.
//!
//! Two labels or more, of letters, digits and hyphens, 1 to 63 bytes each and no hyphen first or last;
//! the last label starts with a letter; 253 bytes at most. Case does not count.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::label::end_of_label;
use super::symbols::LETTER;
use super::text::{borrowed, owned};

borrowed! {
    /// A handle.
    ///
    /// ```
    /// use wireproof_atproto::syntax::Handle;
    /// let handle = Handle::parse("Alice.Example.com")?;
    /// assert_eq!(handle.to_normalized(), "alice.example.com");
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    Handle, HandleBuf
}

owned! {
    /// A handle, owned.
    HandleBuf, Handle, as_handle
}

impl<'a> Handle<'a> {
    /// The most bytes there can be.
    pub const MAX_LEN: usize = 253;

    /// What stands where an account's handle did not prove to be its own.
    pub const INVALID: Handle<'static> = Handle("handle.invalid");

    /// The labels, in the order of the text.
    pub fn labels(self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.0.split('.')
    }

    /// The same in lower case, which is how handles are compared, kept and resolved.
    pub fn to_normalized(self) -> HandleBuf {
        HandleBuf(self.0.to_ascii_lowercase().into())
    }

    /// Whether the top-level domain is one that is never resolved, such as `local` or `invalid`. The
    /// domain `test` is not among them, and is for development.
    pub fn is_reserved(self) -> bool {
        let top = self.labels().next_back().unwrap_or_default();
        RESERVED.iter().any(|reserved| top.eq_ignore_ascii_case(reserved))
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
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
        first if !LETTER.has(first) => fail(SyntaxKind::Handle, SyntaxRule::Letter, start),
        _ => Ok(()),
    }
}

const RESERVED: [&str; 8] =
    ["alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion"];
