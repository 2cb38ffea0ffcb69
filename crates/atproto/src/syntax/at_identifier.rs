//! A DID or a handle. What starts with `did:` is to be a DID, anything else a handle.

use super::error::SyntaxError;
use super::text::{borrowed, owned};
use super::{Did, Handle};

borrowed! {
    /// A DID or a handle.
    ///
    /// ```
    /// use wireproof_atproto::syntax::AtIdentifier;
    /// let identifier = AtIdentifier::parse("alice.example.com")?;
    /// assert_eq!(identifier.as_did(), None);
    /// assert!(identifier.as_handle().is_some());
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    AtIdentifier, AtIdentifierBuf
}

owned! {
    /// A DID or a handle, owned.
    AtIdentifierBuf, AtIdentifier, as_at_identifier
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

    /// The same with a handle in lower case; a DID stays as it is.
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

fn check(text: &str) -> Result<(), SyntaxError> {
    if is_did(text) { Did::parse(text).map(drop) } else { Handle::parse(text).map(drop) }
}

fn is_did(text: &str) -> bool {
    text.starts_with("did:")
}
