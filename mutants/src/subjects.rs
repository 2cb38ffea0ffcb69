//! The mutated code, and the tests that must notice.

use std::fs;
use std::path::{Path, PathBuf};

use syn::Item;

use crate::configuration::is_compiled;

/// A part of a crate that is mutated.
#[derive(Debug)]
pub(crate) struct Subject {
    /// As arguments and the table name it.
    pub(crate) name: &'static str,
    /// The crate's source folder.
    source: &'static str,
    /// The files and folders of it that are mutated.
    parts: &'static [&'static str],
    /// Tests that run: `package` for its unit tests, `package/target` for others.
    pub(crate) tests: &'static [&'static str],
}

/// Every subject.
pub(crate) static SUBJECTS: [Subject; 5] = [
    Subject {
        name: "codec",
        source: "crates/codec/src",
        parts: &[""],
        tests: &["wireproof-codec", "wireproof-atproto"],
    },
    Subject {
        name: "verify",
        source: "crates/verify/src",
        parts: &[""],
        tests: &["wireproof-verify", "wireproof-conformance/suite"],
    },
    Subject {
        name: "crypto",
        source: "crates/crypto/src",
        parts: &[""],
        tests: &["wireproof-crypto", "wireproof-crypto/published_vectors", "wireproof-verify"],
    },
    Subject {
        name: "mst",
        source: "crates/atproto/src",
        parts: &["mst", "node_shape.rs"],
        tests: &["wireproof-atproto", "wireproof-verify", "wireproof-conformance/suite"],
    },
    Subject {
        name: "firehose",
        source: "crates/net/src",
        parts: &["firehose"],
        tests: &["wireproof-net", "wireproof-conformance/network"],
    },
];

impl Subject {
    /// The file that declares the crate's modules.
    pub(crate) fn root(&self) -> PathBuf {
        Path::new(self.source).join("lib.rs")
    }

    /// The module of the switch.
    pub(crate) fn switch(&self) -> PathBuf {
        Path::new(self.source).join("__mutants.rs")
    }

    /// The mutated files, from the root of the repository.
    pub(crate) fn files(&self, repository: &Path) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        follow(repository, &self.root(), Path::new(self.source), &mut files)?;
        let parts = self.parts.iter().map(|part| Path::new(self.source).join(part));
        let parts: Vec<PathBuf> = parts.collect();
        files.retain(|file| parts.iter().any(|part| file.starts_with(part)));
        files.sort();
        Ok(files)
    }
}

/// Adds a file and the files of the modules that it declares. `folder` holds the modules.
fn follow(
    repository: &Path,
    file: &Path,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(repository.join(file)).map_err(|error| at(&error))?;
    let parsed = syn::parse_file(&text).map_err(|error| at(&error))?;
    files.push(file.to_owned());
    for item in parsed.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() || !is_compiled(&module.attrs) {
            continue;
        }
        let inner = folder.join(module.ident.to_string());
        let candidates = [inner.with_extension("rs"), inner.join("mod.rs")];
        let found = candidates.iter().find(|path| repository.join(path).exists());
        let found = found.ok_or_else(|| format!("{}: no file", inner.display()))?;
        follow(repository, found, &inner, files)?;
    }
    Ok(())
}
