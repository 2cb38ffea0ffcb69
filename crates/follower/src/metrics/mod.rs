//! The HTTP endpoints of a run: `/metrics` for Prometheus, `/health` and `/ready` for supervisors.
//!
//! Anyone who reaches the address may read them. Requests have no effect, and connections, their time and their headers
//! are bounded.

mod series;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use delivery::{Bound, Outbox};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use net::firehose::{PauseSignal, StopSignal};
use net::http_server::{ConnectionLimits, is_local_host, response, text_response as one_line};
use net::server_places::{Connections, accept_tcp};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tracing::Level;

use super::stats::RunStats;
use super::status::Status;
use crate::failure::Failure;
use crate::messages;

pub use series::MoreSeries;
pub(super) use series::{FirehoseSeries, JetstreamCounts, JetstreamSeries};

/// The endpoints of a run, or of a server.
pub struct Metrics {
    listener: TcpListener,
    pages: Arc<Pages>,
}

/// The content of the endpoints.
struct Pages {
    registry: Registry,
    /// Why the run takes no events; `None` if it does.
    obstacle: Obstacle,
}

type Obstacle = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Whether a run takes events.
#[derive(Clone)]
pub(super) struct Readiness {
    pub(super) stats: Arc<RunStats>,
    pub(super) outbox: Option<Outbox>,
    pub(super) stop: StopSignal,
    pub(super) pause: PauseSignal,
}

impl Readiness {
    /// Why the run takes no events; `None` if it does.
    pub(super) fn obstacle(&self) -> Option<String> {
        let reached = self.outbox.as_ref().and_then(|outbox| outbox.status().reached);
        match reached {
            _ if self.stop.is_requested() => Some("stopping".to_owned()),
            _ if self.pause.is_set() => Some("paused".to_owned()),
            Some(bound) => Some(format!("the outbox is at its maximum {}", bound_text(bound))),
            None if !self.stats.is_connected() => Some("not connected to a host".to_owned()),
            None => None,
        }
    }
}

/// A bound of the outbox, with its option.
pub(super) fn bound_text(bound: Bound) -> &'static str {
    match bound {
        Bound::Events => "number of events (--outbox-events)",
        Bound::Bytes => "size (--outbox-bytes)",
        Bound::Age => "age (--outbox-hours)",
        _ => "bound",
    }
}

impl Metrics {
    /// Binds the address, if one is given.
    pub async fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Failure> {
        let Some(address) = address else { return Ok(None) };
        let failed = |error| Failure::Local(format!("--metrics {address}: {error}"));
        TcpListener::bind(address).await.map(Some).map_err(failed)
    }

    /// The endpoints at `listener`; prints their URL, and warns if it is not of this machine alone.
    pub(super) fn new(
        listener: TcpListener,
        series: impl Collector,
        readiness: Readiness,
        status: &Status,
    ) -> Self {
        if let Ok(address) = listener.local_addr() {
            status.print(&format!("metrics at http://{address}/metrics"));
            warning(address).iter().for_each(|text| status.print_warning(text));
        }
        Self::of_pages(listener, series, Box::new(move || readiness.obstacle()))
    }

    /// The endpoints of a server, which is not ready while there is an obstacle.
    pub fn of_server(
        listener: TcpListener,
        series: impl Collector,
        obstacle: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        if let Ok(address) = listener.local_addr() {
            messages::print(Level::INFO, &format!("metrics at http://{address}/metrics"));
            warning(address).iter().for_each(|text| messages::print(Level::WARN, text));
        }
        Self::of_pages(listener, series, Box::new(obstacle))
    }

    fn of_pages(listener: TcpListener, series: impl Collector, obstacle: Obstacle) -> Self {
        let mut registry = Registry::with_prefix("wireproof");
        registry.register_collector(Box::new(series));
        Self { listener, pages: Arc::new(Pages { registry, obstacle }) }
    }

    /// Serves requests forever; without an endpoint, waits forever.
    pub async fn serve(metrics: Option<Self>) -> Infallible {
        match metrics {
            Some(metrics) => metrics.accept_all().await,
            None => std::future::pending().await,
        }
    }

    async fn accept_all(self) -> Infallible {
        let connections = Connections::new(MAX_CONNECTIONS);
        let is_loopback = self.listener.local_addr().is_ok_and(is_loopback);
        let accept = || accept_tcp(&self.listener);
        loop {
            let (stream, place) = connections.accept(accept).await;
            let pages = self.pages.clone();
            tokio::spawn(async move {
                let respond = |request: Request<Incoming>| {
                    let is_local = !is_loopback || is_local_host(request.headers());
                    std::future::ready(if is_local {
                        pages.respond(&request)
                    } else {
                        one_line(
                            StatusCode::FORBIDDEN,
                            "expected an IP address or localhost as Host",
                        )
                    })
                };
                place.serve(stream, &ConnectionLimits::default(), respond).await;
            });
        }
    }
}

/// Why an address is named in a warning; `None` for one that only this machine reaches.
fn warning(address: SocketAddr) -> Option<String> {
    (!is_loopback(address)).then(|| {
        format!(
            "--metrics {address} is not a loopback address: any machine that reaches it can read the metrics, which name hosts and \
             destinations"
        )
    })
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

impl Pages {
    fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if !matches!(path, "/metrics" | "/health" | "/ready") {
            return one_line(StatusCode::NOT_FOUND, "not found");
        }
        if request.method() != Method::GET {
            return one_line(StatusCode::METHOD_NOT_ALLOWED, "use GET");
        }
        match (path, (self.obstacle)()) {
            ("/metrics", _) => self.metrics(),
            ("/ready", Some(why)) => one_line(StatusCode::SERVICE_UNAVAILABLE, &why),
            _ => one_line(StatusCode::OK, "ok"),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut page = String::new();
        if text::encode(&mut page, &self.registry).is_err() {
            return one_line(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written");
        }
        response(StatusCode::OK, OPEN_METRICS, page)
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_may_reach_is_named_in_a_warning() {
        let is_named = |address: &str| warning(address.parse().unwrap()).is_some();
        assert!(
            ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"]
                .iter()
                .all(|of| !is_named(of))
        );
        assert!(["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "192.0.2.1:1"].iter().all(|of| is_named(of)));
    }
}
