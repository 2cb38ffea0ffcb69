//! Where clients begin, and what they get after a restart.

use super::*;
use crate::seq::seq_of;

fn at(cursor: i64) -> [(&'static str, String); 1] {
    [("cursor", cursor.to_string())]
}

/// A server whose window has lost its first events; the arrivals of the events that are left.
async fn with_lost_events(folder: &std::path::Path) -> (Serving, Vec<i64>) {
    let serving = Serving::start(folder, |options| {
        options.window.max_bytes = 200_000;
        options.window.memory_bytes = 1;
        options.window.max_age = Duration::from_secs(86_400 * 365 * 100);
    })
    .await;
    let mut arrivals = Vec::new();
    for part in commits().chunks(8) {
        arrivals.extend(serving.store_all(part).await);
    }
    // Upkeep is every second.
    while serving.shared.log.wal.floor() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let floor = serving.shared.log.wal.floor();
    (serving, arrivals.into_iter().filter(|arrival| *arrival > floor).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_frames_says_where_to_begin_as_the_protocol_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, arrivals) = with_lost_events(folder.path()).await;
    let (first, last) = (seq_of(arrivals[0]), seq_of(*arrivals.last().unwrap()));
    let mut client = serving.connect(&with(FRAMES, &at(0))).await;
    assert_eq!(seq(&client.frame().await), first);
    let mut client = serving.connect(&with(FRAMES, &at(first))).await;
    assert_eq!(seq(&client.frame().await), seq_of(arrivals[1]), "exclusive");
    let mut client = serving.connect(&with(FRAMES, &at(5))).await;
    assert_eq!(name(&client.frame().await), "OutdatedCursor");
    assert_eq!(seq(&client.frame().await), first);
    let mut client = serving.connect(&with(FRAMES, &at(last + 1_000_000))).await;
    assert_eq!(name(&client.frame().await), "FutureCursor");
    assert_eq!(client.next().await, None);
    let mut live = serving.connect(FRAMES).await;
    let mut up_to_date = serving.connect(&with(FRAMES, &at(last))).await;
    let next = serving.store_at(NOW, &identity("did:web:a.test")).await;
    for client in [&mut live, &mut up_to_date] {
        assert_eq!(seq(&client.frame().await), seq_of(next));
    }
    let refused = serving.request(&format!("{FRAMES}?cursor=x"), &[]).await;
    assert_eq!(refused.map(drop).unwrap_err(), (400, "InvalidRequest".to_owned()));
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_a_jetstream_is_a_number_or_a_time_and_inclusive() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, arrivals) = with_lost_events(folder.path()).await;
    let first = arrivals[0];
    let seq_in = |message: &serde_json::Value| message["payload"]["seq"].as_i64();
    for (path, key) in [(V1, "cursor"), (V2, "")] {
        for cursor in [first, seq_of(first)] {
            let message = serving.connect(&with(path, &at(cursor))).await.json().await;
            let seq = if path == V1 { message[key].as_i64() } else { seq_in(&message) };
            assert_eq!(seq, Some(seq_of(first)), "{path} {cursor}");
        }
    }
    // Before the first event: version 1 begins with it, version 2 says so.
    let old = NOW - 86_400_000_000;
    for cursor in [seq_of(old), old] {
        let message = serving.connect(&with(V1, &at(cursor))).await.json().await;
        assert_eq!(message["cursor"], seq_of(first));
    }
    let mut client = serving.connect(&with(V2, &at(old))).await;
    let info = client.json().await;
    assert_eq!(info["payload"]["$type"], "network.bsky.jetstream.subscribeEvents#info");
    assert_eq!(info["payload"]["name"], "OutdatedCursor");
    assert_eq!(seq_in(&client.json().await), Some(seq_of(first)));
    let refused = serving.request(&with(V2, &at(seq_of(old))), &[]).await;
    assert_eq!(refused.map(drop).unwrap_err(), (400, "CursorTooOld".to_owned()));
    // After the last event: live.
    let last = *serving.shared.log.stored().borrow();
    let mut future = Vec::new();
    for path in [V1, V2] {
        future.push(serving.connect(&with(path, &at(last + 3_600_000_000))).await);
    }
    let next = serving.store_at(NOW, &identity("did:web:a.test")).await;
    assert_eq!(future[0].json().await["cursor"], seq_of(next));
    assert_eq!(seq_in(&future[1].json().await), Some(seq_of(next)));
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_a_jetstream_continues_within_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    let frames = commits();
    let large = frames.iter().find(|frame| ops_of(frame) > 2).unwrap();
    let arrival = serving.store_frame(NOW, large.clone()).await;
    let second = seq_of(arrival) + 1;
    let message = serving.connect(&with(V1, &at(second))).await.json().await;
    assert_eq!(message["cursor"], second);
    assert_eq!(message["time_us"], arrival);
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_rise_across_restarts_and_clients_continue_at_their_cursors() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let mut cursor = 0;
    for part in frames.chunks(frames.len() / 4) {
        let serving = Serving::start(folder.path(), |_| ()).await;
        let mut client = serving.connect(&with(FRAMES, &at(cursor))).await;
        // The clock has gone back an hour.
        for frame in part {
            serving.store_frame(NOW - 3_600_000_000, frame.clone()).await;
        }
        for frame in part {
            let received = client.frame().await;
            assert!(seq(&received) > cursor);
            cursor = seq(&received);
            assert_eq!(atproto::event::renumbered(&received, seq(frame)).unwrap(), *frame);
        }
        serving.stop().await;
    }
}
