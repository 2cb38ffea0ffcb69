//! One collection of a repository, fetched from a server on loopback and proved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atproto::syntax::{CollectionPatternBuf, Did};
use crypto::PublicKey;
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::http::{self, Limits, Url};
use net::rate_limit::RateLimiter;
use net::xrpc::{Client, FetchedSlice};
use simnet::sampled_repositories::{SampledRepository, Shape, Spec, WANTED};
use simnet::servers::RepositoryHost;
use tokio::runtime::Runtime;
use verify::collections;
use verify::record::Options;

use crate::failure::Failure;
use crate::network;

/// The costs of a repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    pub(super) shape: Shape,
    /// Layer of the root.
    pub(super) root_layer: u8,
    /// Bytes of the whole archive.
    pub(super) whole_bytes: u64,
    /// Bytes of all answers.
    pub(super) received: u64,
    /// Bytes of the first answer, which has the root.
    pub(super) first_answer: u64,
    pub(super) requests: u64,
    /// Bytes of the paths and queries of the requests.
    pub(super) request_bytes: u64,
    /// Whether the whole repository was fetched.
    pub(super) is_whole: bool,
    /// Number of proved nodes.
    pub(super) nodes: u64,
    pub(super) proof_time: Duration,
}

/// Fetches collections from a server of its own, in one thread.
pub(super) struct Fetcher {
    host: RepositoryHost,
    url: Url,
    client: Client,
    wanted: [CollectionPatternBuf; 1],
    runtime: Runtime,
}

impl Fetcher {
    pub(super) fn start() -> Result<Self, Failure> {
        let runtime = network::runtime()?;
        let failed = |error: &dyn ToString| Failure::Local(error.to_string());
        let host = RepositoryHost::start(runtime.handle(), None)?;
        let url = host.url().parse().map_err(|error| failed(&error))?;
        let client = client(RateLimiter::new(Duration::ZERO))?;
        Ok(Self { host, url, client, wanted: wanted(), runtime })
    }

    /// Generates the repository of this number, fetches the collection and proves it.
    pub(super) fn fetch(&self, spec: &Spec, number: u64) -> Result<Fetched, Failure> {
        let repository = Arc::new(SampledRepository::generate(spec, number));
        let did = repository.account().did();
        self.host.add(repository.clone());
        let first_answer = repository.record_proof(&format!("{}/-", WANTED.nsid())).len() as u64;
        let account = Did::parse(did).expect("a generated DID");
        let limits = Limits { max_bytes: MAX_BYTES, ..Limits::REPOSITORY };
        let slice = self.client.fetch_collections(&self.url, account, &self.wanted, &limits);
        let slice = self.runtime.block_on(slice);
        let sent = self.host.remove(did);
        let wrong = |why: &dyn ToString| {
            Failure::Local(format!("repository {number}: {}", why.to_string()))
        };
        let slice = slice.map_err(|error| wrong(&error))?;
        if (sent.answers, sent.archive_bytes) != (slice.requests, slice.received) {
            let FetchedSlice { requests, received, .. } = slice;
            return Err(wrong(&format!("{sent:?}, but {requests} and {received} were counted")));
        }
        let key = PublicKey::from_did_key(&repository.account().key().did_key());
        let (key, began) = (key.map_err(|error| wrong(&error))?, Instant::now());
        let proof =
            collections::verify(&slice.archive, &self.wanted, Some(did), &key, &Options::default());
        let (proof_time, proof) = (began.elapsed(), proof.map_err(|error| wrong(&error))?);
        let (proved, wanted) = (proof.records().len(), repository.wanted_records());
        if proved != wanted {
            return Err(wrong(&format!("{proved} records are proved, of {wanted}")));
        }
        Ok(Fetched {
            shape: repository.shape(),
            root_layer: repository.tree().root_height(),
            whole_bytes: repository.archive_bytes(),
            received: slice.received,
            first_answer,
            requests: slice.requests,
            request_bytes: sent.request_bytes,
            is_whole: slice.whole.is_some(),
            nodes: proof.nodes().len() as u64,
            proof_time,
        })
    }
}

/// A client that connects to this machine only.
pub(super) fn client(limiter: RateLimiter) -> Result<Client, Failure> {
    let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns));
    let http = http.map_err(|error| Failure::Local(error.to_string()))?;
    Ok(Client::new(http).with_rate_limiter(limiter))
}

/// The wanted collection.
pub(super) fn wanted() -> [CollectionPatternBuf; 1] {
    [WANTED.nsid().parse().expect("the name of a collection")]
}

/// The bytes and requests that one repository takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) whole_bytes: u64,
    pub(super) received: u64,
    pub(super) requests: u64,
    pub(super) is_whole: bool,
}

impl Cost {
    /// The received bytes as a multiple of the whole archive.
    pub(super) fn ratio(&self) -> f64 {
        self.received as f64 / self.whole_bytes as f64
    }
}

impl Fetched {
    pub(super) fn cost(&self) -> Cost {
        let Self { whole_bytes, received, requests, is_whole, .. } = *self;
        Cost { whole_bytes, received, requests, is_whole }
    }

    /// Whether the root is so low that the other rule takes the whole repository.
    pub(super) fn is_low(&self) -> bool {
        self.root_layer <= LOW_ROOT
    }

    /// The cost under that rule: if the root is low, of the answer with the root and of the whole repository.
    pub(super) fn cost_by_root_layer(&self) -> Cost {
        let cost = self.cost();
        if !self.is_low() {
            return cost;
        }
        let received = self.first_answer + self.whole_bytes;
        Cost { received, requests: 2, is_whole: true, ..cost }
    }
}

/// The highest layer of a root whose repository is taken whole under the other rule.
const LOW_ROOT: u8 = 2;

/// More than any repository has.
const MAX_BYTES: u64 = 4 << 30;
