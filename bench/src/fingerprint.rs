//! Fingerprints of source files: detect whether something must be made again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kernels::{hex, sha256};

/// A fingerprint of the names and contents of files and folders, and of a toolchain.
pub(crate) fn of(sources: &[PathBuf], toolchain: &str) -> io::Result<String> {
    let mut state = Vec::from(toolchain);
    for source in sources {
        add(source, Path::new(""), &mut state)?;
    }
    Ok(hex::encode(&sha256::digest(&state)))
}

/// Adds a file, or all files of a folder in the order of their names.
fn add(path: &Path, name: &Path, state: &mut Vec<u8>) -> io::Result<()> {
    if !path.is_dir() {
        state.extend(name.as_os_str().as_encoded_bytes());
        state.push(0);
        state.extend(sha256::digest(&fs::read(path)?));
        return Ok(());
    }
    for entry in sources_in(path)? {
        add(&path.join(&entry), &name.join(&entry), state)?;
    }
    Ok(())
}

/// The names in a folder, in order, without the files that tools write there.
pub(crate) fn sources_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if !BUILD_FOLDERS.iter().any(|folder| name == *folder) {
            names.push(PathBuf::from(name));
        }
    }
    names.sort();
    Ok(names)
}

const BUILD_FOLDERS: [&str; 8] =
    [".git", ".venv", ".zig-cache", "__pycache__", "node_modules", "target", "zig-out", "zig-pkg"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_changes_with_content_names_and_toolchain_and_with_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let fingerprint = |toolchain| of(&[dir.path().to_owned()], toolchain).unwrap();
        fs::write(dir.path().join("main.go"), "package main").unwrap();
        let first = fingerprint("go 1");
        fs::create_dir(dir.path().join("target")).unwrap();
        fs::write(dir.path().join("target/left"), "over").unwrap();
        assert_eq!(fingerprint("go 1"), first);
        assert_ne!(fingerprint("go 2"), first);
        fs::write(dir.path().join("main.go"), "package Main").unwrap();
        let second = fingerprint("go 1");
        assert_ne!(second, first);
        fs::rename(dir.path().join("main.go"), dir.path().join("other.go")).unwrap();
        assert_ne!(fingerprint("go 1"), second);
    }
}
