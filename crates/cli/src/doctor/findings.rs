//! The findings about an account, from the evidence of its directory, servers and state.

use atproto::syntax::Tid;
use net::xrpc::{ErrorName, RepoStatus};
use serde::Serialize;
use verify::sync::{Head, SyncState};

use super::evidence::{
    AskError, CommitFault, Evidence, IdentityEvidence, LogFault, LogSummary, RelayEvidence,
    ServerEvidence, StateEvidence,
};
use crate::network;

/// Something that is wrong, or unknown.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) code: &'static str,
    #[serde(skip)]
    pub(super) kind: Kind,
    /// The host or file that it was found at.
    pub(super) at: String,
    pub(super) message: String,
    /// The remedy.
    pub(super) action: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Wrong,
    /// A host did not answer.
    Unknown,
}

/// The findings; findings that explain others come first.
pub(super) fn diagnose(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    found.identity(evidence);
    found.handle(&evidence.identity);
    if let Some(server) = &evidence.server {
        found.server(server);
    }
    evidence.relays.iter().for_each(|relay| found.relay(evidence, relay));
    if let Some(state) = &evidence.state {
        found.state(evidence, state);
    }
    found.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn identity(&mut self, evidence: &Evidence) {
        let identity = &evidence.identity;
        let at = identity.directory.clone().unwrap_or_else(|| evidence.did.to_string());
        match &identity.log {
            Some(Ok(log)) if log.is_tombstoned => {
                let message = "the last operation of the log is a tombstone".to_owned();
                return self.wrong(
                    "identity/deleted",
                    &at,
                    message,
                    "delete your copies of the account's data",
                );
            }
            Some(Ok(log)) => self.document(&at, identity, log),
            Some(Err(LogFault::Refused(why))) => self.wrong(
                "identity/log",
                &at,
                format!("the operation log is refused: {why}"),
                "trust no key of this directory for the account; ask another directory with --plc",
            ),
            Some(Err(LogFault::NotServed(why))) => self.unknown(
                "identity/log-unanswered",
                &at,
                format!("the operation log is not served: {why}"),
                "only the directory vouches for the key until the log is served: try again later",
            ),
            None => {}
        }
        match &identity.account {
            Err(error) if error.is_outage() => {
                self.unknown("identity/unanswered", &at, error.to_string(), TRY_LATER);
            }
            Err(error) => self.wrong(
                "identity/unusable",
                &at,
                error.to_string(),
                "the account cannot be verified until its identity is repaired",
            ),
            Ok(account) if account.key.is_none() => self.wrong(
                "identity/no-key",
                &at,
                "the DID document has no usable signing key".to_owned(),
                "the account cannot be verified until its owner or server registers a key",
            ),
            Ok(account) if account.host.is_none() => self.wrong(
                "identity/no-server",
                &at,
                "the DID document names no server".to_owned(),
                "the account has no repository until its owner registers a server",
            ),
            Ok(_) => {}
        }
    }

    /// Compares the document with the verified log.
    fn document(&mut self, at: &str, identity: &IdentityEvidence, log: &LogSummary) {
        let Ok(account) = &identity.account else { return };
        let served = account.host.as_ref().map(network::origin);
        let mut differences = Vec::new();
        if account.key != log.key {
            differences.push("another signing key");
        }
        if served != log.server {
            differences.push("another server");
        }
        if !differences.is_empty() {
            let differences = differences.join(" and ");
            self.wrong(
                "identity/other-document",
                at,
                format!("the DID document names {differences} than the verified operation log"),
                "ask again; if it stays so, trust the log and report the directory",
            );
        }
    }

    fn handle(&mut self, identity: &IdentityEvidence) {
        let Some(Err(error)) = &identity.handle else { return };
        let claimed = identity.account.as_ref().ok().and_then(|account| account.document.handle());
        let at = claimed.map_or_else(|| "handle".to_owned(), |handle| handle.to_string());
        let message = error.to_string();
        if error.is_outage() {
            self.unknown("handle/unanswered", &at, message, TRY_LATER)
        } else {
            self.wrong(
                "handle/unverified",
                &at,
                message,
                "show the account as handle.invalid; its owner must repair the DNS record, the file at the handle's \
                 host, or the handle in the DID document",
            )
        }
    }

    fn server(&mut self, server: &ServerEvidence) {
        let at = network::origin(&server.url);
        match &server.status {
            Ok(status) if !status.active => return self.inactive("server/inactive", &at, status),
            Ok(_) => {}
            Err(error) => {
                return self.unserved(SERVER_UNSERVED, &at, error);
            }
        }
        match &server.commit {
            Some(Err(CommitFault::Unanswered(error))) => {
                self.unserved(SERVER_UNSERVED, &at, error);
            }
            Some(Err(CommitFault::Refused { is_signature, message })) => {
                let code = if *is_signature { "server/signature" } else { "server/commit" };
                self.wrong(
                    code,
                    &at,
                    format!("the newest commit is refused: {message}"),
                    "no verifying reader accepts it: the server must sign with the key that the directory has",
                );
            }
            Some(Err(CommitFault::NoKey) | Ok(_)) | None => {}
        }
    }

    fn relay(&mut self, evidence: &Evidence, relay: &RelayEvidence) {
        self.relay_of_server(relay);
        let at = &*relay.name;
        let status = match &relay.status {
            Ok(status) => status,
            Err(error) => {
                return self.unserved(
                    [
                        "relay/unknown-account",
                        "relay/inactive",
                        "relay/refused",
                        "relay/unanswered",
                    ],
                    at,
                    error,
                );
            }
        };
        let server = evidence.server.as_ref().and_then(|server| server.status.as_ref().ok());
        match (status.active, server.map(|status| status.active)) {
            (false, Some(true)) => {
                let reason = reason(status);
                self.wrong(
                    "relay/inactive",
                    at,
                    format!("the relay calls the account {reason}, its server calls it active"),
                    "the relay drops the account's events: follow another relay or the server, or ask the relay's operator",
                );
            }
            (true, Some(false)) => self.wrong(
                "relay/still-active",
                at,
                "the relay calls the account active, its server does not".to_owned(),
                "the relay has missed the change of the status: trust the server",
            ),
            _ => self.relay_rev(evidence, relay, status),
        }
    }

    /// Compares the relay's revision with the proved one.
    fn relay_rev(&mut self, evidence: &Evidence, relay: &RelayEvidence, status: &RepoStatus) {
        let newest = evidence.server.as_ref().and_then(ServerEvidence::newest);
        let (Some(rev), Some(newest)) = (status.rev, newest) else { return };
        let at = &*relay.name;
        if rev > newest {
            let message = format!("the relay has revision {rev}, the account's server {newest}");
            return self.wrong(
                "relay/ahead",
                at,
                message,
                "the server has lost commits that others have: they refuse its next ones until its revision is higher",
            );
        }
        if rev == newest {
            return;
        }
        if migrated_after(evidence, rev, newest) {
            self.wrong(
                "relay/silent-after-migration",
                at,
                format!("the relay has revision {rev} from before the migration, the new server {newest}"),
                "the relay does not take the account's events from the new server: ask it to crawl the server \
                 (requestCrawl), or follow the server itself",
            )
        } else {
            self.wrong(
                "relay/behind",
                at,
                format!("the relay has revision {rev}, the account's server {newest}"),
                "the relay lost events or is late: follow another relay or the server, and fetch the repository (--resync)",
            )
        }
    }

    /// The relay's status of the account's server. Not every relay has the method.
    fn relay_of_server(&mut self, relay: &RelayEvidence) {
        let at = &*relay.name;
        match &relay.server {
            Some(Err(error)) => match error.name() {
                Some(ErrorName::HostNotFound) => self.wrong(
                    "relay/unknown-server",
                    at,
                    "the relay does not know the account's server".to_owned(),
                    "ask the relay to crawl the server (requestCrawl)",
                ),
                Some(ErrorName::HostBanned) => self.banned(at, "banned"),
                _ => {}
            },
            Some(Ok(server)) => {
                let status = server.status.as_deref().unwrap_or("active");
                if !matches!(status, "active" | "idle") {
                    self.banned(at, status);
                }
            }
            None => {}
        }
    }

    fn banned(&mut self, at: &str, status: &str) {
        self.wrong(
            "relay/server-not-followed",
            at,
            format!("the relay calls the account's server {status}"),
            "follow another relay or the server, or ask the relay's operator",
        );
    }

    fn state(&mut self, evidence: &Evidence, state: &StateEvidence) {
        let at = state.path.display().to_string();
        if let Some(key) = &state.key {
            self.stored_key(&at, evidence, &key.did_key, key.host.as_deref());
        }
        let Some(account) = &state.account else { return };
        let server = evidence.server.as_ref();
        let is_served = server.and_then(|server| Some(server.status.as_ref().ok()?.active));
        if is_served.is_some_and(|is_active| is_active != account.is_active) {
            let (ours, theirs) =
                if account.is_active { ("active", "inactive") } else { ("inactive", "active") };
            self.wrong(
                "state/other-status",
                &at,
                format!("the state calls the account {ours}, its server calls it {theirs}"),
                "an #account event was missed, or a relay lies: `follow` asks the server at the account's next commit",
            );
        }
        if account.sync != SyncState::Synchronized {
            self.wrong(
                "state/desynchronized",
                &at,
                "the chain of verified commits has a gap".to_owned(),
                "fetch the repository: run `follow` with --resync or --to",
            );
        }
        let newest = server.and_then(|server| server.commit.as_ref()?.as_ref().ok());
        if let (Some(head), Some(newest)) = (account.head, newest) {
            self.stored_head(&at, head, newest.rev, head.commit == newest.cid);
        }
    }

    fn stored_key(&mut self, at: &str, evidence: &Evidence, key: &str, server: Option<&str>) {
        let current = evidence.identity.key().map(|key| key.to_did_key());
        if current.as_deref().is_some_and(|current| current != key) {
            self.wrong(
                "state/old-key",
                at,
                format!("the state has the key {key}, which the account no longer has"),
                "no #identity event came since: `follow` looks the key up at the first commit that it does not fit",
            );
        }
        let named = evidence.identity.server().map(network::origin);
        let stored = server.and_then(|url| Some(network::origin(&url.parse().ok()?)));
        if let (Some(named), Some(stored)) = (named, stored)
            && named != stored
        {
            self.wrong(
                "state/old-server",
                at,
                format!("the state has the server {stored}, the account is at {named}"),
                "no #identity event came since the migration: check that the followed host has the new server",
            );
        }
    }

    fn stored_head(&mut self, at: &str, head: Head, newest: Tid, is_same: bool) {
        let rev = head.rev;
        if rev < newest {
            self.wrong(
                "state/behind",
                at,
                format!("the state has revision {rev}, the account's server {newest}"),
                "`follow` is not running, is late, or its host lost events: see its lag, and the findings of the relay",
            );
        } else if rev > newest {
            self.wrong(
                "state/ahead",
                at,
                format!("the state has revision {rev}, the account's server {newest}"),
                "the server has lost commits: `follow` ignores its next ones until its revision is higher",
            );
        } else if !is_same {
            self.wrong(
                "state/other-commit",
                at,
                format!("two commits of revision {rev} are signed"),
                "the server has rewritten its repository: fetch it again, and report the server",
            );
        }
    }

    /// A host that does not serve the account: codes for an unknown account, an inactive one, another refusal and no
    /// answer.
    fn unserved(&mut self, codes: [&'static str; 4], at: &str, error: &AskError) {
        let [unknown_account, inactive, refused, unanswered] = codes;
        let message = error.to_string();
        match error.name() {
            Some(ErrorName::RepoNotFound) => self.wrong(
                unknown_account,
                at,
                message,
                "the host does not have the account: after a migration it may not be complete; at a relay, ask it to \
                 crawl the account's server (requestCrawl)",
            ),
            Some(name) if name.account_status().is_some() || *name == ErrorName::RepoInactive => {
                self.wrong(inactive, at, message, INACTIVE);
            }
            _ if error.is_refusal() => self.wrong(
                refused,
                at,
                message,
                "the host does not serve accounts to this machine, or is no relay or server: check its address, or ask its operator",
            ),
            _ => self.unknown(unanswered, at, message, TRY_LATER),
        }
    }

    fn inactive(&mut self, code: &'static str, at: &str, status: &RepoStatus) {
        self.wrong(code, at, format!("the account is {}", reason(status)), INACTIVE);
    }

    fn wrong(&mut self, code: &'static str, at: &str, message: String, action: &'static str) {
        self.push(Kind::Wrong, code, at, message, action);
    }

    fn unknown(&mut self, code: &'static str, at: &str, message: String, action: &'static str) {
        self.push(Kind::Unknown, code, at, message, action);
    }

    fn push(
        &mut self,
        kind: Kind,
        code: &'static str,
        at: &str,
        message: String,
        action: &'static str,
    ) {
        self.0.push(Finding { code, kind, at: at.to_owned(), message, action });
    }
}

/// Whether the account migrated after its commit `rev`, and has committed since.
fn migrated_after(evidence: &Evidence, rev: Tid, newest: Tid) -> bool {
    let Some(Ok(log)) = &evidence.identity.log else { return false };
    let migrated = log.migrated_micros.and_then(|micros| u64::try_from(micros).ok());
    migrated.is_some_and(|migrated| (rev.micros()..newest.micros()).contains(&migrated))
}

fn reason(status: &RepoStatus) -> &str {
    status.status.as_deref().unwrap_or("inactive")
}

/// Codes of a server that does not serve the account, in the order of [`Findings::unserved`].
const SERVER_UNSERVED: [&str; 4] =
    ["server/unknown-account", "server/inactive", "server/refused", "server/unanswered"];

const TRY_LATER: &str = "try again later; until then this is unknown";

const INACTIVE: &str = "its records must not be shown; if it is deleted, delete your copies of it";
