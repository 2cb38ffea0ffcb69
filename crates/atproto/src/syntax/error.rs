//! The error of all checked texts.

use std::fmt;

/// A text is malformed: the expected kind, the broken rule, and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("not {kind}: at byte {offset}, {rule}")]
pub struct SyntaxError {
    /// The expected kind of the text, or of the malformed part.
    pub kind: SyntaxKind,
    /// The broken rule.
    pub rule: SyntaxRule,
    /// Bytes from the start of the given text.
    pub offset: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Result<&str, SyntaxError>>() == 16, "results fit in registers");

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyntaxKind {
    /// A decentralized identifier.
    Did,
    /// A domain name that names an account.
    Handle,
    /// A namespaced identifier.
    Nsid,
    /// A timestamp identifier.
    Tid,
    /// The name of a record in its collection.
    RecordKey,
    /// The name of a record in its repository.
    RepoPath,
    /// A reference to an account, a collection or a record.
    AtUri,
    /// A date and a time of day.
    Datetime,
    /// A tag that names a language.
    Language,
    /// A content identifier, in any of its text forms.
    CidText,
    /// A uniform resource identifier.
    Uri,
}

impl fmt::Display for SyntaxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Did => "a DID",
            Self::Handle => "a handle",
            Self::Nsid => "an NSID",
            Self::Tid => "a TID",
            Self::RecordKey => "a record key",
            Self::RepoPath => "a repository path",
            Self::AtUri => "an AT-URI",
            Self::Datetime => "a datetime",
            Self::Language => "a language tag",
            Self::CidText => "a CID",
            Self::Uri => "a URI",
        })
    }
}

/// A rule that a text can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxRule {
    /// It is too long, or does not end where it must; the offset points at the first extra byte.
    #[error("the text must end here")]
    TooLong,
    /// It, or a part, ends too early.
    #[error("the text ends too early")]
    TooShort,
    /// The prefix of its kind is missing.
    #[error("the required prefix is missing")]
    Prefix,
    /// A character that is not allowed at its position.
    #[error("a character is not allowed here")]
    Symbol,
    /// A part between two separators, or next to one, is empty.
    #[error("a part is empty")]
    EmptyPart,
    /// A part is longer than a part may be.
    #[error("a part is too long")]
    LongPart,
    /// A part starts or ends with a hyphen.
    #[error("a hyphen is first or last in its part")]
    Hyphen,
    /// A part that must start with a letter does not.
    #[error("a part does not start with a letter")]
    Letter,
    /// Too few parts.
    #[error("there are too few parts")]
    FewParts,
    /// A part of a kind that must not follow the parts before it.
    #[error("a part is not allowed here")]
    Part,
    /// A part that must be unique is repeated.
    #[error("a part is repeated")]
    Repeated,
    /// A number outside the calendar, the clock or the time zones.
    #[error("there is no such date, time or zone")]
    Moment,
    /// The bytes that the text encodes are not a CID.
    #[error("the decoded bytes are not a CID")]
    Cid,
    /// The text is reserved.
    #[error("the text is reserved")]
    Reserved,
}

#[cold]
#[inline(never)]
pub(super) fn fail<T>(kind: SyntaxKind, rule: SyntaxRule, offset: usize) -> Result<T, SyntaxError> {
    Err(SyntaxError { kind, rule, offset: u32::try_from(offset).unwrap_or(u32::MAX) })
}

impl SyntaxError {
    /// The error for a text in which the malformed part starts at `offset`.
    #[cold]
    pub(super) fn shifted(self, offset: usize) -> Self {
        Self { offset: self.offset.saturating_add(offset as u32), ..self }
    }
}
