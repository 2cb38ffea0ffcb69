//! Sets `SIMNET_SOURCES`, a fingerprint of this crate's sources.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut hasher = DefaultHasher::new();
    add(Path::new("src"), &mut hasher)?;
    println!("cargo::rustc-env=SIMNET_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// Adds the paths and contents of all files of a folder, in the order of their names.
fn add(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let entries: io::Result<Vec<_>> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = entries?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hasher)?;
        } else {
            hasher.write(path.as_os_str().as_encoded_bytes());
            hasher.write(&fs::read(&path)?);
        }
    }
    Ok(())
}
