//! The files of dead letters: one file that is being written, and full parts next to it, which are compressed with
//! gzip.
//!
//! Next to `refused-hook.ndjson` the parts are `refused-hook.ndjson.1.gz` and so on, the oldest first. A part is
//! renamed first, then compressed, then deleted, so that an end at any moment leaves every letter in one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use base::{crash_point, with_suffix};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::file_identity::identity;

/// The open file, and the limit of all its files together.
#[derive(Debug)]
pub(crate) struct LetterFiles {
    path: PathBuf,
    file: File,
    max_bytes: u64,
}

/// Why a letter is not written.
#[derive(Debug)]
pub(crate) enum LetterFault {
    Io(io::Error),
    /// The files have this many bytes together.
    Full(u64),
}

impl From<io::Error> for LetterFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl LetterFiles {
    /// Opens the file, or creates it, and compresses parts that the last process left.
    pub(crate) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let mut file = open(path)?;
        end_last_line(&mut file)?;
        for part in parts(path)?.iter().filter(|part| !part.is_compressed) {
            compress(&part.path)?;
        }
        Ok(Self { path: path.to_owned(), file, max_bytes })
    }

    /// Appends a line, which is on disk then. Files that were moved away since no longer count.
    pub(crate) fn append(&mut self, line: &[u8]) -> Result<(), LetterFault> {
        self.return_to_path()?;
        let mut len = self.file.metadata()?.len();
        if len > 0 && len + line.len() as u64 > MAX_PART_BYTES {
            self.begin_part()?;
            len = 0;
        }
        let used = bytes(&self.path)?;
        if used + line.len() as u64 > self.max_bytes {
            return Err(LetterFault::Full(used));
        }
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        crash_point("dead-letters/written");
        if written.is_err() {
            // Best effort: a part of a line is ended when the file is opened again.
            let _ = self.file.set_len(len);
        }
        Ok(written?)
    }

    /// Opens the file again if another one, or none, has its name.
    fn return_to_path(&mut self) -> io::Result<()> {
        let open_file = identity(&self.file.metadata()?);
        let is_here = fs::metadata(&self.path).is_ok_and(|found| identity(&found) == open_file);
        if !is_here {
            self.file = open(&self.path)?;
            end_last_line(&mut self.file)?;
        }
        Ok(())
    }

    /// Makes the file a part, and begins another one.
    fn begin_part(&mut self) -> io::Result<()> {
        let number = parts(&self.path)?.last().map_or(1, |part| part.number + 1);
        let part = with_suffix(&self.path, &format!(".{number}"));
        fs::rename(&self.path, &part)?;
        self.file = open(&self.path)?;
        compress(&part)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Size of the file and its parts in bytes.
pub(crate) fn bytes(path: &Path) -> io::Result<u64> {
    let of_file = fs::metadata(path).map_or(0, |found| found.len());
    Ok(of_file + parts(path)?.iter().map(|part| part.bytes).sum::<u64>())
}

/// A full part.
struct Part {
    number: u64,
    path: PathBuf,
    bytes: u64,
    is_compressed: bool,
}

/// The parts next to a file, the oldest first.
fn parts(path: &Path) -> io::Result<Vec<Part>> {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let Some(of_file) = name(path) else { return Ok(Vec::new()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let entry = entry?;
        let Some(name) = name(&entry.path()) else { continue };
        let (plain, is_compressed) =
            name.strip_suffix(COMPRESSED).map_or((&*name, false), |plain| (plain, true));
        let number = plain.strip_prefix(&*of_file).and_then(|name| name.strip_prefix('.'));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            let bytes = entry.metadata()?.len();
            found.push(Part { number, path: entry.path(), bytes, is_compressed });
        }
    }
    found.sort_by_key(|part| part.number);
    Ok(found)
}

/// Compresses a part, and deletes it then.
fn compress(part: &Path) -> io::Result<()> {
    let (compressed, temporary) = (with_suffix(part, COMPRESSED), with_suffix(part, ".tmp"));
    if !compressed.exists() {
        let mut encoder = GzEncoder::new(File::create(&temporary)?, Compression::default());
        io::copy(&mut File::open(part)?, &mut encoder)?;
        encoder.finish()?.sync_all()?;
        fs::rename(&temporary, &compressed)?;
    }
    fs::remove_file(part)
}

/// Ends a line that a crash cut off, so that the next one is not appended to it.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

const COMPRESSED: &str = ".gz";

/// Size at which the file becomes a part, in bytes.
pub(crate) const MAX_PART_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;

    /// The lines of all files, the oldest first.
    fn lines(path: &Path) -> Vec<String> {
        let mut text = String::new();
        for part in parts(path).unwrap() {
            let file = File::open(&part.path).unwrap();
            match part.is_compressed {
                true => GzDecoder::new(file).read_to_string(&mut text).unwrap(),
                false => { file }.read_to_string(&mut text).unwrap(),
            };
        }
        text += &fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn line(number: u64) -> Vec<u8> {
        format!("{number}{}\n", "x".repeat(1 << 20)).into_bytes()
    }

    #[test]
    fn a_full_file_becomes_a_compressed_part_and_no_line_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused-a.ndjson");
        let mut files = LetterFiles::open(&path, 64 << 20).unwrap();
        (0..40).for_each(|number| files.append(&line(number)).unwrap());
        assert_eq!(parts(&path).unwrap().len(), 2);
        assert!(bytes(&path).unwrap() < 17 << 20);
        let found: Vec<String> = (0..40).map(line).map(text).collect();
        assert!(lines(&path) == found);
    }

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    #[test]
    fn an_end_while_a_part_is_made_leaves_each_line_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused-a.ndjson");
        // Renamed and not compressed; compressed and not deleted; the compression broke off.
        fs::write(with_suffix(&path, ".1"), "1\n").unwrap();
        fs::write(with_suffix(&path, ".2"), "2\n").unwrap();
        compress(&with_suffix(&path, ".2")).unwrap();
        fs::write(with_suffix(&path, ".2"), "2\n").unwrap();
        fs::write(with_suffix(&path, ".3"), "3\n").unwrap();
        fs::write(with_suffix(&path, ".3.tmp"), "cut").unwrap();
        let mut files = LetterFiles::open(&path, 1 << 20).unwrap();
        files.append(b"4\n").unwrap();
        assert_eq!(lines(&path), ["1", "2", "3", "4"]);
        assert!(parts(&path).unwrap().iter().all(|part| part.is_compressed));
    }

    #[test]
    fn at_the_limit_nothing_is_written_until_files_are_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused-a.ndjson");
        let mut files = LetterFiles::open(&path, 10).unwrap();
        files.append(b"1234567\n").unwrap();
        assert!(matches!(files.append(b"89\n"), Err(LetterFault::Full(8))));
        let away = folder.path().join("away");
        fs::rename(&path, &away).unwrap();
        files.append(b"89\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "89\n");
        assert_eq!(fs::read_to_string(&away).unwrap(), "1234567\n");
    }

    #[test]
    fn the_files_of_other_consumers_are_no_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused-a.ndjson");
        for other in ["refused-a.ndjson.1.ndjson", "refused-ab.ndjson.1.gz", "refused-a.ndjson.x"] {
            fs::write(folder.path().join(other), "{}").unwrap();
        }
        LetterFiles::open(&path, 100).unwrap();
        assert_eq!(bytes(&path).unwrap(), 0);
    }
}
