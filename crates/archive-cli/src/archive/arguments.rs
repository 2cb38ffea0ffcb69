//! Arguments that several commands share: the archive, an account, a time.

use archive::Archive;
use atproto::syntax::{Datetime, Did};
use clap::Args;

use crate::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;

/// The archive.
#[derive(Debug, Args)]
pub(crate) struct AddressArgs {
    /// The archive: a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. Object stores
    /// take their options from the environment: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, AWS_REGION and so on.
    #[arg(value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    pub(crate) archive: String,
    #[command(flatten)]
    pub(crate) erasure_key: ErasureKeyArgs,
}

impl AddressArgs {
    /// Opens an archive, which need not be there.
    pub(crate) fn create(&self) -> Result<Archive, Failure> {
        self.erasure_key.add_to(Archive::open(&self.archive)?)
    }

    /// Opens an archive that is there.
    pub(crate) async fn open(&self) -> Result<Archive, Failure> {
        self.erasure_key.add_to(Archive::open_existing(&self.archive).await?)
    }
}

/// An account, as `--did` names it.
///
/// # Errors
/// If it is not a DID.
pub(super) fn checked_did(text: &str) -> Result<String, Failure> {
    Did::parse(text).map_err(|error| Failure::Usage(format!("--did {text}: {error}")))?;
    Ok(text.to_owned())
}

/// A time as microseconds since 1970.
pub(super) fn parse_time(text: &str) -> Result<i64, String> {
    Datetime::parse(text).map(|time| time.unix_micros()).map_err(|error| error.to_string())
}
