//! Sequence numbers of served events.
//!
//! The number of an event is its arrival in microseconds, counted from 2020: it rises without a gap in time whatever file is
//! lost, and it is less than [`MIN_TIME_CURSOR`], from which Jetstreams take a cursor for a time. A commit has one number
//! per operation; its frame has the first of them.

use net::jetstream::MIN_TIME_CURSOR;

/// The sequence number of an arrival in microseconds since 1970.
pub(crate) fn seq_of(arrival: i64) -> i64 {
    arrival - EPOCH_MICROS
}

/// The arrival that has a sequence number.
pub(crate) fn arrival_of(seq: i64) -> i64 {
    seq.saturating_add(EPOCH_MICROS)
}

/// Whether a cursor of a Jetstream is a time in microseconds since 1970.
pub(crate) fn is_time(cursor: i64) -> bool {
    u64::try_from(cursor).is_ok_and(|cursor| cursor >= MIN_TIME_CURSOR)
}

/// An arrival, not before the first number.
pub(crate) fn arrival_now(micros: i64) -> i64 {
    micros.max(EPOCH_MICROS + 1)
}

/// 2020-01-01T00:00:00Z in microseconds since 1970.
const EPOCH_MICROS: i64 = 1_577_836_800_000_000;

/// Maximum number of sequence numbers of one event: of operations in a commit.
pub(crate) const MAX_NUMBERS: u16 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_of_this_decade_is_no_time() {
        let [now, later] = [1_782_864_000_000_000, 2_082_758_400_000_000];
        for arrival in [now, later] {
            assert!(is_time(arrival) && !is_time(seq_of(arrival)));
            assert_eq!(arrival_of(seq_of(arrival)), arrival);
        }
        assert_eq!(seq_of(arrival_now(0)), 1);
    }
}
