//! The messages of a stream in the order of their arrival: sequence numbers, and a live stream against its replay.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use bytes::Bytes;
use net::firehose::{FrameKind, ReceivedFrame};
use net::hosts::HostId;

use crate::finding::Finding;
use crate::rule;

/// A message of a stream.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its bytes; `None` for text.
    pub frame: Option<Bytes>,
    /// The time of its arrival in microseconds since 1970.
    pub at_micros: u64,
    /// The number of its connection: a later one of the same stream begins with a cursor.
    pub connection: u32,
}

/// A frame with its sequence number and account.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    pub(crate) kind: FrameKind,
    /// Its sequence number; `None` for a message without one, and for bytes that are no frame.
    pub(crate) seq: Option<i64>,
    pub(crate) did: Option<String>,
    pub(crate) at_micros: u64,
}

impl Frame {
    pub(crate) fn read(bytes: &Bytes, at_micros: u64) -> Self {
        let received = ReceivedFrame::new(HostId::default(), bytes.clone(), SystemTime::UNIX_EPOCH);
        let seq = received.seq.and_then(|seq| i64::try_from(seq).ok());
        let did = received.did().map(str::to_owned);
        Self { bytes: bytes.clone(), kind: received.kind, seq, did, at_micros }
    }
}

/// The frames of a stream without repetitions, in the order of their sequence numbers.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// Frames with sequence numbers.
    pub(crate) numbered: BTreeMap<i64, Frame>,
    /// Other frames.
    pub(crate) others: Vec<Frame>,
    /// Numbers before and after messages that are no frames with a number: an event may be lost there.
    holes: Vec<(i64, i64)>,
    pub(crate) findings: Vec<Finding>,
}

/// Reads the messages of one stream.
pub(crate) fn read(arrivals: &[Arrival]) -> Sequence {
    let mut sequence = Sequence::default();
    let (mut last, mut connection) = (0, 0);
    let mut on_connection: HashMap<i64, ()> = HashMap::new();
    let mut open_hole: Option<i64> = None;
    for arrival in arrivals {
        if arrival.connection != connection {
            (connection, on_connection) = (arrival.connection, HashMap::new());
        }
        let Some(bytes) = &arrival.frame else {
            let finding = Finding::of(&rule::TEXT, METHOD, "a message of text");
            sequence.findings.push(finding.at(last));
            open_hole.get_or_insert(last);
            continue;
        };
        let frame = Frame::read(bytes, arrival.at_micros);
        let Some(seq) = frame.seq else {
            if frame.kind == FrameKind::Undecodable {
                open_hole.get_or_insert(last);
            }
            sequence.others.push(frame);
            continue;
        };
        if let Some(before) = open_hole.take() {
            sequence.holes.push((before, seq));
        }
        let is_known_here = on_connection.insert(seq, ()).is_some();
        if sequence.number(seq, &mut last, is_known_here, connection, frame) {
            open_hole = Some(last);
        }
    }
    if let Some(before) = open_hole {
        sequence.holes.push((before, i64::MAX));
    }
    sequence
}

impl Sequence {
    /// Adds a frame with a number; returns whether another event has the number.
    fn number(
        &mut self,
        seq: i64,
        last: &mut i64,
        is_known_here: bool,
        connection: u32,
        frame: Frame,
    ) -> bool {
        let known = self.numbered.get(&seq).map(|known| known.bytes == frame.bytes);
        let found = match known {
            Some(true) if is_known_here => Some((&rule::SEQ_REPEATED, "sent twice".to_owned())),
            Some(true) => None,
            Some(false) => Some((&rule::SEQ_REUSED, "two events have this number".to_owned())),
            None if seq < *last && connection == 0 => {
                Some((&rule::SEQ_ORDER, format!("sent after {last}")))
            }
            None if seq < *last => Some((
                &rule::SEQ_RESET,
                format!("sent on a connection with the cursor {last} after {last}"),
            )),
            None => None,
        };
        if let Some((rule, text)) = found {
            let finding = Finding::of(rule, METHOD, text).at(seq);
            self.findings.push(match &frame.did {
                Some(did) => finding.about(did),
                None => finding,
            });
        }
        *last = seq.max(*last);
        self.numbered.entry(seq).or_insert(frame);
        known == Some(false)
    }

    /// The first and the last number.
    pub(crate) fn ends(&self) -> Option<(i64, i64)> {
        Some((*self.numbered.first_key_value()?.0, *self.numbered.last_key_value()?.0))
    }

    /// Compares the live stream with its replay, and adds what only the replay has.
    pub(crate) fn compare_with_replay(&mut self, replay: &Sequence) {
        let (Some((first, last)), Some((replay_first, replay_last))) = (self.ends(), replay.ends())
        else {
            return;
        };
        let (from, to) = (first.max(replay_first), last.min(replay_last));
        if from > to {
            return;
        }
        let about = |finding: Finding, frame: &Frame| match &frame.did {
            Some(did) => finding.about(did),
            None => finding,
        };
        for (seq, frame) in self.numbered.range(from..=to) {
            let found = match replay.numbered.get(seq) {
                None => Some((&rule::REPLAY_MISSING, "the replay lacks it")),
                Some(again) if again.bytes != frame.bytes => {
                    Some((&rule::REPLAY_DIFFERS, "the replay has other bytes"))
                }
                Some(_) => None,
            };
            let finding = found.map(|(rule, text)| Finding::of(rule, METHOD, text).at(*seq));
            self.findings.extend(finding.map(|finding| about(finding, frame)));
        }
        let is_in_hole = |seq: i64| self.holes.iter().any(|(a, b)| (*a..*b).contains(&seq));
        let lost = replay.numbered.range(from..=to);
        let lost = lost.filter(|(seq, _)| !self.numbered.contains_key(seq));
        let findings: Vec<Finding> = lost
            .filter(|(seq, _)| !is_in_hole(**seq))
            .map(|(seq, frame)| {
                let text = "the live stream lacks it, its replay has it";
                about(Finding::of(&rule::LOST_EVENT, METHOD, text).at(*seq), frame)
            })
            .collect();
        self.findings.extend(findings);
        for (seq, frame) in replay.numbered.range(first..) {
            self.numbered.entry(*seq).or_insert_with(|| frame.clone());
        }
    }
}

pub(crate) const METHOD: &str = "subscribeRepos";
