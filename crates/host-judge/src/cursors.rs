//! Cursors: the replay of the live stream, the oldest events, a cursor before them, and one ahead of the stream.

use std::time::Duration;

use tokio::time::Instant;

use crate::ask::Host;
use crate::finding::Finding;
use crate::listen::{self, Heard, Until, command};
use crate::rule;
use crate::sequence::{Arrival, METHOD};

/// The events that cursors gave.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    /// The replay of the live stream, and what came later.
    pub(crate) of_live: Option<Vec<Arrival>>,
    /// The oldest events.
    pub(crate) oldest: Vec<Arrival>,
}

/// Judges the cursors of a host whose stream was heard live.
pub(crate) async fn judge(host: &Host, live: &Heard, quiet: Duration) -> Replays {
    let mut replays = Replays::default();
    let replay = match live.ends {
        Some((_, last)) => Some(replay(host, live, last, quiet).await),
        None => None,
    };
    let window = listen::after(host, 0, &until(MAX_WINDOW_TIME, quiet, None, MAX_WINDOW)).await;
    let mut is_ignored = false;
    if let (Some(replay), Some((first, _))) = (replay, live.ends) {
        let oldest = window.ends.map(|(oldest, _)| oldest);
        // Read after the replay: events that are stored now were stored then.
        let was_stored = oldest.is_none_or(|oldest| oldest <= first);
        is_ignored = was_stored && is_cursor_ignored(host, live, &replay, first);
        let is_whole = replay.is_open && !is_ignored;
        replays.of_live = is_whole.then_some(replay.arrivals);
    }
    let last_known = [live.ends, window.ends].iter().flatten().map(|(_, last)| *last).max();
    if let (Some((oldest, _)), Some(last)) = (window.ends, last_known) {
        is_ignored |= old_cursor(host, oldest, last).await;
    }
    if !is_ignored {
        future_cursor(host).await;
    }
    replays.oldest = window.arrivals;
    replays
}

/// The events from the first live one on.
async fn replay(host: &Host, live: &Heard, last: i64, quiet: Duration) -> Heard {
    let first = live.ends.map_or(0, |(first, _)| first);
    let until = until(MAX_REPLAY_TIME, quiet, Some(last), live.arrivals.len() + MAX_WINDOW);
    listen::after(host, first, &Until { tail: MAX_REPLAY_TAIL, ..until }).await
}

/// Whether a replay does not begin at its cursor, of an event that is stored.
fn is_cursor_ignored(host: &Host, live: &Heard, replay: &Heard, first: i64) -> bool {
    if !replay.is_open || (replay.is_broken && replay.ends.is_none()) {
        return false;
    }
    if replay.infos.iter().any(|name| name == "OutdatedCursor") {
        let text = format!("the event {first} is stored");
        let finding = Finding::of(&rule::CURSOR_OUTDATED, METHOD, text).at(first);
        host.note(finding.seen_by(command(host, Some(first))));
    }
    // A stream may begin with the event at the cursor or with the next one.
    let numbers = crate::sequence::read(&live.arrivals);
    let next = numbers.numbered.range(first + 1..).next().map(|(seq, _)| *seq);
    let starts = replay.ends.map(|(start, _)| start);
    let is_ignored = next.is_some_and(|next| starts.is_none_or(|start| start > next));
    if is_ignored {
        let text = format!("cursor {first}: it begins with {}", of_event(starts));
        let finding = Finding::of(&rule::CURSOR_IGNORED, METHOD, text).at(first);
        host.note(finding.seen_by(command(host, Some(first))));
    }
    is_ignored
}

fn of_event(seq: Option<i64>) -> String {
    seq.map_or_else(|| "no event".to_owned(), |seq| format!("event {seq}"))
}

/// A cursor before the oldest event; returns whether it is ignored.
async fn old_cursor(host: &Host, oldest: i64, last_known: i64) -> bool {
    if oldest <= 2 {
        return false;
    }
    let heard = listen::after(host, 1, &until(MAX_FIRST, Duration::ZERO, Some(0), 2)).await;
    if !heard.is_open || heard.is_broken || heard.error.is_some() {
        return false;
    }
    let starts = heard.ends.map(|(start, _)| start);
    if heard.infos.is_empty() && starts.is_none_or(|start| start > last_known) {
        let start = of_event(starts);
        let text = format!("cursor 1: it begins with {start}, and {oldest} is stored");
        let finding = Finding::of(&rule::CURSOR_IGNORED, METHOD, text).at(1);
        host.note(finding.seen_by(command(host, Some(1))));
        return true;
    } else if heard.infos.is_empty() {
        let text = format!("cursor 1: no `#info`, and the oldest event is {oldest}");
        let finding = Finding::of(&rule::CURSOR_UNSTATED, METHOD, text).at(1);
        host.note(finding.seen_by(command(host, Some(1))));
    }
    false
}

/// A cursor that no stream has reached.
async fn future_cursor(host: &Host) {
    let heard =
        listen::after(host, LAST_SEQ, &until(MAX_FIRST, Duration::ZERO, Some(LAST_SEQ), 1)).await;
    if heard.is_open && !heard.is_broken && heard.error.as_deref() != Some("FutureCursor") {
        let seen = match (&heard.error, heard.ends) {
            (Some(error), _) => format!("the error {error}"),
            (None, Some((start, _))) => format!("event {start}"),
            (None, None) => "nothing".to_owned(),
        };
        let text = format!("cursor {LAST_SEQ}: {seen}");
        let finding = Finding::of(&rule::CURSOR_FUTURE, METHOD, text);
        host.note(finding.seen_by(command(host, Some(LAST_SEQ))));
    }
}

fn until(time: Duration, quiet: Duration, seq: Option<i64>, max_messages: usize) -> Until {
    Until { deadline: Instant::now() + time, quiet, tail: Duration::MAX, seq, max_messages }
}

/// The last number that a stream may have: 2^53 - 1.
const LAST_SEQ: i64 = (1 << 53) - 1;
const MAX_REPLAY_TIME: Duration = Duration::from_secs(20);
/// Time in which events of statuses that were asked for arrive.
const MAX_REPLAY_TAIL: Duration = Duration::from_secs(3);
const MAX_WINDOW_TIME: Duration = Duration::from_secs(10);
const MAX_WINDOW: usize = 2_000;
/// Maximum time until the first message after a cursor.
const MAX_FIRST: Duration = Duration::from_secs(4);
