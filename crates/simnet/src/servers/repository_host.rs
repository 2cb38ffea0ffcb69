//! A server of sampled repositories: the methods of a PDS that fetch a repository or a part of it, and counts of the answers.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codec::Cid;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::archive_stream::CAR;
use super::http::{self, HttpRequest, HttpResponse, QueryParams, XrpcError, error, into_response};
use super::network::now;
use super::request_limits::{BeyondLimit, RequestLimits};
use super::spec::{RequestLimit, Server};
use crate::block::archive;
use crate::sampled_repositories::SampledRepository;

/// A server on loopback, which serves until it is dropped.
#[derive(Debug)]
pub struct RepositoryHost {
    url: String,
    hosted: Arc<Hosted>,
    task: JoinHandle<()>,
}

/// The answers that a host has sent for a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentAnswers {
    /// Number of answers.
    pub answers: u64,
    /// Bytes of their archives.
    pub archive_bytes: u64,
    /// Bytes of the paths and queries of their requests.
    pub request_bytes: u64,
}

/// The repositories by DID.
type Repositories = HashMap<String, (Arc<SampledRepository>, SentAnswers)>;

#[derive(Debug)]
struct Hosted {
    limits: Option<RequestLimits>,
    repositories: Mutex<Repositories>,
}

impl RepositoryHost {
    /// Starts a server on any free port, whose tasks run on `runtime`, with a limit on its requests.
    ///
    /// # Errors
    /// If the port cannot be opened.
    pub fn start(runtime: &Handle, limit: Option<RequestLimit>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://localhost:{}", listener.local_addr()?.port());
        let limits = limit.map(RequestLimits::of_one);
        let hosted = Arc::new(Hosted { limits, repositories: Mutex::default() });
        let _inside = runtime.enter();
        let task = runtime.spawn(listen(TcpListener::from_std(listener)?, hosted.clone()));
        Ok(Self { url, hosted, task })
    }

    /// The URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Serves a repository.
    pub fn add(&self, repository: Arc<SampledRepository>) {
        let did = repository.account().did().to_owned();
        lock(&self.hosted).insert(did, (repository, SentAnswers::default()));
    }

    /// Ends the service of a repository, and returns the counts of its answers.
    pub fn remove(&self, did: &str) -> SentAnswers {
        lock(&self.hosted).remove(did).map(|(_, sent)| sent).unwrap_or_default()
    }
}

impl Drop for RepositoryHost {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, hosted: Arc<Hosted>) {
    loop {
        // Accepting fails when file descriptors run out, for example, and may succeed later.
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, hosted.clone()))),
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn serve(stream: TcpStream, hosted: Arc<Hosted>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let response = limited(&hosted).unwrap_or_else(|| into_response(answer(&hosted, &request)));
        async move { Ok::<HttpResponse, io::Error>(response) }
    });
    // The client closes its connections.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The answer to a request beyond the limit.
fn limited(hosted: &Hosted) -> Option<HttpResponse> {
    match hosted.limits.as_ref()?.take(Server::Pds(0)) {
        Err(BeyondLimit::Stated(seconds)) => {
            Some(http::too_many_requests(seconds, now() / 1_000_000))
        }
        _ => None,
    }
}

fn answer(hosted: &Hosted, request: &HttpRequest) -> Result<HttpResponse, XrpcError> {
    let query = QueryParams::of(request);
    let did = query.required("did")?;
    let repository = lock(hosted).get(did).map(|(repository, _)| repository.clone());
    let repository = repository.ok_or_else(|| error(400, "RepoNotFound", did))?;
    let method = request.uri().path().strip_prefix("/xrpc/com.atproto.sync.");
    let archive = match method {
        Some("getLatestCommit") => None,
        Some("getRecord") => {
            let (collection, rkey) = (query.required("collection")?, query.required("rkey")?);
            Some(repository.record_proof(&format!("{collection}/{rkey}")))
        }
        Some("getBlocks") => Some(blocks(&repository, &query)?),
        Some("getRepo") => Some(repository.export_car()),
        _ => return Err(error(501, "MethodNotImplemented", "Method Not Implemented")),
    };
    if let Some((_, sent)) = lock(hosted).get_mut(did) {
        sent.answers += 1;
        sent.archive_bytes += archive.as_ref().map_or(0, |archive| archive.len() as u64);
        let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
        sent.request_bytes += target as u64;
    }
    Ok(match archive {
        Some(archive) => http::bytes(200, CAR, archive),
        None => {
            let (cid, rev) = (repository.head().cid.to_string(), repository.rev().to_string());
            http::json(200, &json!({ "cid": cid, "rev": rev }))
        }
    })
}

/// An archive of the requested blocks, without roots.
fn blocks(repository: &SampledRepository, query: &QueryParams) -> Result<Vec<u8>, XrpcError> {
    let block = |text: &str| {
        let cid: Option<Cid> = text.parse().ok();
        let block = cid.and_then(|cid| Some((cid, repository.block(&cid)?)));
        block.ok_or_else(|| error(400, "BlockNotFound", &format!("Could not find cid: {text}")))
    };
    let blocks: Vec<(Cid, Vec<u8>)> = query.all("cids").map(block).collect::<Result<_, _>>()?;
    Ok(archive(&[], blocks.iter().map(|(cid, data)| (cid, &data[..]))))
}

fn lock(hosted: &Hosted) -> MutexGuard<'_, Repositories> {
    hosted.repositories.lock().unwrap_or_else(PoisonError::into_inner)
}
