//! The Prometheus endpoint of a run: `/metrics` on a loopback address.

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
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::status::Status;
use crate::failure::Failure;

pub(super) use series::{FirehoseSeries, JetstreamCounts, JetstreamSeries};

/// The endpoint with its series.
pub(super) struct Metrics {
    listener: TcpListener,
    registry: Registry,
}

impl Metrics {
    /// Binds the address, if one is given. It must be a loopback address.
    pub(super) async fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Failure> {
        let Some(address) = address else { return Ok(None) };
        if !address.ip().is_loopback() {
            return Err(Failure::Usage(format!("--metrics {address}: not a loopback address")));
        }
        let failed = |error| Failure::Local(format!("--metrics {address}: {error}"));
        TcpListener::bind(address).await.map(Some).map_err(failed)
    }

    /// An endpoint at `listener`; prints its URL.
    pub(super) fn new(listener: TcpListener, series: impl Collector, status: &Status) -> Self {
        if let Ok(address) = listener.local_addr() {
            status.print(&format!("metrics at http://{address}/metrics"));
        }
        let mut registry = Registry::with_prefix("wireproof");
        registry.register_collector(Box::new(series));
        Self { listener, registry }
    }

    /// Serves requests forever; without an endpoint, waits forever.
    pub(super) async fn serve(metrics: Option<Self>) -> Infallible {
        match metrics {
            Some(metrics) => metrics.accept_all().await,
            None => std::future::pending().await,
        }
    }

    async fn accept_all(self) -> Infallible {
        let registry = Arc::new(self.registry);
        loop {
            // A failed accept concerns one connection.
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let registry = Arc::clone(&registry);
            let service = service_fn(move |request| {
                let response = respond(&request, &registry);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).keep_alive(false);
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    }
}

fn respond<B>(request: &Request<B>, registry: &Registry) -> Response<Full<Bytes>> {
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
