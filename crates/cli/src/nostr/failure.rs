//! Which failure an error of a file of events is.

#[cfg(feature = "nostr-lmdb")]
use nostr_files::EntryFault;
use nostr_files::{FileFault, InputError};

use crate::failure::Failure;
#[cfg(not(feature = "nostr-lmdb"))]
use program::programs::WIREPROOF;

/// A failure of a command that reads files of events.
#[derive(Debug)]
pub(super) struct FileFailure(Failure);

impl From<Failure> for FileFailure {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl From<FileFailure> for Failure {
    fn from(FileFailure(failure): FileFailure) -> Self {
        failure
    }
}

impl From<InputError> for FileFailure {
    fn from(error: InputError) -> Self {
        Self(of_input(error))
    }
}

/// The failure, with advice.
pub(super) fn of_input(error: InputError) -> Failure {
    match &error {
        _ if error.is_local() => Failure::Local(error.to_string()),
        InputError::EmptyFolder(_) => Failure::Refused(error.to_string()),
        InputError::File { fault: FileFault::Damaged(_), .. } => Failure::Refused(format!(
            "{error} (`nostr convert --skip-damaged` takes what is intact)"
        )),
        #[cfg(feature = "nostr-lmdb")]
        InputError::File { fault: FileFault::Database(fault), .. } => {
            see_databases(&error, fault.code().unwrap_or_default())
        }
        #[cfg(feature = "nostr-lmdb")]
        InputError::File { fault: FileFault::Event { fault, .. }, .. }
            if !matches!(fault, EntryFault::Unreadable(_)) =>
        {
            see_databases(&error, fault.code())
        }
        #[cfg(not(feature = "nostr-lmdb"))]
        InputError::File { path, fault: FileFault::NoDatabases } => {
            let part = format!("{}: an LMDB database", path.display());
            Failure::Usage(WIREPROOF.missing_feature(&part, "nostr-lmdb"))
        }
        _ => Failure::Refused(format!("{error} (--from names the layout of a file)")),
    }
}

#[cfg(feature = "nostr-lmdb")]
fn see_databases(error: &InputError, code: &str) -> Failure {
    Failure::Refused(format!("{error} ({code}: see docs/reference/nostr.md#databases)"))
}
