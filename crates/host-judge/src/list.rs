//! `listRepos`: the whole list, or the first pages of a long one.

use std::collections::{BTreeMap, HashSet};

use net::http::Limits;

use crate::answers::{self, Listed};
use crate::ask::{Host, Reply};
use crate::finding::Finding;
use crate::rule;

/// The accounts that the host lists.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) accounts: BTreeMap<String, Listed>,
    /// Whether the list was read to its end.
    pub(crate) is_complete: bool,
    /// Accounts of entries that break the lexicon.
    pub(crate) odd: HashSet<String>,
    /// Accounts on two pages.
    pub(crate) repeated: HashSet<String>,
}

/// Reads the list.
pub(crate) async fn read(host: &Host) -> Listing {
    let mut listing = Listing::default();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let mut parameters = vec![("limit", PAGE_LEN)];
        parameters.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let command = || host.curl(METHOD, &parameters);
        let page = match host.ask(METHOD, &parameters, &Limits::LIST).await {
            Reply::Body(body) => answers::page(&body),
            Reply::Refused(refusal) if refusal.is_no_method() => {
                host.note(
                    Finding::of(&rule::NO_METHOD, METHOD, refusal.to_string()).seen_by(command()),
                );
                return listing;
            }
            Reply::Refused(refusal) => {
                host.note(
                    Finding::of(&rule::SCHEMA, METHOD, refusal.to_string()).seen_by(command()),
                );
                return listing;
            }
            Reply::TooLong(_) => Err("the page is longer than 4 MiB".to_owned()),
            Reply::Elsewhere | Reply::Failed => return listing,
        };
        let page = match page {
            Ok(page) => page,
            Err(fault) => {
                host.note(Finding::of(&rule::SCHEMA, METHOD, fault).seen_by(command()));
                return listing;
            }
        };
        if page.cursor.is_some() && page.cursor == cursor {
            let text = "the cursor of the next page is the cursor of this page";
            host.note(Finding::of(&rule::LIST_CURSOR, METHOD, text).seen_by(command()));
            return listing;
        }
        for (did, odd) in page.odd {
            host.note(Finding::of(&rule::LIST_ENTRY, METHOD, odd).seen_by(command()));
            listing.odd.extend(did);
        }
        let mut on_page = HashSet::new();
        for listed in page.entries {
            let did = listed.did.to_string();
            if !on_page.insert(did.clone()) {
                let text = "the page has the account twice";
                let finding = Finding::of(&rule::LIST_REPEATED, METHOD, text);
                host.note(finding.about(&did).seen_by(command()));
            } else if listing.accounts.insert(did.clone(), listed).is_some() {
                listing.repeated.insert(did);
            }
        }
        match page.cursor {
            None => {
                listing.is_complete = true;
                return listing;
            }
            Some(next) if next.len() > MAX_CURSOR_BYTES => {
                let text = format!("a cursor of {} bytes", next.len());
                host.note(Finding::of(&rule::LIST_CURSOR, METHOD, text).seen_by(command()));
                return listing;
            }
            next => cursor = next,
        }
    }
    listing
}

impl Listing {
    /// Whether an entry names the account.
    pub(crate) fn names(&self, did: &str) -> bool {
        self.accounts.contains_key(did) || self.odd.contains(did)
    }

    /// Up to `count` accounts, spread over the list, a quarter of them inactive if there are as many.
    pub(crate) fn sample(&self, count: usize) -> Vec<String> {
        let of = |active: bool| {
            let accounts = self.accounts.iter();
            let accounts =
                accounts.filter(move |(_, listed)| (listed.active != Some(false)) == active);
            accounts.map(|(did, _)| did).collect::<Vec<_>>()
        };
        let (active, inactive) = (of(true), of(false));
        let few = inactive.len().min((count / 4).max(count.saturating_sub(active.len())));
        let spread = |dids: &[&String], count: usize| {
            let count = count.min(dids.len());
            let at = |index: usize| dids[index * dids.len() / count.max(1)].clone();
            (0..count).map(at).collect::<Vec<_>>()
        };
        let mut sample = spread(&active, count - few);
        sample.extend(spread(&inactive, few));
        sample
    }
}

const METHOD: &str = "listRepos";
const PAGE_LEN: &str = "500";
/// Pages that are read: 10,000 accounts.
const MAX_PAGES: usize = 20;
const MAX_CURSOR_BYTES: usize = 512;
