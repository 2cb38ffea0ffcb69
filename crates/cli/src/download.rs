//! Downloads of repositories into files that exist only whole, and that an interrupt removes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use wireproof::atproto::syntax::Did;
use wireproof::net::http::{HttpFault, Limits, Url};
use wireproof::net::xrpc::{self, FetchError, FetchedRepo, XrpcError, XrpcFault};

use crate::failure::Failure;
use crate::files;
use crate::interrupt::UnfinishedFile;
use crate::progress::ProgressLine;

/// The file that a download is written to.
pub(crate) struct Target {
    file: NamedTempFile,
    unfinished: UnfinishedFile,
    path: Option<PathBuf>,
}

/// A complete download.
pub(crate) enum Saved {
    /// A file that is removed with this value.
    Temporary { file: NamedTempFile, _unfinished: UnfinishedFile },
    /// The file at the path that was asked for.
    Kept(PathBuf),
}

impl Target {
    /// A file that becomes `path` when it is saved, or a temporary one.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self, Failure> {
        let file = match path {
            None => NamedTempFile::new().map_err(Failure::file(&std::env::temp_dir())),
            Some(path) => files::create_sibling(path),
        }?;
        let unfinished =
            UnfinishedFile::register(file.path()).map_err(Failure::file(file.path()))?;
        Ok(Self { unfinished, file, path: path.map(Path::to_owned) })
    }

    /// Completes the file.
    pub(crate) fn save(self) -> Result<Saved, Failure> {
        let Self { file, unfinished, path } = self;
        match path {
            None => Ok(Saved::Temporary { file, _unfinished: unfinished }),
            Some(path) => files::persist(file, &path).map(|()| Saved::Kept(path)),
        }
    }
}

impl Saved {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Temporary { file, .. } => file.path(),
            Self::Kept(path) => path,
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Downloads a repository, and shows the progress.
pub(crate) async fn repository(
    client: &xrpc::Client,
    host: &Url,
    did: Did<'_>,
    into: &mut impl Write,
    limits: &Limits,
) -> Result<FetchedRepo, Failure> {
    let mut line = ProgressLine::new();
    line.step(format!("requesting from {}", host.host_str().unwrap_or_default()));
    let mut stream = client.get_repo(host, did, None, limits).await.map_err(with_cure)?;
    while let Some(piece) = stream.next().await.map_err(with_cure)? {
        into.write_all(&piece).map_err(FetchError::Local)?;
        line.bytes(stream.host(), stream.received(), stream.stated_bytes());
    }
    into.flush().map_err(FetchError::Local)?;
    line.end();
    Ok(FetchedRepo { host: stream.origin().into(), bytes: stream.received() })
}

/// The failure of a download, with the option that changes the exceeded limit.
fn with_cure(error: XrpcError) -> Failure {
    let option = match &error.fault {
        XrpcFault::Http(HttpFault::TooLarge(_)) => "--max-bytes",
        XrpcFault::Http(HttpFault::Timeout(_)) => "--max-seconds",
        XrpcFault::Http(HttpFault::Idle(_)) => "--max-silent-seconds",
        XrpcFault::Http(HttpFault::TooSlow(_)) => "--min-rate",
        _ => return error.into(),
    };
    Failure::Network(format!("{error} (the limit of {option})"))
}
