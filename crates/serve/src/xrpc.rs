//! Answers to queries: the directory, the hosts, the dictionary of Jetstreams.

use std::borrow::Cow;
use std::sync::Arc;

use atproto::syntax::{Did, Nsid};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use net::http_server::response;
use serde_json::{Value, json};

use crate::directory::AccountEntry;
use crate::jetstream::dictionary::{DICTIONARY, DICTIONARY_ID};
use crate::seq::seq_of;
use crate::shared::Shared;

/// Why a query is refused: the status, the name of the error, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct XrpcError {
    pub(crate) status: StatusCode,
    pub(crate) name: &'static str,
    pub(crate) message: String,
}

impl XrpcError {
    pub(crate) fn new(status: StatusCode, name: &'static str, message: impl Into<String>) -> Self {
        Self { status, name, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequest", message)
    }

    /// The answer.
    pub(crate) fn response(&self) -> Response<Full<Bytes>> {
        let body = json!({ "error": self.name, "message": self.message });
        response(self.status, "application/json", body.to_string())
    }
}

impl From<rusqlite::Error> for XrpcError {
    fn from(error: rusqlite::Error) -> Self {
        tracing::warn!(target: "wireproof::serve", "the directory cannot be read: {error}");
        let message = "the directory cannot be read";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }
}

/// Answers a query by the name of its method; `None` for a method that this server does not have.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    method: &str,
    query: &str,
) -> Option<Result<Response<Full<Bytes>>, XrpcError>> {
    let query = Query(query);
    let answered = match method {
        "com.atproto.sync.listRepos" => list_repos(shared, query),
        "com.atproto.sync.listReposByCollection" => list_repos_by_collection(shared, query),
        "com.atproto.sync.getRepoStatus" => repo_status(shared, query),
        "com.atproto.sync.getLatestCommit" => latest_commit(shared, query),
        "com.atproto.sync.listHosts" => list_hosts(shared, query),
        "com.atproto.sync.getHostStatus" => host_status(shared, query),
        "network.bsky.jetstream.getZstdDictionary" => return Some(dictionary(query)),
        "_health" => Ok(json!({ "version": concat!("wireproof ", env!("CARGO_PKG_VERSION")) })),
        _ => return None,
    };
    Some(answered.map(|body| response(StatusCode::OK, "application/json", body.to_string())))
}

/// The parameters of a query.
#[derive(Clone, Copy)]
pub(crate) struct Query<'q>(pub(crate) &'q str);

impl<'q> Query<'q> {
    fn get(self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.0.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// All values of a parameter.
    pub(crate) fn all(self, name: &str) -> impl Iterator<Item = Cow<'q, str>> {
        let pairs = form_urlencoded::parse(self.0.as_bytes());
        pairs.filter(move |(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn required(self, name: &str) -> Result<String, XrpcError> {
        self.get(name).ok_or_else(|| XrpcError::invalid(format!("{name} is missing")))
    }

    pub(crate) fn did(self) -> Result<String, XrpcError> {
        let did = self.required("did")?;
        match Did::parse(&did) {
            Ok(_) => Ok(did),
            Err(_) => Err(XrpcError::invalid("did is no DID")),
        }
    }

    /// The maximum number of rows.
    fn limit(self, default: usize, max: usize) -> Result<usize, XrpcError> {
        let limit = self.get("limit").map_or(Ok(default), |limit| limit.parse());
        match limit {
            Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
            _ => Err(XrpcError::invalid(format!("limit is a number from 1 to {max}"))),
        }
    }

    /// The name after which rows are listed.
    fn cursor(self) -> String {
        self.get("cursor").unwrap_or_default()
    }
}

fn list_repos(shared: &Shared, query: Query<'_>) -> Result<Value, XrpcError> {
    let limit = query.limit(500, 1_000)?;
    let accounts = shared.directory.accounts_after(&query.cursor(), limit)?;
    let cursor = next_cursor(accounts.len(), limit, accounts.last().map(|last| &*last.did));
    let repos: Vec<Value> = accounts.iter().filter_map(repo_entry).collect();
    Ok(with_cursor(json!({ "repos": repos }), cursor))
}

fn repo_entry(account: &AccountEntry) -> Option<Value> {
    let (rev, head) = account.head.as_ref()?;
    let mut entry =
        json!({ "did": account.did, "head": head, "rev": rev, "active": account.active });
    add_status(&mut entry, account);
    Some(entry)
}

fn list_repos_by_collection(shared: &Shared, query: Query<'_>) -> Result<Value, XrpcError> {
    let collection = query.required("collection")?;
    if Nsid::parse(&collection).is_err() {
        return Err(XrpcError::invalid("collection is no NSID"));
    }
    let limit = query.limit(500, 2_000)?;
    let dids = shared.directory.accounts_in(&collection, &query.cursor(), limit)?;
    let cursor = next_cursor(dids.len(), limit, dids.last().map(String::as_str));
    let repos: Vec<Value> = dids.iter().map(|did| json!({ "did": did })).collect();
    Ok(with_cursor(json!({ "repos": repos }), cursor))
}

fn repo_status(shared: &Shared, query: Query<'_>) -> Result<Value, XrpcError> {
    let account = known_account(shared, &query.did()?)?;
    let mut body = json!({ "did": account.did, "active": account.active });
    add_status(&mut body, &account);
    if let (Some((rev, _)), true) = (&account.head, account.active) {
        body["rev"] = json!(rev);
    }
    Ok(body)
}

fn latest_commit(shared: &Shared, query: Query<'_>) -> Result<Value, XrpcError> {
    let account = known_account(shared, &query.did()?)?;
    check_active(&account)?;
    let (rev, cid) = account.head.ok_or_else(not_found)?;
    Ok(json!({ "cid": cid, "rev": rev }))
}

/// Refuses an account whose repository may not be read.
pub(crate) fn check_active(account: &AccountEntry) -> Result<(), XrpcError> {
    if account.active {
        return Ok(());
    }
    let name = match account.status.as_deref() {
        Some("takendown") => "RepoTakendown",
        Some("suspended") => "RepoSuspended",
        _ => "RepoDeactivated",
    };
    let message = format!("the account is {}", account.status.as_deref().unwrap_or("inactive"));
    Err(XrpcError::new(StatusCode::FORBIDDEN, name, message))
}

fn known_account(shared: &Shared, did: &str) -> Result<AccountEntry, XrpcError> {
    shared.directory.account(did)?.ok_or_else(not_found)
}

fn not_found() -> XrpcError {
    let message = "no event named this account";
    XrpcError::new(StatusCode::NOT_FOUND, "RepoNotFound", message)
}

fn list_hosts(shared: &Shared, query: Query<'_>) -> Result<Value, XrpcError> {
    let limit = query.limit(200, 1_000)?;
    let hosts = shared.hosts.after(&query.cursor(), limit);
    let cursor = next_cursor(hosts.len(), limit, hosts.last().map(|(name, _)| &**name));
    let hosts: Vec<Value> = hosts.iter().map(|(name, seq)| host_entry(name, *seq)).collect();
    Ok(with_cursor(json!({ "hosts": hosts }), cursor))
}

fn host_status(shared: &Shared, query: Query<'_>) -> Result<Value, XrpcError> {
    let name = query.required("hostname")?;
    let seq = shared.hosts.seq(&name).ok_or_else(|| {
        XrpcError::new(StatusCode::NOT_FOUND, "HostNotFound", "events come from another host")
    })?;
    let mut entry = host_entry(&name, seq);
    if shared.hosts.is_one() {
        entry["accountCount"] = json!(shared.directory.count()?);
    }
    Ok(entry)
}

fn host_entry(name: &str, seq: i64) -> Value {
    json!({ "hostname": name, "seq": seq, "status": "active" })
}

fn dictionary(query: Query<'_>) -> Result<Response<Full<Bytes>>, XrpcError> {
    let id = query.get("id").map_or(Ok(DICTIONARY_ID), |id| id.parse::<u32>());
    match id {
        Ok(DICTIONARY_ID) => {
            Ok(response(StatusCode::OK, "application/octet-stream", Bytes::from_static(DICTIONARY)))
        }
        Ok(1..) => {
            let message = format!("the current dictionary is {DICTIONARY_ID}");
            Err(XrpcError::new(StatusCode::NOT_FOUND, "DictionaryNotFound", message))
        }
        _ => Err(XrpcError::invalid("id is the id of a dictionary")),
    }
}

fn add_status(body: &mut Value, account: &AccountEntry) {
    if let Some(status) = &account.status {
        body["status"] = json!(status);
    }
}

/// The cursor of the next page, unless this one is the last.
fn next_cursor(rows: usize, limit: usize, last: Option<&str>) -> Option<String> {
    last.filter(|_| rows == limit).map(str::to_owned)
}

fn with_cursor(mut body: Value, cursor: Option<String>) -> Value {
    if let Some(cursor) = cursor {
        body["cursor"] = json!(cursor);
    }
    body
}

/// The number that a v2 client of a Jetstream may begin at, in a sentence.
pub(crate) fn cursor_too_old(floor: i64) -> XrpcError {
    let message = format!(
        "the cursor is before the first stored event: begin after {}",
        seq_of(floor).max(0)
    );
    XrpcError::new(StatusCode::BAD_REQUEST, "CursorTooOld", message)
}
