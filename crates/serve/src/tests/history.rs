//! Cursors before the window, which an archive has.

use archive::{Archive, NoConfirmation};

use super::*;
use crate::history::ServedArchive;
use crate::seq::seq_of;

/// A server with a small window, and with an archive if `has_archive`.
async fn serving(folder: &std::path::Path, has_archive: bool) -> Serving {
    Serving::start(&folder.join("state"), |options| {
        options.window.max_bytes = 200_000;
        options.window.memory_bytes = 1;
        options.window.max_age = Duration::from_secs(86_400 * 365 * 100);
        let archive = Archive::open(&folder.join("archive").display().to_string()).unwrap();
        let servers = Arc::new(NoConfirmation);
        options.archive = has_archive.then_some(ServedArchive { archive, servers });
    })
    .await
}

/// Stores the commits, and waits until the window has deleted more.
async fn store(serving: &Serving) -> Vec<i64> {
    let before = serving.shared.log.wal.floor();
    let mut arrivals = Vec::new();
    for part in commits().chunks(8) {
        arrivals.extend(serving.store_all(part).await);
    }
    while serving.shared.log.wal.floor() == before {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    arrivals
}

async fn numbers(client: &mut Client, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        numbers.push(seq(&client.frame().await));
    }
    numbers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_reaches_back_over_the_archive_and_no_event_is_missing_or_twice_at_the_seam() {
    let folder = tempfile::tempdir().unwrap();
    let server = serving(folder.path(), true).await;
    let mut arrivals = store(&server).await;
    let mut reading = server.connect(&format!("{FRAMES}?cursor=0")).await;
    let half = numbers(&mut reading, arrivals.len() / 2).await;
    // The window moves on while the client reads.
    arrivals.extend(store(&server).await);
    let expected: Vec<i64> = arrivals.iter().map(|arrival| seq_of(*arrival)).collect();
    let rest = numbers(&mut reading, expected.len() - half.len()).await;
    assert_eq!([half, rest].concat(), expected);
    server.stop().await;
    let server = serving(folder.path(), true).await;
    let early = expected[3];
    assert!(early < seq_of(server.shared.log.wal.floor()), "the window no longer has it");
    let mut client = server.connect(&format!("{FRAMES}?cursor={early}")).await;
    assert_eq!(numbers(&mut client, expected.len() - 4).await, expected[4..]);
    let next = server.store_at(NOW, &identity("did:web:a.test")).await;
    assert_eq!(numbers(&mut client, 1).await, [seq_of(next)], "and then the new one");
    let path = format!("/subscribe?cursor={}", arrivals[1]);
    let first = server.connect(&path).await.json().await;
    assert_eq!(first["time_us"], arrivals[1], "{first}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_has_not_seen_every_event_has_a_history_from_its_return_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = serving(folder.path(), true).await;
    let first = store(&server).await;
    server.stop().await;
    let server = serving(folder.path(), false).await;
    store(&server).await;
    server.stop().await;
    let server = serving(folder.path(), true).await;
    let returned = *server.shared.log.stored().borrow();
    let floor = server.shared.log.wal.floor();
    assert_eq!(server.shared.log.floor(), floor);
    let mut client = server.connect(&format!("{FRAMES}?cursor={}", seq_of(first[3]))).await;
    assert_eq!(name(&client.frame().await), "OutdatedCursor");
    assert!(seq(&client.frame().await) > seq_of(floor));
    while server.shared.log.wal.floor() <= returned {
        store(&server).await;
    }
    assert_eq!(server.shared.log.floor(), returned, "events since then can be read");
    let mut client = server.connect(&format!("{FRAMES}?cursor={}", seq_of(returned))).await;
    assert!(seq(&client.frame().await) > seq_of(returned));
    server.stop().await;
}
