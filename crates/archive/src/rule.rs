//! The rules of archives, in addition to the rules of events.

use verify::sync::{FutureWindow, Policy};

/// The code of a broken rule, and the rule in words.
pub(crate) type BrokenRule = (&'static str, String);

/// A rule of archives, in addition to the rules of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A file has the bytes that its name says.
    File,
    /// A row is in the table once.
    Repeated,
    /// A checkpoint of a log matches its entries.
    Checkpoint,
    /// Nothing in an archive is a symbolic link.
    Link,
    /// A row is of the account of its frame.
    Account,
    /// A verified event has a signature.
    Kind,
    /// A form is known.
    Form,
    /// An erased account has no rows.
    Erased,
    /// The account signed the records of a snapshot or a part.
    Records,
    /// The operations of a compact commit can be applied.
    Operations,
    /// Rows and columns that are derived from a frame match it.
    Derived,
    /// The revision that a compact commit continues is in the archive.
    Base,
    /// The account signed it.
    Signature,
    /// A column has a value of its kind.
    Value,
    /// A history of keys is one of its account.
    History,
    /// A blob has the bytes that its CID says.
    Blob,
    /// An account had the key under which it signed.
    Key,
    /// An operation that gave an account its key stayed in force.
    NullifiedKey,
}

impl Rule {
    /// The stable code.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::File => "archive/file",
            Self::Repeated => "archive/repeated",
            Self::Checkpoint => "archive/checkpoint",
            Self::Link => "archive/link",
            Self::Account => "archive/account",
            Self::Kind => "archive/kind",
            Self::Form => "archive/form",
            Self::Erased => "archive/erased",
            Self::Records => "archive/records",
            Self::Operations => "archive/operations",
            Self::Derived => "archive/derived",
            Self::Base => "archive/base",
            Self::Signature => "signature/wrong",
            Self::Value => "archive/value",
            Self::History => "archive/history",
            Self::Blob => "archive/blob",
            Self::Key => "archive/key",
            Self::NullifiedKey => "archive/key-nullified",
        }
    }
}

/// A revision that is ahead of the time of arrival.
pub(crate) fn refuse_future(rev: &str, received: i64) -> Option<BrokenRule> {
    let rev = rev.parse().ok()?;
    let window = FutureWindow::new(received.max(0) as u64, &Policy::default());
    let message = || format!("revision {rev} is ahead of the time of arrival");
    (!window.admits(rev)).then(|| ("event/future-rev", message()))
}
