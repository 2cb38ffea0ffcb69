//! A connection that can end at any byte.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes on their way, as many as [`Tap`] lets through.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    tap: Arc<Tap>,
}

/// How many bytes may still go out.
#[derive(Debug)]
pub(super) struct Tap {
    written: AtomicU64,
    limit: AtomicU64,
    was_reached: AtomicBool,
}

impl Tap {
    /// One that lets everything through.
    pub(super) fn new() -> Arc<Self> {
        let (written, limit) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Arc::new(Self { written, limit, was_reached: AtomicBool::new(false) })
    }

    /// Lets so many more bytes through, and then fails.
    pub(super) fn cut_after(&self, bytes: u64) {
        self.limit.store(self.written.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Whether something was held back.
    pub(super) fn was_reached(&self) -> bool {
        self.was_reached.load(Ordering::Relaxed)
    }

    fn allowance(&self) -> u64 {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.written.load(Ordering::Relaxed))
    }
}

impl Wire {
    pub(super) fn new(stream: TcpStream, tap: Arc<Tap>) -> Self {
        Self { stream, tap }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let allowed = bytes.len().min(usize::try_from(self.tap.allowance()).unwrap_or(usize::MAX));
        if allowed == 0 && !bytes.is_empty() {
            self.tap.was_reached.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(context, &bytes[..allowed]);
        if let Poll::Ready(Ok(written)) = outcome {
            self.tap.written.fetch_add(written as u64, Ordering::Relaxed);
        }
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
