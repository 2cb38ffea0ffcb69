//! The meaning of the bytes of a note.

use super::{
    CONTENT, CONTENT_LEN, CREATED_AT, HEADER_BYTES, ID, IN_POOL, INLINE, IS_ID, KIND, POOL, PUBKEY,
    SIG, TAGS,
};
use crate::explain::{Note, Parts, Visit, little_endian};
use nostr::DecodeError;

/// Explains a note that was decoded before.
pub(super) fn event(bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
    let mut parts = Parts::new(bytes);
    parts.integer(0, 1, "version")?;
    parts.layout(1, 3, "", "zero")?;
    for (start, len, field) in [(ID, 32, "id"), (PUBKEY, 32, "pubkey"), (SIG, 64, "sig")] {
        parts.add(start, len, field, Note::Hex)?;
    }
    parts.integer(CREATED_AT, 8, "created_at")?;
    parts.integer(KIND, 4, "kind")?;
    let content_len = little_endian(parts.get(CONTENT_LEN, 4)?) as usize;
    parts.layout(CONTENT_LEN, 4, "content", format!("{content_len} bytes"))?;
    let pool = little_endian(parts.get(POOL, 4)?) as usize;
    parts.layout(POOL, 4, "", format!("strings are from byte {pool} on"))?;
    parts.layout(TAGS, 2, "", "zero")?;
    string(&mut parts, CONTENT, pool, "content", Some(content_len))?;
    let tags = counted(&mut parts, TAGS + 2, "tags", "tags")?;
    let mut at = HEADER_BYTES;
    for tag in 0..tags {
        let tag = format!("tags[{tag}]");
        let values = counted(&mut parts, at, &tag, "values")?;
        at += 2;
        for value in 0..values {
            string(&mut parts, at, pool, &format!("{tag}[{value}]"), None)?;
            at += 4;
        }
    }
    parts.visit(visit);
    Ok(())
}

fn counted(parts: &mut Parts<'_>, at: usize, field: &str, what: &str) -> Result<u64, DecodeError> {
    let count = little_endian(parts.get(at, 2)?);
    parts.layout(at, 2, field, format!("{count} {what}"))?;
    Ok(count)
}

/// Explains the string at a place; without a length it ends at a zero byte.
fn string(
    parts: &mut Parts<'_>,
    at: usize,
    pool: usize,
    field: &str,
    len: Option<usize>,
) -> Result<(), DecodeError> {
    let bytes = parts.get(at, 4)?;
    let start = pool + little_endian(&bytes[..3]) as usize;
    let (len, note) = match bytes[3] {
        INLINE => {
            let text: Vec<u8> = bytes[..3].iter().copied().take_while(|byte| *byte != 0).collect();
            let text = String::from_utf8_lossy(&text);
            return parts.layout(at, 4, field, format!("text in place: {text:?}")).map(drop);
        }
        IS_ID => (32, Note::Hex),
        _ => {
            let rest = parts.bytes.get(start..).unwrap_or_default();
            let until_zero = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            (len.unwrap_or(until_zero), Note::Text)
        }
    };
    let what = if bytes[3] == IN_POOL { "text" } else { "bytes of digits" };
    parts.layout(at, 4, field, format!("{what} at byte {start}"))?;
    parts.add(start, len, field, note)?;
    parts.layout(start + len, 1, field, "zero")?;
    Ok(())
}
