//! Which frames come? Those of commits that change something are kept, as they are.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use wireproof::atproto::event::peek;
use wireproof::codec::cbor::{KeyOrder, Reader};
use wireproof::net::firehose::{Feed, FeedItem, FrameKind, Notice, ReceivedFrame};
use wireproof::net::hosts::Jitter;
use wireproof::net::websocket::Dialer;

use super::args::CaptureArgs;
use crate::failure::Failure;
use crate::follow::Start;
use crate::follow::{Hosts, feed_options, notice_text};
use crate::network::Network;
use crate::progress::ProgressLine;

/// Listens for as long as is asked for, from the first event on; Ctrl-C ends it with what is there.
pub(super) async fn listen(
    args: &CaptureArgs,
    hosts: &Hosts,
    network: &Network,
    line: &mut ProgressLine,
) -> Result<Vec<Bytes>, Failure> {
    let options = feed_options(&args.from, Start::Live);
    let mut feed =
        Feed::new(Dialer::new(network.http.clone()), &hosts.origins(), options, Jitter::new());
    let (mut frames, mut bytes) = (Vec::new(), 0);
    let mut until: Option<Instant> = None;
    while bytes < args.capture_bytes {
        let item = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => break,
            () = ending(until) => break,
            item = feed.next() => item?,
        };
        match item {
            FeedItem::Notice(notice) => tell(hosts, &notice, line),
            FeedItem::Frame(arrival) => {
                until.get_or_insert_with(|| Instant::now() + Duration::from_secs(args.seconds));
                if changes_something(&arrival) {
                    bytes += arrival.frame.len() as u64;
                    frames.push(arrival.frame);
                    line.step(format!("{} commits, {bytes} bytes", frames.len()));
                }
            }
        }
    }
    feed.close().await;
    Ok(frames)
}

async fn ending(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn tell(hosts: &Hosts, notice: &Notice, line: &ProgressLine) {
    let host = hosts.names.get(notice.host().0).map_or("", String::as_str);
    if let Some(text) = notice_text(host, notice) {
        line.print(&text);
    }
}

/// Whether a frame is a commit with operations, as far as the head of its payload says.
fn changes_something(arrival: &ReceivedFrame) -> bool {
    arrival.kind == FrameKind::Commit && has_ops(&arrival.frame).unwrap_or(false)
}

fn has_ops(frame: &[u8]) -> Option<bool> {
    let (_, payload_at) = peek(frame).ok()?;
    let mut reader = Reader::new(&frame[payload_at..]);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map().ok()? {
        match reader.key(&mut keys).ok()? {
            "ops" => return Some(reader.array().ok()? > 0),
            _ => reader.skip().ok()?,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use simnet::firehose::{Corpus, Spec};
    use wireproof::atproto::event::{Event, Info};

    use super::*;

    #[test]
    fn commits_with_operations_are_told_from_all_others() {
        let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
        assert!(corpus.frames().iter().all(|frame| has_ops(frame) == Some(true)));
        let empty = b"\xa2\x61t\x67#commit\x62op\x01\xa1\x63ops\x80";
        assert_eq!(has_ops(empty), Some(false));
        assert_eq!(has_ops(&Event::Info(Info { name: "x", message: None }).to_frame()), None);
        assert_eq!(has_ops(&empty[..12]), None);
    }
}
