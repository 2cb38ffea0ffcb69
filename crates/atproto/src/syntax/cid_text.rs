//! CIDs as the schemas' format `cid` takes them: 8 to 256 letters, digits, `+` and `=`, of whatever
//! version, base, codec and hash. Version 0, which starts with `Qmb`, is refused.
//!
//! Where a block of a repository is meant, the text must be that of a blessed CID:
//! [`to_cid`](CidText::to_cid).

use codec::Cid;
use codec::cid::CidTextError;

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::symbols::ALPHANUMERIC;
use super::text::{borrowed, owned};

borrowed! {
    /// A CID as text, blessed or not.
    CidText, CidTextBuf
}

owned! {
    /// A CID as text, blessed or not, owned.
    CidTextBuf, CidText, as_cid_text
}

impl CidText<'_> {
    /// The fewest bytes there can be.
    pub const MIN_LEN: usize = 8;

    /// The most bytes there can be.
    pub const MAX_LEN: usize = 256;

    /// The CID, if it is one that the AT Protocol blesses.
    ///
    /// # Errors
    /// If it is another, or spelled otherwise.
    pub fn to_cid(self) -> Result<Cid, CidTextError> {
        self.0.parse()
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > CidText::MAX_LEN {
        return fail(SyntaxKind::CidText, SyntaxRule::TooLong, CidText::MAX_LEN);
    }
    let is_symbol = |byte: u8| ALPHANUMERIC.has(byte) || byte == b'+' || byte == b'=';
    match bytes.iter().position(|byte| !is_symbol(*byte)) {
        Some(at) => fail(SyntaxKind::CidText, SyntaxRule::Symbol, at),
        None if bytes.len() < CidText::MIN_LEN => {
            fail(SyntaxKind::CidText, SyntaxRule::TooShort, bytes.len())
        }
        None if bytes.starts_with(b"Qmb") => fail(SyntaxKind::CidText, SyntaxRule::Reserved, 0),
        None => Ok(()),
    }
}
