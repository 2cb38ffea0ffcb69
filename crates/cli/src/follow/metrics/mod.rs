//! What does Prometheus get? A page of text at `/metrics`, for this machine alone.

mod series;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::watch::Watch;
use crate::failure::Failure;
use series::Series;

/// The page, and where it is to be had.
pub(super) struct Metrics {
    listener: TcpListener,
    registry: Registry,
}

impl Metrics {
    /// Takes the address, which must be of this machine: what is counted is nobody else's business.
    pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
        if !address.ip().is_loopback() {
            let what = format!("--metrics {address}: not an address of this machine");
            return Err(Failure::Usage(what));
        }
        let failed = |error| Failure::Local(format!("--metrics {address}: {error}"));
        TcpListener::bind(address).await.map_err(failed)
    }

    /// Tells of `watch` to whoever asks at `listener`.
    pub(super) fn new(listener: TcpListener, watch: Arc<Watch>) -> Self {
        let mut registry = Registry::with_prefix("wireproof");
        registry.register_collector(Box::new(Series(watch)));
        Self { listener, registry }
    }

    /// Answers for ever.
    pub(super) async fn serve(self) -> Infallible {
        let registry = Arc::new(self.registry);
        loop {
            // What fails here is one connection; the next one may not.
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let registry = Arc::clone(&registry);
            let service = service_fn(move |request| {
                let answer = answer(&request, &registry);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).keep_alive(false);
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    }
}

fn answer<B>(request: &Request<B>, registry: &Registry) -> Response<Full<Bytes>> {
    if request.uri().path() != "/metrics" {
        return with_status(StatusCode::NOT_FOUND);
    }
    if request.method() != Method::GET {
        return with_status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let mut page = String::new();
    if text::encode(&mut page, registry).is_err() {
        return with_status(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let mut response = Response::new(Full::from(page));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}

fn with_status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
