//! Collections and records of a PDS that is independent of the reference one.

use std::collections::BTreeMap;
use std::process::Command;

use atproto::repo::Repository;
use atproto::syntax::{Did, Nsid, RecordKey, RepoPath};
use codec::car;
use crypto::PublicKey;
use net::http::{Limits, Url};
use net::xrpc::{Client, FetchedPart, RequestTurn, TurnWait, WantedPart};
use serde_json::{Value, json};
use tokio::task::block_in_place;
use verify::{record, repository};
use wireproof_interop::arroba::Arroba;
use wireproof_interop::kit;
use wireproof_interop::pds::Plc;
use wireproof_interop::program::Kit;

use crate::activity::wireproof;
use crate::client::resolver_at;

/// The CIDs of records, by path.
type Records = BTreeMap<String, String>;

/// An account of a PDS with its directory.
struct Fixture {
    plc: Plc,
    pds: Arroba,
    did: String,
    key: PublicKey,
    xrpc: Client,
    host: Url,
}

impl Fixture {
    /// An account with these numbers of records in [`COLLECTIONS`].
    async fn start(kit: &Kit, counts: [u32; 3]) -> Self {
        let plc = Plc::start(kit).await;
        let pds = Arroba::start(kit, &plc, &[HANDLE]).await;
        let did = pds.did(HANDLE).await;
        for (collection, count) in COLLECTIONS.into_iter().zip(counts) {
            let record = |number: u32| json!({ "$type": collection, "number": number });
            let records = (0..count).map(|number| (format!("{number:05}"), record(number)));
            let records: Vec<_> = records.collect();
            for records in records.chunks(100) {
                pds.create(&did, collection, records).await;
            }
        }
        let (http, resolver) = resolver_at(&plc, pds.port());
        let account = resolver.account(Did::parse(&did).unwrap()).await.unwrap();
        let key = account.key.clone().unwrap();
        let (xrpc, host) = (Client::new(http), pds.url().parse().unwrap());
        Self { plc, pds, did, key, xrpc, host }
    }

    fn did(&self) -> Did<'_> {
        Did::parse(&self.did).unwrap()
    }

    /// The records of the whole repository, which is verified.
    async fn all_records(&self) -> Records {
        let stream = self.xrpc.get_repo(&self.host, self.did(), None, &Limits::REPOSITORY);
        let export = stream.await.unwrap().read_to_end().await.unwrap();
        let options = repository::Options::default();
        repository::verify(&export, Some(&self.did), &self.key, &options).unwrap();
        let repository = Repository::read(&export, &car::Options::default()).unwrap();
        let records = repository.records().map(Result::unwrap);
        records.map(|record| (record.path, record.cid.to_string())).collect()
    }

    /// Verifies a collection from the handle on, and lists the saved part. Returns too why the whole repository was downloaded, if it
    /// was.
    fn verify(&self, collection: &str) -> (Records, Option<Value>) {
        let folder = tempfile::tempdir().unwrap();
        let (file, port) = (folder.path().join("part.car"), self.pds.port().to_string());
        let run = |args: &[&str]| {
            let output = Command::new(wireproof()).args(args).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{args:?}: {errors}");
            String::from_utf8(output.stdout).unwrap()
        };
        let file = file.to_str().unwrap();
        let network = ["--plc", &self.plc.url(), "--development-port", &port];
        let verify = ["verify", HANDLE, "--collection", collection, "--json", "--save", file];
        let report: Value = serde_json::from_str(&run(&[&verify[..], &network].concat())).unwrap();
        let listed = run(&["ls", file, "--collection", collection]);
        let records = listed.lines().map(|line| line.split_once('\t').unwrap());
        let records: Records = records.map(|(path, cid)| (path.into(), cid.into())).collect();
        assert_eq!(report["collections_proof"]["records"], records.len(), "{report}");
        (records, report.get("whole_repository").cloned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_of_arroba_are_proved_by_their_part_and_are_what_its_repository_has() {
    let kit = kit!(Pds, Arroba);
    let fixture = Fixture::start(&kit, [300, 12, 90]).await;
    let all = fixture.all_records().await;
    assert_eq!(all.len(), 402);
    let mut parts = 0;
    for collection in COLLECTIONS.into_iter().chain(["com.example.missing"]) {
        let (proved, whole) = block_in_place(|| fixture.verify(collection));
        parts += u32::from(whole.is_none());
        let prefix = format!("{collection}/");
        let mut expected = all.clone();
        expected.retain(|path, _| path.starts_with(&prefix));
        assert_eq!(proved, expected, "{collection}");
    }
    assert!(parts >= 2, "whole repositories of 402 records for collections of a few");
}

/// The requests of a test need no pace.
#[derive(Debug)]
struct AtOnce;

impl RequestTurn for AtOnce {
    fn wait(&self) -> TurnWait<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_of_arroba_is_proved_at_a_commit_that_is_not_the_present_one() {
    let kit = kit!(Pds, Arroba);
    let fixture = Fixture::start(&kit, [300, 12, 90]).await;
    let (did, collection) = (fixture.did(), COLLECTIONS[1]);
    let before = fixture.xrpc.get_latest_commit(&fixture.host, did).await.unwrap().cid;
    let records = [("later".to_owned(), json!({ "$type": collection }))];
    fixture.pds.create(&fixture.did, collection, &records).await;
    let now = fixture.xrpc.get_latest_commit(&fixture.host, did).await.unwrap().cid;
    let collections = [collection.parse().unwrap()];
    for (commit, count) in [(before, 12), (now, 13)] {
        let wanted = WantedPart { collections: &collections, commit: Some(commit) };
        let (host, limits) = (&fixture.host, &Limits::REPOSITORY);
        let part = fixture.xrpc.fetch_part(host, did, wanted, limits, &AtOnce).await.unwrap();
        let FetchedPart::Slice(slice) = part else { panic!("{part:?}") };
        let (key, options) = (&fixture.key, record::Options::default());
        let did = Some(&*fixture.did);
        let proof = verify::collections::verify(&slice.archive, &collections, did, key, &options);
        let proof = proof.unwrap();
        assert_eq!((proof.root(), proof.records().len()), (commit, count));
    }
}

/// `findings/arroba-record-proof.sh` shows the same without us.
#[tokio::test(flavor = "multi_thread")]
async fn a_proof_of_arroba_that_lacks_nodes_is_refused_and_its_collection_is_proved() {
    let kit = kit!(Pds, Arroba);
    let fixture = Fixture::start(&kit, [60, 60, 60]).await;
    let mut refused = 0;
    for path in fixture.all_records().await.keys() {
        let of = RepoPath::parse(path).unwrap();
        let (collection, rkey) = (of.collection(), of.record_key());
        let slice = fixture.xrpc.get_record(&fixture.host, fixture.did(), collection, rkey);
        let slice = slice.await.unwrap();
        let options = record::Options::default();
        match record::verify(&slice, path, Some(&fixture.did), &fixture.key, &options) {
            Ok(proof) => assert!(proof.record().is_some(), "{path}"),
            Err(rejection) => {
                assert_eq!(rejection.code(), "tree/missing-node", "{path}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "every record is proved");
    let (collection, rkey) =
        (Nsid::parse(COLLECTIONS[0]).unwrap(), RecordKey::parse("absent").unwrap());
    let absent = fixture.xrpc.get_record(&fixture.host, fixture.did(), collection, rkey).await;
    assert_eq!(absent.unwrap_err().name().unwrap().as_str(), "RecordNotFound");
    assert_eq!(block_in_place(|| fixture.verify(COLLECTIONS[0])).0.len(), 60);
}

const HANDLE: &str = "ada.test";
const COLLECTIONS: [&str; 3] = ["com.example.like", "com.example.note", "com.example.thing"];
