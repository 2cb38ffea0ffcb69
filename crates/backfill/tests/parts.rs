//! Backfills of selected collections, of a simulated network.

use std::collections::BTreeMap;
use std::time::Duration;

use archive::{Archive, RowSelection, Table, VerifyOptions, VerifyReport};
use arrow_array::cast::AsArray;
use net::http::Url;
use simnet::servers::{Fault, FaultSchedule, RequestLimit, Server, Simulation, Spec};
use wireproof_backfill::{Backfill, BackfillOptions, Summary};

/// A network whose repositories are much larger than the part that proves a rare collection, and an archive.
struct Network {
    sim: Simulation,
    _folder: tempfile::TempDir,
    archive: Archive,
    runtime: tokio::runtime::Runtime,
}

impl Network {
    fn new(request_limit: Option<RequestLimit>) -> Self {
        let spec =
            Spec { accounts: 3, records: 1_500, jetstreams: 0, request_limit, ..Spec::default() };
        let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
        let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { sim, _folder: folder, archive, runtime }
    }

    fn url(&self, server: Server) -> Url {
        self.sim.url(server).parse().unwrap()
    }

    fn pds(&self) -> impl Iterator<Item = Server> {
        (0..self.sim.spec().pds).map(Server::Pds)
    }

    /// Fetches these collections of all accounts.
    fn fetch(&self, collections: &[&str], is_whole: bool) -> Summary {
        let mut options = BackfillOptions::default();
        options.is_whole = is_whole;
        options.retry_delay = Duration::ZERO;
        let mut backfill = Backfill::new(self.archive.clone()).with_options(options);
        for server in self.pds() {
            backfill = backfill.host(self.url(server));
        }
        for name in collections {
            backfill = backfill.collection(name.parse().unwrap());
        }
        let summary = backfill.plc(self.url(Server::Plc)).development().run().unwrap();
        summary.result().unwrap();
        summary
    }

    /// The requests to all hosts for a method.
    fn requests(&self, method: &str) -> u64 {
        let path = format!("/xrpc/com.atproto.sync.{method}");
        let of_host = |host| self.sim.request_counts(host).get(&path).copied();
        self.pds().filter_map(of_host).sum()
    }

    fn verify(&self) -> VerifyReport {
        let options = VerifyOptions::default();
        let report = self.runtime.block_on(self.archive.verify(&options, &mut |_| ())).unwrap();
        assert!(!report.is_refused(), "{report:?}");
        report
    }

    /// The accounts and paths of the records in `part_records`.
    fn stored(&self) -> Vec<(String, String)> {
        self.runtime.block_on(async {
            let selection = RowSelection::default();
            let mut rows = self.archive.rows(Table::PartRecords, &selection).await.unwrap();
            let mut stored = Vec::new();
            while let Some(batch) = rows.next().await.unwrap() {
                let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>();
                let [dids, collections, rkeys] = ["did", "collection", "rkey"].map(text);
                for row in 0..batch.num_rows() {
                    let path = format!("{}/{}", collections.value(row), rkeys.value(row));
                    stored.push((dids.value(row).to_owned(), path));
                }
            }
            stored.sort();
            stored
        })
    }

    /// The records of the network in these collections.
    fn expected(&self, collections: &[&str]) -> Vec<(String, String)> {
        let accounts = self.sim.expected_accounts();
        let mut expected: Vec<(String, String)> = accounts
            .iter()
            .flat_map(|account| {
                account.records.keys().map(|path| (account.account.did.clone(), path.clone()))
            })
            .filter(|(_, path)| collections.contains(&path.split_once('/').unwrap().0))
            .collect();
        expected.sort();
        expected
    }

    fn inject(&self, fault: Fault) {
        self.pds().for_each(|server| {
            self.sim.faults().enable(server, fault, FaultSchedule::ALWAYS);
        });
    }
}

const GATE: &str = "app.bsky.feed.postgate";
const REPOST: &str = "app.bsky.feed.repost";

#[test]
fn selected_collections_are_stored_by_the_parts_that_prove_them() {
    let network = Network::new(None);
    let summary = network.fetch(&[GATE], false);
    let expected = network.expected(&[GATE]);
    assert!(!expected.is_empty());
    let totals = &summary.totals;
    assert_eq!((totals.stored_count, totals.record_count), (3, expected.len() as u64));
    assert_eq!(network.stored(), expected);
    assert_eq!(network.requests("getRepo"), 0);
    let report = network.verify();
    assert_eq!((report.parts, report.proved_parts, report.snapshots), (3, 3, 0));
    // The list is done; other collections are another list, of which nothing is stored that is enough.
    let requests = network.requests("getBlocks");
    network.fetch(&[GATE], false);
    assert_eq!(network.requests("getBlocks"), requests);
    let summary = network.fetch(&[GATE, REPOST], false);
    assert_eq!((summary.totals.stored_count, summary.totals.present_count), (6, 0));
    assert_eq!(network.verify().proved_parts, 6);
    // They include a narrower selection.
    let summary = network.fetch(&[REPOST], false);
    assert_eq!(summary.totals.present_count, 3, "{:?}", summary.totals);
    // Whole repositories include everything, and parts are not enough for them.
    let requests = network.requests("getRepo");
    network.fetch(&[GATE], true);
    assert_eq!(network.requests("getRepo") - requests, 3);
    let summary = network.fetch(&["app.bsky.graph.*"], false);
    assert_eq!(summary.totals.present_count, 6, "{:?}", summary.totals);
    let report = network.verify();
    assert_eq!((report.proved_parts, report.proved_snapshots), (6, 3));
}

#[test]
fn a_part_keeps_to_the_limits_of_its_server() {
    let limit = RequestLimit { requests: 15, window: Duration::from_secs(1) };
    let network = Network::new(Some(limit));
    network.fetch(&["app.bsky.feed.threadgate", GATE, REPOST], false);
    assert_eq!(network.stored(), network.expected(&["app.bsky.feed.threadgate", GATE, REPOST]));
    assert_eq!(network.requests("getRepo"), 0);
}

#[test]
fn a_server_that_does_not_prove_a_collection_is_named_by_rule_and_its_repositories_are_stored_whole()
 {
    for (fault, class) in [
        (Fault::WithheldBlock, Some("tree/missing-node")),
        (Fault::ExtraBlock, Some("car/extra")),
        (Fault::NoBlocks, None),
    ] {
        let network = Network::new(None);
        network.inject(fault);
        let summary = network.fetch(&[GATE], false);
        assert_eq!(summary.totals.stored_count, 3, "{fault:?}");
        assert_eq!(network.requests("getRepo"), 3, "{fault:?}");
        let report = network.verify();
        assert_eq!((report.parts, report.proved_snapshots), (0, 3), "{fault:?}");
        let named: BTreeMap<String, u64> = network.runtime.block_on(failed_first(&network.archive));
        let expected = class.map(|class| (class.to_owned(), 3));
        assert_eq!(named, expected.into_iter().collect(), "{fault:?}");
    }
}

/// The failures of the first sweeps, by class.
async fn failed_first(archive: &Archive) -> BTreeMap<String, u64> {
    let ledger = archive::Ledger::new(archive, "backfill").unwrap();
    let mut classes = BTreeMap::new();
    for list in ledger.lists().await.unwrap() {
        for page in ledger.pages(&list.list).await.unwrap() {
            for failure in page.failures.iter().filter(|_| page.sweep == 1) {
                *classes.entry(failure.class.clone()).or_default() += 1;
            }
        }
    }
    classes
}
