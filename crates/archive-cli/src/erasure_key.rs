//! The file with the secret under which the DIDs of erased accounts are hashed.

use std::path::{Path, PathBuf};

use archive::{Archive, ErasureKey};
use clap::{Args, ValueHint};

use crate::failure::Failure;

/// Where the secret is.
#[derive(Debug, Default, Args)]
pub(crate) struct ErasureKeyArgs {
    /// File with the secret under which the DIDs of erased accounts are hashed, outside the archive. `archive erase` creates it
    /// [default: wireproof/erasure.key in $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, value_name = "FILE", env = "WIREPROOF_ERASURE_KEY", value_hint = ValueHint::FilePath)]
    erasure_key: Option<PathBuf>,
}

impl ErasureKeyArgs {
    /// The archive with the secret, if there is one. Without the one of its erasures it cannot be written to.
    ///
    /// # Errors
    /// If the file that was named is missing or cannot be read.
    pub(crate) fn add_to(&self, archive: Archive) -> Result<Archive, Failure> {
        let Some(path) = &self.erasure_key else {
            return Ok(archive.with_erasure_key(ErasureKey::read_default()));
        };
        match ErasureKey::read(path)? {
            None => {
                let what = "no erasure key: `archive erase` creates it with the first erasure";
                Err(Failure::Local(format!("{}: {what}", path.display())))
            }
            key => Ok(archive.with_erasure_key(key)),
        }
    }

    /// The archive with the secret, which is created if there is none.
    ///
    /// # Errors
    /// If the file is in the archive, or cannot be read or created.
    pub(crate) fn create_for(&self, archive: Archive) -> Result<Archive, Failure> {
        let path = self.path().ok_or_else(|| {
            Failure::Usage("HOME is not set: name the file with --erasure-key".to_owned())
        })?;
        let is_inside = |folder: &Path| {
            let (path, folder) = (std::path::absolute(&path), std::path::absolute(folder));
            path.is_ok_and(|path| folder.is_ok_and(|folder| path.starts_with(folder)))
        };
        if archive.storage().folder().is_some_and(is_inside) {
            let what = "the erasure key is a secret that must not be in the archive";
            return Err(Failure::Usage(format!("--erasure-key {}: {what}", path.display())));
        }
        Ok(archive.with_erasure_key(Some(ErasureKey::read_or_create(&path)?)))
    }

    fn path(&self) -> Option<PathBuf> {
        self.erasure_key.clone().or_else(ErasureKey::default_path)
    }
}
