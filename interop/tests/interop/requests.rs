//! The XRPC client and the verifiers with responses of the reference PDS and directory.

use std::collections::BTreeSet;

use atproto::syntax::{Did, DidBuf, Handle, Nsid, RecordKey};
use net::http::Limits;
use net::identity::Identity;
use net::xrpc::{Client, ErrorName, PageOptions};
use reqwest::Url;
use verify::{collections, plc, record, repository};
use wireproof_interop::kit;
use wireproof_interop::pds::{Account, Pds, Plc};

use crate::activity::{Activity, NOTE};
use crate::client::resolver;

/// A PDS with its directory, an account on it, and an XRPC client.
struct PdsFixture {
    plc: Plc,
    pds: Pds,
    account: Account,
    identity: Identity,
    xrpc: Client,
    host: Url,
}

impl PdsFixture {
    async fn start(kit: &wireproof_interop::program::Kit) -> Self {
        let plc = Plc::start(kit).await;
        let pds = Pds::start(kit, &plc).await;
        let mut activity = Activity::start(&pds).await;
        activity.write_records(&pds, "requested").await;
        let (http, resolver) = resolver(&plc, &pds);
        let account = activity.accounts.swap_remove(0);
        let identity =
            resolver.identity_of_handle(Handle::parse(&account.handle).unwrap()).await.unwrap();
        let (xrpc, host) = (Client::new(http), pds.url().parse().unwrap());
        Self { plc, pds, account, identity, xrpc, host }
    }

    fn did(&self) -> Did<'_> {
        Did::parse(&self.account.did).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_of_the_pds_is_parsed_and_verified() {
    let kit = kit!(Pds);
    let fixture = PdsFixture::start(&kit).await;
    let xrpc = &fixture.xrpc;
    let host = &fixture.host;
    let did = fixture.did();
    let key = fixture.identity.account.key.as_ref().unwrap();
    let latest = xrpc.get_latest_commit(host, did).await.unwrap();
    let status = xrpc.get_repo_status(host, did).await.unwrap();
    assert_eq!((status.active, status.rev), (true, Some(latest.rev)));

    let mut stream = xrpc.get_repo(host, did, None, &Limits::REPOSITORY).await.unwrap();
    let export = stream.read_to_end().await.unwrap();
    let whole = repository::verify(&export, Some(did.as_str()), key, &Default::default()).unwrap();
    assert_eq!(whole.root(), latest.cid);
    assert_eq!(whole.commit().rev, latest.rev.to_string());

    let records = fixture.pds.records(&fixture.account).await;
    for (path, cid) in &records {
        let (collection, rkey) = path.split_once('/').unwrap();
        let (collection, rkey) =
            (Nsid::parse(collection).unwrap(), RecordKey::parse(rkey).unwrap());
        let slice = xrpc.get_record(host, did, collection, rkey).await.unwrap();
        let proof =
            record::verify(&slice, path, Some(did.as_str()), key, &Default::default()).unwrap();
        assert_eq!(proof.record().map(|(cid, _)| cid.to_string()).as_ref(), Some(cid));
    }
    let (collection, rkey) = (Nsid::parse(NOTE).unwrap(), RecordKey::parse("absent").unwrap());
    let slice = xrpc.get_record(host, did, collection, rkey).await.unwrap();
    let path = format!("{NOTE}/absent");
    let proof =
        record::verify(&slice, &path, Some(did.as_str()), key, &Default::default()).unwrap();
    assert_eq!(proof.record(), None);

    let blocks = xrpc.get_blocks(host, did, &[latest.cid]).await.unwrap();
    assert!(blocks.windows(32).any(|window| window == latest.cid.digest()));

    let mut pages = xrpc.list_repos(host, &PageOptions { limit: Some(2), cursor: None });
    let mut listed = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        listed.extend(page.items);
    }
    assert_eq!(listed.len(), 3);
    let found = listed.iter().find(|listed| listed.did.as_did() == did).unwrap();
    let expected = (Some(latest.cid), Some(latest.rev), Some(true));
    assert_eq!((found.head, found.rev, found.active), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_of_the_pds_are_proved_by_their_part_of_the_repository() {
    let kit = kit!(Pds);
    let fixture = PdsFixture::start(&kit).await;
    let did = fixture.did();
    let key = fixture.identity.account.key.as_ref().unwrap();
    let records = fixture.pds.records(&fixture.account).await;
    let collections: BTreeSet<&str> =
        records.keys().map(|path| path.split_once('/').unwrap().0).collect();
    assert!(collections.len() > 2, "{collections:?}");
    for wanted in collections.into_iter().chain(["com.example.missing"]) {
        let patterns = [wanted.parse().unwrap()];
        let fetched =
            fixture.xrpc.fetch_collections(&fixture.host, did, &patterns, &Limits::REPOSITORY);
        let slice = fetched.await.unwrap();
        let options = record::Options::default();
        let proof =
            collections::verify(&slice.archive, &patterns, Some(did.as_str()), key, &options);
        let proof = proof.unwrap();
        let proved: Vec<_> =
            proof.records().iter().map(|record| (&*record.path, record.cid.to_string())).collect();
        let listed = records.iter().filter(|(path, _)| path.split_once('/').unwrap().0 == wanted);
        let listed: Vec<_> = listed.map(|(path, cid)| (&**path, cid.clone())).collect();
        assert_eq!((proved, proof.extra().blocks), (listed, 0), "{wanted}");
        assert!(slice.requests <= 8, "{wanted}: {} requests", slice.requests);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_pds_are_recognized_by_name() {
    let kit = kit!(Pds);
    let fixture = PdsFixture::start(&kit).await;
    let (xrpc, host) = (&fixture.xrpc, &fixture.host);
    let unknown: DidBuf = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    let error = xrpc.get_latest_commit(host, unknown.as_did()).await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::RepoNotFound), "{error}");
    fixture.pds.deactivate(&fixture.account).await;
    let did = fixture.did();
    let error = xrpc.get_repo(host, did, None, &Limits::REPOSITORY).await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::RepoDeactivated), "{error}");
    let status = xrpc.get_repo_status(host, did).await.unwrap();
    assert_eq!((status.active, status.status.as_deref()), (false, Some("deactivated")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_renamed_account_proves_its_document() {
    let kit = kit!(Pds);
    let mut fixture = PdsFixture::start(&kit).await;
    fixture.pds.rename(&mut fixture.account, "renamed").await;
    let (http, resolver) = resolver(&fixture.plc, &fixture.pds);
    let did = fixture.did();
    let url = format!("{}/{did}/log/audit", fixture.plc.url()).parse().unwrap();
    let log = http.get(&url, &Limits::DOCUMENT).await.unwrap();
    let mut options = plc::Options::default();
    options.did = Some(did.to_buf());
    let history = plc::verify(&log.body, &options).unwrap();
    assert_eq!(history.operations().len(), 2);
    let account = resolver.account(did).await.unwrap();
    assert_eq!(history.signing_key(), account.key);
    assert_eq!(
        account.document.handle().map(|handle| handle.to_string()).as_deref(),
        Some("renamed.test")
    );
    assert!(history.data().unwrap().also_known_as.contains(&"at://renamed.test".to_owned()));
}
