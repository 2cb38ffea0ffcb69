//! The files of the events that destinations refuse, in the folder of the outbox.

use std::path::{Path, PathBuf};

use delivery::{DeadLetters, Outbox, dead_letter_bytes};

use crate::failure::Failure;

/// Opens the file of the events that a destination refuses.
pub(super) fn open(folder: &Path, consumer: &str) -> Result<DeadLetters, Failure> {
    DeadLetters::open(&letters_path(folder, consumer), consumer, MAX_LETTERS_BYTES)
        .map_err(|error| Failure::Local(error.to_string()))
}

fn letters_path(folder: &Path, consumer: &str) -> PathBuf {
    folder.join(format!("refused-{consumer}.ndjson"))
}

/// Bytes of the events that a destination has refused, in files next to the outbox.
pub(super) fn bytes(outbox: &Outbox, consumer: &str) -> u64 {
    let folder = outbox.path().parent();
    folder.map_or(0, |folder| dead_letter_bytes(&letters_path(folder, consumer)))
}

/// Maximum size of a file of dead letters and its parts in bytes.
const MAX_LETTERS_BYTES: u64 = 256 << 20;
