//! Paths of records: NSIDs, record keys, and repository paths, which join the two by a slash.
//!
//! An NSID is an authority, which is a domain name with its labels reversed, and a name:
//!
//! | part | rule |
//! |---|---|
//! | authority | two labels or more, of letters, digits and hyphens; the first starts with a letter |
//! | name | the last label: letters and digits, the first a letter |
//!
//! A label has 1 to 63 bytes and no hyphen first or last; the whole at most 317 bytes. (A domain name has at
//! most 253, but an official test case with 283 in its authority is valid.) Patterns such as `app.bsky.*`
//! ([`CollectionPattern`](super::CollectionPattern)) and references such as `app.bsky.feed.post#main` are not NSIDs.
//!
//! A record key has 1 to 512 of the characters `a-zA-Z0-9_~.:-`, and is neither `.` nor `..`. Letters keep
//! their case. The schema of a collection may further require TIDs, NSIDs or one literal.
//!
//! Repository paths are the keys of a repository's tree, whose own rules are looser: order and length.

use std::str;

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::{LETTER, RECORD_KEY, end_of_label, text_type};

text_type! {
    /// An NSID.
    ///
    /// ```
    /// use wireproof::atproto::syntax::Nsid;
    /// let nsid = Nsid::parse("app.bsky.feed.post")?;
    /// assert_eq!((nsid.authority(), nsid.name()), ("app.bsky.feed", "post"));
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    Nsid, NsidBuf, as_nsid, check_nsid
}

impl<'a> Nsid<'a> {
    /// The maximum length in bytes: a domain name of 253, a dot and a name of 63.
    pub const MAX_LEN: usize = 317;

    /// The domain name, with its labels in reverse order.
    pub fn authority(self) -> &'a str {
        self.split().0
    }

    /// The last label.
    pub fn name(self) -> &'a str {
        self.split().1
    }

    /// The labels, in the order of the text.
    pub fn labels(self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.0.split('.')
    }

    /// The form with the authority in lower case; the name keeps its case.
    pub fn to_normalized(self) -> NsidBuf {
        let (authority, name) = self.split();
        NsidBuf(format!("{}.{name}", authority.to_ascii_lowercase()).into())
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0.rsplit_once('.').expect("checked when parsed")
    }
}

pub(super) fn check_nsid(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > Nsid::MAX_LEN {
        return fail(SyntaxKind::Nsid, SyntaxRule::TooLong, Nsid::MAX_LEN);
    }
    let (labels, start) = check_labels(bytes)?;
    if labels < 3 {
        return fail(SyntaxKind::Nsid, SyntaxRule::FewParts, bytes.len());
    }
    check_nsid_name(bytes, start)
}

/// Checks the rules of labels. Returns their number and the start of the last one.
#[inline(always)]
pub(super) fn check_labels(bytes: &[u8]) -> Result<(u32, usize), SyntaxError> {
    if let Some(first) = bytes.first()
        && first.is_ascii_digit()
    {
        return fail(SyntaxKind::Nsid, SyntaxRule::Letter, 0);
    }
    let (mut labels, mut start) = (1, 0);
    loop {
        let end = end_of_label(SyntaxKind::Nsid, bytes, start)?;
        if end == bytes.len() {
            return Ok((labels, start));
        }
        (labels, start) = (labels + 1, end + 1);
    }
}

/// Checks the rules of a name beyond a label's rules.
#[inline(always)]
fn check_nsid_name(bytes: &[u8], start: usize) -> Result<(), SyntaxError> {
    if !LETTER.contains(bytes[start]) {
        return fail(SyntaxKind::Nsid, SyntaxRule::Letter, start);
    }
    match bytes[start..].iter().position(|byte| *byte == b'-') {
        Some(at) => fail(SyntaxKind::Nsid, SyntaxRule::Symbol, start + at),
        None => Ok(()),
    }
}

text_type! {
    /// The name of a record in its collection.
    RecordKey, RecordKeyBuf, as_record_key, check_record_key
}

impl RecordKey<'_> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 512;
}

fn check_record_key(text: &str) -> Result<(), SyntaxError> {
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

text_type! {
    /// The name of a record in its repository.
    ///
    /// ```
    /// use wireproof::atproto::syntax::RepoPath;
    /// let path = RepoPath::parse("app.bsky.actor.profile/self")?;
    /// assert_eq!(path.collection(), "app.bsky.actor.profile");
    /// assert_eq!(path.record_key(), "self");
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    RepoPath, RepoPathBuf, as_repo_path, check_repo_path
}

impl<'a> RepoPath<'a> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = Nsid::MAX_LEN + 1 + RecordKey::MAX_LEN;

    /// Checks a key of a tree.
    ///
    /// # Errors
    /// If it is not a path.
    pub fn from_bytes(key: &'a [u8]) -> Result<Self, SyntaxError> {
        match str::from_utf8(key) {
            Ok(text) => Self::parse(text),
            Err(error) => fail(SyntaxKind::RepoPath, SyntaxRule::Symbol, error.valid_up_to()),
        }
    }

    /// The collection.
    pub fn collection(self) -> Nsid<'a> {
        Nsid::trusted(self.split().0)
    }

    /// The record's name in its collection.
    pub fn record_key(self) -> RecordKey<'a> {
        RecordKey::trusted(self.split().1)
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0.split_once('/').expect("checked when parsed")
    }
}

/// Checks that keys of a tree are paths. Keys come in order, so that most are in the collection of the key before, which then need
/// not be parsed again.
#[derive(Clone, Debug, Default)]
pub struct RepoPathChecker {
    /// The collection of the last key, with its slash.
    collection: Vec<u8>,
}

impl RepoPathChecker {
    /// Checks the next key.
    ///
    /// # Errors
    /// If it is not a path.
    #[inline]
    pub fn check(&mut self, key: &[u8]) -> Result<(), SyntaxError> {
        if let Some(rest) = key.strip_prefix(self.collection.as_slice())
            && !self.collection.is_empty()
            && let Ok(rest) = str::from_utf8(rest)
            && RecordKey::parse(rest).is_ok()
        {
            return Ok(());
        }
        self.check_collection(key)
    }

    #[cold]
    fn check_collection(&mut self, key: &[u8]) -> Result<(), SyntaxError> {
        let path = RepoPath::from_bytes(key)?;
        self.collection.clear();
        self.collection.extend_from_slice(path.collection().as_str().as_bytes());
        self.collection.push(b'/');
        Ok(())
    }
}

fn check_repo_path(text: &str) -> Result<(), SyntaxError> {
    let Some((collection, key)) = text.split_once('/') else {
        return fail(SyntaxKind::RepoPath, SyntaxRule::FewParts, text.len());
    };
    Nsid::parse(collection)?;
    RecordKey::parse(key).map_err(|error| error.shifted(collection.len() + 1))?;
    Ok(())
}
