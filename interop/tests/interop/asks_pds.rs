//! What our XRPC client and our verifiers make of the answers of the reference PDS and directory.

use net::http::Limits;
use net::identity::Identity;
use net::xrpc::{Client, ErrorName, PageOptions};
use reqwest::Url;
use wireproof::atproto::syntax::{Did, DidBuf, Handle, Nsid, RecordKey};
use wireproof::verify::{plc, record, repository};
use wireproof_interop::kit;
use wireproof_interop::pds::{Account, Pds};
use wireproof_interop::plc::Plc;

use crate::client::resolver;
use crate::life::{Life, NOTE};

/// Somebody who asks, an account that is asked about, and who that is.
struct Scene {
    plc: Plc,
    pds: Pds,
    person: Account,
    identity: Identity,
    xrpc: Client,
    host: Url,
}

impl Scene {
    async fn start(kit: &wireproof_interop::kit::Kit) -> Self {
        let plc = Plc::start(kit).await;
        let pds = Pds::start(kit, &plc).await;
        let mut life = Life::begin(&pds).await;
        life.go_on(&pds, "asked about").await;
        let (http, resolver) = resolver(&plc, &pds);
        let person = life.people.swap_remove(0);
        let identity =
            resolver.identity_of_handle(Handle::parse(&person.handle).unwrap()).await.unwrap();
        let (xrpc, host) = (Client::new(http), pds.url().parse().unwrap());
        Self { plc, pds, person, identity, xrpc, host }
    }

    fn did(&self) -> Did<'_> {
        Did::parse(&self.person.did).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_of_the_pds_is_read_and_what_can_be_proved_is() {
    let kit = kit!(Pds);
    let scene = Scene::start(&kit).await;
    let (xrpc, host, did) = (&scene.xrpc, &scene.host, scene.did());
    let key = scene.identity.account.key.as_ref().unwrap();
    let latest = xrpc.get_latest_commit(host, did).await.unwrap();
    let status = xrpc.get_repo_status(host, did).await.unwrap();
    assert_eq!((status.active, status.rev), (true, Some(latest.rev)));

    let mut stream = xrpc.get_repo(host, did, None, &Limits::REPOSITORY).await.unwrap();
    let export = stream.read_to_end().await.unwrap();
    let whole = repository::verify(&export, Some(did.as_str()), key, &Default::default()).unwrap();
    assert_eq!(whole.root(), latest.cid);
    assert_eq!(whole.commit().rev, latest.rev.to_string());

    let records = scene.pds.records(&scene.person).await;
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
    assert_eq!((found.head, found.rev, found.active), (latest.cid, latest.rev, Some(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pds_that_refuses_is_understood_by_the_name_of_its_error() {
    let kit = kit!(Pds);
    let scene = Scene::start(&kit).await;
    let (xrpc, host) = (&scene.xrpc, &scene.host);
    let stranger: DidBuf = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    let error = xrpc.get_latest_commit(host, stranger.as_did()).await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::RepoNotFound), "{error}");
    scene.pds.deactivate(&scene.person).await;
    let did = scene.did();
    let error = xrpc.get_repo(host, did, None, &Limits::REPOSITORY).await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::RepoDeactivated), "{error}");
    let status = xrpc.get_repo_status(host, did).await.unwrap();
    assert_eq!((status.active, status.status.as_deref()), (false, Some("deactivated")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_renamed_account_proves_what_the_directory_says_of_it() {
    let kit = kit!(Pds);
    let mut scene = Scene::start(&kit).await;
    scene.pds.rename(&mut scene.person, "renamed").await;
    let (http, resolver) = resolver(&scene.plc, &scene.pds);
    let did = scene.did();
    let url = format!("{}/{did}/log/audit", scene.plc.url()).parse().unwrap();
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
