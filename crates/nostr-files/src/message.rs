//! Messages between clients and relays around an event.

use serde::de::IgnoredAny;

/// The event in a line, and its offset: the line itself, or the object in a message of
/// [NIP-01](https://github.com/nostr-protocol/nips/blob/master/01.md), `["EVENT",{…}]` or `["EVENT","subscription",{…}]`. Further
/// elements are ignored.
pub(crate) fn event_in(line: &[u8]) -> (usize, &[u8]) {
    match event_of_message(line) {
        Some(event) => (event.as_ptr().addr() - line.as_ptr().addr(), event),
        None => (0, line),
    }
}

fn event_of_message(line: &[u8]) -> Option<&[u8]> {
    let message = line.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let rest = after_comma(message.trim_ascii_start().strip_prefix(br#""EVENT""#)?)?;
    let event = match rest.strip_prefix(b"\"") {
        Some(subscription) => after_comma(after_text(subscription)?)?,
        None => rest,
    };
    Some(first_value(event).unwrap_or(event.trim_ascii_end()))
}

/// The first of several elements of an array; `None` if it is the only one, or malformed.
fn first_value(elements: &[u8]) -> Option<&[u8]> {
    let mut values = serde_json::Deserializer::from_slice(elements).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (value, rest) = elements.split_at_checked(values.byte_offset())?;
    let rest = after_comma(rest).filter(|rest| !rest.is_empty())?;
    // The rest is an array if it is one behind a bracket.
    let rest = [b"[", rest, b"]"].concat();
    serde_json::from_slice::<IgnoredAny>(&rest).is_ok().then_some(value)
}

/// The bytes after a comma and the space around it.
fn after_comma(bytes: &[u8]) -> Option<&[u8]> {
    Some(bytes.trim_ascii_start().strip_prefix(b",")?.trim_ascii_start())
}

/// The bytes after a text, from behind its first quotation mark.
fn after_text(bytes: &[u8]) -> Option<&[u8]> {
    let mut is_escaped = false;
    let is_end = |byte: &u8| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    };
    let end = bytes.iter().position(is_end)?;
    Some(&bytes[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_of_a_message_is_found_with_and_without_a_subscription() {
        for (line, at) in [
            (r#"["EVENT",{"a":["]"]}]"#, 9),
            (r#"["EVENT","sub",{"a":["]"]}]"#, 15),
            ("[ \"EVENT\" ,\t\"s\\\"\\\\\" , {\"a\":[\"]\"]} ] \r", 22),
        ] {
            assert_eq!(event_in(line.as_bytes()), (at, &br#"{"a":["]"]}"#[..]), "{line}");
        }
    }

    #[test]
    fn elements_after_the_event_of_a_message_are_ignored() {
        for (start, end) in [
            (r#"["EVENT","#, r#",1]"#),
            (r#"["EVENT","sub","#, r#",{"x":1}]"#),
            (r#"["EVENT","sub","#, r#" , null , [ "]" , {"a":","} ] ] "#),
        ] {
            let line = format!(r#"{start}{{"a":["}}",",",{{}}]}}{end}"#);
            assert_eq!(
                event_in(line.as_bytes()),
                (start.len(), &br#"{"a":["}",",",{}]}"#[..]),
                "{line}"
            );
        }
        // Bytes after it that are no list of values are left to the decoder, as a part of the event.
        for end in [",]", ",{]", " {}]", ",1,]"] {
            let line = format!(r#"["EVENT","sub",{{}}{end}"#);
            assert!(event_in(line.as_bytes()).1.len() > 2, "{line}");
        }
    }

    #[test]
    fn every_other_line_is_itself() {
        for line in [
            "",
            "[",
            "[]",
            "{}",
            r#"["EOSE","sub"]"#,
            r#"["EVENT"]"#,
            r#"["EVENT" {}]"#,
            r#"["EVENT","sub]"#,
            r#"["EVENT","sub"]"#,
            r#"["EVENT",{}"#,
            r#"["EVENTS",{}]"#,
        ] {
            assert_eq!(event_in(line.as_bytes()), (0, line.as_bytes()), "{line}");
        }
    }
}
