//! Clients that do not read.

use std::sync::atomic::Ordering::Relaxed;

use tokio::net::TcpSocket;

use super::*;
use crate::form::FormIndex;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_delays_no_other_and_is_told_when_the_window_has_passed_it() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |options| {
        options.window.max_bytes = 2 << 20;
        options.window.memory_bytes = 1 << 20;
    })
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let stream = socket.connect(serving.address).await.unwrap();
    let url = format!("ws://{}{FRAMES}", serving.address);
    let (socket, _) = client_async(url, stream).await.unwrap();
    let mut slow = Client { socket, protocol: None, read: VecDeque::new() };
    let mut fast = serving.connect(FRAMES).await;
    let frames = commits();
    let mut halfway = 0;
    for round in 0..ROUNDS {
        let arrivals = serving.store_all(&frames).await;
        for expected in &arrivals {
            assert_eq!(seq(&fast.frame().await), crate::seq::seq_of(*expected));
        }
        if round == ROUNDS / 2 {
            halfway = arrivals[0];
        }
    }
    while serving.shared.log.wal.floor() < halfway {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // What it had been sent before, and the reason.
    let mut last = Vec::new();
    while let Some(Message::Binary(frame)) = slow.next().await {
        last = frame.to_vec();
    }
    assert_eq!(name(&last), "ConsumerTooSlow");
    let metrics = serving.shared.metrics.form(FormIndex::Frames);
    assert_eq!(metrics.too_slow.load(Relaxed), 1);
    serving.stop().await;
}

/// Rounds of events: half of them are more than what the system holds for a client.
const ROUNDS: usize = 40;
