//! LMDB environments: folders whose `data.mdb` is mapped into memory.
//!
//! LMDB trusts its file: one that was damaged or made on purpose can end the process with a signal, or worse. Open other files than
//! your own in a process that does nothing else, with [`limit_process`](crate::limit_process).

use std::path::Path;

use heed::{Env, EnvFlags, EnvOpenOptions, Result, WithoutTls};

/// Opens the environment in `folder` for reading, together with programs that have the same version of LMDB.
///
/// # Errors
/// If the folder has no environment of this version of LMDB, another version has it open, or its lock file cannot be written.
pub fn open_read_only(folder: &Path, max_tables: u32) -> Result<Env<WithoutTls>> {
    let len = std::fs::metadata(folder.join("data.mdb"))?.len();
    let map_bytes = len.saturating_add(MAP_BYTES).next_multiple_of(MAP_BYTES);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(max_tables).map_size(usize::try_from(map_bytes).unwrap_or(usize::MAX));
    open(options, EnvFlags::READ_ONLY, folder)
}

/// Bytes that are mapped beyond the file, for data that another program adds before the read: a multiple of every size of a page. The
/// file itself may state any size.
const MAP_BYTES: u64 = 64 << 20;

/// Opens an environment of at most `max_bytes` in `folder`, which exists, for writing by this process alone. Nothing is durable
/// before [`Env::force_sync`].
///
/// # Errors
/// If the files cannot be created.
pub fn create(folder: &Path, max_tables: u32, max_bytes: usize) -> Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(max_tables).map_size(max_bytes);
    open(options, EnvFlags::NO_SYNC, folder)
}

#[expect(unsafe_code, reason = "opening an environment maps a file, and this is the only call")]
fn open(
    mut options: EnvOpenOptions<WithoutTls>,
    flags: EnvFlags,
    folder: &Path,
) -> Result<Env<WithoutTls>> {
    // SAFETY: neither of the two flags that are passed gives up a guarantee that memory depends on: the map stays read-only
    // and the lock file in use.
    unsafe { options.flags(flags) };
    // SAFETY: other processes change the file by LMDB alone, under its locks. That they do, and that the file is well formed,
    // cannot be proved here; the module's documentation requires it of the caller.
    unsafe { options.open(folder) }
}

#[cfg(test)]
mod tests {
    use heed::{CommitOrAbort, types::Bytes};

    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_is_written_by_reading() {
        let folder = tempfile::tempdir().unwrap();
        let env = create(folder.path(), 1, 1 << 20).unwrap();
        let table = env.create_databases_and_commit(env.write_txn().unwrap(), |opener, txn| {
            let table = opener.create_database::<Bytes, Bytes>(txn, Some("table"))?;
            table.put(txn, b"key", b"value")?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(table))
        });
        table.unwrap();
        env.force_sync().unwrap();
        drop(env);
        let env = open_read_only(folder.path(), 1).unwrap();
        let table = env.open_databases_and_commit(env.read_txn().unwrap(), |opener, txn| {
            let table = opener.open_database::<Bytes, Bytes>(txn, Some("table"))?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(table))
        });
        let table = table.unwrap().unwrap_commit().unwrap();
        let txn = env.read_txn().unwrap();
        assert_eq!(table.get(&txn, b"key").unwrap(), Some(&b"value"[..]));
        assert!(env.write_txn().is_err());
    }

    #[test]
    fn a_folder_without_an_environment_and_a_file_of_something_else_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open_read_only(folder.path(), 1).is_err());
        std::fs::write(folder.path().join("data.mdb"), [7; 8192]).unwrap();
        assert!(open_read_only(folder.path(), 1).is_err());
    }
}
