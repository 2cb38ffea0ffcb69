//! Where the hosts of a feed start, and the feed's reports of them, given the events of its socket.

use super::super::*;
use super::support::*;
use crate::hosts::{HostId, Jitter};
use crate::reconnecting_socket::SocketEvent;
use crate::websocket::{DialError, DialFault, Dialer, RejectedUpgrade, SocketError, SocketMessage};

const FIRST: HostId = HostId(0);
const SECOND: HostId = HostId(1);

fn feed<const N: usize>(cursors: [Option<u64>; N]) -> Feed {
    let upstreams = cursors.map(|cursor| Upstream { url: STREAM.parse().unwrap(), cursor });
    Feed::new(Dialer::new(http_client()), &upstreams, FeedOptions::default(), Jitter::new())
}

fn cursor(feed: &mut Feed, host: HostId) -> Option<u64> {
    feed.hosts[host.0].request_cursor()
}

fn receive(feed: &mut Feed, host: HostId, frame: Vec<u8>) {
    feed.handle(host, SocketEvent::Message(SocketMessage::Binary(frame.into())));
}

/// The names of the notices that are ready.
fn notices(feed: &mut Feed) -> Vec<&'static str> {
    let items = std::iter::from_fn(|| feed.next_ready().unwrap());
    let names = items.filter_map(|item| match item {
        FeedItem::Notice(notice) => Some(notice.name()),
        _ => None,
    });
    names.collect()
}

#[test]
fn hosts_start_live_without_a_cursor_and_at_the_oldest_event_beside_one() {
    let mut feed_without = feed([None, None]);
    assert_eq!([FIRST, SECOND].map(|host| cursor(&mut feed_without, host)), [None, None]);
    let mut feed_with = feed([Some(5), None]);
    assert_eq!([FIRST, SECOND].map(|host| cursor(&mut feed_with, host)), [Some(5), Some(0)]);
}

#[test]
fn after_an_event_another_host_starts_at_the_oldest_unless_it_has_none() {
    let rotated = || SocketEvent::Rotated { from: FIRST, to: SECOND };
    let mut feed = feed([None, None]);
    feed.handle(SECOND, rotated());
    assert_eq!(cursor(&mut feed, SECOND), None, "no event was received yet");
    receive(&mut feed, FIRST, Writer::new(0).commit(7));
    feed.handle(SECOND, rotated());
    assert_eq!(cursor(&mut feed, SECOND), Some(0));
    feed.handle(SECOND, refused("FutureCursor"));
    feed.handle(SECOND, rotated());
    assert_eq!(cursor(&mut feed, SECOND), None, "it has no events");
}

fn refused(name: &str) -> SocketEvent {
    let name = Some(name.to_owned());
    let message = String::new();
    let refusal =
        RejectedUpgrade { status: 400, name, message, retry_after: None, other_stream: None };
    SocketEvent::ConnectFailed(DialError {
        host: "a.test".to_owned(),
        fault: DialFault::Refused(refusal),
    })
}

#[test]
fn a_connection_refused_for_a_future_cursor_voids_it() {
    let mut feed = feed([Some(9)]);
    feed.handle(FIRST, refused("Busy"));
    assert_eq!((notices(&mut feed), cursor(&mut feed, FIRST)), (vec!["connect-failed"], Some(9)));
    feed.handle(FIRST, refused("FutureCursor"));
    assert_eq!(notices(&mut feed), ["connect-failed", "future-cursor"]);
    assert_eq!(cursor(&mut feed, FIRST), Some(0));
    feed.handle(FIRST, refused("FutureCursor"));
    assert_eq!(cursor(&mut feed, FIRST), None, "a host without events");
}

#[test]
fn a_close_for_a_future_cursor_voids_it() {
    let mut feed = feed([Some(9)]);
    assert_eq!(cursor(&mut feed, FIRST), Some(9));
    let closed = |reason: &str| {
        SocketEvent::Lost(SocketError::Closed { code: 1008, reason: reason.to_owned() })
    };
    feed.handle(FIRST, closed("policy"));
    assert_eq!((notices(&mut feed), cursor(&mut feed, FIRST)), (vec!["disconnected"], Some(9)));
    feed.handle(FIRST, closed("FutureCursor"));
    assert_eq!(notices(&mut feed), ["disconnected", "future-cursor"]);
    assert_eq!(cursor(&mut feed, FIRST), Some(0));
}

#[test]
fn a_sequence_that_begins_anew_without_a_word_is_read_from_the_oldest_event_once() {
    let mut feed = feed([Some(900)]);
    assert_eq!(cursor(&mut feed, FIRST), Some(900));
    feed.handle(FIRST, SocketEvent::Connected);
    let (mut writer, mut before) = (Writer::new(0), Writer::new(1));
    let commits = [writer.commit(3), writer.commit(4)];
    receive(&mut feed, FIRST, commits[0].clone());
    assert_eq!(notices(&mut feed), ["connected", "sequence-reset"]);
    assert_eq!(cursor(&mut feed, FIRST), Some(0));
    feed.handle(FIRST, SocketEvent::Connected);
    let old = [before.commit(899), before.commit(900)];
    for frame in old.iter().chain(&commits) {
        receive(&mut feed, FIRST, frame.clone());
    }
    assert_eq!(notices(&mut feed), ["connected", "regressed"], "the host keeps both sequences");
    assert_eq!(cursor(&mut feed, FIRST), Some(4));
}

#[test]
fn a_live_start_without_an_event_is_followed_by_the_oldest() {
    let mut feed = feed([None, None]);
    assert_eq!(cursor(&mut feed, FIRST), None);
    feed.handle(FIRST, SocketEvent::Connected);
    assert_eq!(cursor(&mut feed, FIRST), Some(0));
    feed.handle(SECOND, SocketEvent::Rotated { from: FIRST, to: SECOND });
    assert_eq!(cursor(&mut feed, SECOND), Some(0));
}

#[test]
fn an_error_that_cannot_be_decoded_ends_the_stream_and_an_info_does_not() {
    let mut feed = feed([None]);
    // {"op": -1} and {"t": "#info", "op": 1}, both before an empty map.
    receive(&mut feed, FIRST, b"\xa1\x62op\x20\xa0".to_vec());
    assert_eq!(notices(&mut feed), ["server-error"]);
    receive(&mut feed, FIRST, b"\xa2\x61t\x65#info\x62op\x01\xa0".to_vec());
    assert!(notices(&mut feed).is_empty());
}
