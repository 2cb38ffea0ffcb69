//! A server on loopback that answers every connection with given bytes, and the client that it is for.

use std::cell::OnceCell;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::http::{Client, Limits, Url};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// Limits of one exchange: 4 KiB, and times that an exchange on loopback does not need.
pub(crate) const LIMITS: Limits = Limits {
    max_bytes: 4 << 10,
    max_time: Duration::from_secs(60),
    idle_timeout: Duration::from_secs(30),
    min_bytes_per_s: 0,
    progress_window: Duration::from_secs(30),
};

/// The server's port, and a client that connects only to loopback.
pub(crate) struct Loopback {
    runtime: Runtime,
    listener: TcpListener,
    port: u16,
    client: Client,
}

thread_local! {
    static LOOPBACK: OnceCell<Loopback> = const { OnceCell::new() };
}

/// Runs `exchange` with a client, while the server answers every connection with `answer` of the request's
/// head.
pub(crate) fn exchange<T>(
    answer: impl Fn(&str) -> Vec<u8>,
    exchange: impl AsyncFnOnce(&Client, &Url) -> T,
) -> T {
    LOOPBACK.with(|cell| {
        let loopback = cell.get_or_init(|| Loopback::start().expect("a port on loopback"));
        let url = format!("http://localhost:{}/", loopback.port).parse().expect("a URL");
        loopback.runtime.block_on(async {
            tokio::select! {
                biased;
                outcome = exchange(&loopback.client, &url) => outcome,
                () = loopback.serve(&answer) => unreachable!("the server does not end"),
            }
        })
    })
}

impl Loopback {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let port = listener.local_addr()?.port();
        let client = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns));
        Ok(Self { runtime, listener, port, client: client.map_err(io::Error::other)? })
    }

    async fn serve(&self, answer: &impl Fn(&str) -> Vec<u8>) {
        // Kept open to the end: closing with unread bytes would reset the connection, and the client could
        // lose its unread bytes.
        let mut answered = Vec::new();
        while let Ok((mut stream, _)) = self.listener.accept().await {
            // A client that closes early is one of the outcomes.
            let _ = respond(&mut stream, answer).await;
            answered.push(stream);
        }
        pending().await
    }
}

async fn respond(stream: &mut TcpStream, answer: &impl Fn(&str) -> Vec<u8>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream.write_all(&answer(&String::from_utf8_lossy(&head))).await?;
    stream.shutdown().await
}
