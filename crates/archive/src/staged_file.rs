//! Temporary files for content that gets its name once it is whole.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::uploads::MAX_UPLOAD;

/// A temporary file whose content is stored later.
#[derive(Debug)]
pub(crate) enum StagedFile {
    /// In the folder of an archive, to be renamed.
    Named(NamedTempFile),
    /// Without a name, to be uploaded: nothing is left of it when its process ends.
    Unnamed(File),
}

impl StagedFile {
    /// A file in the folder of temporary files of an archive.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        temporary_file(folder).map(Self::Named)
    }

    /// A file in `TMPDIR`.
    pub(crate) fn unnamed() -> io::Result<Self> {
        tempfile::tempfile().map(Self::Unnamed)
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> io::Result<u64> {
        self.file().metadata().map(|metadata| metadata.len())
    }

    /// The file at its start, and its name if it has one, which ends with the second value.
    pub(crate) fn into_file(self) -> io::Result<(File, Option<tempfile::TempPath>)> {
        let (mut file, path) = match self {
            Self::Named(named) => {
                let (file, path) = named.into_parts();
                (file, Some(path))
            }
            Self::Unnamed(file) => (file, None),
        };
        file.rewind()?;
        Ok((file, path))
    }

    fn file(&self) -> &File {
        match self {
            Self::Named(named) => named.as_file(),
            Self::Unnamed(file) => file,
        }
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// A temporary file, to be renamed, with the permissions of an ordinary new file. It is locked as long as its process lives.
pub(crate) fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder)?;
    // Without locks, a leftover is deleted a day later.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Deletes temporary files whose processes have ended. Other names, folders and links stay.
pub(crate) fn delete_abandoned(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let Ok(metadata) = entry.metadata() else { continue };
        if !is_ours || !metadata.is_file() {
            continue;
        }
        let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
        let age = age.unwrap_or_default();
        if age > MAX_UPLOAD || (age > MAX_UNLOCKED && is_unlocked(&entry.path())) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether no process has a file's lock.
fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Prefix of the names of temporary files: the default of `tempfile`.
const PREFIX: &str = ".tmp";

/// Time after its last write at which a file that nobody has locked is abandoned: a new one is locked at once.
const MAX_UNLOCKED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn age(file: &File, by: Duration) {
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    #[test]
    fn files_of_a_living_process_stay_and_abandoned_ones_are_deleted_a_minute_later() {
        let folder = tempfile::tempdir().unwrap();
        let minutes = 2 * MAX_UNLOCKED;
        let written = StagedFile::in_folder(folder.path()).unwrap();
        age(written.file(), minutes);
        let write = |name: &str, by| {
            let path = folder.path().join(name);
            age(&File::create(&path).unwrap(), by);
            path
        };
        let abandoned = write(".tmpAbandoned", minutes);
        let (new, other) = (write(".tmpNew", Duration::ZERO), write("notes", minutes));
        let locked_for_a_day = StagedFile::in_folder(folder.path()).unwrap();
        age(locked_for_a_day.file(), MAX_UPLOAD + minutes);
        delete_abandoned(folder.path()).unwrap();
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert!(!abandoned.exists() && new.exists() && other.exists());
        assert_eq!(left, 3, "and the file that is being written");
        drop((written, locked_for_a_day));
    }

    #[test]
    fn the_content_of_either_kind_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        for mut staged in
            [StagedFile::in_folder(folder.path()).unwrap(), StagedFile::unnamed().unwrap()]
        {
            staged.write_all(b"content").unwrap();
            assert_eq!(staged.size().unwrap(), 7);
            let (file, _path) = staged.into_file().unwrap();
            assert_eq!(io::read_to_string(file).unwrap(), "content");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
