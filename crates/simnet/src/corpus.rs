//! Generated files and their manifests: one description for all corpora, and one writer.
//!
//! A manifest is the JSON file of a corpus, with the same name in the same folder. It states the specification
//! of the corpus, the length and the SHA-256 of the file, and the counts that a correct reader finds.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kernels::{hex, sha256};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A fingerprint of this crate's sources: with the same one, the same specification gives the same bytes.
pub const GENERATOR: &str = env!("SIMNET_SOURCES");

/// The description of a corpus file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest<S, C, D = NoDetails> {
    /// The specification that the corpus was generated from.
    #[serde(flatten)]
    pub spec: S,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file in hexadecimal.
    pub sha256: String,
    /// The counts that a correct reader of the file finds.
    pub counts: C,
    /// Additional data for readers of this kind of corpus.
    #[serde(flatten)]
    pub details: D,
}

/// The details of a corpus that needs none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDetails {}

impl<S, C, D> Manifest<S, C, D> {
    /// Describes `file`.
    pub fn new(spec: S, counts: C, details: D, file: impl AsRef<[u8]>) -> Self {
        let file = file.as_ref();
        Self { spec, file_bytes: file.len() as u64, sha256: digest_hex(file), counts, details }
    }
}

/// The SHA-256 of a file in hexadecimal.
pub(crate) fn digest_hex(file: &[u8]) -> String {
    hex::encode(&sha256::digest(file))
}

/// A file that could not be read or written.
#[derive(Debug)]
pub struct FileError {
    /// The file, or the folder it belongs in.
    pub path: PathBuf,
    /// The reason.
    pub error: io::Error,
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Writes a corpus file and then its manifest: where there is a manifest, the corpus is whole.
///
/// # Errors
/// If the folder cannot be created or a file cannot be written.
pub fn write(path: &Path, file: &[u8], manifest: &impl Serialize) -> Result<(), FileError> {
    replace(path, file)?;
    write_json(&manifest_path(path), manifest)
}

/// Reads the manifest of the corpus file at `path`.
///
/// # Errors
/// If there is none, or it is of another form.
pub fn read_manifest<M: DeserializeOwned>(path: &Path) -> Result<M, FileError> {
    let path = manifest_path(path);
    let text = fs::read(&path).map_err(fault(&path))?;
    serde_json::from_slice(&text).map_err(|error| fault(&path)(error.into()))
}

/// The path of the manifest of the corpus file at `path`.
pub fn manifest_path(path: &Path) -> PathBuf {
    path.with_extension("json")
}

/// Writes a JSON document, indented, with a line feed at its end.
///
/// # Errors
/// If the folder cannot be created or the file cannot be written.
///
/// # Panics
/// If `document` has no JSON form.
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), FileError> {
    let mut text = serde_json::to_vec_pretty(document).expect("a document with a JSON form");
    text.push(b'\n');
    replace(path, &text)
}

/// Writes a file under another name and renames it, so that no reader sees a part of it. Creates the
/// folder.
///
/// # Errors
/// If the folder cannot be created or the file cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).map_err(fault(folder))?;
    let mut partial = OsString::from(path);
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    fs::write(&partial, content).map_err(fault(&partial))?;
    fs::rename(&partial, path).map_err(fault(path))
}

fn fault(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |error| FileError { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firehose::{Corpus, Manifest, Spec};

    #[test]
    fn a_written_manifest_is_read_back_and_describes_the_file() {
        let corpus = Corpus::generate(&Spec { frames: 8, ..Spec::quick() }, &mut |_, _| {});
        let file = corpus.to_file();
        let manifest = corpus.manifest(&file);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("corpora").join("frames.bin");
        write(&path, &file, &manifest).unwrap();
        assert_eq!(read_manifest::<Manifest>(&path).unwrap(), manifest);
        assert_eq!((manifest.file_bytes, fs::read(&path).unwrap()), (file.len() as u64, file));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
    }

    #[test]
    fn a_missing_or_malformed_manifest_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.bin");
        let missing = read_manifest::<Manifest>(&path).unwrap_err();
        assert_eq!(missing.path, folder.path().join("frames.json"));
        write_json(&manifest_path(&path), &[1]).unwrap();
        assert!(read_manifest::<Manifest>(&path).is_err());
    }
}
