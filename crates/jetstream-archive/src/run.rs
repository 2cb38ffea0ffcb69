//! A run: events are downloaded and folded, every account is judged, and proved repositories are stored.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use archive::{
    Archive, ArchivedPart, ArchivedRepository, Collections, FailedAccount, HideList, HostRow,
    Ledger, MAX_PART_BYTES, PageRow, WorkId,
};
use atproto::syntax::{CollectionPatternBuf, DidBuf};
use backfill::Identities;
use codec::Cid;
use codec::cid::Codec;
use futures_util::{StreamExt, stream};
use net::http::Url;
use net::jetstream::{ArchiveClient, PlanRequest, Token};
use net::xrpc::{PaceOptions, PacedClient};
use program::clock::now_micros;
use program::failure::Failure;
use program::network::{self, ContactArgs, Network, NetworkArgs};
use program::progress::ProgressLine;
use verify::repository;

use crate::account::{Judged, ProvedAccount, Prover, ranges_proof};
use crate::download::{DownloadTotals, Downloads};
use crate::fold::{Fold, FoldedAccount, FoldedAccounts, MAX_FILE_BYTES};
use crate::sampling::{SampleReport, Sampler};
use crate::segment::Row;
use crate::summary::Summary;
use crate::verdict::{AccountVerdict, Verdict};

/// The archive to check, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The server.
    pub host: Url,
    /// The token that the server asks for.
    pub token: Option<Token>,
    /// Only these collections. Their records are proved without the others, and stored as parts. All, if there is none.
    pub collections: Vec<CollectionPatternBuf>,
    /// Only these accounts, at most 10,000. All, if there is none.
    pub dids: Vec<DidBuf>,
    /// The last sequence number to read; `None` for all.
    pub before_seq: Option<u64>,
    /// Number of accounts to prove, chosen at random. `None` for all.
    pub sample: Option<usize>,
    /// The seed of the choice.
    pub seed: u64,
    /// A file of `plc mirror` in which keys and hosts are looked up first.
    pub plc_mirror: Option<PathBuf>,
    /// The name of the ledger in the archive. `jetstream`.
    pub name: String,
    /// Maximum bytes of events in temporary files. 256 GiB.
    pub max_temporary_bytes: u64,
    /// Maximum number of requests per second to one host of accounts. 10.
    pub max_rate: f64,
    /// A contact for the operators of the hosts. Required for public hosts.
    pub contact: ContactArgs,
    /// The directory, and where connections may go.
    pub network: NetworkArgs,
    /// Whether progress is printed to standard error.
    pub prints_progress: bool,
}

impl ImportOptions {
    /// The defaults for this server.
    pub fn new(host: Url) -> Self {
        Self {
            host,
            token: None,
            collections: Vec::new(),
            dids: Vec::new(),
            before_seq: None,
            sample: None,
            seed: 0,
            plc_mirror: None,
            name: "jetstream".to_owned(),
            max_temporary_bytes: MAX_TEMPORARY_BYTES,
            max_rate: 10.0,
            contact: ContactArgs::default(),
            network: NetworkArgs::default(),
            prints_progress: false,
        }
    }
}

/// Gets every verdict.
pub type OnVerdict<'v> = &'v mut dyn FnMut(&AccountVerdict) -> Result<(), Failure>;

/// Reads a hosted archive, proves its accounts against the commits that they have signed, and stores the proved repositories in
/// `archive`, with a ledger of all other accounts. Every account has one verdict.
///
/// # Errors
/// If an option does not fit, the hosted archive cannot be read or breaks a rule of its format, or `archive` cannot be written. Wrong accounts
/// are no error: [`Summary::result`] tells.
pub async fn import(
    options: &ImportOptions,
    archive: Option<&Archive>,
    on_verdict: OnVerdict<'_>,
) -> Result<Summary, Failure> {
    let named = [options.host.clone()];
    let network = Network::open_with_contact(&options.network, &options.contact, &named)?;
    let mut run = Run {
        options,
        named: Vec::new(),
        summary: Summary { host: network::origin(&options.host), ..Summary::default() },
        progress: if options.prints_progress {
            ProgressLine::new()
        } else {
            ProgressLine::silent()
        },
    };
    let client =
        ArchiveClient::new(network.http.clone(), options.host.clone(), options.token.clone());
    let (accounts, sampler) = run.fold(&client).await?;
    let identities = Identities::new(options.plc_mirror.as_deref(), &network)?;
    let pace = PaceOptions { max_rate: options.max_rate, ..PaceOptions::default() };
    let client = PacedClient::new(network.xrpc.clone(), &pace);
    let collections: Collections = options.collections.iter().cloned().collect();
    let collections = (!options.collections.is_empty()).then_some(&collections);
    let prover = Prover { identities: &identities, client: &client, collections };
    let store = match archive {
        Some(archive) => Some(Store::open(archive, options).await?),
        None => None,
    };
    run.judge(accounts, &sampler, &prover, store, on_verdict).await?;
    Ok(run.finish())
}

struct Run<'r> {
    options: &'r ImportOptions,
    /// The accounts that were named, or the chosen ones among them.
    named: Vec<DidBuf>,
    summary: Summary,
    progress: ProgressLine,
}

impl Run<'_> {
    /// Downloads the events, and folds the events of the chosen accounts.
    async fn fold(&mut self, client: &ArchiveClient) -> Result<(FoldedAccounts, Sampler), Failure> {
        let options = self.options;
        let mut sampler = Sampler::new(options.seed, options.sample);
        // Named accounts are chosen before, so that only their blocks are planned.
        self.named = sampler.choose(&options.dids);
        let mut fold = Fold::new(MAX_FILE_BYTES, options.max_temporary_bytes);
        let filter = RowFilter::new(options, &self.named);
        let request = PlanRequest {
            dids: self.named.clone(),
            collections: options.collections.iter().map(ToString::to_string).collect(),
            before_seq: options.before_seq,
            ..PlanRequest::default()
        };
        let mut downloads = Downloads { client, request, totals: Default::default() };
        let (host, progress) = (network::origin(&options.host), &mut self.progress);
        let mut take = |row: &Row<'_>| match filter.admits(row) && sampler.admit(row.did) {
            true => fold.add(row),
            false => Ok(()),
        };
        let mut show = |totals: &DownloadTotals| {
            progress.step(format!("{host}: {} events, {} bytes", totals.events, totals.bytes));
        };
        downloads.read(&mut take, &mut show).await?;
        self.summary.add_downloads(&downloads.totals);
        self.summary.unusable_event_count = fold.without_account;
        (self.summary.population_count, self.summary.is_population_exact) = sampler.population();
        Ok((fold.finish().map_err(temporary)?, sampler))
    }

    async fn judge(
        &mut self,
        mut accounts: FoldedAccounts,
        sampler: &Sampler,
        prover: &Prover<'_>,
        mut store: Option<Store<'_>>,
        on_verdict: OnVerdict<'_>,
    ) -> Result<(), Failure> {
        let mut absent: BTreeSet<DidBuf> = std::mem::take(&mut self.named).into_iter().collect();
        while let Some(mut group) = accounts.next().map_err(temporary)? {
            group.retain(|account| sampler.is_chosen(account.did.as_str()));
            for account in &group {
                self.summary.unusable_event_count += account.unusable;
                absent.remove(&account.did);
            }
            self.judge_group(group, prover, store.as_mut(), on_verdict).await?;
        }
        // The archive has nothing of these.
        let group = absent.into_iter().map(FoldedAccount::new).collect();
        self.judge_group(group, prover, store.as_mut(), on_verdict).await
    }

    async fn judge_group(
        &mut self,
        mut group: Vec<FoldedAccount>,
        prover: &Prover<'_>,
        mut store: Option<&mut Store<'_>>,
        on_verdict: OnVerdict<'_>,
    ) -> Result<(), Failure> {
        let is_erased = |did: &str| store.as_ref().is_some_and(|store| store.has_erased(did));
        group.retain(|account| !is_erased(account.did.as_str()));
        let mut judged = stream::iter(&group)
            .map(|account: &FoldedAccount| prover.judge(account))
            .buffer_unordered(CONCURRENT_ACCOUNTS);
        let mut batch = Batch::default();
        while let Some(next) = judged.next().await {
            batch.push(next);
            let done = self.summary.account_count + batch.judged.len() as u64;
            self.progress.step(format!("{done} accounts judged"));
            if batch.is_full() {
                let full = std::mem::take(&mut batch);
                self.settle(full, prover, store.as_deref_mut(), on_verdict).await?;
            }
        }
        if !batch.judged.is_empty() {
            self.settle(batch, prover, store, on_verdict).await?;
        }
        Ok(())
    }

    /// Verifies the proofs of a batch, stores its repositories, and passes its verdicts on.
    async fn settle(
        &mut self,
        mut batch: Batch,
        prover: &Prover<'_>,
        store: Option<&mut Store<'_>>,
        on_verdict: OnVerdict<'_>,
    ) -> Result<(), Failure> {
        let started = now_micros();
        let (mut repositories, mut parts) = (Vec::new(), Vec::new());
        for Judged { verdict, proved } in &mut batch.judged {
            let Some(ProvedAccount { archive, key, host, commit, fetched }) = proved else {
                continue;
            };
            let did = Some(&*verdict.did);
            if let Some(collections) = prover.collections {
                match ranges_proof(archive, collections, did, key) {
                    // A larger part could not be proved again.
                    Ok(_) if archive.len() > MAX_PART_BYTES => {}
                    Ok(proof) => parts.push((proof, collections, &*key, &*host, *fetched)),
                    Err(error) => verdict.refuse(error.code(), &error.to_string()),
                }
                continue;
            }
            match repository::verify(archive, did, key, &repository::Options::default()) {
                Ok(repository) => repositories.push((repository, &*key, &*host, *commit, *fetched)),
                Err(error) => verdict.refuse(error.code(), &error.to_string()),
            }
        }
        if let Some(store) = store {
            let archived = repositories.iter().map(|(repository, key, host, commit, fetched)| {
                let archived = ArchivedRepository { repository, key, host, fetched: *fetched };
                (archived, WorkId { writer: format!("import-{commit}"), number: 0 })
            });
            let sealed = store.archive.import_repositories(archived.collect()).await?;
            let parts = parts.iter().map(|(proof, collections, key, host, fetched)| ArchivedPart {
                proof,
                collections,
                key,
                host,
                fetched: *fetched,
            });
            let parts: Vec<_> = parts.collect();
            let work = work(&parts);
            self.summary.stored_count += (repositories.len() + parts.len()) as u64;
            let sealed_parts = store.archive.seal_parts(parts, Some(&work)).await?;
            self.summary.stored_byte_count += sealed.bytes + sealed_parts.bytes;
            store.add_page(&batch, started).await?;
        }
        for Judged { verdict, .. } in &batch.judged {
            self.summary.add(verdict);
            on_verdict(verdict)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Summary {
        if let Some(size) = self.options.sample {
            let Summary { proved_count, wrong_count, .. } = self.summary;
            let decided = proved_count + wrong_count;
            let report = SampleReport::new(size as u64, self.options.seed, decided, wrong_count);
            self.summary.sample = Some(report);
        }
        self.progress.end();
        self.summary
    }
}

/// Accounts that are settled together.
#[derive(Default)]
struct Batch {
    judged: Vec<Judged>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, judged: Judged) {
        self.bytes += judged.proved.as_ref().map_or(0, |proved| proved.archive.len());
        self.judged.push(judged);
    }

    fn is_full(&self) -> bool {
        self.bytes >= MAX_BATCH_BYTES || self.judged.len() >= MAX_BATCH_ACCOUNTS
    }
}

/// The archive that repositories go to, and the ledger in it.
struct Store<'s> {
    archive: &'s Archive,
    /// Accounts that the archive does not accept again: they were erased.
    hidden: HideList,
    ledger: Ledger,
    list: String,
    sweep: u32,
    page: u64,
}

impl<'s> Store<'s> {
    async fn open(archive: &'s Archive, options: &ImportOptions) -> Result<Self, Failure> {
        let ledger = Ledger::new(archive, &options.name)?;
        let mut list = format!("jetstream {}", network::origin(&options.host));
        options.collections.iter().for_each(|name| list.push_str(&format!(" {name}")));
        ledger.add_list(&HostRow { list: list.clone(), stated_accounts: None }).await?;
        let last = ledger.pages(&list).await?.iter().map(|page| page.sweep).max();
        let hidden = archive.hide_list().await?;
        Ok(Self { archive, hidden, ledger, list, sweep: last.unwrap_or(0) + 1, page: 0 })
    }

    fn has_erased(&self, did: &str) -> bool {
        self.hidden.is_erased(did)
    }

    /// Adds the verdicts of a batch.
    async fn add_page(&mut self, batch: &Batch, started: i64) -> Result<(), Failure> {
        let mut row = PageRow {
            sweep: self.sweep,
            page: self.page,
            started,
            finished: now_micros(),
            listed: batch.judged.len() as u64,
            bytes: batch.bytes as u64,
            ..PageRow::default()
        };
        for Judged { verdict, .. } in &batch.judged {
            match verdict.verdict {
                Verdict::Proved => {
                    row.stored += 1;
                    row.records += verdict.record_count;
                }
                Verdict::Inactive => {
                    *row.inactive.entry(verdict.code.clone().unwrap_or_default()).or_default() += 1;
                }
                _ => row.failures.push(failed(verdict)),
            }
        }
        self.ledger.add_page(&self.list, &row).await?;
        self.page += 1;
        Ok(())
    }
}

/// The name of the work of storing these parts.
fn work(parts: &[ArchivedPart<'_>]) -> WorkId {
    let line = |part: &ArchivedPart<'_>| format!("{} {}\n", part.proof.root(), part.collections);
    let mut lines: Vec<String> = parts.iter().map(line).collect();
    lines.sort();
    let name = Cid::of(Codec::Raw, lines.concat().as_bytes());
    WorkId { writer: format!("import-{name}"), number: 0 }
}

fn failed(verdict: &AccountVerdict) -> FailedAccount {
    FailedAccount {
        did: verdict.did.clone(),
        host: verdict.host.clone(),
        class: verdict.code.clone().unwrap_or_default(),
        message: verdict.message.clone().unwrap_or_default(),
        is_temporary: verdict.is_temporary,
    }
}

/// The events that were asked for: plans select more.
struct RowFilter<'o> {
    collections: &'o [CollectionPatternBuf],
    dids: HashSet<&'o str>,
}

impl<'o> RowFilter<'o> {
    fn new(options: &'o ImportOptions, named: &'o [DidBuf]) -> Self {
        let dids = named.iter().map(DidBuf::as_str).collect();
        Self { collections: &options.collections, dids }
    }

    fn admits(&self, row: &Row<'_>) -> bool {
        let is_wanted = |name: &CollectionPatternBuf| name.matches(row.collection);
        let is_all = self.collections.is_empty() || !row.kind.is_operation();
        let has_did = self.dids.is_empty() || self.dids.contains(row.did);
        has_did && (is_all || self.collections.iter().any(is_wanted))
    }
}

fn temporary(error: std::io::Error) -> Failure {
    Failure::Local(format!("temporary files: {error}"))
}

/// Bytes of events in temporary files, by default.
pub const MAX_TEMPORARY_BYTES: u64 = 256 << 30;

/// Accounts that are judged at a time.
const CONCURRENT_ACCOUNTS: usize = 64;

/// Bytes of the proofs of accounts that are settled together, and their number.
const MAX_BATCH_BYTES: usize = 64 << 20;
const MAX_BATCH_ACCOUNTS: usize = 1000;
