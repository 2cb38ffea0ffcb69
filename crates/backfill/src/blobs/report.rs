//! The findings and counts of a run over blobs.

use codec::Cid;
use indicatif::BinaryBytes;
use net::xrpc::XrpcError;
use program::failure::Failure;
use serde::Serialize;

use super::named::MAX_NAMED;

/// A blob that is not there, or an account whose blobs are not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlobFinding {
    /// The account.
    pub did: String,
    /// The first record that names the blob: `collection/rkey`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The CID of the blob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
    /// The stable code.
    pub code: &'static str,
    /// The fault in words.
    pub message: String,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlobSummary {
    /// Number of accounts.
    pub account_count: u64,
    /// Number of blobs that their records name, once for each account.
    pub blob_count: u64,
    /// Blobs that the archive had.
    pub present_count: u64,
    /// Blobs that were fetched.
    pub fetched_count: u64,
    /// Bytes of the fetched blobs.
    pub byte_count: u64,
    /// Blobs whose bytes have another hash than their CID says.
    pub refused_count: u64,
    /// Blobs that no host sent, or that the archive does not have.
    pub missing_count: u64,
    /// Accounts whose repository is neither in the archive nor served.
    pub unknown_account_count: u64,
}

impl BlobFinding {
    pub(super) fn of_blob(did: &str, record: &str, cid: &Cid, fault: &BlobProblem) -> Self {
        Self {
            did: did.to_owned(),
            record: Some(record.to_owned()),
            cid: Some(cid.to_string()),
            code: fault.name(),
            message: fault.to_string(),
        }
    }

    pub(super) fn of_account(did: &str, message: String) -> Self {
        Self { did: did.to_owned(), record: None, cid: None, code: NO_REPOSITORY, message }
    }

    pub(super) fn of_many(did: &str) -> Self {
        let message = format!("it names more than {MAX_NAMED} blobs; the rest is left out");
        Self { code: ACCOUNT_LIMIT, ..Self::of_account(did, message) }
    }
}

impl std::fmt::Display for BlobFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.did)?;
        if let (Some(record), Some(cid)) = (&self.record, &self.cid) {
            write!(f, ", {record}, {cid}")?;
        }
        write!(f, " ({}): {}", self.code, self.message)
    }
}

/// A fault of a blob.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum BlobProblem {
    #[error("the archive does not have it")]
    NotStored,
    #[error("the bytes that {0} sent have another hash")]
    OtherBytesSent(Box<str>),
    #[error("the stored bytes have another hash")]
    OtherBytesStored,
    #[error("it has {0} bytes, and its row says otherwise")]
    OtherSize(u64),
    #[error("the blobs of the account have more than {0} bytes")]
    AccountLimit(u64),
    #[error("{0}")]
    NotSent(XrpcErrorText),
}

/// The text of a failed request, and its class.
#[derive(Clone, Debug)]
pub(super) struct XrpcErrorText {
    class: &'static str,
    text: String,
}

impl From<&XrpcError> for XrpcErrorText {
    fn from(error: &XrpcError) -> Self {
        let is_missing = error.name().is_some_and(|name| name.as_str() == "BlobNotFound");
        let class = if is_missing { "not-found" } else { crate::account::class_of(error).0 };
        Self { class, text: error.to_string() }
    }
}

impl std::fmt::Display for XrpcErrorText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl BlobProblem {
    /// The stable code.
    fn name(&self) -> &'static str {
        match self {
            Self::NotStored => "blob/missing",
            Self::OtherBytesSent(_) | Self::OtherBytesStored | Self::OtherSize(_) => "blob/bytes",
            Self::AccountLimit(_) => ACCOUNT_LIMIT,
            Self::NotSent(error) if error.class == "not-found" => "blob/not-found",
            Self::NotSent(error) if error.class == "too-large" => "blob/too-large",
            Self::NotSent(_) => "blob/unanswered",
        }
    }

    /// Whether bytes are there, and other ones.
    pub(super) fn is_refusal(&self) -> bool {
        self.name() == "blob/bytes"
    }
}

impl BlobSummary {
    /// The result of a run that has ended so.
    ///
    /// # Errors
    /// If bytes were refused, or a blob or an account is missing.
    pub fn result(&self) -> Result<(), Failure> {
        let (refused, missing, unknown) =
            (self.refused_count, self.missing_count, self.unknown_account_count);
        match (refused, missing + unknown) {
            (0, 0) => Ok(()),
            (0, _) => Err(Failure::Network(format!(
                "{missing} blobs are missing, and the records of {unknown} accounts"
            ))),
            (refused, _) => Err(Failure::Refused(format!("{refused} blobs have other bytes"))),
        }
    }

    /// The summary for a person.
    pub fn to_text(&self) -> String {
        format!(
            "{} accounts, {} blobs: {} were there, {} fetched ({}), {} with other bytes, {} missing\n{}",
            self.account_count,
            self.blob_count,
            self.present_count,
            self.fetched_count,
            BinaryBytes(self.byte_count),
            self.refused_count,
            self.missing_count,
            match self.unknown_account_count {
                0 => String::new(),
                count => format!("{count} accounts without a whole repository\n"),
            },
        )
    }
}

/// The code of an account with too many blobs, or too large ones.
const ACCOUNT_LIMIT: &str = "blob/account-limit";

/// The code of an account whose records are not known.
const NO_REPOSITORY: &str = "blob/no-repository";
