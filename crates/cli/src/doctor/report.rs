//! The evidence and the findings as a table or as JSON.

use net::xrpc::RepoStatus;
use serde::Serialize;

use super::evidence::{
    AskError, CommitFault, Evidence, IdentityEvidence, LogFault, RelayEvidence, ServerEvidence,
    StateEvidence,
};
use super::findings::{Finding, Kind};
use crate::network;
use crate::output::table;

/// The report, as JSON and text, of an account.
#[derive(Serialize)]
pub(super) struct Report {
    did: String,
    /// The verified handle.
    handle: Option<String>,
    /// URL of the directory; `None` for a did:web.
    plc: Option<String>,
    /// `verified`, `refused`, `not-served`; `None` for a did:web.
    log: Option<&'static str>,
    pds: Option<String>,
    signing_key: Option<String>,
    /// Whether nothing is wrong or unknown.
    healthy: bool,
    sources: Vec<Source>,
    findings: Vec<Finding>,
}

/// The statement of one source.
#[derive(Serialize)]
struct Source {
    /// `server`, `relay` or `state`.
    source: &'static str,
    at: String,
    /// `active`, another status, or `unknown`.
    status: String,
    rev: Option<String>,
    /// The newest commit.
    commit: Option<String>,
    /// Whether the commit was verified: by this command, or by `follow`.
    verified: bool,
}

impl Report {
    pub(super) fn new(evidence: &Evidence, findings: Vec<Finding>) -> Self {
        let identity = &evidence.identity;
        let server = evidence.server.iter().map(Source::of_server);
        let relays = evidence.relays.iter().map(Source::of_relay);
        let state = evidence.state.iter().map(Source::of_state);
        let handle = identity.handle.as_ref().and_then(|handle| handle.as_ref().ok());
        Self {
            did: evidence.did.to_string(),
            handle: handle.map(ToString::to_string),
            plc: identity.directory.clone(),
            log: log_text(identity),
            pds: identity.server().map(network::origin),
            signing_key: identity.key().map(|key| key.to_did_key()),
            healthy: findings.is_empty(),
            sources: server.chain(relays).chain(state).collect(),
            findings,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let [handle, pds, key, plc] =
            [&self.handle, &self.pds, &self.signing_key, &self.plc].map(or_none);
        let log = self.log.unwrap_or("none");
        let mut text = format!(
            "did          {}\nhandle       {handle}\npds          {pds}\nsigning key  {key}\ndirectory    {plc}\n\
             log          {log}\n\n",
            self.did
        );
        let header = ["source", "at", "status", "rev", "newest commit"];
        text += &table(header, self.sources.iter().map(Source::to_row));
        text += "\n";
        if self.healthy {
            return text + "nothing is wrong\n";
        }
        for Finding { code, kind, at, message, action } in &self.findings {
            let kind = if *kind == Kind::Wrong { "wrong" } else { "unknown" };
            text += &format!("{kind}: {code}: {at}: {message}\n  to do: {action}\n");
        }
        text
    }
}

impl Source {
    fn of_server(server: &ServerEvidence) -> Self {
        let proved = server.commit.as_ref().and_then(|commit| commit.as_ref().ok());
        let stated = server.status.as_ref().ok().and_then(|status| status.rev);
        let rev = proved.map(|commit| commit.rev).or(stated);
        Self {
            source: "server",
            at: network::origin(&server.url),
            status: match &server.commit {
                Some(Err(CommitFault::Unanswered(error))) if error.name().is_none() => unknown(),
                _ => status_text(&server.status),
            },
            rev: rev.map(|rev| rev.to_string()),
            commit: proved.map(|commit| commit.cid.to_string()),
            verified: proved.is_some(),
        }
    }

    fn of_relay(relay: &RelayEvidence) -> Self {
        let rev = relay.status.as_ref().ok().and_then(|status| status.rev);
        Self {
            source: "relay",
            at: relay.name.clone(),
            status: status_text(&relay.status),
            rev: rev.map(|rev| rev.to_string()),
            commit: None,
            verified: false,
        }
    }

    fn of_state(state: &StateEvidence) -> Self {
        let head = state.account.and_then(|account| account.head);
        Self {
            source: "state",
            at: state.path.display().to_string(),
            status: match state.account {
                None => unknown(),
                Some(account) if account.is_active => "active".to_owned(),
                Some(_) => "inactive".to_owned(),
            },
            rev: head.map(|head| head.rev.to_string()),
            commit: head.map(|head| head.commit.to_string()),
            verified: head.is_some(),
        }
    }

    fn to_row(&self) -> [String; 5] {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let commit = match (&self.commit, self.verified) {
            (Some(commit), true) => format!("{commit}, verified"),
            (commit, _) => or_none(commit),
        };
        let (source, rev) = (self.source.to_owned(), or_none(&self.rev));
        [source, self.at.clone(), self.status.clone(), rev, commit]
    }
}

fn log_text(identity: &IdentityEvidence) -> Option<&'static str> {
    Some(match identity.log.as_ref()? {
        Ok(_) => "verified",
        Err(LogFault::Refused(_)) => "refused",
        Err(LogFault::NotServed(_)) => "not-served",
    })
}

fn status_text(status: &Result<RepoStatus, AskError>) -> String {
    match status {
        Ok(status) if status.active => "active".to_owned(),
        Ok(status) => status.status.as_deref().unwrap_or("inactive").to_owned(),
        Err(error) => {
            let stated = error.name().and_then(|name| name.account_status());
            stated.map_or_else(unknown, str::to_owned)
        }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}
