//! The SHA-256 of a file: it is the name of every file that this program wrote.

use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::error::ArchiveError;
use crate::storage::Storage;

/// The SHA-256 in the name of a file that this program wrote, by its path in the table's folder; `None` for other names.
pub(crate) fn content_hash(path: &str) -> Option<&str> {
    let (_, hash) = path.strip_suffix(".parquet")?.strip_prefix("day=")?.split_once('/')?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (hash.len() == 64 && hash.bytes().all(is_hex)).then_some(hash)
}

/// Whether a file is there and has the content that its name says, by its path within the archive.
pub(crate) async fn has_content(
    storage: &Storage,
    file: &str,
    hash: &str,
) -> Result<bool, ArchiveError> {
    match hash_of(storage, file).await {
        Ok(found) => Ok(found == hash),
        Err(error) if error.is_missing_file() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The SHA-256 of a file, by its path within the archive.
pub(crate) async fn hash_of(storage: &Storage, file: &str) -> Result<String, ArchiveError> {
    let mut parts = std::pin::pin!(storage.read(file));
    let mut hash = Sha256::new();
    while let Some(bytes) = parts.try_next().await? {
        hash.update(&bytes);
    }
    Ok(data_encoding::HEXLOWER.encode(&hash.finalize()))
}
