//! The kind of event stream that a host serves where the requested one is missing: it is asked for the other kinds.

use std::time::Duration;

use reqwest::Url;

use super::{DialError, DialFault, Dialer, SocketOptions};

/// A kind of event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Signed events of a relay or a PDS.
    Firehose,
    /// JSON without proofs.
    Jetstream,
}

/// The error of a request for a stream of the kind `requested`. If the host has no such stream, the error says which
/// other one it has.
pub(crate) async fn with_other_stream(
    mut error: DialError,
    dialer: &Dialer,
    host: &Url,
    requested: StreamKind,
) -> DialError {
    if let DialFault::Refused(refusal) = &mut error.fault
        && refusal.is_no_stream()
    {
        refusal.other_stream = find_other(dialer, host, requested).await;
    }
    error
}

async fn find_other(dialer: &Dialer, host: &Url, requested: StreamKind) -> Option<StreamKind> {
    let others = STREAMS.into_iter().filter(|(kind, ..)| *kind != requested);
    for (kind, path, protocol) in others {
        let mut url = host.clone();
        url.set_path(path);
        url.set_query(None);
        let options =
            SocketOptions { protocol, handshake_timeout: TIMEOUT, ..SocketOptions::default() };
        if dialer.dial(&url, &options).await.is_ok() {
            return Some(kind);
        }
    }
    None
}

/// The subprotocol of version 2 of the Jetstream.
pub(crate) const JETSTREAM_V2: &str = "xrpc.v1.json";

/// The streams, with their paths and subprotocols.
const STREAMS: [(StreamKind, &str, Option<&str>); 3] = [
    (StreamKind::Firehose, "/xrpc/com.atproto.sync.subscribeRepos", None),
    (StreamKind::Jetstream, "/subscribe", None),
    (StreamKind::Jetstream, "/xrpc/network.bsky.jetstream.subscribeEvents", Some(JETSTREAM_V2)),
];

/// Maximum time of a question.
const TIMEOUT: Duration = Duration::from_secs(5);
