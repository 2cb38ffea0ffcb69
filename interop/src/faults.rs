//! A proxy in front of an HTTP server that injects faults, one request at a time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A request that the proxy has received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The number of this request among the requests of the same method and path, from 0.
    pub repetition: u64,
}

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered by 503, and not carried out.
    Unavailable,
    /// It is never answered, and not carried out.
    Silence,
    /// It is carried out after this time.
    Delay(Duration),
    /// The connection is closed within the body of the response.
    CutBody,
    /// It is carried out, and the connection is closed instead of a response.
    LostAnswer,
}

type Plan = dyn Fn(&Request) -> Option<Fault> + Send + Sync;

/// A proxy on 127.0.0.1 for plain HTTP. Dropping it ends its connections.
#[derive(Debug)]
pub struct FaultyProxy {
    port: u16,
    injected: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl FaultyProxy {
    /// Starts a proxy for the server at `port` of 127.0.0.1, with the faults of `plan`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(
        port: u16,
        plan: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own_port = listener.local_addr().expect("an address").port();
        let injected = Arc::<AtomicU64>::default();
        let shared = Arc::new(Shared {
            server: SocketAddr::from(([127, 0, 0, 1], port)),
            plan: Box::new(plan),
            seen: Mutex::default(),
            injected: injected.clone(),
        });
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move { shared.serve(client).await });
            }
        });
        Self { port: own_port, injected, task }
    }

    /// The URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Number of faults so far.
    pub fn injected(&self) -> u64 {
        self.injected.load(Relaxed)
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    server: SocketAddr,
    plan: Box<Plan>,
    /// The requests so far, by method and path.
    seen: Mutex<HashMap<(String, String), u64>>,
    injected: Arc<AtomicU64>,
}

impl Shared {
    /// Serves one request, and closes the connection.
    async fn serve(&self, mut client: TcpStream) -> Option<()> {
        let (head, body) = read_request(&mut client).await?;
        let request = self.request(&head)?;
        let fault = (self.plan)(&request);
        self.injected.fetch_add(u64::from(fault.is_some()), Relaxed);
        match fault {
            Some(Fault::Unavailable) => return client.write_all(UNAVAILABLE).await.ok(),
            // The client closes the connection when it has waited enough.
            Some(Fault::Silence) => return client.read(&mut [0]).await.ok().map(drop),
            Some(Fault::Delay(delay)) => sleep(delay).await,
            Some(Fault::CutBody | Fault::LostAnswer) | None => {}
        }
        let response = self.forward(&head, &body).await?;
        let end = match fault {
            Some(Fault::LostAnswer) => 0,
            Some(Fault::CutBody) => {
                let body = find(&response, b"\r\n\r\n")? + 4;
                body + (response.len() - body) / 2
            }
            _ => response.len(),
        };
        client.write_all(&response[..end]).await.ok()?;
        client.shutdown().await.ok()
    }

    fn request(&self, head: &str) -> Option<Request> {
        let mut words = head.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let (method, path) = (method.to_owned(), target.split('?').next()?.to_owned());
        let mut seen = self.seen.lock().expect("no panic while it is held");
        let count = seen.entry((method.clone(), path.clone())).or_default();
        let repetition = *count;
        *count += 1;
        Some(Request { method, path, repetition })
    }

    /// The whole response to a request, whose connection the server closes.
    async fn forward(&self, head: &str, body: &[u8]) -> Option<Vec<u8>> {
        let mut server = TcpStream::connect(self.server).await.ok()?;
        let (line, headers) = head.split_once("\r\n")?;
        server
            .write_all(format!("{line}\r\nconnection: close\r\n{headers}").as_bytes())
            .await
            .ok()?;
        server.write_all(body).await.ok()?;
        let mut response = Vec::new();
        server.read_to_end(&mut response).await.ok()?;
        Some(response)
    }
}

/// The head of a request with the empty line after it, and its body, whose length the head states.
async fn read_request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head_len = loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        if client.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(head_len);
    let head = String::from_utf8(bytes).ok()?;
    let lower = head.to_ascii_lowercase();
    let stated = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
    let len = stated.map_or(Some(0), |len| len.trim().parse().ok())?;
    while body.len() < len {
        if client.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, body))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
