//! Accounts that hosts list, as sources of histories: `listRepos` of a server, and `listReposByCollection` of a relay.
//!
//! The accounts of a page and its cursor are stored together, so a run that ends here goes on after that page. A host's list
//! is a claim: an account is fetched from the server that its own document names, and one that names none of the servers
//! whose `listRepos` is read is left out.

use std::time::Duration;

use atproto::syntax::NsidBuf;
use delivery::{Outbox, OutboxError};
use net::http::Url;
use net::xrpc::{
    Client, ListPage, ListedRepo, OddEntries, PageOptions, Pages, XrpcError, XrpcFault,
};
use tokio::time::{Instant, sleep};
use tracing::Level;

use crate::list_floor::ListFloor;
use crate::messages;
use crate::network;

/// A list of accounts.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    host: Url,
    /// The collection that the accounts have; `None` for all accounts of a server.
    collection: Option<NsidBuf>,
}

impl Listing {
    /// All accounts of a server.
    pub(super) fn of_server(host: Url) -> Self {
        Self { host: http_url(host), collection: None }
    }

    /// The accounts with records of a collection, by a relay.
    pub(super) fn of_collection(relay: Url, collection: NsidBuf) -> Self {
        Self { host: http_url(relay), collection: Some(collection) }
    }

    /// The name under which its accounts are stored.
    pub(super) fn name(&self) -> String {
        let origin = network::origin(&self.host);
        match &self.collection {
            Some(collection) => format!("{origin} {}", collection.as_nsid().as_str()),
            None => origin,
        }
    }

    /// The server that has all of the accounts.
    pub(super) fn server(&self) -> Option<&Url> {
        self.collection.is_none().then_some(&self.host)
    }

    /// Stores the accounts that are listed after the last stored page. A list that fails or does not end is named, and
    /// its next reading goes on with it.
    pub(super) async fn read(&self, client: &Client, outbox: &Outbox) -> Result<(), OutboxError> {
        let read = self.read_pages(client, outbox).await?;
        read.report(&self.name());
        Ok(())
    }

    /// The same during a run, for accounts that are new: a list without any is not named.
    pub(super) async fn read_on(
        &self,
        client: &Client,
        outbox: &Outbox,
    ) -> Result<(), OutboxError> {
        let read = self.read_pages(client, outbox).await?;
        if read.accounts > 0 || read.end.is_some() {
            read.report(&self.name());
        }
        Ok(())
    }

    async fn read_pages(&self, client: &Client, outbox: &Outbox) -> Result<ReadList, OutboxError> {
        let name = self.name();
        let cursor = outbox.histories()?.cursor(&name)?;
        let options = PageOptions { limit: Some(PAGE_ACCOUNTS), cursor: cursor.as_deref() };
        let mut reading = Reading {
            outbox,
            name: &name,
            accounts: 0,
            idle_pages: 0,
            answering: Duration::ZERO,
            odd: OddEntries::default(),
        };
        let end = match &self.collection {
            None => {
                let pages = client.list_repos(&self.host, &options);
                reading.run(pages, active_account).await?
            }
            Some(collection) => {
                let collection = collection.as_nsid();
                let pages = client.list_repos_by_collection(&self.host, collection, &options);
                reading.run(pages, |did| Some(did.as_did().as_str())).await?
            }
        };
        Ok(ReadList { accounts: reading.accounts, odd_entries: reading.odd.count(), end })
    }
}

/// The part of a list that was read.
struct ReadList {
    /// Number of accounts that were not known.
    accounts: usize,
    /// Number of entries that name no account.
    odd_entries: u64,
    /// Why it was not read to its end, if it was not.
    end: Option<String>,
}

impl ReadList {
    fn report(self, name: &str) {
        let (level, end) = match self.end {
            None => (Level::INFO, String::new()),
            Some(end) => (Level::WARN, format!("; {end}: the list is continued later")),
        };
        let accounts = self.accounts;
        let odd = match self.odd_entries {
            0 => String::new(),
            odd => format!(", entries left out: {odd}"),
        };
        messages::print(level, &format!("{name}: {accounts} accounts listed{odd}{end}"));
    }
}

/// A list that is being read.
struct Reading<'r> {
    outbox: &'r Outbox,
    name: &'r str,
    /// Number of accounts that were not known.
    accounts: usize,
    /// Number of pages in a row without such an account.
    idle_pages: usize,
    /// Time in which the host has answered.
    answering: Duration,
    odd: OddEntries,
}

impl Reading<'_> {
    /// Stores page after page. Why that ended before the end of the list, if it did.
    async fn run<T>(
        &mut self,
        mut pages: Pages<'_, T>,
        did: impl Fn(&T) -> Option<&str>,
    ) -> Result<Option<String>, OutboxError> {
        loop {
            let page = match next_page(&mut pages, &mut self.answering).await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error.to_string())),
            };
            for entry in self.odd.append(page.odd) {
                let text = format!("{}: entry left out: {entry}", self.name);
                messages::print(Level::WARN, &text);
            }
            let dids: Vec<&str> = page.items.iter().filter_map(&did).collect();
            let new = self.outbox.await_listed(self.name, &dids, page.cursor.as_deref())?;
            self.accounts += new;
            self.idle_pages = if new == 0 { self.idle_pages + 1 } else { 0 };
            if self.idle_pages >= MAX_IDLE_PAGES {
                return Ok(Some(format!("{MAX_IDLE_PAGES} pages have no new account")));
            }
            let floor = ListFloor::PAGES.fault(self.accounts as u64, self.answering);
            if let Some(fault) = floor.filter(|_| page.cursor.is_some()) {
                return Ok(Some(fault));
            }
            if self.accounts >= MAX_ACCOUNTS {
                return Ok(Some(format!("at most {MAX_ACCOUNTS} are listed by one run")));
            }
        }
    }
}

/// The next page. A limit of the host is waited for, and an outage passed over some times.
async fn next_page<T>(
    pages: &mut Pages<'_, T>,
    answering: &mut Duration,
) -> Result<Option<ListPage<T>>, XrpcError> {
    let mut attempt = 0;
    loop {
        let started = Instant::now();
        let page = pages.next().await;
        *answering += started.elapsed();
        let error = match page {
            Err(error) if attempt < ATTEMPTS => error,
            result => return result,
        };
        attempt += 1;
        match &error.fault {
            XrpcFault::RateLimited(limited) if limited.0 <= MAX_WAIT => sleep(limited.0).await,
            _ if error.is_retryable() => sleep(RETRY * attempt).await,
            _ => return Err(error),
        }
    }
}

/// The URL of requests to a host that is named by the URL of its stream.
fn http_url(mut host: Url) -> Url {
    let scheme = if matches!(host.scheme(), "wss" | "https") { "https" } else { "http" };
    // The scheme of a URL with a host can be changed to another one of the web.
    let _ = host.set_scheme(scheme);
    host
}

fn active_account(repo: &ListedRepo) -> Option<&str> {
    (repo.active != Some(false)).then(|| repo.did.as_did().as_str())
}

/// Number of accounts that a page is asked for.
const PAGE_ACCOUNTS: u16 = 1000;

/// Pages in a row without a new account after which a list is given up: a host could list for ever.
const MAX_IDLE_PAGES: usize = 32;

/// Maximum number of new accounts that one run takes from a list.
const MAX_ACCOUNTS: usize = 1_000_000;

/// Repetitions of a request for a page, and the delay before the first; it grows with every repetition.
const ATTEMPTS: u32 = 5;
const RETRY: Duration = Duration::from_secs(1);

/// Maximum wait for the limit of a host.
const MAX_WAIT: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    use delivery::{Options, StartAt};
    use net::dns::LoopbackDns;
    use net::egress::EgressPolicy;
    use net::http;

    use super::*;

    /// Serves pages; every page is made from the cursor in the request.
    fn serve(page: impl Fn(Option<usize>) -> String + Send + 'static) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.unwrap(), [0; 4096]);
                let len = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..len]).into_owned();
                let cursor = head.split_once("cursor=").map(|(_, rest)| {
                    let digits = rest.find(|char: char| !char.is_ascii_digit());
                    rest[..digits.unwrap_or(rest.len())].parse().unwrap()
                });
                let body = page(cursor);
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json";
                let len = body.len();
                let _ = write!(stream, "{head}\r\ncontent-length: {len}\r\n\r\n{body}");
            }
        });
        url.parse().unwrap()
    }

    /// A page with this account and the next cursor.
    fn page(did: &str, cursor: &str) -> String {
        let head = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";
        format!(r#"{{"repos":[{{"did":"{did}","head":"{head}","rev":"3jzfcijpj2z2a"}}]{cursor}}}"#)
    }

    fn next(cursor: usize) -> String {
        format!(r#","cursor":"{cursor}""#)
    }

    /// Reads the list of a server. The awaited accounts and the stored cursor.
    async fn read(server: Url) -> (Vec<String>, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
        outbox.register("reader", StartAt::Oldest).unwrap();
        let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let listing = Listing::of_server(server);
        listing.read(&Client::new(http), &outbox).await.unwrap();
        let histories = outbox.histories().unwrap();
        let awaited = histories.awaited().unwrap();
        let dids = awaited.into_iter().map(|of| of.did.into_string()).collect();
        (dids, histories.cursor(&listing.name()).unwrap())
    }

    #[tokio::test]
    async fn all_pages_are_read_and_inactive_accounts_left_out() {
        let server = serve(|cursor| match cursor {
            None => page("did:web:a.test", &next(1)),
            Some(1) => {
                page("did:web:b.test", &next(2)).replace("\"rev\"", "\"active\":false,\"rev\"")
            }
            _ => page("did:web:c.test", ""),
        });
        let expected = ["did:web:a.test", "did:web:c.test"].map(str::to_owned).to_vec();
        assert_eq!(read(server).await, (expected, Some("2".to_owned())));
    }

    #[tokio::test]
    async fn a_list_without_end_is_given_up_when_it_has_no_new_account() {
        let server = serve(|cursor| {
            let cursor = cursor.unwrap_or(0);
            page(&format!("did:web:a{}.test", cursor % 3), &next(cursor + 1))
        });
        let (dids, cursor) = read(server).await;
        assert_eq!((dids.len(), cursor.unwrap()), (3, (3 + MAX_IDLE_PAGES).to_string()));
    }

    #[tokio::test]
    async fn a_repeated_cursor_and_a_page_without_a_list_end_a_list_and_keep_what_was_read() {
        let repeated = serve(|_| page("did:web:a.test", &next(7)));
        let one = vec!["did:web:a.test".to_owned()];
        assert_eq!(read(repeated).await, (one.clone(), Some("7".to_owned())));
        let malformed = serve(|cursor| match cursor {
            None => page("did:web:a.test", &next(1)),
            _ => r#"{"repos":{},"cursor":"2"}"#.to_owned(),
        });
        assert_eq!(read(malformed).await, (one, Some("1".to_owned())));
    }

    #[tokio::test]
    async fn an_odd_entry_costs_neither_its_page_nor_the_pages_behind_it() {
        let server = serve(|cursor| match cursor {
            None => page("did:web:a.test", &next(1)),
            Some(1) => page("nobody", &next(2)),
            Some(2) => page("did:web:b.test", &next(3)).replace("3jzfcijpj2z2a", ""),
            _ => page("did:web:c.test", ""),
        });
        let dids = ["did:web:a.test", "did:web:b.test", "did:web:c.test"].map(str::to_owned);
        assert_eq!(read(server).await, (dids.to_vec(), Some("3".to_owned())));
    }
}
