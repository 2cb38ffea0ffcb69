//! A proxy in front of a server, which is out of service when a test says so.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A proxy on 127.0.0.1 for plain HTTP. Dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    service: Arc<watch::Sender<Service>>,
    task: JoinHandle<()>,
}

/// A proxy's treatment of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Forwards them.
    Forward,
    /// Answers every request by 503.
    Unavailable,
    /// Closes them.
    Closed,
}

impl Proxy {
    /// Starts a proxy for the server at `port` of 127.0.0.1.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own_port = listener.local_addr().expect("an address").port();
        let service = Arc::new(watch::Sender::new(Service::Forward));
        let (server, services) = (SocketAddr::from(([127, 0, 0, 1], port)), service.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, server, services.subscribe()));
            }
        });
        Self { port: own_port, service, task }
    }

    /// The URL.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Changes the service. Open connections are closed.
    pub fn set(&self, service: Service) {
        self.service.send_replace(service);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a connection until the service changes.
async fn serve(mut client: TcpStream, server: SocketAddr, mut service: watch::Receiver<Service>) {
    let current = *service.borrow_and_update();
    let forward = async {
        match current {
            Service::Forward => {
                let Ok(mut server) = TcpStream::connect(server).await else { return };
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
            Service::Unavailable => {
                // A request without a body fits in one read.
                let _ = client.read(&mut [0; 16 << 10]).await;
                let _ = client.write_all(UNAVAILABLE).await;
            }
            Service::Closed => {}
        }
    };
    tokio::select! {
        () = forward => {}
        _ = service.changed() => {}
    }
}

const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
