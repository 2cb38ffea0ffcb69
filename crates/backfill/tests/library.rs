//! A backfill as a library call, of a simulated network.

use archive::{Archive, Table, VerifyOptions};
use net::http::Url;
use simnet::servers::{Server, Simulation, Spec};
use wireproof_backfill::{Backfill, Selection};

fn url(network: &Simulation, server: Server) -> Url {
    network.url(server).parse().unwrap()
}

fn backfill(network: &Simulation, archive: &Archive) -> Backfill {
    Backfill::new(archive.clone())
        .host(url(network, Server::Pds(0)))
        .host(url(network, Server::Pds(1)))
        .plc(url(network, Server::Plc))
        .development()
}

#[test]
fn all_accounts_of_hosts_are_stored_once_whatever_the_number_of_runs() {
    let spec = Spec { accounts: 6, records: 4, jetstreams: 0, ..Spec::default() };
    let (network, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let one = network.account(0).did;
    let selection = Selection::new(Some(&[&*one]), &[]).unwrap();
    let summary = backfill(&network, &archive).selection(selection).run().unwrap();
    assert_eq!((summary.totals.stored_count, summary.totals.excluded_count), (1, 5));
    summary.result().unwrap();
    let summary = backfill(&network, &archive).name("all").run().unwrap();
    assert_eq!((summary.totals.stored_count, summary.totals.present_count), (5, 1));
    summary.result().unwrap();
}

#[test]
fn two_backfills_at_a_time_of_other_accounts_of_the_same_hosts_store_each_repository_once() {
    let spec = Spec { accounts: 40, records: 4, jetstreams: 0, ..Spec::default() };
    let (network, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let address = folder.path().to_str().unwrap();
    let dids: Vec<String> = (0..40).map(|number| network.account(number).did).collect();
    // Each has half of the accounts that the other has.
    let halves = [&dids[..30], &dids[10..]];
    std::thread::scope(|scope| {
        for (number, half) in halves.iter().enumerate() {
            let half: Vec<&str> = half.iter().map(String::as_str).collect();
            let archive = Archive::open(address).unwrap();
            let backfill = backfill(&network, &archive)
                .name(format!("half-{number}"))
                .selection(Selection::new(Some(&half), &[]).unwrap());
            scope.spawn(|| backfill.run().unwrap().result().unwrap());
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let archive = Archive::open(address).unwrap();
    let stats = runtime.block_on(archive.table_stats(Table::Snapshots)).unwrap();
    assert_eq!(stats.rows, 40);
    let report = runtime.block_on(archive.verify(&VerifyOptions::default(), &mut |_| ())).unwrap();
    assert_eq!((report.proved_snapshots, report.is_refused()), (40, false), "{report:?}");
}

#[test]
fn a_backfill_without_a_host_or_with_an_account_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    assert!(Backfill::new(archive).run().is_err());
    assert!(Selection::new(Some(&["alice.example.com"]), &[]).is_err());
    assert!(Selection::new(None, &["did:", "pds.example.com"]).is_err());
    assert!(Selection::new(None, &["did:web:alice.example", "pds.example.com"]).is_ok());
}
