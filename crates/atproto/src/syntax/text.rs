//! What all checked texts have in common: a borrowed form, an owned one, and the ways between.

/// The borrowed form, a `&str` that passed `check`, which is a function of the file that calls this.
macro_rules! borrowed {
    ($(#[$doc:meta])* $Name:ident, $Owned:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name<'a>(&'a str);

        impl<'a> $Name<'a> {
            /// Checks `text`, all of it.
            ///
            /// # Errors
            /// If it breaks a rule.
            #[inline]
            pub fn parse(text: &'a str) -> Result<Self, $crate::syntax::SyntaxError> {
                check(text)?;
                Ok(Self(text))
            }

            /// Text that passed `check` before.
            #[inline]
            pub(in crate::syntax) fn trusted(text: &'a str) -> Self {
                debug_assert!(check(text).is_ok());
                Self(text)
            }

            /// The text.
            #[inline]
            pub fn as_str(self) -> &'a str {
                self.0
            }
        }

        crate::syntax::text::text_traits!(@borrowed $Name, $Owned);
    };
}

/// The owned form of `$Name`, with `$as_name` to borrow it again.
macro_rules! owned {
    ($(#[$doc:meta])* $Owned:ident, $Name:ident, $as_name:ident) => {
        $(#[$doc])*
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

        crate::syntax::text::text_traits!(@owned $Owned, $Name);
    };
}

macro_rules! text_traits {
    (@borrowed $Name:ident, $Owned:ident) => {
        impl $Name<'_> {
            /// The owned form.
            pub fn to_buf(self) -> $Owned {
                $Owned(self.as_str().into())
            }
        }

        impl AsRef<str> for $Name<'_> {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl<'a> TryFrom<&'a str> for $Name<'a> {
            type Error = $crate::syntax::SyntaxError;

            fn try_from(text: &'a str) -> Result<Self, Self::Error> {
                Self::parse(text)
            }
        }

        crate::syntax::text::text_traits!(@both $Name<'_>);
    };
    (@owned $Owned:ident, $Name:ident) => {
        impl AsRef<str> for $Owned {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        // Text and both forms hash and compare alike, so a map of owned ones is asked with a `&str`.
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

        crate::syntax::text::text_traits!(@both $Owned);
    };
    (@both $Type:ty) => {
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

pub(super) use {borrowed, owned, text_traits};
