//! Shared parts of all checked texts: the macro that defines their borrowed and owned forms, the classes of
//! characters, and the labels of dotted names.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};

/// Defines a checked text: the borrowed form `$Name`, a `&str` that has passed `$check`, and the owned form
/// `$Owned`, with `$as_name` to borrow it.
macro_rules! text_type {
    ($(#[$doc:meta])* $Name:ident, $Owned:ident, $as_name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name<'a>(&'a str);

        impl<'a> $Name<'a> {
            /// Checks the whole of `text`.
            ///
            /// # Errors
            /// If it breaks a rule.
            #[inline]
            pub fn parse(text: &'a str) -> Result<Self, $crate::syntax::SyntaxError> {
                $check(text)?;
                Ok(Self(text))
            }

            /// Wraps text that has passed `$check` before.
            #[inline]
            pub(in crate::syntax) fn trusted(text: &'a str) -> Self {
                debug_assert!($check(text).is_ok());
                Self(text)
            }

            /// The text.
            #[inline]
            pub fn as_str(self) -> &'a str {
                self.0
            }

            /// The owned form.
            pub fn to_buf(self) -> $Owned {
                $Owned(self.as_str().into())
            }
        }

        impl<'a> TryFrom<&'a str> for $Name<'a> {
            type Error = $crate::syntax::SyntaxError;

            fn try_from(text: &'a str) -> Result<Self, Self::Error> {
                Self::parse(text)
            }
        }

        #[doc = concat!("The owned form of [`", stringify!($Name), "`]. Compares as its text.")]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Owned(Box<str>);

        impl $Owned {
            /// The borrowed form.
            #[inline]
            pub fn $as_name(&self) -> $Name<'_> {
                $Name::trusted(&self.0)
            }

            /// The text.
            #[inline]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        // Text and both forms hash and compare alike, so a map of owned forms can be searched by `&str`.
        impl std::borrow::Borrow<str> for $Owned {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$Name<'_>> for $Owned {
            fn from(borrowed: $Name<'_>) -> Self {
                borrowed.to_buf()
            }
        }

        impl std::str::FromStr for $Owned {
            type Err = $crate::syntax::SyntaxError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $Name::parse(text).map($Name::to_buf)
            }
        }

        impl TryFrom<String> for $Owned {
            type Error = $crate::syntax::SyntaxError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                $Name::parse(&text)?;
                Ok(Self(text.into()))
            }
        }

        impl<'de> serde::Deserialize<'de> for $Owned {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.try_into().map_err(serde::de::Error::custom)
            }
        }

        crate::syntax::text::text_traits!($Name<'_>);
        crate::syntax::text::text_traits!($Owned);
    };
}

/// Implements the traits that both forms share.
macro_rules! text_traits {
    ($Type:ty) => {
        impl AsRef<str> for $Type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl PartialEq<str> for $Type {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $Type {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }
    };
}

pub(super) use {text_traits, text_type};

/// A set of characters: a union of classes, one bit per class.
#[derive(Clone, Copy)]
pub(super) struct CharSet(u8);

pub(super) const LOWER: CharSet = CharSet(1);
pub(super) const LETTER: CharSet = CharSet(1 | 2);
pub(super) const ALPHANUMERIC: CharSet = CharSet(1 | 2 | 4);
/// Characters of a label of a dotted name.
pub(super) const LABEL: CharSet = CharSet(1 | 2 | 4 | HYPHEN);
/// Characters after the method of a DID.
pub(super) const DID_CHARS: CharSet = CharSet(1 | 2 | 4 | HYPHEN | DOT_COLON_LINE | PERCENT);
/// Characters of a record key.
pub(super) const RECORD_KEY: CharSet = CharSet(1 | 2 | 4 | HYPHEN | DOT_COLON_LINE | TILDE);

impl CharSet {
    #[inline(always)]
    pub(super) fn contains(self, byte: u8) -> bool {
        CLASSES[usize::from(byte)] & self.0 != 0
    }

    /// The number of these characters at the start of `bytes`.
    #[inline(always)]
    pub(super) fn prefix_len(self, bytes: &[u8]) -> usize {
        bytes.iter().position(|byte| !self.contains(*byte)).unwrap_or(bytes.len())
    }
}

const HYPHEN: u8 = 8;
const DOT_COLON_LINE: u8 = 16;
const PERCENT: u8 = 32;
const TILDE: u8 = 64;

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            b'0'..=b'9' => 4,
            b'-' => HYPHEN,
            b'.' | b':' | b'_' => DOT_COLON_LINE,
            b'%' => PERCENT,
            b'~' => TILDE,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// The end of the label that starts at `start`: the end of `bytes`, or a dot. A label of a handle or an NSID
/// has 1 to 63 letters, digits and hyphens, with no hyphen first or last.
#[inline(always)]
pub(super) fn end_of_label(
    kind: SyntaxKind,
    bytes: &[u8],
    start: usize,
) -> Result<usize, SyntaxError> {
    let end = start + LABEL.prefix_len(&bytes[start..]);
    if end < bytes.len() && bytes[end] != b'.' {
        return fail(kind, SyntaxRule::Symbol, end);
    }
    match bytes[start..end] {
        [] => fail(kind, SyntaxRule::EmptyPart, start),
        [b'-', ..] => fail(kind, SyntaxRule::Hyphen, start),
        [.., b'-'] => fail(kind, SyntaxRule::Hyphen, end - 1),
        _ if end - start > MAX_LABEL_LEN => fail(kind, SyntaxRule::LongPart, start + MAX_LABEL_LEN),
        _ => Ok(end),
    }
}

const MAX_LABEL_LEN: usize = 63;
