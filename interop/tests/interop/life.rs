//! What people do on a PDS, and what a client must have of it in the end.

use net::http::Limits;
use net::xrpc;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wireproof::atproto::syntax::Handle;
use wireproof::verify::repository;
use wireproof_interop::pds::{Account, Pds, Write};
use wireproof_interop::plc::Plc;

use crate::client::{Client, resolver};
use crate::mirror::{Records, records};

/// Some people of one PDS.
pub(crate) struct Life {
    pub(crate) people: Vec<Account>,
}

impl Life {
    /// Three people join.
    pub(crate) async fn begin(pds: &Pds) -> Self {
        let mut people = Vec::new();
        for name in ["ann", "bob", "cyd"] {
            people.push(pds.create_account(name).await);
        }
        Self { people }
    }

    /// Each of them writes new records, alone and many at once, changes some and deletes some.
    pub(crate) async fn go_on(&self, pds: &Pds, what: &str) {
        for person in &self.people {
            let record = |path: &str, number| record(path, what, number);
            let mut paths = Vec::new();
            for number in 0..12 {
                paths.push(pds.create(person, NOTE, record(NOTE, number)).await);
            }
            pds.put(person, &paths[0], record(NOTE, 100)).await;
            pds.put(person, PROFILE, record(PROFILE, 101)).await;
            pds.delete(person, &paths[1]).await;
            let many = (0..20).map(|number| Write::Create(MARK, record(MARK, number)));
            pds.apply(person, &many.collect::<Vec<_>>()).await;
            let mixed = [
                Write::Update(&paths[2], record(NOTE, 102)),
                Write::Delete(&paths[3]),
                Write::Create(NOTE, record(NOTE, 103)),
            ];
            pds.apply(person, &mixed).await;
        }
    }

    /// Lets each of them write one record after the other until the PDS does not answer, and says how many
    /// that were.
    pub(crate) fn writes_until_it_is_gone(&self, pds: &Pds) -> JoinHandle<u32> {
        let pen = pds.pen();
        let people = self.people.clone();
        tokio::spawn(async move {
            let mut written = 0;
            loop {
                for person in &people {
                    let record = record(NOTE, "while it died", written);
                    if !pen.try_create(person, NOTE, record).await {
                        return written;
                    }
                    written += 1;
                }
            }
        })
    }

    /// Waits until `client` has what the PDS has, and holds both and each repository against each other.
    pub(crate) async fn is_mirrored(&self, client: &Client, plc: &Plc, pds: &Pds) {
        for person in &self.people {
            let rev = pds.rev(person).await;
            let what = format!("revision {rev} of {}", person.handle);
            client.wait_until(&what, |mirror| mirror.has(&person.did, &rev)).await;
            let listed = pds.records(person).await;
            assert_eq!(client.mirror().replicas[&person.did].records, listed, "{what}");
            assert_eq!(proved_records(plc, pds, &person.handle).await, listed, "{what}");
        }
    }
}

/// What the repository of `handle` holds, once everything from the handle to the last record is proved.
async fn proved_records(plc: &Plc, pds: &Pds, handle: &str) -> Records {
    let (http, resolver) = resolver(plc, pds);
    let handle = Handle::parse(handle).expect("a handle");
    let identity = resolver.identity_of(handle).await.expect("an account");
    assert_eq!(identity.shown_handle(), handle);
    let (account, did) = (&identity.account, identity.did());
    let (key, host) =
        (account.key.as_ref().expect("a key"), account.host.as_ref().expect("a host"));
    let (xrpc, limits) = (xrpc::Client::new(http), Limits::REPOSITORY);
    let mut stream = xrpc.get_repo(host, did, None, &limits).await.expect("a repository");
    let export = stream.read_to_end().await.expect("all of it");
    let proved = repository::verify(&export, Some(did.as_str()), key, &Default::default());
    records(&proved.expect("a whole repository"))
}

/// A record for a path, or for anywhere in a collection.
fn record(path: &str, what: &str, number: u32) -> Value {
    let collection = path.split('/').next();
    json!({ "$type": collection, "text": format!("{what} {number}"), "createdAt": NOON })
}

const NOON: &str = "2026-01-01T12:00:00Z";
pub(crate) const NOTE: &str = "com.example.note";
const MARK: &str = "com.example.mark";
const PROFILE: &str = "com.example.profile/self";
