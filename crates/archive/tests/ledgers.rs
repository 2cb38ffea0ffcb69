//! Ledgers of backfills: what is read back, in which order, and what is refused.

mod common;

use std::fs;

use common::{archive, files};
use wireproof_archive::{ArchiveFault, FailedAccount, HostRow, Ledger, PageRow, StopRow};

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
