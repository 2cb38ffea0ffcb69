//! The HTTP endpoints of PDSs and relays.

use std::sync::{Arc, Mutex, MutexGuard};

use atproto::syntax::Tid;
use bytes::Bytes;
use codec::Cid;
use hyper::header::HOST;
use serde_json::{Value, json};

use super::account_index::ListedAccount;
use super::altered_repository;
use super::archive_stream::{self, Coding};
use super::fault::{Fault, UNPOISONED};
use super::hosted_account::{AccountStatus, HostedAccount};
use super::http::{self, HttpRequest, HttpResponse, QueryParams, XrpcError, error, into_response};
use super::network::{NetworkState, lock};
use super::odd_list;
use super::spec::Server;
use crate::blob_account::BlobAccount;
use crate::time::DAY_MICROS;

/// The response of a PDS.
pub(super) fn pds_response(
    network: &Arc<NetworkState>,
    server: Server,
    request: &HttpRequest,
) -> HttpResponse {
    let (path, query) = (request.uri().path(), QueryParams::of(request));
    match path.strip_prefix("/xrpc/") {
        Some("_health") => http::json(200, &json!({ "version": "simnet" })),
        Some("com.atproto.identity.resolveHandle") => {
            into_response(resolve(network, server, &query))
        }
        Some(method) => {
            let coding = Coding::of(request);
            method_response(network, server, method, &query, coding).unwrap_or_else(not_a_method)
        }
        None if path == "/.well-known/atproto-did" => well_known(network, server, request),
        None => http::text(404, "Not Found"),
    }
}

/// The response for a method that the server does not have.
fn not_a_method() -> HttpResponse {
    error(501, "MethodNotImplemented", "Method Not Implemented").into_response()
}

/// The DID of the requested host name. On loopback all names have one address, so every PDS serves the
/// handles of all accounts.
fn well_known(network: &NetworkState, server: Server, request: &HttpRequest) -> HttpResponse {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    match did(network, server, name) {
        Some(did) => http::text(200, &did),
        None => http::text(404, "User not found"),
    }
}

fn resolve(
    network: &NetworkState,
    server: Server,
    query: &QueryParams,
) -> Result<HttpResponse, XrpcError> {
    let did = did(network, server, query.required("handle")?);
    let did = did.ok_or_else(|| error(400, "InvalidRequest", "Unable to resolve handle"))?;
    Ok(http::json(200, &json!({ "did": did })))
}

fn did(network: &NetworkState, server: Server, handle: &str) -> Option<String> {
    let did = network.did_by_handle(handle)?;
    match network.faults.inject(server, Fault::WrongHandle) {
        Some(_) => Some("did:plc:ewvi7nxzyoun6zhxrhs64oiz".to_owned()),
        None => Some(did),
    }
}

/// The response of a relay.
pub(super) fn relay_response(
    network: &Arc<NetworkState>,
    server: Server,
    request: &HttpRequest,
) -> HttpResponse {
    match request.uri().path().strip_prefix("/xrpc/") {
        Some("_health") => http::json(200, &json!({ "status": "ok" })),
        Some(method) => {
            let query = QueryParams::of(request);
            let coding = Coding::of(request);
            method_response(network, server, method, &query, coding).unwrap_or_else(not_a_method)
        }
        None => http::text(404, "Not Found"),
    }
}

/// The response to a method, for the accounts that `server` knows; `None` if it has no such method.
fn method_response(
    network: &Arc<NetworkState>,
    server: Server,
    method: &str,
    query: &QueryParams,
    coding: Coding,
) -> Option<HttpResponse> {
    let endpoints = Endpoints { network, server };
    let outcome = match (server, method) {
        (_, "com.atproto.sync.getLatestCommit") => endpoints.latest_commit(query),
        (_, "com.atproto.sync.getRepoStatus") => endpoints.status(query),
        (_, "com.atproto.sync.listRepos") => endpoints.list_repos(query),
        (Server::Pds(_), "com.atproto.sync.getRepo") => endpoints.repository(query, coding),
        (Server::Pds(_), "com.atproto.sync.getRecord") => endpoints.record(query),
        (Server::Pds(_), "com.atproto.sync.getBlocks") => endpoints.blocks(query),
        (Server::Pds(_), "com.atproto.sync.getBlob") => endpoints.blob(query),
        (Server::Pds(_), "com.atproto.sync.listBlobs") => endpoints.list_blobs(query),
        (Server::Relay(_), "com.atproto.sync.getRepo") => endpoints.repository_elsewhere(query),
        (Server::Relay(_), "com.atproto.sync.listReposByCollection") => {
            endpoints.list_by_collection(query)
        }
        (Server::Relay(_), "com.atproto.sync.listHosts") => endpoints.hosts(query),
        (Server::Relay(_), "com.atproto.sync.getHostStatus") => endpoints.host_status(query),
        _ => return None,
    };
    Some(into_response(outcome))
}

/// The endpoints of one server.
struct Endpoints<'n> {
    network: &'n Arc<NetworkState>,
    server: Server,
}

impl Endpoints<'_> {
    fn latest_commit(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let account = self.find(query)?;
        let account = active(lock(&account))?;
        let cid = account.repository.get().head().cid;
        let rev = self.stated_rev(&account);
        Ok(ok(json!({ "cid": cid.to_string(), "rev": rev.to_string() })))
    }

    fn status(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let injected = |fault| self.network.faults.inject(self.server, fault).is_some();
        let account = match self.find(query) {
            Err(_) if injected(Fault::UnknownActive) => {
                return Ok(ok(json!({ "did": query.required("did")?, "active": true })));
            }
            account => account?,
        };
        let account = lock(&account);
        let did = if injected(Fault::StatusOther) { OTHER_DID } else { account.did() };
        let mut response = json!({ "did": did, "active": account.status == AccountStatus::Active });
        match account.status.as_str() {
            Some(word) => response["status"] = word.into(),
            None => response["rev"] = self.stated_rev(&account).to_string().into(),
        }
        Ok(ok(response))
    }

    /// The revision that the server states.
    fn stated_rev(&self, account: &HostedAccount) -> Tid {
        let rev = account.repository.rev();
        match self.network.faults.inject(self.server, Fault::OldRev) {
            Some(days) => Tid::new(rev.micros() - days * DAY_MICROS, rev.clock_id()),
            None => rev,
        }
    }

    fn list_repos(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let limit = query.limit(500, 1000)?;
        let (mut repos, cursor) = self.page(query.offset()?, limit, |number| {
            self.network.listed_account(number).map(list_entry)
        });
        if let (None, Server::Pds(pds)) = (cursor, self.server) {
            repos.extend(self.listed_guests(pds));
        }
        Ok(self.list("repos", repos, cursor))
    }

    /// A page of a list.
    fn list(&self, name: &str, entries: Vec<Value>, cursor: Option<usize>) -> HttpResponse {
        let mut entries = match self.network.faults.inject(self.server, Fault::OddEntries) {
            Some(_) => odd_list::with_odd_entries(entries),
            None => entries,
        };
        let cursor = if name == "repos" { self.alter(&mut entries, cursor) } else { cursor };
        ok(with_cursor(json!({ name: entries }), cursor))
    }

    /// Alters a page of accounts by the enabled faults; returns the next position.
    fn alter(&self, entries: &mut Vec<Value>, cursor: Option<usize>) -> Option<usize> {
        let injected = |fault| self.network.faults.inject(self.server, fault);
        if injected(Fault::ListRepeats).is_some() {
            entries.extend(entries.first().cloned());
        }
        if injected(Fault::ListUnserved).is_some() {
            entries.push(json!({ "did": OTHER_DID, "head": GUEST_HEAD, "rev": GUEST_REV }));
        }
        if injected(Fault::ListOmits).is_some() && !entries.is_empty() {
            entries.remove(0);
        }
        if let Some(days) = injected(Fault::ListOldRev) {
            entries.iter_mut().for_each(|entry| make_older(entry, days));
        }
        if injected(Fault::ListActive).is_some() {
            entries.iter_mut().for_each(|entry| entry["active"] = true.into());
        }
        if injected(Fault::ListStuck).is_some() { Some(0) } else { cursor }
    }

    /// The guests of a PDS that have a repository; the host's statements about it fit no repository.
    fn listed_guests(&self, pds: usize) -> Vec<Value> {
        let guests = self.network.guests().read().expect(UNPOISONED);
        let mut dids: Vec<&String> = guests
            .iter()
            .filter(|(_, guest)| guest.pds == pds && guest.archive.is_some())
            .map(|(did, _)| did)
            .collect();
        dids.sort();
        let entry = |did: &String| json!({ "did": did, "head": GUEST_HEAD, "rev": GUEST_REV });
        dids.into_iter().map(entry).collect()
    }

    fn list_by_collection(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let collection = query.required("collection")?;
        let limit = query.limit(500, 2000)?;
        let (repos, cursor) = self.page(query.offset()?, limit, |number| {
            let account = self.network.account(number)?;
            let account = lock(&account);
            let has = account.status == AccountStatus::Active && account.has_collection(collection);
            has.then(|| json!({ "did": account.did() }))
        });
        Ok(self.list("repos", repos, cursor))
    }

    /// Up to `limit` results of `select` for the numbers of accounts from `position` on, and the next position.
    fn page(
        &self,
        position: usize,
        limit: usize,
        select: impl Fn(usize) -> Option<Value>,
    ) -> (Vec<Value>, Option<usize>) {
        let mut page = Vec::new();
        let mut position = position;
        while page.len() < limit {
            let Some(host) = self.network.host_of(position) else { return (page, None) };
            page.extend(self.knows(host).then(|| select(position)).flatten());
            position += 1;
        }
        (page, Some(position))
    }

    fn repository(&self, query: &QueryParams, coding: Coding) -> Result<HttpResponse, XrpcError> {
        let did = query.required("did")?;
        if let Some((archive, is_slow)) = self.guest_archive(did) {
            return Ok(if is_slow {
                archive_stream::slow_endless_response(archive)
            } else {
                archive_stream::response(self.network, self.server, archive, coding)
            });
        }
        let account = self.find(query)?;
        let account = lock(&account);
        let injected = |fault| self.network.faults.inject(self.server, fault).is_some();
        let is_served = account.status != AccountStatus::Active && injected(Fault::ServesInactive);
        let account = if is_served { account } else { active(account)? };
        if injected(Fault::RefusesRepo) {
            return Err(error(400, "RepoNotFound", "Could not find repo"));
        }
        let repository = account.repository.get().into_owned();
        let archive = altered_repository::archive(self.network, self.server, repository);
        Ok(archive_stream::response(self.network, self.server, archive, coding))
    }

    /// The repository of a guest, and whether its host is slow.
    fn guest_archive(&self, did: &str) -> Option<(Bytes, bool)> {
        let guests = self.network.guests().read().expect(UNPOISONED);
        let guest = guests.get(did)?;
        Some((guest.archive.clone()?.into(), guest.slow_host.is_some()))
    }

    /// The number of the PDS of a guest with a repository.
    fn guest_pds(&self, did: &str) -> Option<usize> {
        let guests = self.network.guests().read().expect(UNPOISONED);
        guests.get(did).filter(|guest| guest.archive.is_some()).map(|guest| guest.pds)
    }

    /// The account of a guest with blobs.
    fn guest_blobs(&self, did: &str) -> Option<Arc<BlobAccount>> {
        self.network.guests().read().expect(UNPOISONED).get(did)?.blobs.clone()
    }

    fn repository_elsewhere(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let did = query.required("did")?;
        let host = match self.guest_pds(did) {
            Some(pds) => pds,
            None => active(lock(&*self.find(query)?))?.host,
        };
        let host = self.network.addresses.url(Server::Pds(host));
        Ok(http::redirect(&format!("{host}/xrpc/com.atproto.sync.getRepo?did={did}")))
    }

    fn record(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let (collection, rkey) = (query.required("collection")?, query.required("rkey")?);
        let account = self.find(query)?;
        let account = active(lock(&account))?;
        let injected = |fault| self.network.faults.inject(self.server, fault).is_some();
        if injected(Fault::RecordDenied) {
            return Err(error(400, "RecordNotFound", "Could not locate record"));
        }
        let mut proof = account.record_proof(&format!("{collection}/{rkey}"));
        if injected(Fault::RecordWithoutNode) {
            let root = account.repository.get().tree().root();
            proof = altered_repository::proof_without(&proof, root);
        }
        Ok(http::bytes(200, archive_stream::CAR, proof))
    }

    fn blocks(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let names: Option<Vec<Cid>> = query.all("cids").map(|text| text.parse().ok()).collect();
        let mut names = names.ok_or_else(|| error(400, "InvalidRequest", "cids must be CIDs"))?;
        let is_injected = |fault| self.network.faults.inject(self.server, fault).is_some();
        if is_injected(Fault::NoBlocks) {
            return Err(error(501, "MethodNotImplemented", "Method Not Implemented"));
        }
        let account = self.find(query)?;
        let account = active(lock(&account))?;
        if is_injected(Fault::WithheldBlock) {
            names.pop();
        }
        if is_injected(Fault::ExtraBlock) {
            names.push(account.repository.get().head().cid);
        }
        let missing = |cid| error(400, "BlockNotFound", &format!("Could not find cid: {cid}"));
        Ok(http::bytes(200, archive_stream::CAR, account.blocks(&names).map_err(missing)?))
    }

    fn blob(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let cid = query.required("cid")?.parse::<Cid>();
        let cid = cid.map_err(|_| error(400, "InvalidRequest", "cid must be a CID"))?;
        let found = match self.guest_blobs(query.required("did")?) {
            Some(guest) => guest.blob(&cid),
            None => active(lock(&*self.find(query)?))?.repository.get().blob(&cid),
        };
        let is_injected = |fault| self.network.faults.inject(self.server, fault).is_some();
        let found = found.filter(|_| !is_injected(Fault::WithheldBlob));
        let mut content = found.ok_or_else(|| error(400, "BlobNotFound", "Blob not found"))?;
        if is_injected(Fault::AlteredBlob) {
            content[0] ^= 1;
        }
        if is_injected(Fault::CutBlob) {
            return Ok(archive_stream::cut_response(content));
        }
        Ok(http::bytes(200, archive_stream::BLOB, content))
    }

    fn list_blobs(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let (start, limit) = (query.offset()?, query.limit(500, 1000)?);
        let mut cids: Vec<Cid> = match self.guest_blobs(query.required("did")?) {
            Some(guest) => guest.cids().copied().collect(),
            None => {
                let account = self.find(query)?;
                let account = active(lock(&account))?;
                account.repository.get().blobs().map(|(cid, _)| cid).collect()
            }
        };
        cids.sort_unstable();
        cids.dedup();
        let next = (start.saturating_add(limit) < cids.len()).then_some(start + limit);
        let page = cids.iter().skip(start).take(limit).map(|cid| json!(cid.to_string())).collect();
        Ok(self.list("cids", page, next))
    }

    fn hosts(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let (position, limit) = (query.offset()?, query.limit(200, 1000)?);
        let count = self.network.spec.pds;
        let hosts: Vec<Value> = (position..count).take(limit).map(|host| self.host(host)).collect();
        let next = Some(position + hosts.len()).filter(|next| *next < count);
        Ok(self.list("hosts", hosts, next))
    }

    fn host_status(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let hostname = query.required("hostname")?;
        let is_requested =
            |host: &usize| self.network.addresses.host(Server::Pds(*host)) == hostname;
        let host = (0..self.network.spec.pds).find(is_requested);
        let unknown = || error(400, "HostNotFound", "host not found");
        Ok(ok(self.host(host.ok_or_else(unknown)?)))
    }

    fn host(&self, number: usize) -> Value {
        let server = Server::Pds(number);
        let seq = self.network.event_log(server).map_or(0, |log| log.last_seq());
        json!({
            "hostname": self.network.addresses.host(server),
            "seq": seq,
            "accountCount": self.network.account_count_of(number),
            "status": "active",
        })
    }

    /// The requested account, if this server has it.
    fn find(&self, query: &QueryParams) -> Result<Arc<Mutex<HostedAccount>>, XrpcError> {
        let did = query.required("did")?;
        let number = self.network.number_of_did(did);
        let is_known =
            |number: &usize| self.network.host_of(*number).is_some_and(|host| self.knows(host));
        let account = number.filter(is_known).and_then(|number| self.network.account(number));
        account.ok_or_else(|| {
            error(400, "RepoNotFound", &format!("Could not find repo for DID: {did}"))
        })
    }

    /// Whether the server knows the accounts of a PDS.
    fn knows(&self, host: usize) -> bool {
        match self.server {
            Server::Pds(number) => host == number,
            _ => true,
        }
    }
}

/// The commit and the revision that are listed for guests.
const GUEST_HEAD: &str = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";
const GUEST_REV: &str = "3jzfcijpj2z2a";

/// An account that nobody has.
const OTHER_DID: &str = "did:plc:otherotherotherotherothe";

/// Sets back the revision of an entry.
fn make_older(entry: &mut Value, days: u64) {
    let rev = entry["rev"].as_str().and_then(|rev| Tid::parse(rev).ok());
    if let Some(rev) = rev {
        entry["rev"] =
            Tid::new(rev.micros() - days * DAY_MICROS, rev.clock_id()).to_string().into();
    }
}

fn list_entry(account: ListedAccount) -> Value {
    let mut list_entry = json!({
        "did": *account.did,
        "head": account.head.to_string(),
        "rev": account.rev.to_string(),
        "active": account.status == AccountStatus::Active,
    });
    if let Some(word) = account.status.as_str() {
        list_entry["status"] = word.into();
    }
    list_entry
}

/// The account, if its status allows access to the repository.
fn active(
    account: MutexGuard<'_, HostedAccount>,
) -> Result<MutexGuard<'_, HostedAccount>, XrpcError> {
    let name = match account.status {
        AccountStatus::Active => return Ok(account),
        AccountStatus::TakenDown => "RepoTakendown",
        AccountStatus::Suspended => "RepoSuspended",
        AccountStatus::Deactivated => "RepoDeactivated",
        AccountStatus::Deleted => "RepoNotFound",
    };
    Err(error(400, name, &format!("Repo has status {:?}: {}", account.status, account.did())))
}

fn with_cursor(mut response: Value, cursor: Option<usize>) -> Value {
    if let Some(cursor) = cursor {
        response["cursor"] = cursor.to_string().into();
    }
    response
}

fn ok(value: Value) -> HttpResponse {
    http::json(200, &value)
}
