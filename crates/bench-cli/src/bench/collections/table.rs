//! The table of `wireproof bench collections`.

use serde::Serialize;
use simnet::sampled_repositories::Shape;

use super::fetched::{Cost, Fetched};
use super::paced::PacedTime;
use crate::output;

/// The report of a measurement.
#[derive(Debug, Serialize)]
pub(super) struct CollectionsResults {
    /// Of all repositories.
    pub(super) total: Costs,
    /// Of the repositories of each shape.
    shapes: Vec<Costs>,
    /// The whole repository if the root is in layer 2 or below, of all repositories.
    by_root_layer: OtherRule,
    /// Microseconds of a proof, for each of its nodes.
    pub(super) proof_micros_per_node: f64,
    /// Bytes of the paths and queries of all requests.
    request_bytes: u64,
    /// The time under the limit of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    paced: Option<PacedTime>,
}

/// The costs of some repositories.
#[derive(Debug, Serialize)]
pub(super) struct Costs {
    name: &'static str,
    repositories: usize,
    /// Bytes of the whole archives.
    whole_bytes: u64,
    /// Bytes of the answers.
    pub(super) received_bytes: u64,
    /// The received bytes of all, as a multiple of the whole archives.
    pub(super) ratio: f64,
    /// The greatest multiple of one repository.
    pub(super) worst_ratio: f64,
    pub(super) median_requests: u64,
    requests_of_99_percent: u64,
    most_requests: u64,
    /// Repositories that were fetched whole.
    whole: usize,
}

/// The costs of all repositories under the rule of the root's layer.
#[derive(Debug, Serialize)]
struct OtherRule {
    #[serde(flatten)]
    costs: Costs,
    /// Repositories of which it fetches the whole, and ours does not: their number, their whole bytes, and the bytes that ours received.
    whole_here_only: usize,
    whole_here_only_bytes: u64,
    whole_here_only_received: u64,
}

impl CollectionsResults {
    pub(super) fn new(fetched: &[Fetched], paced: Option<PacedTime>) -> Self {
        let of_shape = |shape: Shape| {
            let of_shape = || fetched.iter().filter(|fetched| fetched.shape == shape);
            let costs = of_shape().map(Fetched::cost);
            of_shape().next().map(|_| Costs::new(shape.name(), costs))
        };
        let nodes: u64 = fetched.iter().map(|fetched| fetched.nodes).sum();
        let proof_seconds: f64 =
            fetched.iter().map(|fetched| fetched.proof_time.as_secs_f64()).sum();
        Self {
            total: Costs::new("all", fetched.iter().map(Fetched::cost)),
            shapes: Shape::ALL.into_iter().filter_map(of_shape).collect(),
            by_root_layer: OtherRule::new(fetched),
            proof_micros_per_node: proof_seconds * 1e6 / nodes.max(1) as f64,
            request_bytes: fetched.iter().map(|fetched| fetched.request_bytes).sum(),
            paced,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let header = [
            "repositories",
            "number",
            "whole, MB",
            "received, MB",
            "ratio",
            "worst ratio",
            "requests: median, 99 %, most",
            "fetched whole",
        ];
        let costs = self.shapes.iter().chain([&self.total]).map(Costs::row);
        let table = output::table(header, costs.chain([self.by_root_layer.costs.row()]));
        let OtherRule { whole_here_only, whole_here_only_bytes, whole_here_only_received, .. } =
            self.by_root_layer;
        format!(
            "{table}\n{whole_here_only} repositories with a root in layer 2 or below are whole only in the last row: {} MB there, {} MB in ours\n\
             requests sent: {} MB of paths and queries\n\
             proofs: {:.1} µs a node\n{}",
            megabytes(whole_here_only_bytes),
            megabytes(whole_here_only_received),
            megabytes(self.request_bytes),
            self.proof_micros_per_node,
            self.paced.as_ref().map(PacedTime::to_text).unwrap_or_default(),
        )
    }
}

impl Costs {
    fn new(name: &'static str, costs: impl Iterator<Item = Cost>) -> Self {
        let costs: Vec<Cost> = costs.collect();
        let whole_bytes = costs.iter().map(|cost| cost.whole_bytes).sum();
        let received_bytes = costs.iter().map(|cost| cost.received).sum();
        let requests = Requests::new(costs.iter().map(|cost| cost.requests));
        Self {
            name,
            repositories: costs.len(),
            whole_bytes,
            received_bytes,
            ratio: received_bytes as f64 / whole_bytes as f64,
            worst_ratio: costs.iter().map(Cost::ratio).fold(0.0, f64::max),
            median_requests: requests.at(50),
            requests_of_99_percent: requests.at(99),
            most_requests: requests.at(100),
            whole: costs.iter().filter(|cost| cost.is_whole).count(),
        }
    }

    fn row(&self) -> [String; 8] {
        [
            self.name.to_owned(),
            self.repositories.to_string(),
            megabytes(self.whole_bytes),
            megabytes(self.received_bytes),
            format!("1/{:.1}", 1.0 / self.ratio),
            format!("{:.3}", self.worst_ratio),
            format!(
                "{}, {}, {}",
                self.median_requests, self.requests_of_99_percent, self.most_requests
            ),
            self.whole.to_string(),
        ]
    }
}

impl OtherRule {
    fn new(fetched: &[Fetched]) -> Self {
        let whole_here_only =
            || fetched.iter().filter(|fetched| fetched.is_low() && !fetched.is_whole);
        let costs = fetched.iter().map(Fetched::cost_by_root_layer);
        Self {
            costs: Costs::new("all, whole if the root is in layer 2 or below", costs),
            whole_here_only: whole_here_only().count(),
            whole_here_only_bytes: whole_here_only()
                .map(|of| of.cost_by_root_layer().received)
                .sum(),
            whole_here_only_received: whole_here_only().map(|of| of.received).sum(),
        }
    }
}

/// Numbers of requests in order.
struct Requests(Vec<u64>);

impl Requests {
    fn new(requests: impl Iterator<Item = u64>) -> Self {
        let mut requests: Vec<u64> = requests.collect();
        requests.sort_unstable();
        Self(requests)
    }

    /// The number that this share of repositories, in percent, does not exceed.
    fn at(&self, percent: usize) -> u64 {
        let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(index).copied().unwrap_or(0)
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
