//! A backfill as a library call, of a simulated network.

use archive::Archive;
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
fn a_backfill_without_a_host_or_with_an_account_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    assert!(Backfill::new(archive).run().is_err());
    assert!(Selection::new(Some(&["alice.example.com"]), &[]).is_err());
    assert!(Selection::new(None, &["did:", "pds.example.com"]).is_err());
    assert!(Selection::new(None, &["did:web:alice.example", "pds.example.com"]).is_ok());
}
