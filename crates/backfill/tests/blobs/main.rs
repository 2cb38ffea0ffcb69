//! The blobs of a simulated network's accounts, fetched into an archive and checked.

mod made;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use archive::{Archive, VerifyOptions};
use atproto::syntax::DidBuf;
use net::http::{Limits, Url};
use program::network::NetworkArgs;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};
use tokio::runtime::Runtime;
use wireproof_backfill::{
    Backfill, BlobFetch, BlobFetchOptions, BlobFinding, BlobSummary, check_blobs,
};

fn network() -> Simulation {
    let spec = Spec { accounts: 6, records: 30, jetstreams: 0, pds: 2, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn url(network: &Simulation, server: Server) -> Url {
    network.url(server).parse().unwrap()
}

fn open(folder: &Path) -> Archive {
    Archive::open(folder.to_str().unwrap()).unwrap()
}

fn backfill(network: &Simulation, archive: &Archive) {
    let backfill = Backfill::new(archive.clone())
        .host(url(network, Server::Pds(0)))
        .host(url(network, Server::Pds(1)))
        .plc(url(network, Server::Plc))
        .development();
    backfill.run().unwrap().result().unwrap();
}

fn options(network: &Simulation, accounts: &[&str]) -> BlobFetchOptions {
    let mut options = BlobFetchOptions::default();
    options.accounts = accounts.iter().map(|did| did.parse::<DidBuf>().unwrap()).collect();
    options.max_rate = 50.0;
    options.network = NetworkArgs::default();
    options.network.plc = Some(url(network, Server::Plc));
    options.network.development = true;
    options
}

fn fetch(archive: &Archive, options: BlobFetchOptions) -> (BlobSummary, Vec<BlobFinding>) {
    let findings = Arc::new(Mutex::new(Vec::new()));
    let found = findings.clone();
    let fetch = BlobFetch::new(archive.clone()).with_options(options);
    let summary = fetch.run(move |finding| found.lock().unwrap().push(finding)).unwrap();
    let findings = findings.lock().unwrap().clone();
    (summary, findings)
}

fn check(archive: &Archive, hashes: bool) -> (BlobSummary, Vec<BlobFinding>) {
    let mut findings = Vec::new();
    let checked = check_blobs(archive, Vec::new(), hashes, |finding| findings.push(finding));
    let summary = Runtime::new().unwrap().block_on(checked).unwrap();
    (summary, findings)
}

fn codes(findings: &[BlobFinding]) -> Vec<&'static str> {
    let mut codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn all_blobs_of_an_archive_are_fetched_once_and_proved() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let archive = open(folder.path());
    backfill(&network, &archive);
    let (missing, found) = check(&archive, false);
    assert_eq!(codes(&found), ["blob/missing"]);
    assert!(missing.missing_count > 12, "a profile names two blobs: {missing:?}");
    assert_eq!(missing.missing_count, missing.blob_count);
    let (summary, found) = fetch(&archive, options(&network, &[]));
    assert_eq!(found, []);
    assert_eq!((summary.account_count, summary.fetched_count), (6, missing.blob_count));
    summary.result().unwrap();
    let (summary, _) = fetch(&archive, options(&network, &[]));
    assert_eq!((summary.present_count, summary.fetched_count), (missing.blob_count, 0));
    let (checked, found) = check(&archive, true);
    assert_eq!((checked.present_count, found), (missing.blob_count, vec![]));
    let verified = Runtime::new().unwrap().block_on(async {
        archive.verify(&VerifyOptions::default(), &mut |finding| panic!("{finding:?}")).await
    });
    assert_eq!(verified.unwrap().proved_blobs, missing.blob_count);
}

#[test]
fn an_account_that_the_archive_does_not_have_is_fetched_with_its_blobs() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let archive = open(folder.path());
    let did = network.account(3).did;
    let (summary, found) = fetch(&archive, options(&network, &[&did]));
    assert_eq!((summary.account_count, found), (1, vec![]));
    assert!(summary.fetched_count >= 2);
    let unknown = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
    let (summary, found) = fetch(&archive, options(&network, &[unknown]));
    assert_eq!((summary.unknown_account_count, codes(&found)), (1, vec!["blob/no-repository"]));
    assert!(summary.result().is_err());
    let (checked, found) = check(&archive, true);
    assert_eq!((checked.account_count, checked.missing_count, found), (1, 0, vec![]));
}

#[test]
fn what_a_host_sends_wrong_is_reported_by_record_and_fetched_in_the_next_run() {
    for (fault, code) in [
        (Fault::WithheldBlob, "blob/not-found"),
        (Fault::AlteredBlob, "blob/bytes"),
        (Fault::CutBlob, "blob/unanswered"),
    ] {
        let (network, folder) = (network(), tempfile::tempdir().unwrap());
        let archive = open(folder.path());
        for host in [Server::Pds(0), Server::Pds(1)] {
            network.faults().enable(host, fault, FaultSchedule::times(1));
        }
        let dids: Vec<String> = (0..6).map(|number| network.account(number).did).collect();
        let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
        let (summary, found) = fetch(&archive, options(&network, &dids));
        assert_eq!((found.len(), codes(&found)), (2, vec![code]), "{found:?}");
        assert!(found.iter().all(|finding| finding.record.is_some() && finding.cid.is_some()));
        assert!(summary.result().is_err());
        let (checked, missing) = check(&archive, true);
        assert_eq!((checked.missing_count, codes(&missing)), (2, vec!["blob/missing"]));
        let named = |findings: &[BlobFinding]| {
            let mut named: Vec<_> =
                findings.iter().map(|of| (of.did.clone(), of.cid.clone())).collect();
            named.sort();
            named
        };
        assert_eq!(named(&found), named(&missing));
        let (summary, found) = fetch(&archive, options(&network, &[]));
        assert_eq!((summary.fetched_count, found), (2, vec![]), "{fault:?}");
    }
}

#[test]
fn a_blob_beyond_the_limit_is_not_stored() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let archive = open(folder.path());
    let mut options = options(&network, &[&network.account(0).did]);
    options.limits = Limits { max_bytes: 31, ..options.limits };
    let (summary, found) = fetch(&archive, options);
    assert_eq!((summary.fetched_count, codes(&found)), (0, vec!["blob/too-large"]));
    assert_eq!(summary.missing_count, summary.blob_count);
}

#[test]
fn no_more_blobs_of_an_account_are_fetched_than_its_limit_of_bytes() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let archive = open(folder.path());
    let mut options = options(&network, &[&network.account(0).did]);
    options.max_account_bytes = 1;
    options.concurrent_blobs = 1;
    let (summary, found) = fetch(&archive, options);
    assert_eq!(summary.fetched_count, 1);
    assert_eq!(summary.fetched_count + summary.missing_count, summary.blob_count);
    assert_eq!(codes(&found), ["blob/account-limit"]);
}

#[test]
fn damage_of_a_stored_blob_is_reported_by_record_and_a_deleted_one_is_fetched_again() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let archive = open(folder.path());
    let (summary, _) = fetch(&archive, options(&network, &[&network.account(0).did]));
    let mut files = Vec::new();
    for part in fs::read_dir(folder.path().join("blob_files")).unwrap() {
        files.extend(fs::read_dir(part.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    files.sort();
    let mut altered = fs::read(&files[0]).unwrap();
    altered[0] ^= 1;
    fs::write(&files[0], altered).unwrap();
    fs::remove_file(&files[1]).unwrap();
    let (checked, found) = check(&archive, true);
    assert_eq!(codes(&found), ["blob/bytes", "blob/missing"]);
    assert_eq!((checked.refused_count, checked.missing_count), (1, 1));
    // Without hashing, the other bytes are not seen.
    assert_eq!(codes(&check(&archive, false).1), ["blob/missing"]);
    let (again, _) = fetch(&archive, options(&network, &[]));
    assert_eq!((again.fetched_count, again.present_count), (1, summary.blob_count - 1));
    let mut options = options(&network, &[]);
    options.hashes = true;
    assert_eq!(fetch(&archive, options).0.fetched_count, 1);
    assert_eq!(check(&archive, true).1, []);
}
