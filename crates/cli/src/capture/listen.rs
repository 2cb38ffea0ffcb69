//! Receives the frames of a stream, and keeps commits with operations.

use std::time::Duration;

use atproto::event::peek;
use bytes::Bytes;
use codec::cbor::{KeyOrder, Reader};
use net::firehose::{Feed, FeedItem, FrameKind, Notice, ReceivedFrame, StopSignal};
use net::hosts::Jitter;
use net::websocket::Dialer;
use tokio::time::{Instant, sleep_until};

use super::CaptureArgs;
use crate::failure::Failure;
use crate::first_contact::FirstContact;
use crate::network::Network;
use crate::progress::ProgressLine;
use crate::stream::{Hosts, Start, notice_text};

/// Receives frames for the given time from the first event on, or until `stop`.
pub(super) async fn listen(
    args: &CaptureArgs,
    hosts: &Hosts,
    network: &Network,
    stop: &StopSignal,
    line: &mut ProgressLine,
) -> Result<Vec<Bytes>, Failure> {
    let options = args.stream.feed_options(Start::Live);
    let mut feed =
        Feed::new(Dialer::new(network.http.clone()), &hosts.upstreams(), options, Jitter::new());
    let (mut frames, mut bytes) = (Vec::new(), 0);
    let mut deadline: Option<Instant> = None;
    let contact = FirstContact::new();
    let missed = contact.missed(args.stream.first_contact_limit());
    tokio::pin!(missed);
    while bytes < args.capture_bytes {
        let item = tokio::select! {
            biased;
            () = stop.requested() => break,
            () = wait_until(deadline) => break,
            failure = &mut missed => return Err(failure),
            item = feed.next() => item?,
        };
        match item {
            FeedItem::Notice(notice) => {
                contact.record(hosts.name(notice.host().0), &notice);
                print_notice(hosts, &notice, line);
            }
            FeedItem::Frame(received) => {
                deadline.get_or_insert_with(|| Instant::now() + Duration::from_secs(args.seconds));
                if is_commit_with_ops(&received) {
                    bytes += received.frame.len() as u64;
                    frames.push(received.frame);
                    line.step(format!("{} commits, {bytes} bytes", frames.len()));
                }
            }
        }
    }
    feed.close().await;
    Ok(frames)
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn print_notice(hosts: &Hosts, notice: &Notice, line: &ProgressLine) {
    let host = hosts.name(notice.host().0);
    // Gaps are normal, and so is the event at the cursor.
    if !matches!(notice, Notice::Gap { .. } | Notice::Repeated { .. }) {
        line.print(&notice_text(host, notice));
    }
}

/// Whether a frame is a commit with operations, by the head of its payload.
fn is_commit_with_ops(frame: &ReceivedFrame) -> bool {
    frame.kind == FrameKind::Commit && has_ops(&frame.frame).unwrap_or(false)
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
    use atproto::event::{Event, Info};
    use simnet::firehose::{Corpus, Spec};

    use super::*;

    #[test]
    fn commits_with_operations_are_recognized() {
        let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
        assert!(corpus.frames().iter().all(|frame| has_ops(frame) == Some(true)));
        let empty = b"\xa2\x61t\x67#commit\x62op\x01\xa1\x63ops\x80";
        assert_eq!(has_ops(empty), Some(false));
        assert_eq!(has_ops(&Event::Info(Info { name: "x", message: None }).to_frame()), None);
        assert_eq!(has_ops(&empty[..12]), None);
    }
}
