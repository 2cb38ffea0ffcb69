//! Only a later event and the word of its own server bring an erased account back.

use std::pin::Pin;
use std::sync::Mutex;

use atproto::event::{Account, Event};
use wireproof_archive::{
    ActiveAccounts, Archive, ArchiveFault, ArchivedEvent, ErasureKey, FailedAccount, HostRow,
    Ledger, NoConfirmation, PageRow, WorkId,
};

use crate::common::{archive, erasure_key, is_stored};

/// The servers of accounts, which say that all of these are active; with the accounts that were asked for.
#[derive(Default)]
struct Servers {
    active: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl ActiveAccounts for Servers {
    fn is_active<'a>(&'a self, did: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        self.asked.lock().unwrap().push(did.to_owned());
        Box::pin(std::future::ready(self.active.contains(&did)))
    }
}

fn all_active() -> Servers {
    Servers { active: vec![DID, OTHER], ..Servers::default() }
}

fn claim(did: &str, active: bool) -> Vec<u8> {
    let (time, status) = ("2026-07-01T00:00:00Z", (!active).then_some("deleted"));
    Event::Account(Account { seq: 1, did, time, active, status }).to_frame()
}

/// Events of an account that came at these times.
fn events<'a>(did: &'a str, frames: &'a [(i64, Vec<u8>)]) -> Vec<ArchivedEvent<'a>> {
    let event = |(received, frame): &'a (i64, Vec<u8>)| ArchivedEvent {
        did: Some(did),
        arrival: *received,
        host: "https://relay.test",
        seq: Some(1),
        kind: "#account",
        received: *received,
        verdict: "unchecked",
        key: None,
        judge: "test",
        frame,
    };
    frames.iter().map(event).collect()
}

/// The times at which the stored events of the account came.
async fn stored(archive: &Archive) -> Vec<i64> {
    let mut scan = archive.events().await.unwrap();
    let mut times = Vec::new();
    while let Some(row) = scan.next().await.unwrap() {
        times.extend(Some(row.event()).filter(|of| of.did == Some(DID)).map(|of| of.received));
    }
    times
}

fn work(number: i64) -> WorkId {
    WorkId { writer: "test".to_owned(), number }
}

#[tokio::test]
async fn no_claim_brings_an_erased_account_back() {
    let (_folder, archive) = archive();
    archive.erase(DID, "deleted", ERASED).await.unwrap();
    let frames = [(ERASED + 1, claim(DID, true)), (ERASED + 2, b"after".to_vec())];
    archive.seal(events(DID, &frames), &work(1)).await.unwrap();
    let later = [(ERASED + 3, claim(DID, true))];
    archive.seal_confirmed(events(DID, &later), &work(2), &NoConfirmation).await.unwrap();
    let refusing = Servers::default();
    let later = [(ERASED + 4, claim(DID, true))];
    archive.seal_confirmed(events(DID, &later), &work(3), &refusing).await.unwrap();
    assert_eq!(*refusing.asked.lock().unwrap(), [DID]);
    assert_eq!(stored(&archive).await, [0; 0]);
    assert!(archive.hide_list().await.unwrap().is_erased(DID));
}

#[tokio::test]
async fn the_past_of_an_erased_account_does_not_bring_it_back_whatever_its_server_says() {
    let (_folder, archive) = archive();
    archive.erase(DID, "deleted", ERASED).await.unwrap();
    let servers = all_active();
    let frames = [
        (ERASED - 2, claim(DID, true)),
        (ERASED, claim(DID, true)),
        (ERASED + 1, claim(DID, false)),
    ];
    archive.seal_confirmed(events(DID, &frames), &work(1), &servers).await.unwrap();
    assert_eq!(stored(&archive).await, [0; 0]);
    assert!(servers.asked.lock().unwrap().is_empty(), "no later event says that it is active");
}

#[tokio::test]
async fn an_account_is_stored_from_the_first_later_event_on_that_its_server_confirms() {
    let (_folder, archive) = archive();
    archive.erase(DID, "deleted", ERASED).await.unwrap();
    archive.erase(OTHER, "deleted", ERASED).await.unwrap();
    let frames = [
        (ERASED - 1, b"past".to_vec()),
        (ERASED + 1, claim(DID, false)),
        (ERASED + 5, claim(DID, true)),
        (ERASED + 6, b"after".to_vec()),
    ];
    let seal = |frames, number| {
        let archive = archive.clone();
        async move {
            let servers = all_active();
            archive.seal_confirmed(events(DID, frames), &work(number), &servers).await.unwrap();
        }
    };
    seal(&frames, 1).await;
    assert_eq!(stored(&archive).await, [ERASED + 5, ERASED + 6]);
    let list = archive.hide_list().await.unwrap();
    assert!(!list.is_erased(DID) && list.is_erased(OTHER));
    // Another log has events from before: they stay dropped.
    let late = [
        (ERASED - 3, b"past".to_vec()),
        (ERASED + 4, b"between".to_vec()),
        (ERASED + 7, b"new".to_vec()),
    ];
    seal(&late, 2).await;
    assert_eq!(stored(&archive).await, [ERASED + 5, ERASED + 6, ERASED + 7]);
    archive.erase(DID, "deleted", ERASED + 9).await.unwrap();
    assert_eq!(stored(&archive).await, [0; 0]);
    seal(&[(ERASED + 8, claim(DID, true))], 3).await;
    assert_eq!(stored(&archive).await, [0; 0], "erased again");
}

#[tokio::test]
async fn an_erasure_before_the_first_seal_holds() {
    let (folder, archive) = archive();
    let erased = archive.erase(DID, "deleted", ERASED).await.unwrap();
    assert_eq!((erased.rows, erased.files), (0, 0));
    let frames =
        [(ERASED - 1, claim(DID, true)), (ERASED - 1, b"a secret of the account".to_vec())];
    archive.seal_confirmed(events(DID, &frames), &work(1), &all_active()).await.unwrap();
    assert_eq!(stored(&archive).await, [0; 0]);
    assert!(!is_stored(folder.path(), b"a secret of the account"));
}

#[tokio::test]
async fn the_hash_of_an_erased_account_needs_the_secret() {
    let (folder, archive) = archive();
    let without = archive.clone().with_erasure_key(None);
    let fault = without.erase(DID, "deleted", ERASED).await.unwrap_err().fault;
    assert!(matches!(fault, ArchiveFault::NoErasureKey), "{fault}");
    archive.erase(DID, "deleted", ERASED).await.unwrap();
    assert!(!is_stored(folder.path(), DID.as_bytes()), "the DID is nowhere");
    for (key, digests) in without.hide_list().await.unwrap().erased_hashes() {
        assert!(digests.is_empty(), "{key:?}: nothing in the archive makes the hash");
    }
    let other = Some(ErasureKey::from_bytes([1; 32]));
    for archive in [without, archive.clone().with_erasure_key(other)] {
        let frames = [(ERASED + 1, b"new".to_vec())];
        let fault = archive.seal(events(DID, &frames), &work(1)).await.unwrap_err().fault;
        assert!(matches!(fault, ArchiveFault::OtherErasureKey(_)), "{fault}");
        assert!(archive.seal_repositories(Vec::new(), None).await.is_err());
        assert!(archive.seal_key_histories(Vec::new(), ERASED, &work(1)).await.is_err());
    }
    assert_eq!(erasure_key(), erasure_key());
    assert!(archive.hide_list().await.unwrap().is_erased(DID));
}

#[tokio::test]
async fn an_erased_account_leaves_the_ledgers_of_backfills() {
    let (folder, archive) = archive();
    let ledger = Ledger::new(&archive, "all").unwrap();
    let list = "https://pds.test".to_owned();
    ledger.add_list(&HostRow { list: list.clone(), stated_accounts: None }).await.unwrap();
    let failure = |did: &str| FailedAccount {
        did: did.to_owned(),
        host: None,
        class: "tree/order".to_owned(),
        message: format!("{did}: refused"),
        is_temporary: false,
    };
    let failures = vec![failure(DID), failure(OTHER)];
    let page = PageRow { sweep: 1, page: 0, listed: 2, failures, ..PageRow::default() };
    ledger.add_page(&list, &page).await.unwrap();
    assert!(is_stored(folder.path(), DID.as_bytes()));
    let erased = archive.erase(DID, "deleted", ERASED).await.unwrap();
    assert_eq!(erased.ledger_rows, 1);
    assert!(!is_stored(folder.path(), DID.as_bytes()));
    let expected = PageRow { failures: vec![failure(OTHER)], ..page };
    assert_eq!(ledger.pages(&list).await.unwrap(), [expected]);
}

const DID: &str = "did:web:erased.test";
const OTHER: &str = "did:web:other.test";

/// The time of the erasure.
const ERASED: i64 = 1_782_864_000_000_000;
