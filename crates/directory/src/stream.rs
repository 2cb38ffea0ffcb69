//! `/export/stream`: operations to WebSockets: the missed ones of a client, then new ones.
//!
//! One task looks for new operations in the mirror and encodes them once for all clients. A client that is further behind reads
//! the mirror page by page, so a slow one delays nobody and needs no memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::StopSignal;
use hyper::upgrade::Upgraded;
use net::client_places::ClientPlace;
use net::websocket_server::{Readiness, Socket, SocketEnd};
use store::{MirroredOperation, StoreError};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::kept_answers::KeptAnswers;
use crate::lines::push_streamed;
use crate::readers::Readers;

/// The newest operations of a mirror, encoded.
#[derive(Debug)]
pub(crate) struct Tail {
    readers: Arc<Readers>,
    /// Answers that new operations outdate.
    answers: Arc<KeptAnswers>,
    recent: Mutex<Recent>,
    /// The number up to which the mirror was read.
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Recent {
    /// All operations after this number are among the lines.
    after: u64,
    lines: VecDeque<(u64, Utf8Bytes)>,
}

/// Where the stream of a client begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    After(u64),
    /// Nowhere, for this reason.
    Refused(&'static str),
}

impl Tail {
    /// The operations that the mirror gets from now on.
    pub(crate) fn open(
        readers: Arc<Readers>,
        answers: Arc<KeptAnswers>,
    ) -> Result<Self, StoreError> {
        let newest = readers.with(|mirror| mirror.totals())?.cursor;
        let recent = Mutex::new(Recent { after: newest, lines: VecDeque::new() });
        Ok(Self { readers, answers, recent, newest: watch::Sender::new(newest) })
    }

    /// Looks for new operations, forever.
    pub(crate) async fn run(&self) -> std::convert::Infallible {
        loop {
            let delay = match self.update() {
                Ok(true) => continue,
                Ok(false) => POLL_INTERVAL,
                Err(error) => {
                    self.answers.clear();
                    tracing::warn!(target: "wireproof::directory", "new operations cannot be read: {error}");
                    RETRY_INTERVAL
                }
            };
            sleep(delay).await;
        }
    }

    /// Reads a page of new operations; whether there may be more.
    fn update(&self) -> Result<bool, StoreError> {
        let newest = *self.newest.borrow();
        let cursor = self.readers.with(|mirror| mirror.totals())?.cursor;
        if cursor == newest {
            return Ok(false);
        }
        // The cursor was stored with the operations up to it, so a page that is not full has all of them.
        let page = self.readers.with(|mirror| mirror.operations_after(newest, PAGE))?;
        let is_full = page.len() == PAGE;
        let last = page.last().map_or(newest, |last| last.seq);
        self.answers.forget(page.iter().map(|of| &*of.did));
        let mut recent = self.recent();
        recent.lines.extend(page.iter().map(|of| (of.seq, line(of))));
        while recent.lines.len() > MAX_RECENT
            && let Some((seq, _)) = recent.lines.pop_front()
        {
            recent.after = seq;
        }
        drop(recent);
        self.newest.send_replace(if is_full { last } else { last.max(cursor) });
        Ok(is_full)
    }

    /// The lines after a number, from memory or the mirror, at most a page; and the number up to which they are complete.
    fn lines_after(&self, seq: u64) -> Result<(Vec<Utf8Bytes>, u64), StoreError> {
        let newest = *self.newest.borrow();
        {
            let recent = self.recent();
            if seq >= recent.after {
                let first = recent.lines.partition_point(|(of, _)| *of <= seq);
                let lines = recent.lines.range(first..).take(PAGE);
                let taken: Vec<_> = lines.map(|(_, line)| line.clone()).collect();
                let next = recent.lines.get(first + taken.len());
                let upto = match next {
                    Some(_) => recent.lines[first + taken.len() - 1].0,
                    None => recent.lines.back().map_or(seq, |(last, _)| *last).max(seq).max(newest),
                };
                return Ok((taken, upto));
            }
        }
        let page = self.readers.with(|mirror| mirror.operations_after(seq, PAGE))?;
        let last = page.last().map_or(seq, |last| last.seq);
        // The numbers after the last line of a page that is not full are of refused operations.
        let upto = if page.len() < PAGE { last.max(newest) } else { last };
        Ok((page.iter().map(line).collect(), upto))
    }

    /// The beginning of a stream, by the cursor of its client.
    pub(crate) fn start(
        &self,
        cursor: Option<u64>,
        now_micros: i64,
        window: Duration,
    ) -> Result<Start, StoreError> {
        let Some(cursor) = cursor else { return Ok(Start::After(*self.newest.borrow())) };
        let (newest, next) = self.readers.with(|mirror| {
            Ok((mirror.totals()?.cursor, mirror.operations_after(cursor, 1)?.pop()))
        })?;
        let oldest = now_micros - i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
        Ok(match next {
            _ if cursor > newest => Start::Refused("FutureCursor"),
            Some(next) if next.created_at_micros < oldest => Start::Refused("OutdatedCursor"),
            _ => Start::After(cursor),
        })
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(of: &MirroredOperation) -> Utf8Bytes {
    let mut line = String::with_capacity(1024);
    push_streamed(&of.as_row(), &mut line);
    line.into()
}

/// Sends a client its operations until it leaves, gives way, takes nothing, or a stop is requested.
pub(crate) async fn serve(
    tail: &Tail,
    upgraded: Upgraded,
    place: &ClientPlace,
    start: Start,
    stop: &StopSignal,
) {
    let mut socket = Socket::new(upgraded, MAX_MESSAGE_BYTES).await;
    let (code, reason) = match start {
        Start::Refused(reason) => (CloseCode::Normal, reason),
        Start::After(seq) => match send(tail, &mut socket, place, seq, stop).await {
            End::Closed => return,
            End::Reason(code, reason) => (code, reason),
        },
    };
    socket.finish(code, reason, CLOSE_LIMIT).await;
}

/// Why a stream ends.
enum End {
    Closed,
    Reason(CloseCode, &'static str),
}

async fn send(
    tail: &Tail,
    socket: &mut Socket,
    place: &ClientPlace,
    mut seq: u64,
    stop: &StopSignal,
) -> End {
    let (mut newest, gives_way) = (tail.newest.subscribe(), place.gives_way());
    let mut lines = VecDeque::new();
    let mut ticks = interval(PING_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if lines.is_empty() && seq < *newest.borrow_and_update() {
            match tail.lines_after(seq) {
                Ok((page, upto)) => {
                    lines.extend(page);
                    seq = upto;
                }
                Err(_) => return End::Reason(CloseCode::Error, "the mirror cannot be read"),
            }
        }
        let wants_to_send = !lines.is_empty();
        tokio::select! {
            () = stop.requested() => return End::Reason(CloseCode::Away, "the server stops"),
            () = gives_way.requested() => return End::Reason(CloseCode::Away, "the place is needed"),
            changed = newest.changed(), if !wants_to_send && seq >= *newest.borrow() => {
                if changed.is_err() {
                    return End::Closed;
                }
            }
            ready = socket.wait(wants_to_send) => match ready {
                // Clients have nothing to say; what they send is read and dropped.
                Ok(Readiness::Received(_)) => {}
                Ok(Readiness::Writable) => {
                    place.note_taken();
                    if let Err(end) = socket.send(|| lines.pop_front().map(Message::Text)) {
                        return end_of(end);
                    }
                }
                Err(end) => return end_of(end),
            },
            _ = ticks.tick() => {
                if socket.is_dead(Instant::now(), DEAD_AFTER) {
                    return End::Reason(CloseCode::Normal, "ConsumerTooSlow");
                }
                if let Err(end) = socket.ping() {
                    return end_of(end);
                }
            }
        }
    }
}

fn end_of(end: SocketEnd) -> End {
    match end {
        SocketEnd::Closed => End::Closed,
        SocketEnd::Violation(rule) => End::Reason(CloseCode::Policy, rule),
    }
}

/// Interval of the searches for new operations, as of the reference server.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Number of operations that are read at a time.
const PAGE: usize = 500;

/// Number of encoded operations in memory.
const MAX_RECENT: usize = 2_000;

/// Maximum size of a client's message in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

const PING_INTERVAL: Duration = Duration::from_secs(20);
const DEAD_AFTER: Duration = Duration::from_secs(60);
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
