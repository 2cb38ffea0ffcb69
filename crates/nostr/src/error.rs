//! Errors of decoding and encoding: the rule that was broken, and where.

use crate::Limit;

/// Why bytes are not an event of a format, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub struct DecodeError {
    /// Bytes from the start of the input to the item that broke the rule.
    pub offset: usize,
    /// The broken rule.
    pub reason: Reason,
}

impl DecodeError {
    /// The error `reason` at `offset`.
    #[cold]
    pub fn new(offset: usize, reason: Reason) -> Self {
        Self { offset, reason }
    }
}

/// A broken rule of a format, or an exceeded limit of [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The input ends inside this item.
    #[error("the input ends inside this item")]
    Truncated,
    /// Bytes follow the event or the batch.
    #[error("unexpected bytes after the end")]
    TrailingBytes,
    /// Text is not UTF-8.
    #[error("text is not UTF-8")]
    Utf8,
    /// A varint or a head in more bytes than it needs.
    #[error("integer or length is not in its shortest form")]
    NotMinimal,
    /// An integer that its field cannot hold.
    #[error("`{}` is out of range: {}", .0.name(), .0.range())]
    Range(Field),
    /// A field of the wrong length.
    #[error("`{}` has the wrong length: {}", .0.name(), .0.length())]
    Length(Field),
    /// A number with a fraction, an exponent or needless characters, where an integer is required.
    #[error("`{}` is an integer: no fraction, no exponent, no `-0`", .0.name())]
    Integer(Field),
    /// Digits that are not lower-case hexadecimal.
    #[error("`{}` is not lower-case hexadecimal", .0.name())]
    Hex(Field),
    /// A missing field.
    #[error("`{}` is missing", .0.name())]
    Missing(Field),
    /// A field that is present twice.
    #[error("duplicate `{}`", .0.name())]
    Duplicate(Field),
    /// Something that the format does not allow here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A valid item in an encoding that is not the canonical one.
    #[error("not canonical: {0}")]
    NotCanonical(&'static str),
    /// An unknown version of the format.
    #[error("unsupported version {0}")]
    Version(u64),
    /// An exceeded limit.
    #[error("more {} than the limit", .0.name())]
    Limit(Limit),
}

impl Reason {
    /// The name of the rule without its details, as in the published vectors: `truncated`, `not-minimal`, ….
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::TrailingBytes => "trailing-bytes",
            Self::Utf8 => "utf-8",
            Self::NotMinimal => "not-minimal",
            Self::Range(_) => "range",
            Self::Length(_) => "length",
            Self::Integer(_) => "integer",
            Self::Hex(_) => "hexadecimal",
            Self::Missing(_) => "missing",
            Self::Duplicate(_) => "duplicate",
            Self::Expected(_) => "expected",
            Self::NotCanonical(_) => "not-canonical",
            Self::Version(_) => "version",
            Self::Limit(_) => "limit",
        }
    }
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
    /// `tags`, or a value of a tag.
    Tags,
    /// `content`.
    Content,
    /// `sig`.
    Sig,
}

impl Field {
    /// All fields, in the order in which most clients write the JSON of NIP-01.
    pub const ALL: [Self; 7] =
        [Self::Id, Self::Pubkey, Self::CreatedAt, Self::Kind, Self::Tags, Self::Content, Self::Sig];

    /// The name in JSON.
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

    /// The integers that the field holds.
    fn range(self) -> &'static str {
        match self {
            Self::Kind => "0 to 65,535",
            Self::CreatedAt => "seconds since 1970 in 64 bits with sign",
            _ => "no integer",
        }
    }

    /// The length that the field has.
    fn length(self) -> &'static str {
        match self {
            Self::Id | Self::Pubkey => "32 bytes, or 64 hexadecimal digits",
            Self::Sig => "64 bytes, or 128 hexadecimal digits",
            Self::Tags => "an `e` or `p` has 32 bytes",
            _ => "another one is stated",
        }
    }
}

/// Why a format cannot hold an event. The output is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// More of something than the layout can count.
    #[error("{count} {what}: this format holds at most {max}")]
    TooMany {
        /// The name of the counted or measured items, in the plural.
        what: &'static str,
        /// The number in the event.
        count: usize,
        /// The maximum of the layout.
        max: usize,
    },
    /// The id is not the event's, and the layout leaves the id out.
    #[error("the id is not the hash of the event: this format leaves the id out")]
    Id,
    /// Something that the layout has no representation for.
    #[error("this format cannot hold {0}")]
    Unsupported(&'static str),
    /// A value outside the range of the layout.
    #[error("this format cannot hold `{}` {value}", .field.name())]
    Range {
        /// The field.
        field: Field,
        /// The value in the event.
        value: i64,
    },
}

impl EncodeError {
    /// Checks a `count` of `what`.
    ///
    /// # Errors
    /// If it is above `max`.
    #[inline]
    pub fn at_most(what: &'static str, count: usize, max: usize) -> Result<(), Self> {
        if count > max { Err(Self::TooMany { what, count, max }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventFault;

    #[test]
    fn errors_are_standard_errors_that_threads_can_exchange() {
        fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
        is_error::<DecodeError>();
        is_error::<Reason>();
        is_error::<EncodeError>();
        is_error::<EventFault>();
    }
}
