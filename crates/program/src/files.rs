//! Files by path: reading (`-` is standard input), writing, and replacing a file as a whole.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use base::crash_point;
use codec::wrapping::Wrapping;
use mapping::MappedFile;
use net::http_server::AccessToken;
use serde::Serialize;
use tempfile::{Builder, NamedTempFile};

use crate::failure::Failure;
use crate::standard_streams;

/// The bytes of a file.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, usize::MAX)
}

/// The bytes of a file, up to one more than `max`: enough to see that it is too long.
///
/// # Errors
/// If it cannot be read.
pub fn read_at_most(path: &Path, max: usize) -> Result<Vec<u8>, Failure> {
    if is_standard_stream(path) {
        let mut bytes = Vec::new();
        limited(standard_streams::stdin()?.lock(), max).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let read = || {
        let file = fs::File::open(path)?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len.min(max.saturating_add(1)))?;
        limited(file, max).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(Failure::file(path))
}

fn limited<R: Read>(reader: R, max: usize) -> io::Take<R> {
    reader.take((max as u64).saturating_add(1))
}

/// Whether the path is `-`.
pub fn is_standard_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// The token in a file of `option`.
///
/// # Errors
/// If it cannot be read, or is not a token.
pub fn read_token(path: &Path, option: &str) -> Result<AccessToken, Failure> {
    let text = read_secret_text(path)?;
    AccessToken::new(&text).map_err(|error| Failure::Usage(format!("{option}: {error}")))
}

/// The text of a file, without white space around it.
///
/// # Errors
/// If it cannot be read.
pub fn read_secret_text(path: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(read_at_most(path, MAX_SECRET_BYTES)?.trim_ascii()).into_owned())
}

/// Creates a file with a secret that only its owner can read, unless there is one.
///
/// # Errors
/// If it cannot be written.
pub fn create_secret(path: &Path, make: impl FnOnce() -> String) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    // As a whole: another process sees no file, or all of it. Its permissions suit a secret.
    let create = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = Builder::new().prefix(".wireproof-").tempfile_in(folder)?;
        writeln!(file, "{}", make())?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(path) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    };
    if path.exists() { Ok(()) } else { create().map_err(Failure::file(path)) }
}

/// Reads a JSON document, up to one byte more than `max`.
///
/// # Errors
/// If it cannot be read, or is wrapped.
pub fn read_document(path: &Path, max: usize) -> Result<Vec<u8>, Failure> {
    let bytes = read_at_most(path, max)?;
    refuse_wrapping(name(path), &bytes)?;
    Ok(bytes)
}

/// Maps an archive or a file of frames; standard input is read.
///
/// # Errors
/// If it cannot be read, or is wrapped.
pub fn map(path: &Path) -> Result<MappedFile, Failure> {
    let file = if is_standard_stream(path) {
        read_at_most(path, MAX_ARCHIVE_BYTES)?.into()
    } else {
        MappedFile::open(path).map_err(Failure::file(path))?
    };
    refuse_wrapping(name(path), &file)?;
    Ok(file)
}

/// Opens an archive that is read as it comes: standard input, a pipe, a device. `None` for any other file, which
/// can be mapped.
///
/// # Errors
/// If it cannot be opened.
pub fn open_stream(path: &Path) -> Result<Option<Box<dyn Read>>, Failure> {
    if is_standard_stream(path) {
        return Ok(Some(Box::new(standard_streams::stdin()?.lock())));
    }
    let open = || {
        let file = fs::File::open(path)?;
        Ok(if file.metadata()?.is_file() { None } else { Some(Box::new(file) as Box<dyn Read>) })
    };
    open().map_err(Failure::file(path))
}

/// The name of a file for messages.
pub fn name(path: &Path) -> String {
    if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Refuses a file with a byte order mark or in compressed form, as no format that the commands read has them.
///
/// # Errors
/// If it has one.
pub fn refuse_wrapping(name: impl Display, bytes: &[u8]) -> Result<(), Failure> {
    match Wrapping::of(bytes) {
        Some(wrapping) => Err(Failure::Refused(format!("{name}: the file {wrapping}"))),
        None => Ok(()),
    }
}

/// Writes a file.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(Failure::file(path))
}

/// Writes an indented JSON document.
///
/// # Errors
/// If it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    write(path, to_json(value))
}

/// Replaces the file at `path` by an indented JSON document, as a whole.
///
/// # Errors
/// If it cannot be written.
pub fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    replace(path, &to_json(value))
}

/// Replaces the file at `path`, as a whole. Creates its folder.
///
/// # Errors
/// If it cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let mut file = create_sibling(path)?;
    file.write_all(bytes).map_err(Failure::file(path))?;
    persist(file, path)
}

/// An indented JSON document with a line feed at the end.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(value).expect("text, numbers, lists and maps");
    json.push(b'\n');
    json
}

/// Creates a folder and the folders above it.
///
/// # Errors
/// If it cannot be created.
pub fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(Failure::file(path))
}

/// A temporary file in the folder of `path`, to be renamed to `path`. It has the permissions of an ordinary new file.
///
/// # Errors
/// If it cannot be created.
pub fn create_sibling(path: &Path) -> Result<NamedTempFile, Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.prefix(".wireproof-").tempfile_in(folder.unwrap_or(Path::new(".")));
    file.map_err(Failure::file(path))
}

/// A temporary folder next to `path`.
///
/// # Errors
/// If it cannot be created.
pub fn create_sibling_folder(path: &Path) -> Result<tempfile::TempDir, Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let created = Builder::new().prefix(".wireproof-").tempdir_in(folder.unwrap_or(Path::new(".")));
    created.map_err(Failure::file(path))
}

/// Renames a temporary file to `path`.
///
/// # Errors
/// If it cannot be renamed.
pub fn persist(file: NamedTempFile, path: &Path) -> Result<(), Failure> {
    crash_point("file/complete");
    file.persist(path).map_err(|error| Failure::file(path)(error.error))?;
    crash_point("file/named");
    Ok(())
}

/// Maximum length of a token that is read; a valid one is shorter.
const MAX_SECRET_BYTES: usize = 4096;

/// Maximum length of an archive on standard input, where one that needs to be in memory as a whole is read: the limit
/// of archives.
const MAX_ARCHIVE_BYTES: usize = 4 << 30;
