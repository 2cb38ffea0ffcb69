//! A repository archive as a stream.

use std::io::{self, Write};

use bytes::Bytes;

use super::request::Response;
use super::{XrpcError, XrpcFault};
use crate::http::{HttpError, ResponseBody};

/// The archive that a server gives, piece by piece. Nothing is proved of it.
#[derive(Debug)]
pub struct RepoStream {
    method: &'static str,
    host: Box<str>,
    origin: Box<str>,
    body: ResponseBody,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedRepo {
    /// The origin of the host that sent it: scheme, host and port. After a redirect, of its target.
    pub host: Box<str>,
    /// How many bytes.
    pub bytes: u64,
}

/// Why an archive did not get to where it was to go.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server did not give it, or not all of it.
    #[error(transparent)]
    Remote(#[from] XrpcError),
    /// It could not be written.
    #[error("writing what was fetched: {0}")]
    Local(#[from] io::Error),
}

impl RepoStream {
    pub(super) fn new(method: &'static str, answer: Response) -> Self {
        Self { method, host: answer.host, origin: answer.origin, body: answer.body }
    }

    /// The host that gives it: behind a redirect, the one that it led to.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The origin of that host: scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How long it will be, if the server says so.
    pub fn stated_bytes(&self) -> Option<u64> {
        self.body.stated_bytes()
    }

    /// How many bytes have come.
    pub fn received(&self) -> u64 {
        self.body.received()
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// If the connection breaks or a limit is reached.
    pub async fn next(&mut self) -> Result<Option<Bytes>, XrpcError> {
        let piece = self.body.next().await;
        piece.map_err(|error| self.failed(error))
    }

    /// What is left of it.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn read_to_end(&mut self) -> Result<Bytes, XrpcError> {
        let whole = self.body.read_to_end().await;
        whole.map_err(|error| self.failed(error))
    }

    /// Writes what is left of it, piece by piece as it comes, and says how much that was.
    ///
    /// # Errors
    /// As [`next`](Self::next), or if it cannot be written.
    pub async fn write_to(
        &mut self,
        into: &mut (impl Write + ?Sized),
    ) -> Result<FetchedRepo, FetchError> {
        let before = self.received();
        while let Some(piece) = self.next().await? {
            into.write_all(&piece)?;
        }
        into.flush()?;
        Ok(FetchedRepo { host: self.origin().into(), bytes: self.received() - before })
    }

    #[cold]
    fn failed(&self, error: HttpError) -> XrpcError {
        XrpcError::new(&self.host, self.method, XrpcFault::Http(error.fault))
    }
}
