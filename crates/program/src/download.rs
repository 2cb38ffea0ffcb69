//! Downloads of repositories: into files that exist only whole, and that an interrupt removes, or as readers.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use atproto::syntax::Did;
use bytes::{Buf, Bytes};
use net::http::{HttpFault, Limits, Url};
use net::xrpc::{self, FetchError, FetchedRepo, RepoStream, XrpcError, XrpcFault};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::files;
use crate::interrupt::UnfinishedFile;
use crate::network::Online;
use crate::progress::ProgressLine;

/// The file that a download is written to.
pub struct Target {
    file: NamedTempFile,
    unfinished: UnfinishedFile,
    path: Option<PathBuf>,
}

/// A complete download.
pub enum Saved {
    /// A file that is removed with this value.
    Temporary(NamedTempFile, UnfinishedFile),
    /// The file at the path that was asked for.
    Kept(PathBuf),
}

impl Target {
    /// A file that becomes `path` when it is saved, or a temporary one.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(path: Option<&Path>) -> Result<Self, Failure> {
        let file = match path {
            None => NamedTempFile::new().map_err(Failure::file(&std::env::temp_dir())),
            Some(path) => files::create_sibling(path),
        }?;
        let unfinished =
            UnfinishedFile::register(file.path()).map_err(Failure::file(file.path()))?;
        Ok(Self { unfinished, file, path: path.map(Path::to_owned) })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn save(self) -> Result<Saved, Failure> {
        let Self { file, unfinished, path } = self;
        match path {
            None => Ok(Saved::Temporary(file, unfinished)),
            Some(path) => files::persist(file, &path).map(|()| Saved::Kept(path)),
        }
    }
}

impl Saved {
    /// Where the file is now.
    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(file, _) => file.path(),
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

/// Downloads a repository, and shows the progress on `line`.
///
/// # Errors
/// If the host does not send it within the limits, or it cannot be written.
pub async fn repository(
    client: &xrpc::Client,
    host: &Url,
    did: Did<'_>,
    into: &mut impl Write,
    limits: &Limits,
    mut line: ProgressLine,
) -> Result<FetchedRepo, Failure> {
    line.step(format!("requesting from {}", host.host_str().unwrap_or_default()));
    let mut stream = client.get_repo(host, did, None, limits).await.map_err(download_failure)?;
    while let Some(piece) = stream.next().await.map_err(download_failure)? {
        into.write_all(&piece).map_err(FetchError::Local)?;
        line.bytes(stream.host(), stream.received(), stream.stated_bytes());
    }
    into.flush().map_err(FetchError::Local)?;
    line.end();
    Ok(stream.fetched())
}

/// A repository that is read while it is downloaded, with its progress shown.
pub struct DownloadReader<'r> {
    runtime: &'r Runtime,
    stream: RepoStream,
    line: ProgressLine,
    /// Received and not yet read.
    piece: Bytes,
    waited: Duration,
    /// Why the download ended early.
    failure: Option<XrpcError>,
}

impl<'r> DownloadReader<'r> {
    /// Requests a repository.
    ///
    /// # Errors
    /// If the host does not answer.
    pub fn start(
        online: &'r Online,
        host: &Url,
        did: Did<'_>,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let Online { network, runtime, .. } = online;
        let (mut line, since) = (online.progress_line(), Instant::now());
        line.step(format!("requesting from {}", host.host_str().unwrap_or_default()));
        let request = network.xrpc.get_repo(host, did, None, limits);
        let stream = runtime.block_on(request).map_err(download_failure)?;
        let (piece, waited) = (Bytes::new(), since.elapsed());
        Ok(Self { runtime, stream, line, piece, waited, failure: None })
    }

    /// Time spent waiting for the network.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The host and size of the content that was read.
    ///
    /// # Errors
    /// If the download ended early.
    pub fn finish(self) -> Result<FetchedRepo, Failure> {
        let Self { stream, line, failure, .. } = self;
        line.end();
        match failure {
            Some(error) => Err(download_failure(error)),
            None => Ok(stream.fetched()),
        }
    }

    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        let since = Instant::now();
        let piece = self.runtime.block_on(self.stream.next());
        self.waited += since.elapsed();
        let Self { stream, line, .. } = self;
        line.bytes(stream.host(), stream.received(), stream.stated_bytes());
        piece.map_err(|error| {
            self.failure = Some(error);
            io::Error::other("the download ended early")
        })
    }
}

impl Read for DownloadReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.next_piece()? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let len = self.piece.len().min(out.len());
        self.piece.copy_to_slice(&mut out[..len]);
        Ok(len)
    }
}

/// The failure of a download, with the option that changes the exceeded limit.
pub fn download_failure(error: XrpcError) -> Failure {
    let option = match &error.fault {
        XrpcFault::Http(HttpFault::TooLarge(_)) => "--max-bytes",
        XrpcFault::Http(HttpFault::Timeout(_)) => "--max-seconds",
        XrpcFault::Http(HttpFault::Idle(_)) => "--max-silent-seconds",
        XrpcFault::Http(HttpFault::TooSlow(_)) => "--min-rate",
        _ => return error.into(),
    };
    Failure::Network(format!("{error} (the limit of {option})"))
}
