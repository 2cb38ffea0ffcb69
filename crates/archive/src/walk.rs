//! Lists the files of a local archive without following symbolic links.
//!
//! The target of a link belongs to somebody else: it is never listed, written or deleted.

use std::path::Path as FilePath;
use std::time::UNIX_EPOCH;
use std::{fs, io};

/// A file or object of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredObject {
    /// The path within the archive.
    pub(crate) path: String,
    /// Size in bytes.
    pub(crate) size: u64,
    /// When it was changed last, in milliseconds since 1970.
    pub(crate) modified_ms: i64,
}

/// The regular files below a folder, and the symbolic links, by path within the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    pub(crate) files: Vec<StoredObject>,
    pub(crate) links: Vec<String>,
}

/// Walks through a folder of an archive, by its path within the archive. One that does not exist is empty; one behind a link
/// has this link alone.
pub(crate) fn walk(root: &FilePath, folder: &str) -> io::Result<Walked> {
    walk_after(root, folder, "")
}

/// As [`walk`], without files whose path is not after this one: they are not looked at.
pub(crate) fn walk_after(root: &FilePath, folder: &str, after: &str) -> io::Result<Walked> {
    let mut walked = Walked::default();
    if let Some(link) = first_link(root, folder)? {
        walked.links.push(link);
        return Ok(walked);
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // No name of an archive is other than UTF-8.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = match entry.file_type() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                kind => kind?,
            };
            if kind.is_symlink() {
                walked.links.push(path);
            } else if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && *path > *after {
                walked.files.extend(stored_object(&entry, path)?);
            }
        }
    }
    walked.files.sort_by(|a, b| a.path.cmp(&b.path));
    walked.links.sort();
    Ok(walked)
}

/// The file of an entry; `None` if it was deleted meanwhile.
fn stored_object(entry: &fs::DirEntry, path: String) -> io::Result<Option<StoredObject>> {
    let metadata = match entry.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_ms = i64::try_from(modified.as_millis()).unwrap_or(i64::MAX);
    Ok(Some(StoredObject { path, size: metadata.len(), modified_ms }))
}

/// The first part of a path within an archive that is a symbolic link. The archive itself may be one.
pub(crate) fn first_link(root: &FilePath, path: &str) -> io::Result<Option<String>> {
    let mut place = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if !place.is_empty() {
            place.push('/');
        }
        place.push_str(part);
        match fs::symlink_metadata(root.join(&place)) {
            Ok(metadata) if metadata.is_symlink() => return Ok(Some(place)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_listed_and_links_are_named_and_not_followed() {
        let (archive, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("private.parquet"), "private").unwrap();
        let day = archive.path().join("events/day=2026-07-01");
        fs::create_dir_all(&day).unwrap();
        fs::write(day.join("a.parquet"), "rows").unwrap();
        symlink(other.path(), archive.path().join("events/day=2026-07-02")).unwrap();
        symlink(other.path().join("private.parquet"), day.join("b.parquet")).unwrap();
        symlink(archive.path(), day.join("circle")).unwrap();
        let walked = walk(archive.path(), "events").unwrap();
        let [file] = &walked.files[..] else { panic!("{walked:?}") };
        assert_eq!((&*file.path, file.size), ("events/day=2026-07-01/a.parquet", 4));
        assert_eq!(
            walked.links,
            [
                "events/day=2026-07-01/b.parquet",
                "events/day=2026-07-01/circle",
                "events/day=2026-07-02"
            ]
        );
        symlink(other.path(), archive.path().join("ops")).unwrap();
        let behind = walk(archive.path(), "ops/_delta_log").unwrap();
        assert_eq!(behind, Walked { files: Vec::new(), links: vec!["ops".to_owned()] });
        assert_eq!(walk(archive.path(), "records").unwrap(), Walked::default());
    }
}
