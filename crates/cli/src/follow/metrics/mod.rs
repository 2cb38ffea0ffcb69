//! What does Prometheus get? A page of text at `/metrics`, for this machine alone.

mod hosts;
mod jetstream;
mod page;
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

pub(super) use jetstream::JetstreamSeries;
pub(super) use series::Series;

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

    /// Tells these series to whoever asks at `listener`, and a person where that is.
    pub(super) fn new(listener: TcpListener, series: impl Collector, status: &Status) -> Self {
        if let Ok(address) = listener.local_addr() {
            status.say(&format!("metrics at http://{address}/metrics"));
        }
        let mut registry = Registry::with_prefix("wireproof");
        registry.register_collector(Box::new(series));
        Self { listener, registry }
    }

    /// Answers for ever; if nobody may ask, is silent for ever.
    pub(super) async fn serve(metrics: Option<Self>) -> Infallible {
        match metrics {
            Some(metrics) => metrics.answer_all().await,
            None => std::future::pending().await,
        }
    }

    async fn answer_all(self) -> Infallible {
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
