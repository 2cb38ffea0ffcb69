//! A list of events for formats without one: `[u32 LE count]`, then `[u32 LE length][event]` per event.

use crate::BoxError;

/// Encodes `events` by `encode`, which appends one.
///
/// # Errors
///
/// The first of `encode`.
pub fn encode<E>(
    events: &[E],
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&E, &mut Vec<u8>) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    out.extend_from_slice(&(events.len() as u32).to_le_bytes());
    for event in events {
        let head = out.len();
        out.extend_from_slice(&[0; 4]);
        encode(event, out)?;
        let len = (out.len() - head - 4) as u32;
        out[head..head + 4].copy_from_slice(&len.to_le_bytes());
    }
    Ok(())
}

/// Decodes the events, one by one with `decode`.
///
/// # Errors
///
/// If the lengths do not add up, or the first of `decode`.
pub fn decode<'a, D>(
    bytes: &'a [u8],
    mut decode: impl FnMut(&'a [u8]) -> Result<D, BoxError>,
) -> Result<Vec<D>, BoxError> {
    let mut rest = bytes;
    let count = split_len(&mut rest)?;
    let mut events = Vec::with_capacity(count.min(rest.len() / 4));
    for _ in 0..count {
        let len = split_len(&mut rest)?;
        events.push(decode(rest.split_off(..len).ok_or("a list ends inside an event")?)?);
    }
    if rest.is_empty() { Ok(events) } else { Err("bytes after a list".into()) }
}

fn split_len(rest: &mut &[u8]) -> Result<usize, BoxError> {
    let len = rest.split_off(..4).ok_or("a list ends inside a length")?;
    Ok(u32::from_le_bytes(len.try_into().expect("four bytes were split off")) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_round_trips_and_truncated_or_extended_lists_are_rejected() {
        let events: [&[u8]; 2] = [b"one", b""];
        let mut list = Vec::new();
        encode(&events, &mut list, |event, out| {
            out.extend_from_slice(event);
            Ok(())
        })
        .unwrap();
        assert_eq!(list, b"\x02\0\0\0\x03\0\0\0one\0\0\0\0");
        assert_eq!(decode(&list, Ok).unwrap(), events);
        assert!((0..list.len()).all(|len| decode(&list[..len], Ok).is_err()));
        assert!(decode(&[&list[..], &[0]].concat(), Ok).is_err());
    }
}
