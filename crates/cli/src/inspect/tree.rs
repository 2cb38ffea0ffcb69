//! A DAG-CBOR value as an indented tree: one key or item a line, containers by indentation.
//!
//! Untrusted text is quoted with control characters escaped, so that it cannot control the terminal.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use codec::CidRef;
use codec::cbor::Value;

/// Writes the content of a container, or a scalar on its own line, indented by `indent` spaces.
pub(super) fn write(value: &Value<'_>, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Map(map) if !map.is_empty() => {
            for (key, value) in map.iter().take(SHOWN_ITEMS) {
                write!(out, "{:indent$}{KEY}{}{KEY:#}:", "", name(key))?;
                write_after_label(value, indent, out)?;
            }
            more(map.len(), "entries", indent, out)
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items.iter().take(SHOWN_ITEMS) {
                write!(out, "{:indent$}-", "")?;
                write_after_label(item, indent, out)?;
            }
            more(items.len(), "items", indent, out)
        }
        scalar => writeln!(out, "{:indent$}{}", "", ScalarText(scalar)),
    }
}

/// Writes the value of a key or a dash: a scalar on the same line, a container below it.
fn write_after_label(value: &Value<'_>, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Map(map) if !map.is_empty() => writeln!(out)?,
        Value::Array(items) if !items.is_empty() => writeln!(out)?,
        scalar => return writeln!(out, " {}", ScalarText(scalar)),
    }
    write(value, indent + STEP, out)
}

fn more(len: usize, what: &str, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    if len <= SHOWN_ITEMS {
        return Ok(());
    }
    writeln!(out, "{:indent$}{FAINT}… {} more {what}{FAINT:#}", "", len - SHOWN_ITEMS)
}

/// A key, quoted unless it is a plain word.
fn name(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "$_-.".contains(c);
    if !key.is_empty() && key.chars().all(is_plain) { key.to_owned() } else { quoted(key) }
}

/// Quoted text, cut if it is long, with control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => format!("{text:?}"),
        Some((cut, _)) => format!("{:?}… ({} bytes)", &text[..cut], text.len()),
    }
}

/// The text form of a CID.
pub(super) fn cid(cid: CidRef<'_>) -> String {
    format!("{LINK}{cid}{LINK:#}")
}

/// A scalar or an empty container on one line.
struct ScalarText<'v, 'a>(&'v Value<'a>);

impl std::fmt::Display for ScalarText<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Boolean(boolean) => write!(f, "{boolean}"),
            Value::Integer(integer) => write!(f, "{integer}"),
            Value::WideInteger(integer) => write!(f, "{}", integer.get()),
            Value::Float(float) => write!(f, "{float:?}"),
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::Bytes(bytes) => write_bytes(bytes, f),
            Value::Link(link) => f.write_str(&cid(*link)),
            Value::Array(_) => f.write_str("[]"),
            Value::Map(_) => f.write_str("{}"),
        }
    }
}

fn write_bytes(bytes: &[u8], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.write_str("h'")?;
    bytes.iter().take(SHOWN_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))?;
    let cut = if bytes.len() > SHOWN_BYTES { "…" } else { "" };
    write!(f, "{cut}' {FAINT}({} bytes){FAINT:#}", bytes.len())
}

/// Spaces per level.
pub(super) const STEP: usize = 2;
const SHOWN_ITEMS: usize = 32;
const SHOWN_CHARS: usize = 300;
const SHOWN_BYTES: usize = 16;

/// Names of fields.
pub(super) const KEY: Style = AnsiColor::Cyan.on_default();
/// Identifiers of blocks.
pub(super) const LINK: Style = AnsiColor::Yellow.on_default();
/// Remarks.
pub(super) const FAINT: Style = Style::new().dimmed();

#[cfg(test)]
mod tests {
    use super::*;
    use bumpalo::Bump;
    use codec::{cbor, json};

    fn plain(json: &str) -> String {
        let arena = Bump::new();
        let mut out = anstream::StripStream::new(Vec::new());
        write(&json::decode(json, &arena).unwrap(), 0, &mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn containers_are_shown_by_indentation() {
        let tree = plain(r#"{"a":[1,{"b":null},[]],"c":{"d":{"$bytes":"AQI"}}}"#);
        assert_eq!(tree, "a:\n  - 1\n  -\n    b: null\n  - []\nc:\n  d: h'0102' (2 bytes)\n");
    }

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        let arena = Bump::new();
        let value = cbor::decode(b"\xa1\x61\x1b\x64\x1b[2J", &arena).unwrap();
        let mut out = anstream::StripStream::new(Vec::new());
        write(&value, 0, &mut out).unwrap();
        assert_eq!(out.into_inner(), b"\"\\u{1b}\": \"\\u{1b}[2J\"\n");
    }

    #[test]
    fn long_values_are_cut_with_a_remark() {
        assert!(plain(&format!("{:?}", "x".repeat(5000))).ends_with("… (5000 bytes)\n"));
        assert!(plain(&format!("{:?}", [0; 100])).ends_with("… 68 more items\n"));
    }
}
