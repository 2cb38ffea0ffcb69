//! A receiver of webhooks that accepts every request at once.
//!
//! ```text
//! webhook_receiver 127.0.0.1:8080
//! ```

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).expect("an address");
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(accept));
        tokio::spawn(connection);
    }
}

/// Reads the body and answers 200.
async fn accept(mut request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    while let Some(Ok(_)) = request.body_mut().frame().await {}
    Ok(Response::new(Empty::new()))
}
