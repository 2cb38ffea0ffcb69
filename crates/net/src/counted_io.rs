//! A connection that counts its bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that counts its bytes.
#[derive(Debug)]
pub struct CountedIo<T> {
    inner: T,
    read: u64,
    written: u64,
}

impl<T> CountedIo<T> {
    /// A connection of which nothing is counted yet.
    pub const fn new(inner: T) -> Self {
        Self { inner, read: 0, written: 0 }
    }

    /// Number of bytes received.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// Number of bytes that the operating system has taken.
    pub const fn written(&self) -> u64 {
        self.written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CountedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.read += (buffer.filled().len() - before) as u64;
        outcome
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = &outcome {
            self.written += *written as u64;
        }
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
