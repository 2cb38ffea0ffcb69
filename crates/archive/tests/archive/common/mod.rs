//! Archives in temporary folders, and the content of their files.

pub(crate) mod changed_file;
pub(crate) mod writers;

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use wireproof_archive::{Archive, ErasureKey};

/// An empty archive.
pub(crate) fn archive() -> (tempfile::TempDir, Archive) {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let archive = archive.with_erasure_key(Some(erasure_key()));
    (folder, archive)
}

/// The secret of erasures.
pub(crate) fn erasure_key() -> ErasureKey {
    ErasureKey::from_bytes([7; 32])
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Whether bytes are in any file of an archive, Parquet's compressed pages read.
pub(crate) fn is_stored(folder: &Path, bytes: &[u8]) -> bool {
    files(folder).iter().any(|path| {
        let is_table = path.extension().is_some_and(|extension| extension == "parquet");
        let found = |haystack: &[u8]| haystack.windows(bytes.len()).any(|window| window == bytes);
        let raw = fs::read(path).unwrap();
        if !is_table {
            return found(&raw);
        }
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(raw))
            .unwrap()
            .build()
            .unwrap();
        reader.map(Result::unwrap).any(|batch| {
            let columns = batch.columns().iter().filter_map(|column| column.as_binary_opt::<i32>());
            columns.into_iter().any(|column| column.iter().flatten().any(&found))
        })
    })
}
