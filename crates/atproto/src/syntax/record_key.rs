//! Record keys: 1 to 512 of the symbols `a-zA-Z0-9_~.:-`, but neither `.` nor `..`. Letters keep their
//! case.
//!
//! Whether a collection wants its keys to be TIDs, NSIDs or one word is for its schema to say.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::symbols::RECORD_KEY;
use super::text::{borrowed, owned};

borrowed! {
    /// The name of a record in its collection.
    RecordKey, RecordKeyBuf
}

owned! {
    /// The name of a record in its collection, owned.
    RecordKeyBuf, RecordKey, as_record_key
}

impl RecordKey<'_> {
    /// The most bytes there can be.
    pub const MAX_LEN: usize = 512;
}

fn check(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > RecordKey::MAX_LEN {
        return fail(SyntaxKind::RecordKey, SyntaxRule::TooLong, RecordKey::MAX_LEN);
    }
    let end = RECORD_KEY.prefix_len(bytes);
    if end < bytes.len() {
        return fail(SyntaxKind::RecordKey, SyntaxRule::Symbol, end);
    }
    match bytes {
        [] => fail(SyntaxKind::RecordKey, SyntaxRule::TooShort, 0),
        [b'.'] | [b'.', b'.'] => fail(SyntaxKind::RecordKey, SyntaxRule::Reserved, 0),
        _ => Ok(()),
    }
}
