//! Where does what was fetched go? Into a file that nobody sees before it is whole, and that is gone in
//! the end, an interruption too, unless somebody wants it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};
use wireproof::atproto::syntax::Did;
use wireproof::net::http::{Limits, Url};
use wireproof::net::xrpc::{self, FetchError, FetchedRepo};

use crate::failure::Failure;
use crate::interrupt::Unfinished;
use crate::progress::ProgressLine;

/// A file to write to.
pub(crate) struct Place {
    file: NamedTempFile,
    unfinished: Unfinished,
    to: Option<PathBuf>,
}

/// A file that is whole.
pub(crate) enum Kept {
    /// For as long as this value lives.
    Meanwhile { file: NamedTempFile, _unfinished: Unfinished },
    /// Where it was wanted.
    Saved(PathBuf),
}

impl Place {
    /// A file that becomes `to`, or that nobody keeps.
    pub(crate) fn new(to: Option<&Path>) -> Result<Self, Failure> {
        let file = match to {
            None => NamedTempFile::new().map_err(Failure::file(&std::env::temp_dir())),
            Some(to) => beside(to).map_err(Failure::file(to)),
        }?;
        let unfinished = Unfinished::mind(file.path()).map_err(Failure::file(file.path()))?;
        Ok(Self { unfinished, file, to: to.map(Path::to_owned) })
    }

    /// Lets what was written be found.
    pub(crate) fn keep(self) -> Result<Kept, Failure> {
        match self.to {
            None => Ok(Kept::Meanwhile { file: self.file, _unfinished: self.unfinished }),
            Some(to) => match self.file.persist(&to) {
                Ok(_) => Ok(Kept::Saved(to)),
                Err(error) => Err(Failure::file(&to)(error.error)),
            },
        }
    }
}

/// A new file in the folder of `to`, which others may read as they may others.
fn beside(to: &Path) -> io::Result<NamedTempFile> {
    let folder = to.parent().filter(|folder| *folder != Path::new(""));
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(".wireproof-").tempfile_in(folder.unwrap_or(Path::new(".")))
}

impl Kept {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Meanwhile { file, .. } => file.path(),
            Self::Saved(path) => path,
        }
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Fetches the repository, and tells how far it is.
pub(crate) async fn fetch(
    client: &xrpc::Client,
    host: &Url,
    did: Did<'_>,
    into: &mut impl Write,
    limits: &Limits,
) -> Result<FetchedRepo, FetchError> {
    let mut line = ProgressLine::new();
    line.step(format!("asking {}", host.host_str().unwrap_or_default()));
    let mut stream = client.get_repo(host, did, None, limits).await?;
    while let Some(piece) = stream.next().await? {
        into.write_all(&piece)?;
        let (kib, message) = (stream.received() >> 10, format!("KiB from {}", stream.host()));
        match stream.stated_bytes() {
            Some(total) => line.at(message, kib, total >> 10),
            None => line.step(format!("{kib} {message}")),
        }
    }
    into.flush()?;
    line.end();
    Ok(FetchedRepo { host: stream.host().into(), bytes: stream.received() })
}
