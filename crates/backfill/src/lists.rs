//! Lists of accounts: `listRepos` of hosts, which a file or a relay names, and `listReposByCollection` of a relay.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use archive::{Collections, PageRow, account_key};
use atproto::syntax::{DidBuf, NsidBuf, Tid};
use net::egress::EgressPolicy;
use net::http::Url;
use net::xrpc::{
    ListPage, ListedHost, ListedRepo, OddEntries, PacedClient, PageOptions, XrpcError,
};
use tokio::time::sleep;

use crate::selection::{self, Selection};
use program::failure::Failure;
use program::list_floor::ListFloor;
use program::network;

/// The subjects of the arguments.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) hosts: Vec<Url>,
    pub(crate) relay: Option<Url>,
    pub(crate) collections: Vec<NsidBuf>,
}

/// A list of accounts.
#[derive(Clone, Debug)]
pub(crate) struct AccountList {
    pub(crate) host: Url,
    /// The collection that the accounts have; `None` for all accounts of a server.
    collection: Option<NsidBuf>,
    /// The collections that are fetched of its accounts; `None` for whole repositories.
    parts: Option<Collections>,
    /// Number of accounts that a relay states.
    pub(crate) stated_accounts: Option<u64>,
}

/// An account of a list.
#[derive(Clone, Debug)]
pub(crate) struct ListedAccount {
    pub(crate) did: DidBuf,
    /// The revision that the archive must have of it: the one that the host states, or `None` for any.
    pub(crate) rev: Option<Tid>,
    /// The status, if the host says that it does not serve the account.
    pub(crate) inactive: Option<Box<str>>,
    /// Whether the whole repository is fetched, whatever the collections: its part was refused before.
    pub(crate) is_whole: bool,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct AccountPage {
    pub(crate) accounts: Vec<ListedAccount>,
    /// The entries that name no account.
    pub(crate) odd: OddEntries,
    pub(crate) next: Option<Box<str>>,
}

impl Source {
    /// The lists. A host that the relay names twice has one list.
    pub(crate) async fn lists(
        &self,
        client: &PacedClient,
        selection: &Selection,
        parts: Option<&Collections>,
        policy: EgressPolicy,
    ) -> Result<Vec<AccountList>, Failure> {
        let mut lists = self.all_lists(client, selection, policy).await?;
        lists.iter_mut().for_each(|list| list.parts = parts.cloned());
        Ok(lists)
    }

    async fn all_lists(
        &self,
        client: &PacedClient,
        selection: &Selection,
        policy: EgressPolicy,
    ) -> Result<Vec<AccountList>, Failure> {
        let Some(relay) = &self.relay else {
            let lists = self.hosts.iter().map(|host| AccountList::of_host(host.clone(), None));
            return Ok(lists.filter(|list| selection.has_host(&list.host)).collect());
        };
        if !self.collections.is_empty() {
            let list = |collection: &NsidBuf| AccountList {
                host: relay.clone(),
                collection: Some(collection.clone()),
                parts: None,
                stated_accounts: None,
            };
            return Ok(self.collections.iter().map(list).collect());
        }
        let mut lists = BTreeMap::new();
        for (url, host) in relay_hosts(client, relay, policy).await? {
            if selection.has_host(&url) && host.status.as_deref() != Some("banned") {
                let accounts = host.account_count.and_then(|count| u64::try_from(count).ok());
                lists.insert(network::origin(&url), AccountList::of_host(url, accounts));
            }
        }
        Ok(lists.into_values().collect())
    }
}

/// The hosts of a relay, with their URLs. An entry that names none is left out, and the first of them are named.
///
/// # Errors
/// If the relay does not answer, or its list has no end.
pub async fn relay_hosts(
    client: &PacedClient,
    relay: &Url,
    policy: EgressPolicy,
) -> Result<Vec<(Url, ListedHost)>, Failure> {
    let options = PageOptions { limit: Some(PAGE_ACCOUNTS), cursor: None };
    let (mut pages, mut hosts) = (client.client().list_hosts(relay, &options), Vec::new());
    let (mut odd, mut names) = (OddEntries::default(), HashSet::new());
    let (mut answering, mut idle_pages) = (Duration::ZERO, 0);
    while let Some(page) = client.next_page(relay, &mut pages, &mut answering).await? {
        let has_next = page.cursor.is_some();
        let (mut of_page, odd_of_page) = usable_hosts(page, policy);
        of_page.retain(|(url, _)| names.insert(network::origin(url)));
        idle_pages = if of_page.is_empty() { idle_pages + 1 } else { 0 };
        hosts.extend(of_page);
        let fault = if idle_pages < MAX_IDLE_PAGES {
            ListFloor::PAGES.fault(hosts.len() as u64, answering)
        } else {
            Some(format!("{MAX_IDLE_PAGES} pages in a row have no new host"))
        };
        if let Some(fault) = fault.filter(|_| has_next) {
            return Err(Failure::Network(format!(
                "{relay}: the list of hosts has no end: {fault}"
            )));
        }
        for entry in odd.append(odd_of_page) {
            // If standard error is closed, the list of hosts remains.
            tracing::warn!(target: "wireproof::backfill", "{relay}: host left out: {entry}");
        }
        if hosts.len() as u64 + odd.count() > MAX_HOSTS as u64 {
            return Err(Failure::Network(format!("{relay}: more than {MAX_HOSTS} hosts")));
        }
    }
    Ok(hosts)
}

/// The hosts of a page that have a URL, and its other entries.
fn usable_hosts(
    page: ListPage<ListedHost>,
    policy: EgressPolicy,
) -> (Vec<(Url, ListedHost)>, OddEntries) {
    let (mut hosts, mut odd) = (Vec::new(), page.odd);
    for host in page.items {
        match host_url(&host.hostname, policy) {
            Some(url) => hosts.push((url, host)),
            None => odd.push(&host.hostname, "not the name of a host"),
        }
    }
    (hosts, odd)
}

/// The URL of a host that a relay names.
fn host_url(hostname: &str, policy: EgressPolicy) -> Option<Url> {
    let scheme = if policy == EgressPolicy::Loopback { "http" } else { "https" };
    format!("{scheme}://{hostname}").parse().ok().filter(is_origin)
}

/// The hosts in a file.
pub fn read_hosts(path: &Path) -> Result<Vec<Url>, Failure> {
    let (mut hosts, mut origins) = (Vec::new(), HashSet::new());
    for line in selection::lines(path)? {
        let text = if line.contains("://") { line.clone() } else { format!("https://{line}") };
        let url: Option<Url> = text.parse().ok().filter(is_origin);
        let url = url.ok_or_else(|| {
            Failure::Usage(format!("{}: `{line}` is neither a host nor its URL", path.display()))
        })?;
        if origins.insert(network::origin(&url)) {
            hosts.push(url);
        }
    }
    if hosts.is_empty() {
        Err(Failure::Usage(format!("{}: no host", path.display())))
    } else {
        Ok(hosts)
    }
}

/// Whether a URL names a host and nothing of it.
fn is_origin(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.username().is_empty()
}

impl AccountList {
    fn of_host(host: Url, stated_accounts: Option<u64>) -> Self {
        Self { host, collection: None, parts: None, stated_accounts }
    }

    /// The name in the ledger. Other collections are another list: its pages are to be processed again.
    pub(crate) fn name(&self) -> String {
        let mut name = network::origin(&self.host);
        if let Some(collection) = &self.collection {
            name += &format!(" {collection}");
        }
        if let Some(parts) = &self.parts {
            name += &format!(" parts {parts}");
        }
        name
    }

    /// Whether accounts of this server are fetched: a server lists its own, and a collection has accounts of all servers.
    pub(crate) fn has_host(&self, host: &Url) -> bool {
        self.collection.is_some() || host.origin() == self.host.origin()
    }

    /// A page. An outage is passed over some times. The time in which the host answered is added to `answering`.
    pub(crate) async fn page(
        &self,
        client: &PacedClient,
        cursor: Option<&str>,
        answering: &mut Duration,
    ) -> Result<AccountPage, XrpcError> {
        let mut attempt = 1;
        loop {
            match self.try_page(client, cursor, answering).await {
                Err(error) if attempt < ATTEMPTS && error.is_retryable() => {
                    sleep(RETRY * attempt).await;
                }
                page => return page,
            }
            attempt += 1;
        }
    }

    async fn try_page(
        &self,
        client: &PacedClient,
        cursor: Option<&str>,
        answering: &mut Duration,
    ) -> Result<AccountPage, XrpcError> {
        let options = PageOptions { limit: Some(PAGE_ACCOUNTS), cursor };
        let Some(collection) = &self.collection else {
            let mut pages = client.client().list_repos(&self.host, &options);
            let page = client.next_page(&self.host, &mut pages, answering).await?;
            return Ok(AccountPage::of(page, ListedAccount::of_repo));
        };
        let collection = collection.as_nsid();
        let mut pages = client.client().list_repos_by_collection(&self.host, collection, &options);
        let page = client.next_page(&self.host, &mut pages, answering).await?;
        Ok(AccountPage::of(page, ListedAccount::new))
    }
}

impl AccountPage {
    fn of<T>(page: Option<ListPage<T>>, account: impl Fn(T) -> ListedAccount) -> Self {
        match page {
            Some(page) => Self {
                accounts: page.items.into_iter().map(account).collect(),
                odd: page.odd,
                next: page.cursor,
            },
            None => Self { accounts: Vec::new(), odd: OddEntries::default(), next: None },
        }
    }
}

impl ListedAccount {
    /// An account of which the list says nothing more.
    pub(crate) fn new(did: DidBuf) -> Self {
        Self { did, rev: None, inactive: None, is_whole: false }
    }

    fn of_repo(repo: ListedRepo) -> Self {
        let is_inactive = repo.active == Some(false);
        let status = || repo.status.unwrap_or_else(|| "inactive".into());
        let inactive = is_inactive.then(status);
        Self { rev: repo.rev, inactive, ..Self::new(repo.did) }
    }
}

/// The part of a list that a sweep has seen: a list that repeats or invents accounts never ends by itself.
#[derive(Debug, Default)]
pub(crate) struct SeenAccounts {
    keys: HashSet<[u8; 16]>,
    /// Number of pages in a row without a new account.
    idle_pages: usize,
    /// Number of pages in a row without an account of the host.
    strange_pages: usize,
    /// Entries that name no account.
    pub(crate) odd: OddEntries,
    /// Time in which the host has answered requests for pages.
    pub(crate) answering: Duration,
}

impl SeenAccounts {
    /// Removes the accounts of a page that were seen before.
    pub(crate) fn retain_new(&mut self, accounts: &mut Vec<ListedAccount>) {
        accounts.retain(|account| self.keys.insert(account_key(account.did.as_str())));
        self.idle_pages = if accounts.is_empty() { self.idle_pages + 1 } else { 0 };
    }

    /// Counts the result of a page.
    pub(crate) fn count(&mut self, row: &PageRow) {
        let known = row.stored + row.present + row.excluded + row.inactive.values().sum::<u64>();
        let is_strange = known == 0 && row.failures.iter().all(|failure| failure.host.is_none());
        self.strange_pages = if is_strange { self.strange_pages + 1 } else { 0 };
    }

    /// Why the list is given up, if it is; `has_next` is whether it goes on after its last page.
    pub(crate) fn excess(&self, has_next: bool) -> Option<String> {
        let floor = ListFloor::PAGES.fault(self.keys.len() as u64, self.answering);
        if let Some(fault) = floor.filter(|_| has_next) {
            return Some(fault);
        }
        if self.idle_pages >= MAX_IDLE_PAGES {
            return Some(format!("{MAX_IDLE_PAGES} pages in a row have no new account"));
        }
        if self.strange_pages >= MAX_STRANGE_PAGES {
            return Some(format!("{MAX_STRANGE_PAGES} pages in a row have no account of the host"));
        }
        (self.keys.len() > MAX_ACCOUNTS).then(|| format!("more than {MAX_ACCOUNTS} accounts"))
    }
}

/// Number of accounts that a page is asked for.
const PAGE_ACCOUNTS: u16 = 1000;

/// Pages in a row without a new account after which a list is given up.
const MAX_IDLE_PAGES: usize = 32;

/// Pages in a row without an account of the host after which a list is given up: every account of them costs a look-up in
/// the directory.
const MAX_STRANGE_PAGES: usize = 8;

/// Maximum number of accounts of a list: several times as many as the largest host has.
const MAX_ACCOUNTS: usize = 10_000_000;

/// Maximum number of hosts of a relay.
const MAX_HOSTS: usize = 100_000;

/// Attempts at a page, and the delay before the second; it grows every time.
const ATTEMPTS: u32 = 3;
const RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: usize) -> ListedAccount {
        let did = format!("did:web:a{number}.test").parse().unwrap();
        ListedAccount::new(did)
    }

    #[test]
    fn a_list_that_repeats_its_accounts_is_given_up() {
        let mut seen = SeenAccounts::default();
        let mut page: Vec<_> = (0..3).chain(0..3).map(account).collect();
        seen.retain_new(&mut page);
        assert_eq!(page.len(), 3);
        for _ in 0..MAX_IDLE_PAGES {
            assert_eq!(seen.excess(true), None);
            let mut page = vec![account(1)];
            seen.retain_new(&mut page);
            assert!(page.is_empty());
        }
        assert!(seen.excess(true).unwrap().contains("no new account"));
    }

    #[test]
    fn a_list_of_accounts_of_nobody_is_given_up() {
        let mut seen = SeenAccounts::default();
        let strange = PageRow { elsewhere: 7, ..PageRow::default() };
        for _ in 0..MAX_STRANGE_PAGES - 1 {
            seen.count(&strange);
        }
        seen.count(&PageRow { stored: 1, ..strange.clone() });
        for _ in 0..MAX_STRANGE_PAGES {
            assert_eq!(seen.excess(true), None);
            seen.count(&strange);
        }
        assert!(seen.excess(true).unwrap().contains("no account of the host"));
    }

    #[test]
    fn a_host_of_a_relay_whose_name_makes_no_url_is_left_out_and_named() {
        let named = ["", "a b", "pds.test/path", "me@pds.test", "pds.example.com"];
        let host = |name: &str| ListedHost {
            hostname: name.into(),
            seq: None,
            account_count: None,
            status: None,
        };
        let page =
            ListPage { items: named.map(host).to_vec(), odd: OddEntries::default(), cursor: None };
        let (hosts, odd) = usable_hosts(page, EgressPolicy::Public);
        let urls: Vec<String> = hosts.iter().map(|(url, _)| network::origin(url)).collect();
        assert_eq!((&*urls, odd.count()), (&["https://pds.example.com".to_owned()][..], 4));
        assert_eq!(&*odd.named()[2], "pds.test/path: not the name of a host");
    }

    #[test]
    fn an_account_without_a_listed_revision_is_one_of_its_page() {
        let repo = ListedRepo {
            did: "did:web:a.test".parse().unwrap(),
            head: None,
            rev: None,
            active: None,
            status: None,
        };
        let mut odd = OddEntries::default();
        odd.push("7", "not an account");
        let page = ListPage { items: vec![repo], odd: odd.clone(), cursor: Some("2".into()) };
        let page = AccountPage::of(Some(page), ListedAccount::of_repo);
        let ListedAccount { rev, inactive, .. } = &page.accounts[0];
        assert_eq!((rev, inactive, page.odd, page.next.as_deref()), (&None, &None, odd, Some("2")));
    }

    #[test]
    fn hosts_of_a_file_are_names_or_urls_and_each_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "pds.example.com\nhttps://pds.example.com/\nhttp://localhost:4481\n")
            .unwrap();
        let hosts: Vec<String> = read_hosts(&path).unwrap().iter().map(network::origin).collect();
        assert_eq!(hosts, ["https://pds.example.com", "http://localhost:4481"]);
        for wrong in ["https://pds.example.com/xrpc", "ftp://pds.example.com", "a b", ""] {
            std::fs::write(&path, format!("{wrong}\n")).unwrap();
            assert!(read_hosts(&path).is_err(), "{wrong}");
        }
    }
}
