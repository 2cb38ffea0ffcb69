//! Compares lists, statuses and the stream after all other requests, and asks again about differences.

use std::collections::BTreeMap;
use std::time::Duration;

use atproto::syntax::Tid;
use net::http::Limits;
use tokio::time::sleep;

use crate::account::AccountFacts;
use crate::answers::{self, Status};
use crate::ask::{Host, Refusal, Reply};
use crate::events::StreamJudgement;
use crate::finding::Finding;
use crate::list::{self, Listing};
use crate::rule::{self, Rule};

/// The status of an account as the host states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stated {
    Active,
    Inactive,
    /// The host does not have the account.
    Unknown,
    /// No answer, or one that was judged elsewhere.
    Unanswered,
}

impl Stated {
    pub(crate) fn of(answer: Result<Option<Status>, Refusal>) -> Self {
        match answer {
            Ok(Some(status)) if status.active => Self::Active,
            Ok(Some(_)) => Self::Inactive,
            Ok(None) => Self::Unanswered,
            Err(refusal) if refusal.is_unknown_account() => Self::Unknown,
            Err(refusal) if refusal.is_inactive() => Self::Inactive,
            Err(_) => Self::Unanswered,
        }
    }
}

/// A difference that may have its cause in a change between two requests.
struct Suspicion {
    rule: &'static Rule,
    method: &'static str,
    did: String,
    text: String,
}

/// Judges the host's statements about its accounts in different places.
pub(crate) async fn judge(
    host: &Host,
    first: &Listing,
    accounts: &BTreeMap<String, AccountFacts>,
    seen: &BTreeMap<String, Stated>,
    stream: &StreamJudgement,
    last_live: i64,
) {
    let listing = list::read(host).await;
    let mut suspicions = of_list(first, &listing, accounts, seen);
    suspicions.extend(of_stream(stream, seen, last_live));
    if suspicions.is_empty() {
        return;
    }
    sleep(DELAY).await;
    let again = list::read(host).await;
    for suspicion in suspicions {
        let now = ask(host, &suspicion.did).await;
        if is_lasting(&suspicion, &again, accounts, stream, now) {
            let Suspicion { rule, method, did, text } = suspicion;
            let command = match method {
                "listRepos" => host.curl(method, &[("limit", "500")]),
                _ => host.curl(method, &[("did", &did)]),
            };
            host.note(Finding::of(rule, method, text).about(&did).seen_by(command));
        }
    }
}

/// The list against the sampled accounts, and against the accounts of the stream.
fn of_list(
    first: &Listing,
    listing: &Listing,
    accounts: &BTreeMap<String, AccountFacts>,
    seen: &BTreeMap<String, Stated>,
) -> Vec<Suspicion> {
    let mut suspicions = Vec::new();
    let mut suspect = |rule, did: &String, text: String| {
        suspicions.push(Suspicion { rule, method: "listRepos", did: did.clone(), text });
    };
    for (did, facts) in accounts {
        let Some(listed) = listing.accounts.get(did) else { continue };
        if facts.is_unknown {
            suspect(
                &rule::LIST_UNSERVED,
                did,
                "getRepoStatus does not know the account".to_owned(),
            );
        }
        if let Some(proved) = facts.proved_rev.filter(|proved| listed.rev < *proved) {
            suspect(
                &rule::LIST_REV,
                did,
                format!("revision {}, but getRepo has {proved}", listed.rev),
            );
        }
        let active = facts.status.as_ref().map(|status| status.active);
        if let (Some(listed), Some(active)) = (listed.active, active)
            && listed != active
        {
            suspect(
                &rule::LIST_STATUS,
                did,
                format!("active: {listed}, in getRepoStatus {active}"),
            );
        }
    }
    for did in first.repeated.intersection(&listing.repeated) {
        suspect(&rule::LIST_REPEATED, did, "two pages have the account".to_owned());
    }
    if listing.is_complete {
        for (did, stated) in seen {
            if *stated == Stated::Active && !listing.names(did) {
                suspect(
                    &rule::LIST_OMITTED,
                    did,
                    "the account is active, and not in the list".to_owned(),
                );
            }
        }
    }
    suspicions
}

/// The last `#account` of the live stream against the status that was stated after it.
fn of_stream(
    stream: &StreamJudgement,
    seen: &BTreeMap<String, Stated>,
    last_live: i64,
) -> Vec<Suspicion> {
    let stated = stream.accounts.iter().filter_map(|(did, account)| {
        let (seq, active) = account.stated.filter(|(seq, _)| *seq <= last_live)?;
        let differs = match seen.get(did)? {
            Stated::Active => !active,
            Stated::Inactive => active,
            Stated::Unknown | Stated::Unanswered => false,
        };
        let text =
            format!("active: {}, but the #account event {seq} has active: {active}", !active);
        let (rule, method) = (&rule::ACCOUNT_STATUS, "getRepoStatus");
        differs.then(|| Suspicion { rule, method, did: did.clone(), text })
    });
    stated.collect()
}

/// Whether a difference is still there.
fn is_lasting(
    suspicion: &Suspicion,
    again: &Listing,
    accounts: &BTreeMap<String, AccountFacts>,
    stream: &StreamJudgement,
    now: Stated,
) -> bool {
    let did = &suspicion.did;
    let listed = again.accounts.get(did);
    let code = suspicion.rule.code;
    if code == rule::LIST_UNSERVED.code {
        listed.is_some() && now == Stated::Unknown
    } else if code == rule::LIST_REV.code {
        let proved: Option<Tid> = accounts.get(did).and_then(|facts| facts.proved_rev);
        now == Stated::Active && listed.is_some_and(|listed| Some(listed.rev) < proved)
    } else if code == rule::LIST_STATUS.code {
        let active = listed.and_then(|listed| listed.active);
        matches!((active, now), (Some(true), Stated::Inactive) | (Some(false), Stated::Active))
    } else if code == rule::LIST_REPEATED.code {
        again.repeated.contains(did)
    } else if code == rule::LIST_OMITTED.code {
        again.is_complete && !again.names(did) && now == Stated::Active
    } else {
        let stated = stream.accounts.get(did).and_then(|account| account.stated);
        matches!(
            (stated, now),
            (Some((_, true)), Stated::Inactive) | (Some((_, false)), Stated::Active)
        )
    }
}

async fn ask(host: &Host, did: &str) -> Stated {
    match host.ask("getRepoStatus", &[("did", did)], &Limits::DOCUMENT).await {
        Reply::Body(body) => Stated::of(Ok(answers::status(&body).ok())),
        Reply::Refused(refusal) => Stated::of(Err(refusal)),
        Reply::TooLong(_) | Reply::Elsewhere | Reply::Failed => Stated::Unanswered,
    }
}

/// Time in which lists follow their repositories.
const DELAY: Duration = Duration::from_secs(2);
