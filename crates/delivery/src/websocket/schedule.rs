//! The order of the messages of a connection: the events of an account one after the other, different accounts in
//! parallel.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// An event as messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// The position in the outbox.
    pub(super) position: u64,
    /// Whether the messages may be in flight at once.
    pub(super) is_concurrent: bool,
    /// Whether the message has the handle of the account.
    pub(super) names_handle: bool,
    pub(super) messages: VecDeque<OutgoingMessage>,
}

/// A message that a client acknowledges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutgoingMessage {
    /// The acknowledgement by the client, as text.
    pub(super) id: Box<str>,
    pub(super) text: Utf8Bytes,
}

/// Limits of a [`Schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduleLimits {
    /// Number of messages in flight at which no more are sent.
    pub(super) max_in_flight: usize,
    /// Number of unacknowledged events at which no more are taken from the outbox, and their size in bytes.
    pub(super) max_events: usize,
    pub(super) max_bytes: usize,
}

/// Events that a connection has taken from the outbox, until they are acknowledged.
#[derive(Debug)]
pub(super) struct Schedule {
    limits: ScheduleLimits,
    /// The accounts with unacknowledged events.
    accounts: HashMap<Arc<str>, AccountEvents>,
    /// Messages that may be sent.
    ready: VecDeque<(Arc<str>, OutgoingMessage)>,
    in_flight: HashMap<Box<str>, InFlight>,
    /// The ids of messages to send again.
    repeats: VecDeque<Box<str>>,
    events: usize,
    bytes: usize,
}

/// The unacknowledged events of an account, in their order. The messages of the first are ready or in flight, unless they are
/// awaited.
#[derive(Debug, Default)]
struct AccountEvents {
    events: VecDeque<Outgoing>,
    /// Number of messages of the first event that are ready or in flight.
    open: usize,
    /// The positions of events whose messages are not known yet.
    awaited: BTreeSet<u64>,
}

#[derive(Debug)]
struct InFlight {
    account: Arc<str>,
    text: Utf8Bytes,
    sent_at: Instant,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acked {
    /// No message with this id is in flight.
    Unknown,
    /// The event has other messages.
    Message,
    /// The event at this position is complete.
    Event(u64),
}

impl Schedule {
    pub(super) fn new(limits: ScheduleLimits) -> Self {
        let (accounts, ready, in_flight, repeats) = Default::default();
        Self { limits, accounts, ready, in_flight, repeats, events: 0, bytes: 0 }
    }

    /// Whether more events may be added.
    pub(super) fn has_room(&self) -> bool {
        self.events < self.limits.max_events && self.bytes < self.limits.max_bytes
    }

    /// Whether a message may be sent.
    pub(super) fn has_ready(&self) -> bool {
        let is_next = !self.ready.is_empty() && self.in_flight.len() < self.limits.max_in_flight;
        is_next || !self.repeats.is_empty()
    }

    /// Whether every message that was sent is acknowledged.
    pub(super) fn is_settled(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Adds an event with at least one message, after the others of its account.
    pub(super) fn add(&mut self, account: &str, event: Outgoing) {
        self.events += 1;
        self.bytes += event.byte_len();
        match self.accounts.get_mut(account) {
            Some(waiting) => waiting.events.push_back(event),
            None => {
                let account: Arc<str> = account.into();
                let mut events =
                    AccountEvents { events: [event].into(), open: 0, awaited: BTreeSet::new() };
                events.open_messages(&account, &mut self.ready);
                self.accounts.insert(account, events);
            }
        }
    }

    /// Adds an event whose messages will be [replaced](Self::replace): it and later events of its account wait until
    /// then.
    pub(super) fn add_awaited(&mut self, account: &str, event: Outgoing) {
        self.events += 1;
        self.bytes += event.byte_len();
        let waiting = self.accounts.entry(account.into()).or_default();
        waiting.awaited.insert(event.position);
        waiting.events.push_back(event);
    }

    /// Replaces the messages of an awaited event, which is sent in its turn.
    pub(super) fn replace(&mut self, account: &str, event: Outgoing) {
        let Some((account, waiting)) = self.accounts.get_key_value(account) else { return };
        let account = account.clone();
        if !waiting.awaited.contains(&event.position) {
            return;
        }
        let Some(waiting) = self.accounts.get_mut(&account) else { return };
        waiting.awaited.remove(&event.position);
        if let Some(placed) = waiting.events.iter_mut().find(|of| of.position == event.position) {
            self.bytes = self.bytes - placed.byte_len() + event.byte_len();
            *placed = event;
        }
        waiting.open_messages(&account, &mut self.ready);
    }

    /// The next message to send, which is in flight from now on.
    pub(super) fn next(&mut self, now: Instant) -> Option<Utf8Bytes> {
        while let Some(id) = self.repeats.pop_front() {
            if let Some(sent) = self.in_flight.get_mut(&id) {
                sent.sent_at = now;
                return Some(sent.text.clone());
            }
        }
        if !self.has_ready() {
            return None;
        }
        let (account, OutgoingMessage { id, text }) = self.ready.pop_front()?;
        self.in_flight.insert(id, InFlight { account, text: text.clone(), sent_at: now });
        Some(text)
    }

    /// Records the acknowledgement of a message.
    pub(super) fn acknowledge(&mut self, id: &str) -> Acked {
        let Some(InFlight { account, text, .. }) = self.in_flight.remove(id) else {
            return Acked::Unknown;
        };
        self.bytes -= text.len();
        let Entry::Occupied(mut entry) = self.accounts.entry(account) else {
            return Acked::Unknown;
        };
        let account = entry.key().clone();
        let waiting = entry.get_mut();
        waiting.open -= 1;
        let Some(first) = waiting.events.front() else { return Acked::Unknown };
        if waiting.open > 0 || !first.messages.is_empty() {
            waiting.open_messages(&account, &mut self.ready);
            return Acked::Message;
        }
        let position = first.position;
        waiting.events.pop_front();
        self.events -= 1;
        if waiting.events.is_empty() {
            drop(entry.remove())
        } else {
            waiting.open_messages(&account, &mut self.ready)
        }
        Acked::Event(position)
    }

    /// Repeats the messages that were sent `timeout` ago or before. Returns their number.
    pub(super) fn repeat_overdue(&mut self, now: Instant, timeout: Duration) -> usize {
        if !self.repeats.is_empty() {
            return 0;
        }
        let overdue = self.in_flight.iter().filter(|(_, sent)| sent.sent_at + timeout <= now);
        self.repeats.extend(overdue.map(|(id, _)| id.clone()));
        self.repeats.len()
    }
}

impl Outgoing {
    fn byte_len(&self) -> usize {
        self.messages.iter().map(|message| message.text.len()).sum()
    }
}

impl AccountEvents {
    /// Makes those messages of the first event ready that may be sent now.
    fn open_messages(
        &mut self,
        account: &Arc<str>,
        ready: &mut VecDeque<(Arc<str>, OutgoingMessage)>,
    ) {
        let Some(first) = self.events.front_mut() else { return };
        if self.awaited.contains(&first.position) {
            return;
        }
        while (first.is_concurrent || self.open == 0)
            && let Some(message) = first.messages.pop_front()
        {
            self.open += 1;
            ready.push_back((account.clone(), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: ScheduleLimits =
        ScheduleLimits { max_in_flight: 4, max_events: 10, max_bytes: 1_000 };

    fn event(position: u64, messages: usize, is_concurrent: bool) -> Outgoing {
        let message = |number| {
            let id = format!("{position}.{number}");
            OutgoingMessage { id: id.as_str().into(), text: id.into() }
        };
        let messages = (0..messages).map(message).collect();
        Outgoing { position, is_concurrent, names_handle: false, messages }
    }

    fn sent(schedule: &mut Schedule) -> Vec<String> {
        let now = Instant::now();
        std::iter::from_fn(|| schedule.next(now)).map(|text| text.to_string()).collect()
    }

    #[test]
    fn an_account_has_one_live_message_in_flight_and_others_continue() {
        let mut schedule = Schedule::new(LIMITS);
        schedule.add("a", event(1, 2, false));
        schedule.add("a", event(2, 1, false));
        schedule.add("b", event(3, 1, false));
        assert_eq!(sent(&mut schedule), ["1.0", "3.0"]);
        assert_eq!(schedule.acknowledge("3.0"), Acked::Event(3));
        assert_eq!(schedule.acknowledge("1.0"), Acked::Message);
        assert_eq!(sent(&mut schedule), ["1.1"]);
        assert_eq!(schedule.acknowledge("2.0"), Acked::Unknown, "not sent yet");
        assert_eq!(schedule.acknowledge("1.1"), Acked::Event(1));
        assert_eq!(schedule.acknowledge("1.1"), Acked::Unknown, "a second time");
        assert_eq!(sent(&mut schedule), ["2.0"]);
        assert_eq!(schedule.acknowledge("2.0"), Acked::Event(2));
        assert!(schedule.is_settled() && schedule.accounts.is_empty());
        assert_eq!((schedule.events, schedule.bytes), (0, 0));
    }

    #[test]
    fn the_messages_of_history_are_in_flight_together_and_the_next_event_waits_for_all() {
        let mut schedule = Schedule::new(LIMITS);
        schedule.add("a", event(1, 3, true));
        schedule.add("a", event(2, 1, false));
        assert_eq!(sent(&mut schedule), ["1.0", "1.1", "1.2"]);
        assert_eq!(schedule.acknowledge("1.2"), Acked::Message);
        assert_eq!(schedule.acknowledge("1.0"), Acked::Message);
        assert_eq!(sent(&mut schedule), [""; 0]);
        assert_eq!(schedule.acknowledge("1.1"), Acked::Event(1));
        assert_eq!(sent(&mut schedule), ["2.0"]);
    }

    #[test]
    fn an_event_whose_messages_are_awaited_holds_back_its_account_alone() {
        let mut schedule = Schedule::new(LIMITS);
        schedule.add("a", event(1, 1, false));
        schedule.add_awaited("a", event(2, 1, false));
        schedule.add("a", event(3, 1, false));
        schedule.add_awaited("b", event(4, 1, false));
        schedule.add("c", event(5, 1, false));
        assert_eq!(sent(&mut schedule), ["1.0", "5.0"]);
        assert_eq!(schedule.acknowledge("1.0"), Acked::Event(1));
        assert_eq!(sent(&mut schedule), [""; 0]);
        let mut found = event(2, 1, false);
        found.messages[0].text = "a longer message".into();
        schedule.replace("a", found.clone());
        schedule.replace("a", found);
        schedule.replace("b", event(4, 1, false));
        schedule.replace("c", event(5, 1, false));
        schedule.replace("d", event(6, 1, false));
        assert_eq!(sent(&mut schedule), ["a longer message", "4.0"], "each once");
        for (id, position) in [("2.0", 2), ("4.0", 4), ("5.0", 5)] {
            assert_eq!(schedule.acknowledge(id), Acked::Event(position));
        }
        assert_eq!(sent(&mut schedule), ["3.0"]);
        assert_eq!(schedule.acknowledge("3.0"), Acked::Event(3));
        assert_eq!((schedule.events, schedule.bytes), (0, 0));
    }

    #[test]
    fn at_a_limit_nothing_more_is_sent_or_taken() {
        let mut schedule = Schedule::new(LIMITS);
        (0..10).for_each(|number| schedule.add(&number.to_string(), event(number, 1, false)));
        assert!(!schedule.has_room());
        assert_eq!(sent(&mut schedule).len(), 4);
        assert!(!schedule.has_ready());
        assert_eq!(schedule.acknowledge("0.0"), Acked::Event(0));
        assert!(schedule.has_room() && schedule.has_ready());

        let mut schedule = Schedule::new(ScheduleLimits { max_bytes: 3, ..LIMITS });
        schedule.add("a", event(1, 1, false));
        assert!(!schedule.has_room(), "by bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn an_overdue_message_is_sent_again_once_a_timeout() {
        let (mut schedule, timeout) = (Schedule::new(LIMITS), Duration::from_secs(60));
        schedule.add("a", event(1, 1, false));
        schedule.add("b", event(2, 1, false));
        assert_eq!(sent(&mut schedule).len(), 2);
        assert_eq!(schedule.acknowledge("2.0"), Acked::Event(2));
        let start = Instant::now();
        let repeated = [59, 60, 61, 119, 120].map(|seconds| {
            let now = start + Duration::from_secs(seconds);
            let count = schedule.repeat_overdue(now, timeout);
            let texts = std::iter::from_fn(|| schedule.next(now)).map(|text| text.to_string());
            assert!(texts.eq(vec!["1.0"; count]));
            count
        });
        assert_eq!(repeated, [0, 1, 0, 0, 1]);
        schedule.repeat_overdue(start + Duration::from_secs(300), timeout);
        assert_eq!(schedule.acknowledge("1.0"), Acked::Event(1));
        assert_eq!(sent(&mut schedule), [""; 0], "acknowledged meanwhile");
    }

    proptest! {
        #[test]
        fn each_account_gets_its_messages_in_order_and_every_event_is_completed_once(
            events in prop::collection::vec((0..4_u64, 1..4_usize, any::<bool>()), 1..60),
            choices in prop::collection::vec(any::<prop::sample::Index>(), 400),
        ) {
            let limits = ScheduleLimits { max_events: 1_000, max_bytes: 100_000, ..LIMITS };
            let (mut schedule, mut choices) = (Schedule::new(limits), choices.into_iter());
            for (position, (account, messages, is_concurrent)) in events.iter().enumerate() {
                schedule.add(&account.to_string(), event(position as u64, *messages, *is_concurrent));
            }
            let (mut in_flight, mut completed) = (Vec::new(), BTreeSet::new());
            let mut last_of = HashMap::new();
            loop {
                for text in sent(&mut schedule) {
                    let position: u64 = text.split('.').next().unwrap().parse().unwrap();
                    let account = events[usize::try_from(position).unwrap()].0;
                    let last = last_of.insert(account, position).unwrap_or(position);
                    prop_assert!(last == position || completed.contains(&last));
                    prop_assert!(last <= position);
                    in_flight.push(text);
                }
                prop_assert!(in_flight.len() <= LIMITS.max_in_flight);
                let Some(choice) = choices.next().filter(|_| !in_flight.is_empty()) else { break };
                let id = in_flight.swap_remove(choice.index(in_flight.len()));
                if let Acked::Event(position) = schedule.acknowledge(&id) {
                    prop_assert!(completed.insert(position));
                }
            }
            prop_assert_eq!(completed.len(), events.len());
            prop_assert_eq!((schedule.events, schedule.bytes), (0, 0));
            prop_assert!(schedule.accounts.is_empty() && schedule.ready.is_empty());
        }
    }
}
