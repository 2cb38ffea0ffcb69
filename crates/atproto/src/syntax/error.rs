//! Why a text is not what it should be, and where.

use std::fmt;

/// Why a text is refused: as what, by which rule, at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("not {kind}: at byte {offset}, {rule}")]
pub struct SyntaxError {
    /// What the text, or the part of it that broke the rule, should be.
    pub kind: SyntaxKind,
    /// The rule.
    pub rule: SyntaxRule,
    /// Bytes from the start of the text that was handed in.
    pub offset: u32,
}

const _: () = assert!(size_of::<Result<&str, SyntaxError>>() == 16, "parsing answers in registers");

/// What a text should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyntaxKind {
    /// A decentralized identifier.
    Did,
    /// A domain name that stands for an account.
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
    /// It is longer than it may be; the offset is the first byte too many.
    #[error("it goes on where it must have ended")]
    TooLong,
    /// It, or a part, ends too early.
    #[error("more must follow")]
    TooShort,
    /// It starts with something else than all of its kind do.
    #[error("it does not start as it must")]
    Prefix,
    /// A symbol stands where it may not.
    #[error("there is a symbol that may not stand there")]
    Symbol,
    /// A part between two separators, or beside one, is empty.
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
    /// Fewer parts than there must be.
    #[error("there are too few parts")]
    FewParts,
    /// A part of a kind that may not follow those before it.
    #[error("there is a part that may not stand there")]
    Part,
    /// A part that may be there once is there again.
    #[error("a part is repeated")]
    Repeated,
    /// A number that no calendar, clock or map of time zones has.
    #[error("there is no such moment")]
    Moment,
    /// The text has another meaning.
    #[error("it is set aside for something else")]
    Reserved,
}

#[cold]
#[inline(never)]
pub(super) fn fail<T>(kind: SyntaxKind, rule: SyntaxRule, offset: usize) -> Result<T, SyntaxError> {
    Err(SyntaxError { kind, rule, offset: u32::try_from(offset).unwrap_or(u32::MAX) })
}

impl SyntaxError {
    /// The same fault of a text in which the refused part starts at `offset`.
    #[cold]
    pub(super) fn behind(self, offset: usize) -> Self {
        Self { offset: self.offset.saturating_add(offset as u32), ..self }
    }
}
