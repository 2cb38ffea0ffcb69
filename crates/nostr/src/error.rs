//! Why are bytes no event, and why can a format not hold one?

use crate::Limit;

/// Why bytes are no event of a format, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub struct DecodeError {
    /// Bytes from the start of the input to the item that broke the rule.
    pub offset: usize,
    /// The rule.
    pub reason: Reason,
}

impl DecodeError {
    /// The fault `reason` at `offset`.
    #[cold]
    pub fn new(offset: usize, reason: Reason) -> Self {
        Self { offset, reason }
    }
}

/// A rule of a format, or a bound of [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end inside this item.
    #[error("the bytes end inside this item")]
    Truncated,
    /// Bytes follow the event.
    #[error("bytes follow the event")]
    TrailingBytes,
    /// Text is not UTF-8.
    #[error("text that is not UTF-8")]
    Utf8,
    /// A varint or a head in more bytes than it needs.
    #[error("an integer in more bytes than it needs")]
    NotMinimal,
    /// An integer that its field cannot hold.
    #[error("{} out of range", .0.name())]
    Range(Field),
    /// A field that is not as long as it must be.
    #[error("{} of a wrong length", .0.name())]
    Length(Field),
    /// Digits that are not lower-case hexadecimal.
    #[error("{} that is not lower-case hexadecimal", .0.name())]
    Hex(Field),
    /// A field that is not there.
    #[error("{} is missing", .0.name())]
    Missing(Field),
    /// A field that was there before.
    #[error("{} a second time", .0.name())]
    Duplicate(Field),
    /// Something else than what must stand here.
    #[error("{0} expected")]
    Expected(&'static str),
    /// What the format could say shorter or in another way, and must.
    #[error("{0}")]
    NotCanonical(&'static str),
    /// Another version of the format.
    #[error("version {0}, which is not read")]
    Version(u64),
    /// More than a limit allows.
    #[error("more {} than the limit allows", .0.name())]
    Limit(Limit),
}

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `id`.
    Id,
    /// `pubkey`.
    Pubkey,
    /// `created_at`.
    CreatedAt,
    /// `kind`.
    Kind,
    /// `tags`, or a value in them.
    Tags,
    /// `content`.
    Content,
    /// `sig`.
    Sig,
}

impl Field {
    /// All fields, in the order of NIP-01's JSON as most write it.
    pub const ALL: [Self; 7] =
        [Self::Id, Self::Pubkey, Self::CreatedAt, Self::Kind, Self::Tags, Self::Content, Self::Sig];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Pubkey => "pubkey",
            Self::CreatedAt => "created_at",
            Self::Kind => "kind",
            Self::Tags => "tags",
            Self::Content => "content",
            Self::Sig => "sig",
        }
    }
}

/// Why a format cannot hold an event. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// More of something than the layout can count.
    #[error("{count} {what}, of which this format can hold {most}")]
    TooMany {
        /// What is counted or measured, in the plural.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// The id is not that of the event, and the layout leaves out what its reader computes.
    #[error("an id that is not that of the event cannot be told by leaving it out")]
    Id,
    /// Something that the format has no place for.
    #[error("{0}, which has no place in this format")]
    NoPlace(&'static str),
    /// A value that the layout has no place for.
    #[error("{} {value} has no place in this format", .field.name())]
    Range {
        /// The field.
        field: Field,
        /// Its value.
        value: i64,
    },
}

impl EncodeError {
    /// Refuses `count` of `what` if it is more than `most`.
    pub(crate) fn at_most(what: &'static str, count: usize, most: usize) -> Result<(), Self> {
        if count > most { Err(Self::TooMany { what, count, most }) } else { Ok(()) }
    }
}
