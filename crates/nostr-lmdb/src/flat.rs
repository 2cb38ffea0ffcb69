//! Records of strfry's tables: tables of FlatBuffers with one or a few fields.

use flatbuffers::FlatBufferBuilder;

/// The vector of bytes in the first field of a record; `None` if the record is malformed or has no such field.
pub(crate) fn bytes_of(record: &[u8]) -> Option<&[u8]> {
    let field = first_field(record)?;
    let vector = field.checked_add(integer(record, field)?)?;
    let len = integer(record, vector)?;
    record.get(vector.checked_add(4)?..)?.get(..len)
}

/// Offset of the first field of a record.
fn first_field(record: &[u8]) -> Option<usize> {
    let root = integer(record, 0)?;
    let distance = i32::from_le_bytes(*record.get(root..)?.first_chunk()?);
    let vtable = root.checked_add_signed(isize::try_from(distance).ok()?.checked_neg()?)?;
    let [len, offset] = [0, 4].map(|at| short(record, vtable.checked_add(at)?));
    let offset = offset.filter(|offset| *offset > 0 && len.is_some_and(|len| len >= 6))?;
    root.checked_add(offset)
}

/// The integer of 8 bytes in the first field of a record; `None` if the record is malformed or has no such field.
pub(crate) fn integer_of(record: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*record.get(first_field(record)?..)?.first_chunk()?))
}

/// A record whose fields are these integers.
pub(crate) fn of_integers(fields: &[u64]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let table = builder.start_table();
    for (slot, field) in (4..).step_by(2).zip(fields) {
        builder.push_slot(slot, *field, 0);
    }
    let root = builder.end_table(table);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

fn integer(record: &[u8], at: usize) -> Option<usize> {
    let bytes = record.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

fn short(record: &[u8], at: usize) -> Option<usize> {
    let bytes = record.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes).into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record whose first field is a vector of bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let vector = builder.create_vector(bytes);
        let table = builder.start_table();
        builder.push_slot_always(4, vector);
        let root = builder.end_table(table);
        builder.finish_minimal(root);
        builder.finished_data().to_vec()
    }

    #[test]
    fn the_bytes_of_a_record_are_read_and_no_truncation_of_it_is() {
        let record = of_bytes(b"dictionary");
        assert_eq!(bytes_of(&record), Some(&b"dictionary"[..]));
        let end = record.windows(10).position(|window| window == b"dictionary").unwrap() + 10;
        for len in 0..end {
            assert_eq!(bytes_of(&record[..len]), None, "{len}");
        }
    }

    #[test]
    fn no_changed_byte_of_a_record_is_read_beyond_it() {
        let record = of_bytes(b"dictionary");
        for at in 0..record.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = record.clone();
                changed[at] = byte;
                assert!(bytes_of(&changed).is_none_or(|bytes| bytes.len() <= record.len()));
            }
        }
        assert_eq!(bytes_of(&of_integers(&[])), None);
    }
}
