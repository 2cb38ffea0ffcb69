//! Ledgers of backfills: the rows read back, their order, and the refusals.

use std::fs;

use wireproof_archive::{
    ArchiveFault, FailedAccount, HostRow, Lease, LeaseRow, Ledger, PageRow, StopRow,
};

use crate::common::{archive, files};

const LIST: &str = "https://pds.example.com";

fn page(sweep: u32, page: u64) -> PageRow {
    PageRow { sweep, page, listed: 7, ..PageRow::default() }
}

#[tokio::test]
async fn pages_are_read_in_their_order_and_each_is_added_once() {
    let (_folder, archive) = archive();
    let ledger = Ledger::new(&archive, "monday").unwrap();
    assert_eq!(ledger.pages(LIST).await.unwrap(), []);
    for (sweep, number) in [(2, 0), (1, 10), (1, 9), (1, 100_000)] {
        assert!(ledger.add_page(LIST, &page(sweep, number)).await.unwrap());
    }
    let other = PageRow { listed: 8, ..page(1, 9) };
    assert!(!ledger.add_page(LIST, &other).await.unwrap());
    let expected = [page(1, 9), page(1, 10), page(1, 100_000), page(2, 0)];
    assert_eq!(ledger.pages(LIST).await.unwrap(), expected);
    assert_eq!(ledger.pages("https://another.example.com").await.unwrap(), []);
    let another = Ledger::new(&archive, "tuesday").unwrap();
    assert_eq!(another.pages(LIST).await.unwrap(), []);
}

#[tokio::test]
async fn all_that_is_known_of_a_page_and_a_list_is_read_back() {
    let (_folder, archive) = archive();
    let ledger = Ledger::new(&archive, "monday").unwrap();
    let failure = FailedAccount {
        did: "did:web:a.test".to_owned(),
        host: Some(LIST.to_owned()),
        class: "car/hash".to_owned(),
        message: "at byte 7: \"another\" hash\n".to_owned(),
        is_temporary: true,
    };
    let row = PageRow {
        sweep: 1,
        page: 3,
        cursor: Some("a/../b".to_owned()),
        next: Some(String::new()),
        started: -1,
        finished: i64::MAX,
        stored: u64::MAX,
        inactive: [("takendown".to_owned(), 2)].into(),
        failures: vec![failure],
        ..page(1, 3)
    };
    ledger.add_page(LIST, &row).await.unwrap();
    assert_eq!(ledger.pages(LIST).await.unwrap(), [row]);
    let lists = [("https://b.test", None), ("https://a.test app.bsky.feed.post", Some(7))];
    for (list, stated_accounts) in lists {
        let row = HostRow { list: list.to_owned(), stated_accounts };
        ledger.add_list(&row).await.unwrap();
        ledger.add_list(&HostRow { stated_accounts: Some(9), ..row }).await.unwrap();
    }
    let names = ledger.lists().await.unwrap().into_iter();
    let names: Vec<_> = names.map(|row| (row.list, row.stated_accounts)).collect();
    let expected = [lists[1], lists[0]].map(|(list, stated)| (list.to_owned(), stated));
    assert_eq!(names, expected);
    for at in [5, 30, 7] {
        let stop = StopRow { at, sweep: 1, page: 2, message: "away".to_owned() };
        ledger.add_stop(LIST, &stop).await.unwrap();
    }
    assert_eq!(ledger.last_stop(LIST).await.unwrap().map(|stop| stop.at), Some(30));
    assert_eq!(ledger.last_stop("https://b.test").await.unwrap(), None);
}

#[tokio::test]
async fn names_that_lead_elsewhere_and_damaged_rows_are_errors() {
    let (folder, archive) = archive();
    for name in ["", ".", "..", ".hidden", "a/b", "a b", "ä", &"x".repeat(65)] {
        let error = Ledger::new(&archive, name).unwrap_err();
        assert!(matches!(error.fault, ArchiveFault::LedgerName), "{name}");
    }
    let ledger = Ledger::new(&archive, "monday").unwrap();
    ledger.add_page(LIST, &page(1, 0)).await.unwrap();
    let row = files(folder.path()).into_iter().find(|path| path.ends_with("01-0000000000.json"));
    let row = row.unwrap();
    for damaged in ["", "{}", "[]", "{\"sweep\":-1}"] {
        fs::write(&row, damaged).unwrap();
        let error = ledger.pages(LIST).await.unwrap_err();
        assert!(matches!(error.fault, ArchiveFault::LedgerRow(_)), "{damaged}: {error}");
        assert!(row.ends_with(&error.file), "{error}");
    }
}

fn lease_of(holder: &str, until: i64) -> LeaseRow {
    LeaseRow { holder: holder.to_owned(), until }
}

#[tokio::test]
async fn a_list_is_one_holders_until_it_is_returned_ended_or_its_holder_is_gone() {
    let (folder, archive) = archive();
    let ledger = Ledger::new(&archive, "monday").unwrap();
    let lease = async |holder: &str, now: i64, gone: &str| {
        let row = lease_of(holder, now + 10);
        ledger.lease(LIST, &row, now, |holder| holder == gone).await.unwrap()
    };
    assert_eq!(lease("ada", 100, "").await, Lease::Held);
    assert_eq!(lease("bob", 109, "").await, Lease::Elsewhere);
    assert_eq!(lease("ada", 109, "").await, Lease::Held);
    assert_eq!(lease("bob", 111, "").await, Lease::Elsewhere);
    assert_eq!(lease("bob", 111, "ada").await, Lease::TakenOver);
    assert_eq!(lease("ada", 112, "").await, Lease::Elsewhere);
    assert_eq!(lease("ada", 121, "").await, Lease::TakenOver);
    // Who has lost a list does not return it.
    ledger.return_lease(LIST, "bob").await.unwrap();
    assert_eq!(lease("bob", 122, "").await, Lease::Elsewhere);
    ledger.return_lease(LIST, "ada").await.unwrap();
    assert_eq!(
        lease("bob", 123, "").await,
        Lease::TakenOver,
        "who returns a list has worked on it"
    );
    ledger.return_lease(LIST, "bob").await.unwrap();
    assert_eq!(lease("bob", 123, "").await, Lease::Held);
    // The clock of `eve` is wrong: her lease would last for ever.
    assert_eq!(lease("eve", i64::MAX - 10, "").await, Lease::TakenOver);
    assert_eq!(lease("bob", 124, "").await, Lease::TakenOver);
    let leases =
        files(folder.path()).into_iter().filter(|path| path.parent().unwrap().ends_with("leases"));
    assert_eq!(leases.count(), 1, "what has ended is deleted");
}

#[tokio::test]
async fn of_eight_holders_that_ask_at_once_again_and_again_one_has_the_list() {
    let (_folder, archive) = archive();
    for round in 0..20 {
        let ledger = Ledger::new(&archive, "monday").unwrap();
        let asked = (0..8).map(|holder| {
            let (ledger, row) =
                (ledger.clone(), lease_of(&format!("holder-{holder}"), 10 + 20 * round));
            tokio::spawn(
                async move { ledger.lease(LIST, &row, 20 * round, |_| false).await.unwrap() },
            )
        });
        let mut held = 0;
        for asked in asked.collect::<Vec<_>>() {
            held += usize::from(asked.await.unwrap() != Lease::Elsewhere);
        }
        assert_eq!(held, 1, "in round {round}");
    }
}
