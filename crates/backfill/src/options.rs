//! A backfill as a library call.

use std::path::PathBuf;
use std::time::Duration;

use archive::{Archive, Collections, Ledger};
use atproto::syntax::CollectionPatternBuf;
use net::http::{Contact, Limits, Url};
use net::xrpc::{PaceOptions, PacedClient};
use program::failure::Failure;
use program::network::{ContactArgs, Network, NetworkArgs};

use crate::backfill_run::{BackfillParts, BackfillRun};
use crate::holder::Holder;
use crate::identities::Identities;
use crate::lists::Source;
use crate::selection::Selection;
use crate::summary::Summary;

/// The accounts to fetch, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackfillOptions {
    /// The hosts whose accounts are listed.
    pub hosts: Vec<Url>,
    /// The relay whose hosts are read; with collections, the relay that lists the accounts.
    pub relay: Option<Url>,
    /// The collections to fetch: of each account the part of its repository that proves them; all, if there is none. With a relay, only
    /// accounts with records in them, according to the relay, which knows no patterns: with one of these, all accounts of its hosts.
    pub collections: Vec<CollectionPatternBuf>,
    /// Whether whole repositories are fetched, whatever the collections.
    pub is_whole: bool,
    /// The accounts to fetch.
    pub selection: Selection,
    /// A file of `plc mirror` in which keys and hosts are looked up first.
    pub plc_mirror: Option<PathBuf>,
    /// The name of the ledger: another name begins another backfill, which skips repositories that the archive has.
    /// `backfill`.
    pub name: String,
    /// Maximum number of requests per second to one host, at most 50. 10.
    pub max_rate: f64,
    /// Number of lists that are read at a time. 32.
    pub concurrent_lists: u16,
    /// Maximum bytes of archives that are received, or wait to be verified and stored. `None` for 8 GiB.
    pub max_bytes_in_use: Option<u64>,
    /// Time before the second sweep, if an account or a list failed; before the third, six times as much. 30 seconds.
    pub retry_delay: Duration,
    /// Limits of one download.
    pub limits: Limits,
    /// A contact for the operators of the hosts. Required for public hosts.
    pub contact: ContactArgs,
    /// The directory, and where connections may go.
    pub network: NetworkArgs,
    /// Whether progress and messages are printed to standard error. Otherwise messages are events of `tracing`.
    pub prints_progress: bool,
}

impl Default for BackfillOptions {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            relay: None,
            collections: Vec::new(),
            is_whole: false,
            selection: Selection::default(),
            plc_mirror: None,
            name: "backfill".to_owned(),
            max_rate: 10.0,
            concurrent_lists: 32,
            max_bytes_in_use: None,
            retry_delay: Duration::from_secs(30),
            limits: Limits::REPOSITORY,
            contact: ContactArgs::default(),
            network: NetworkArgs::default(),
            prints_progress: false,
        }
    }
}

/// Fetches the repositories of all accounts of hosts, or some of their collections, verifies them and stores them in an archive.
///
/// Of selected collections, only the tree nodes and records that prove them complete are fetched, unless the whole repository costs less,
/// or its server does not serve them so.
///
/// A repository whose revision the archive has is skipped. The lists are swept again at the end, up to three times in all, for accounts
/// that failed, have moved or are new. After any end, the same backfill goes on where the last one has stopped. Several processes
/// share the work of one name.
///
/// No option is read from the environment, and nothing is printed: messages are events of `tracing` with the target
/// `wireproof::backfill`.
///
/// ```no_run
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use wireproof::archive::Archive;
/// use wireproof::backfill::Backfill;
///
/// let summary = Backfill::new(Archive::open("archive")?)
///     .host("https://pds.example.com".parse()?)
///     .contact("ops@example.com".parse()?)
///     .run()?;
/// println!("{} repositories stored", summary.totals.stored_count);
/// summary.result()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Backfill {
    archive: Archive,
    options: BackfillOptions,
}

impl Backfill {
    /// A backfill into an archive, with the default options.
    pub fn new(archive: Archive) -> Self {
        Self { archive, options: BackfillOptions::default() }
    }

    /// The same with these options.
    #[must_use]
    pub fn with_options(mut self, options: BackfillOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds a host whose accounts are fetched.
    #[must_use]
    pub fn host(mut self, url: Url) -> Self {
        self.options.hosts.push(url);
        self
    }

    /// The relay whose hosts are read.
    #[must_use]
    pub fn relay(mut self, url: Url) -> Self {
        self.options.relay = Some(url);
        self
    }

    /// Adds a collection to fetch. Default: whole repositories.
    #[must_use]
    pub fn collection(mut self, pattern: CollectionPatternBuf) -> Self {
        self.options.collections.push(pattern);
        self
    }

    /// The accounts to fetch. Default: all.
    #[must_use]
    pub fn selection(mut self, selection: Selection) -> Self {
        self.options.selection = selection;
        self
    }

    /// The name of the ledger: another name begins another backfill, which skips repositories that the archive has.
    /// Default: `backfill`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// A contact for the operators of the hosts: an e-mail address or a URL, part of the User-Agent of every request.
    /// Required for public hosts.
    #[must_use]
    pub fn contact(mut self, contact: Contact) -> Self {
        self.options.contact.contact = Some(contact);
        self
    }

    /// The did:plc directory. Default: `https://plc.directory`.
    #[must_use]
    pub fn plc(mut self, directory: Url) -> Self {
        self.options.network.plc = Some(directory);
        self
    }

    /// Connects to this machine only, over plain HTTP too.
    #[must_use]
    pub fn development(mut self) -> Self {
        self.options.network.development = true;
        self
    }

    /// Runs to the end, and returns the content of the ledger. Blocks the calling thread, which must not be one of an
    /// asynchronous runtime: the work has threads of its own. [`Summary::result`] tells whether all accounts are
    /// stored.
    ///
    /// # Errors
    /// If an option does not fit the others, or the archive cannot be read or written.
    pub fn run(self) -> Result<Summary, Failure> {
        let Self { archive, options } = self;
        if options.hosts.is_empty() && options.relay.is_none() {
            return Err(Failure::Usage("no host and no relay is named".to_owned()));
        }
        let named: Vec<Url> = options.hosts.iter().chain(&options.relay).cloned().collect();
        let network = Network::open_with_contact(&options.network, &options.contact, &named)?;
        let ledger = Ledger::new(&archive, &options.name)?;
        let source = options.source();
        // Collections share accounts: an account is fetched for the first list that has it.
        let concurrent_lists =
            if source.collections.is_empty() { options.concurrent_lists } else { 1 };
        let pace = options.pace()?;
        let selected = || options.collections.iter().cloned().collect::<Collections>();
        let has_parts = !options.collections.is_empty() && !options.is_whole;
        let run = BackfillRun::new(BackfillParts {
            identities: Identities::new(options.plc_mirror.as_deref(), &network)?,
            client: PacedClient::new(network.xrpc, &pace),
            limits: options.limits,
            archive,
            ledger,
            holder: Holder::new()?,
            parts: has_parts.then(selected),
            selection: options.selection,
            concurrent_lists: concurrent_lists.into(),
            retry_delay: options.retry_delay,
            is_silent: !options.prints_progress,
        });
        run.complete(source)
    }
}

impl BackfillOptions {
    fn source(&self) -> Source {
        // A relay lists the accounts of a collection, and of no pattern.
        let names = self.collections.iter().map(|name| Some(name.as_pattern().as_nsid()?.to_buf()));
        let names = names.collect::<Option<Vec<_>>>().filter(|_| self.relay.is_some());
        Source {
            hosts: self.hosts.clone(),
            relay: self.relay.clone(),
            collections: names.unwrap_or_default(),
        }
    }

    fn pace(&self) -> Result<PaceOptions, Failure> {
        let pace = PaceOptions::default();
        let max_archive_bytes = self.limits.max_bytes;
        let max_bytes_in_use =
            self.max_bytes_in_use.unwrap_or(pace.max_bytes_in_use.max(2 * max_archive_bytes));
        if max_bytes_in_use < max_archive_bytes.saturating_add(MIN_OTHER_BYTES) {
            return Err(Failure::Usage(format!(
                "--max-bytes-in-use {max_bytes_in_use} has no room for an archive of --max-bytes {max_archive_bytes} and \
                 {MIN_OTHER_BYTES} bytes of others"
            )));
        }
        Ok(PaceOptions { max_rate: self.max_rate, max_bytes_in_use, max_archive_bytes, ..pace })
    }
}

/// Bytes for other archives than the largest.
const MIN_OTHER_BYTES: u64 = 16 << 20;
