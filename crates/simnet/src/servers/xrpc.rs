//! The sync endpoints, as a PDS and a relay have them.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use codec::Cid;
use serde_json::{Value, json};

use super::answer::{self, Answer, Query, Refusal, either, error};
use super::archive_stream;
use super::fault::UNPOISONED;
use super::member::{AccountStatus, Member};
use super::network::{Network, lock};
use super::spec::Server;

/// The answer to a method, for the accounts that `server` knows; `None` if it has no such method.
pub(super) fn answer(
    network: &Arc<Network>,
    server: Server,
    method: &str,
    query: &Query,
) -> Option<Answer> {
    let site = Site { network, server };
    let outcome = match (server, method) {
        (_, "com.atproto.sync.getLatestCommit") => site.latest_commit(query),
        (_, "com.atproto.sync.getRepoStatus") => site.status(query),
        (_, "com.atproto.sync.listRepos") => site.list(query),
        (Server::Pds(_), "com.atproto.sync.getRepo") => site.repository(query),
        (Server::Pds(_), "com.atproto.sync.getRecord") => site.record(query),
        (Server::Pds(_), "com.atproto.sync.getBlocks") => site.blocks(query),
        (Server::Relay(_), "com.atproto.sync.getRepo") => site.repository_elsewhere(query),
        (Server::Relay(_), "com.atproto.sync.listReposByCollection") => {
            site.list_by_collection(query)
        }
        (Server::Relay(_), "com.atproto.sync.listHosts") => site.hosts(query),
        (Server::Relay(_), "com.atproto.sync.getHostStatus") => site.host_status(query),
        _ => return None,
    };
    Some(either(outcome))
}

/// A server of repositories.
struct Site<'n> {
    network: &'n Arc<Network>,
    server: Server,
}

impl Site<'_> {
    fn latest_commit(&self, query: &Query) -> Result<Answer, Refusal> {
        let member = self.find(query)?;
        let member = active(lock(&member))?;
        let (cid, rev) = (member.repository.head().cid, member.repository.rev());
        Ok(ok(json!({ "cid": cid.to_string(), "rev": rev.to_string() })))
    }

    fn status(&self, query: &Query) -> Result<Answer, Refusal> {
        let member = self.find(query)?;
        let member = lock(&member);
        let mut answer =
            json!({ "did": member.did(), "active": member.status == AccountStatus::Active });
        match member.status.as_str() {
            Some(word) => answer["status"] = word.into(),
            None => answer["rev"] = member.repository.rev().to_string().into(),
        }
        Ok(ok(answer))
    }

    fn list(&self, query: &Query) -> Result<Answer, Refusal> {
        let limit = query.limit(500, 1000)?;
        let (repos, cursor) = self.page(query.place()?, limit, |member| Some(listed(member)));
        Ok(ok(with_cursor(json!({ "repos": repos }), cursor)))
    }

    fn list_by_collection(&self, query: &Query) -> Result<Answer, Refusal> {
        let collection = query.need("collection")?;
        let limit = query.limit(500, 2000)?;
        let (repos, cursor) = self.page(query.place()?, limit, |member| {
            let has = member.status == AccountStatus::Active && member.has_collection(collection);
            has.then(|| json!({ "did": member.did() }))
        });
        Ok(ok(with_cursor(json!({ "repos": repos }), cursor)))
    }

    /// Up to `limit` of what `select` makes of the accounts here from a place on, and the place behind.
    fn page(
        &self,
        place: usize,
        limit: usize,
        select: impl Fn(&Member) -> Option<Value>,
    ) -> (Vec<Value>, Option<usize>) {
        let mut page = Vec::new();
        let mut place = place;
        while page.len() < limit {
            let Some(member) = self.network.member(place) else { return (page, None) };
            place += 1;
            let member = lock(&member);
            page.extend(self.knows(&member).then(|| select(&member)).flatten());
        }
        (page, Some(place))
    }

    fn repository(&self, query: &Query) -> Result<Answer, Refusal> {
        let did = query.need("did")?;
        if let Some(archive) = self.strange_archive(did) {
            return Ok(archive_stream::answer(self.network, self.server, archive));
        }
        let member = self.find(query)?;
        let repository = active(lock(&member))?.repository.clone();
        Ok(archive_stream::answer(self.network, self.server, repository.export_car().into()))
    }

    fn strange_archive(&self, did: &str) -> Option<Bytes> {
        let strangers = self.network.strangers().read().expect(UNPOISONED);
        strangers.get(did)?.archive.clone().map(Bytes::from)
    }

    fn repository_elsewhere(&self, query: &Query) -> Result<Answer, Refusal> {
        let did = query.need("did")?;
        let host = if self.strange_archive(did).is_some() {
            0
        } else {
            let member = self.find(query)?;
            active(lock(&member))?.host
        };
        let host = self.network.addresses.url(Server::Pds(host));
        Ok(answer::redirect(&format!("{host}/xrpc/com.atproto.sync.getRepo?did={did}")))
    }

    fn record(&self, query: &Query) -> Result<Answer, Refusal> {
        let (collection, rkey) = (query.need("collection")?, query.need("rkey")?);
        let member = self.find(query)?;
        let member = active(lock(&member))?;
        Ok(answer::bytes(200, archive_stream::CAR, member.prove(&format!("{collection}/{rkey}"))))
    }

    fn blocks(&self, query: &Query) -> Result<Answer, Refusal> {
        let names: Option<Vec<Cid>> = query.all("cids").map(|text| text.parse().ok()).collect();
        let names = names.ok_or_else(|| error(400, "InvalidRequest", "cids must be CIDs"))?;
        let member = self.find(query)?;
        let member = active(lock(&member))?;
        let missing = |cid| error(400, "BlockNotFound", &format!("Could not find cid: {cid}"));
        Ok(answer::bytes(200, archive_stream::CAR, member.blocks(&names).map_err(missing)?))
    }

    fn hosts(&self, query: &Query) -> Result<Answer, Refusal> {
        let (place, limit) = (query.place()?, query.limit(200, 1000)?);
        let count = self.network.spec.pds;
        let hosts: Vec<Value> = (place..count).take(limit).map(|host| self.host(host)).collect();
        let next = Some(place + hosts.len()).filter(|next| *next < count);
        Ok(ok(with_cursor(json!({ "hosts": hosts }), next)))
    }

    fn host_status(&self, query: &Query) -> Result<Answer, Refusal> {
        let hostname = query.need("hostname")?;
        let is_asked = |host: &usize| self.network.addresses.host(Server::Pds(*host)) == hostname;
        let host = (0..self.network.spec.pds).find(is_asked);
        let unknown = || error(400, "HostNotFound", "host not found");
        Ok(ok(self.host(host.ok_or_else(unknown)?)))
    }

    fn host(&self, number: usize) -> Value {
        let server = Server::Pds(number);
        let seq = self.network.outbox(server).map_or(0, |outbox| outbox.last_seq());
        let members = (0..self.network.member_count()).filter_map(|at| self.network.member(at));
        let accounts = members.filter(|member| lock(member).host == number).count();
        json!({
            "hostname": self.network.addresses.host(server),
            "seq": seq,
            "accountCount": accounts,
            "status": "active",
        })
    }

    /// The account that is asked for, if it is known here.
    fn find(&self, query: &Query) -> Result<Arc<Mutex<Member>>, Refusal> {
        let did = query.need("did")?;
        let member = self.network.member_by_did(did).filter(|member| self.knows(&lock(member)));
        member.ok_or_else(|| {
            error(400, "RepoNotFound", &format!("Could not find repo for DID: {did}"))
        })
    }

    fn knows(&self, member: &Member) -> bool {
        match self.server {
            Server::Pds(number) => member.host == number,
            _ => true,
        }
    }
}

fn listed(member: &Member) -> Value {
    let mut listed = json!({
        "did": member.did(),
        "head": member.repository.head().cid.to_string(),
        "rev": member.repository.rev().to_string(),
        "active": member.status == AccountStatus::Active,
    });
    if let Some(word) = member.status.as_str() {
        listed["status"] = word.into();
    }
    listed
}

/// The account, if its host gives its repository to anyone.
fn active(member: MutexGuard<'_, Member>) -> Result<MutexGuard<'_, Member>, Refusal> {
    let name = match member.status {
        AccountStatus::Active => return Ok(member),
        AccountStatus::TakenDown => "RepoTakendown",
        AccountStatus::Suspended => "RepoSuspended",
        AccountStatus::Deactivated => "RepoDeactivated",
        AccountStatus::Deleted => "RepoNotFound",
    };
    Err(error(400, name, &format!("Repo has status {:?}: {}", member.status, member.did())))
}

fn with_cursor(mut answer: Value, cursor: Option<usize>) -> Value {
    if let Some(cursor) = cursor {
        answer["cursor"] = cursor.to_string().into();
    }
    answer
}

fn ok(value: Value) -> Answer {
    answer::json(200, &value)
}
