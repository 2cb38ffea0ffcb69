//! Connections to the stream of the host: live, and with cursors. Every wait and every buffer is bounded.

use std::time::Duration;

use atproto::event::{self, Decoder, Event};
use atproto::syntax::Datetime;
use bytes::Bytes;
use net::firehose::FrameKind;
use net::http::Url;
use net::websocket::{DialFault, Dialer, Socket, SocketError, SocketMessage, SocketOptions};
use tokio::time::{Instant, sleep, timeout_at};

use crate::ask::Host;
use crate::finding::Finding;
use crate::now_micros;
use crate::rule;
use crate::sequence::{Arrival, Frame, METHOD};

/// The messages of one or several connections.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) arrivals: Vec<Arrival>,
    /// The names of `#info` messages.
    pub(crate) infos: Vec<String>,
    /// The name of the error that ended the stream.
    pub(crate) error: Option<String>,
    /// Whether the connection was lost.
    pub(crate) is_broken: bool,
    /// Whether the stream was opened.
    pub(crate) is_open: bool,
    /// The first and the last number.
    pub(crate) ends: Option<(i64, i64)>,
    bytes: usize,
}

/// Why a connection is not read on.
enum End {
    /// The time to stop, or an error of the host.
    Time,
    Socket(SocketError),
    /// An event that was not heard before, with a number that is not above the last one of an earlier connection.
    LowerNumber(i64, Arrival),
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    pub(crate) deadline: Instant,
    /// Maximum time without a message once the wanted number was reached.
    pub(crate) quiet: Duration,
    /// Maximum time from then on.
    pub(crate) tail: Duration,
    /// The number to reach.
    pub(crate) seq: Option<i64>,
    pub(crate) max_messages: usize,
}

/// Listens to the live stream until the deadline; a stream that ends is opened again after its last event. If the host has begun its
/// numbers again, only the events since then are returned.
pub(crate) async fn live(host: &Host, deadline: Instant) -> Heard {
    let mut heard = Heard::default();
    let (mut connection, mut ends, mut too_slow) = (0, 0, 0);
    // Whether the next connection shows which numbers the host gives now, and whether it has denied its own last event.
    let (mut is_suspect, mut is_denied) = (false, false);
    let until = Until {
        deadline,
        quiet: deadline.saturating_duration_since(Instant::now()),
        tail: Duration::MAX,
        seq: None,
        max_messages: MAX_LIVE_MESSAGES,
    };
    while Instant::now() < deadline && !heard.is_full(&until) {
        let last = heard.ends.map(|(_, last)| last).filter(|_| connection > 0);
        let was_suspect = std::mem::take(&mut is_suspect);
        let cursor = last.filter(|_| !was_suspect);
        let Some(mut socket) = open(host, cursor).await else { break };
        heard.is_open = true;
        let end = heard.read(&mut socket, connection, &until, last).await;
        connection += 1;
        match end {
            End::Time if heard.error.is_none() => break,
            // Once, this machine may have been busy.
            End::Time if heard.is_told(TOO_SLOW) && too_slow + 1 < MAX_ENDS => {
                too_slow += 1;
                heard.error = None;
            }
            End::Time if heard.is_told(FUTURE_CURSOR) && cursor.is_some() && !is_denied => {
                (is_suspect, is_denied) = (true, true);
                heard.error = None;
            }
            End::Time => heard.judge_error(host),
            End::LowerNumber(..) if !was_suspect => is_suspect = true,
            End::LowerNumber(seq, arrival) => {
                let last = last.unwrap_or_default();
                let text = format!("a new event of a later connection, after {last}");
                let finding = Finding::of(&rule::SEQ_RESET, METHOD, text).at(seq);
                host.note(finding.seen_by(command(host, Some(last))));
                heard.begin_again(seq, arrival);
                is_denied = false;
                ends += 1;
            }
            End::Socket(SocketError::Idle(time)) => {
                let text = format!("no byte and no answer to pings for {} s", time.as_secs_f32());
                host.note(
                    Finding::of(&rule::SILENT_STREAM, METHOD, text).seen_by(command(host, cursor)),
                );
                break;
            }
            End::Socket(SocketError::TooLarge(limit)) => {
                let text = format!("a message of more than {limit} bytes");
                host.note(
                    Finding::of_data("frame/limit", METHOD, text).seen_by(command(host, cursor)),
                );
                ends += 1;
            }
            End::Socket(error) => {
                ends += 1;
                if ends >= MAX_ENDS {
                    let text = format!("it ended {ends} times: {error}");
                    host.note(
                        Finding::of(&rule::CLOSED_STREAM, METHOD, text)
                            .seen_by(command(host, cursor)),
                    );
                    break;
                }
            }
        }
        sleep(RECONNECT_DELAY).await;
    }
    if is_denied {
        heard.error = Some(FUTURE_CURSOR.to_owned());
        heard.judge_error(host);
    }
    heard
}

/// Listens after a cursor.
pub(crate) async fn after(host: &Host, cursor: i64, until: &Until) -> Heard {
    let mut heard = Heard::default();
    let Some(mut socket) = open(host, Some(cursor)).await else { return heard };
    heard.is_open = true;
    let end = heard.read(&mut socket, 0, until, None).await;
    heard.is_broken = matches!(end, End::Socket(_));
    if let End::Socket(SocketError::TooLarge(limit)) = end {
        let text = format!("a message of more than {limit} bytes");
        host.note(
            Finding::of_data("frame/limit", METHOD, text).seen_by(command(host, Some(cursor))),
        );
    }
    heard
}

impl Heard {
    /// Reads until the end of the connection or the time to stop. `last` is the last number of earlier connections.
    async fn read(
        &mut self,
        socket: &mut Socket,
        connection: u32,
        until: &Until,
        last: Option<i64>,
    ) -> End {
        let mut deadline = until.deadline;
        loop {
            let is_reached = match (until.seq, self.ends) {
                (None, _) => true,
                (Some(wanted), Some((_, last))) => last >= wanted,
                (Some(_), None) => false,
            };
            let mut next_by = deadline;
            if is_reached {
                let now = Instant::now();
                deadline = deadline.min(now.checked_add(until.tail).unwrap_or(deadline));
                next_by = deadline.min(now + until.quiet);
            }
            let next = timeout_at(next_by, socket.next()).await;
            let frame = match next {
                Err(_) => return End::Time,
                Ok(Err(error)) => return End::Socket(error),
                Ok(Ok(SocketMessage::Text(_))) => None,
                Ok(Ok(SocketMessage::Binary(bytes))) => Some(bytes),
            };
            let at_micros = now_micros();
            if let Some(bytes) = &frame {
                self.bytes += bytes.len();
                let read = Frame::read(bytes, at_micros);
                if let Some((seq, last)) = read.seq.zip(last)
                    && seq <= last
                    && self.is_new(bytes, last)
                {
                    return End::LowerNumber(seq, Arrival { frame, at_micros, connection });
                }
                if let Some(seq) = read.seq {
                    let (first, last) = self.ends.unwrap_or((seq, seq));
                    self.ends = Some((first, last.max(seq)));
                }
                match (read.kind, named(bytes)) {
                    (FrameKind::Info, Some(name)) => self.infos.push(name),
                    (FrameKind::Error, Some(name)) => {
                        self.error = Some(name);
                        return End::Time;
                    }
                    _ => {}
                }
            }
            self.arrivals.push(Arrival { frame, at_micros, connection });
            if self.is_full(until) {
                return End::Time;
            }
        }
    }

    fn is_full(&self, until: &Until) -> bool {
        self.arrivals.len() >= until.max_messages || self.bytes >= MAX_BYTES
    }

    /// Whether a frame was not heard before, and is no older than the event with the last number.
    fn is_new(&self, bytes: &Bytes, last: i64) -> bool {
        let heard = self.arrivals.iter().filter_map(|arrival| arrival.frame.as_ref());
        let mut newest = None;
        for known in heard {
            if known == bytes {
                return false;
            }
            if Frame::read(known, 0).seq == Some(last) {
                newest = time_of(known);
            }
        }
        time_of(bytes) >= newest
    }

    /// Forgets the events before a host began its numbers again.
    fn begin_again(&mut self, seq: i64, first: Arrival) {
        self.arrivals = vec![first];
        self.ends = Some((seq, seq));
    }

    fn is_told(&self, name: &str) -> bool {
        self.error.as_deref() == Some(name)
    }

    /// The error that ended a live stream.
    fn judge_error(&mut self, host: &Host) {
        let is_told_too_slow = self.is_told(TOO_SLOW);
        let name = self.error.take().unwrap_or_default();
        let finding = if is_told_too_slow {
            let text = format!("{MAX_ENDS} times; every message was read as it arrived");
            Finding::of(&rule::TOO_SLOW, METHOD, text)
        } else {
            Finding::of(&rule::STREAM_ERROR, METHOD, format!("it ended with {name}"))
        };
        let finding = finding.seen_by(command(host, None));
        host.note(match self.ends {
            Some((_, last)) => finding.at(last),
            None => finding,
        });
    }
}

/// The time that an event states, in microseconds since 1970.
fn time_of(bytes: &[u8]) -> Option<i64> {
    let mut decoder = Decoder::new(event::Options::default());
    let time = match decoder.decode(bytes).ok()? {
        Event::Commit(commit) => commit.time,
        Event::Sync(sync) => sync.time,
        Event::Identity(identity) => identity.time,
        Event::Account(account) => account.time,
        _ => return None,
    };
    Some(Datetime::parse(time).ok()?.unix_micros())
}

/// The name of an `#info` or of an error.
fn named(bytes: &[u8]) -> Option<String> {
    match Decoder::new(event::Options::default()).decode(bytes).ok()? {
        Event::Info(info) => Some(info.name.to_owned()),
        Event::Error(error) => Some(error.error.to_owned()),
        _ => None,
    }
}

/// Opens the stream; a host that is busy is asked again.
async fn open(host: &Host, cursor: Option<i64>) -> Option<Socket> {
    let mut url: Url = host.url.clone();
    url.set_path("/xrpc/com.atproto.sync.subscribeRepos");
    url.set_query(cursor.map(|cursor| format!("cursor={cursor}")).as_deref());
    let options = SocketOptions {
        ping_interval: host.idle / 3,
        idle_timeout: host.idle,
        max_message_bytes: MAX_MESSAGE_BYTES,
        ..SocketOptions::default()
    };
    let dialer = Dialer::new(host.http.clone());
    let mut attempts = 1;
    loop {
        let error = match dialer.dial(&url, &options).await {
            Ok(socket) => return Some(socket),
            Err(error) => error,
        };
        let rule = match &error.fault {
            DialFault::Refused(refusal) if refusal.is_no_stream() => &rule::NO_STREAM,
            _ if error.is_refusal() => &rule::REFUSED_STREAM,
            _ => &rule::UNANSWERED,
        };
        if rule == &rule::UNANSWERED && attempts < MAX_DIALS {
            attempts += 1;
            let delay = error.retry_after().unwrap_or(RECONNECT_DELAY).min(MAX_RETRY_DELAY);
            sleep(delay).await;
            continue;
        }
        host.note(Finding::of(rule, METHOD, error.to_string()).seen_by(command(host, cursor)));
        return None;
    }
}

/// The command that shows the events after a cursor.
pub(crate) fn command(host: &Host, cursor: Option<i64>) -> String {
    let origin = host.url.origin().ascii_serialization();
    match cursor {
        Some(0) => format!("wireproof follow --host {origin} --cursor oldest --events 1"),
        Some(cursor) => format!("wireproof follow --host {origin} --cursor {cursor} --events 1"),
        None => format!("wireproof follow --host {origin} --events 100"),
    }
}

const TOO_SLOW: &str = "ConsumerTooSlow";
const FUTURE_CURSOR: &str = "FutureCursor";

/// Ends of a live stream without an error, or with ConsumerTooSlow, until they are reported.
const MAX_ENDS: u32 = 3;
const MAX_DIALS: u32 = 3;
const RECONNECT_DELAY: Duration = Duration::from_millis(300);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);
/// Frames may have 5 MB: a longer one is read, so that it can be judged.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Bytes of frames of one listener.
const MAX_BYTES: usize = 64 << 20;
const MAX_LIVE_MESSAGES: usize = 50_000;
