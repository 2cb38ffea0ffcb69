//! An HTTP server on loopback for tests.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request.
pub(crate) struct Request {
    /// The name of the host that it is for.
    pub(crate) host: String,
    /// The port of the server.
    pub(crate) port: u16,
}

/// Serves responses, one per connection; returns the port.
pub(crate) async fn serve(answer: impl Fn(&Request) -> String + Send + Sync + 'static) -> u16 {
    serve_after(std::future::ready(()), answer).await
}

/// Serves responses after this future. Connections wait until then.
pub(crate) async fn serve_after(
    ready: impl Future<Output = ()> + Send + 'static,
    answer: impl Fn(&Request) -> String + Send + Sync + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        ready.await;
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4096];
                let len = stream.read(&mut head).await.unwrap_or(0);
                let answer = answer(&Request::parse(&String::from_utf8_lossy(&head[..len]), port));
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

/// A response with this status, these header fields and this body.
pub(crate) fn response(status: u16, fields: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "HTTP/1.1 {status} x\r\nconnection: close\r\n{fields}content-length: {len}\r\n\r\n{body}"
    )
}

impl Request {
    fn parse(head: &str, port: u16) -> Self {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        Self { host: host.split(':').next().unwrap_or_default().to_owned(), port }
    }
}
