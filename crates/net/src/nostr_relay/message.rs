//! Messages of relays (NIP-01, NIP-42, NIP-77), and those of clients.

use std::ops::Range;

use kernels::hex;
use nostr::Filter;
use serde_json::value::RawValue;

use crate::remote_text::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, sanitize};

/// A message of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message<'m> {
    /// An event, which is the object in this range of the message. It is not parsed.
    Event {
        subscription: &'m str,
        object: Range<usize>,
    },
    EndOfStored {
        subscription: String,
    },
    Closed {
        subscription: String,
        reason: Reason,
    },
    Notice(String),
    Auth {
        challenge: String,
    },
    Compare {
        subscription: String,
        message: Vec<u8>,
    },
    CompareFailed {
        subscription: String,
        reason: Reason,
    },
    /// A message to which nothing is to be said, as the result of a request that was not made.
    Other,
}

/// Why a relay ends a subscription, or refuses a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// The word before the colon, such as `rate-limited`; empty if there is none.
    pub prefix: String,
    /// The text after it, on one line and shortened.
    pub message: String,
}

impl Reason {
    /// Parses `prefix: message`.
    pub(super) fn parse(text: &str) -> Self {
        let is_word = |text: &str| {
            let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            !text.is_empty() && text.len() <= MAX_NAME_CHARS && text.bytes().all(is_letter)
        };
        let (prefix, message) = match text.split_once(':') {
            Some((prefix, message)) if is_word(prefix) => (prefix, message),
            _ => ("", text),
        };
        Self { prefix: prefix.to_owned(), message: sanitize(message, MAX_MESSAGE_CHARS) }
    }

    /// Whether the same request will be refused again: what it lacks is a permission, or a feature of the relay.
    pub fn is_final(&self) -> bool {
        ["auth-required", "restricted", "invalid", "unsupported"].contains(&&*self.prefix)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&*self.prefix, &*self.message) {
            ("", "") => f.write_str("no reason"),
            ("", message) => f.write_str(message),
            (prefix, "") => f.write_str(prefix),
            (prefix, message) => write!(f, "{prefix}: {message}"),
        }
    }
}

impl<'m> Message<'m> {
    /// Parses a message.
    ///
    /// # Errors
    /// If it is no message of a relay: the rule.
    pub(super) fn parse(text: &'m str) -> Result<Self, &'static str> {
        match event(text) {
            Some(event) => Ok(event),
            None => other(text),
        }
    }
}

/// The message `["EVENT","…",{…}]`, without a look at the object, which is parsed where it is verified.
fn event(text: &str) -> Option<Message<'_>> {
    let inner = text.trim_ascii().strip_prefix('[')?.strip_suffix(']')?;
    let rest = inner.trim_ascii_start().strip_prefix(r#""EVENT""#)?;
    let (subscription, rest) = after_comma(rest)?.strip_prefix('"')?.split_once('"')?;
    let object = after_comma(rest)?.trim_ascii_end();
    let start = object.as_ptr().addr() - text.as_ptr().addr();
    let is_object = object.starts_with('{') && object.ends_with('}');
    is_object.then(|| Message::Event { subscription, object: start..start + object.len() })
}

/// What follows a comma and the space around it.
fn after_comma(text: &str) -> Option<&str> {
    Some(text.trim_ascii_start().strip_prefix(',')?.trim_ascii_start())
}

fn other<'m>(text: &str) -> Result<Message<'m>, &'static str> {
    let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| "expected an array")?;
    let text = |at: usize| -> Result<String, &'static str> {
        let item = items.get(at).ok_or("an item is missing")?;
        serde_json::from_str(item.get()).map_err(|_| "expected a text")
    };
    Ok(match &*text(0)? {
        "EOSE" => Message::EndOfStored { subscription: text(1)? },
        "CLOSED" => Message::Closed { subscription: text(1)?, reason: reason(text(2)) },
        "NOTICE" => Message::Notice(sanitize(&text(1)?, MAX_MESSAGE_CHARS)),
        "AUTH" => Message::Auth { challenge: sanitize(&text(1)?, MAX_MESSAGE_CHARS) },
        "NEG-MSG" => {
            let (digits, mut message) = (text(2)?, Vec::new());
            if !hex::decode_into(digits.as_bytes(), &mut message) {
                return Err("expected lower-case hexadecimal");
            }
            Message::Compare { subscription: text(1)?, message }
        }
        "NEG-ERR" => Message::CompareFailed { subscription: text(1)?, reason: reason(text(2)) },
        "EVENT" => return Err("expected a subscription and an event"),
        _ => Message::Other,
    })
}

/// A reason that can be missing.
fn reason(text: Result<String, &'static str>) -> Reason {
    Reason::parse(&text.unwrap_or_default())
}

/// The request for events that match a filter.
pub(super) fn request(subscription: &str, filter: &Filter) -> String {
    format!(r#"["REQ","{subscription}",{}]"#, filter.to_json())
}

/// The end of a subscription.
pub(super) fn close(subscription: &str) -> String {
    format!(r#"["CLOSE","{subscription}"]"#)
}

/// The start of a comparison.
pub(super) fn compare_open(subscription: &str, filter: &Filter, message: &[u8]) -> String {
    let (filter, message) = (filter.to_json(), hex::encode(message));
    format!(r#"["NEG-OPEN","{subscription}",{filter},"{message}"]"#)
}

/// The next message of a comparison.
pub(super) fn compare_next(subscription: &str, message: &[u8]) -> String {
    format!(r#"["NEG-MSG","{subscription}","{}"]"#, hex::encode(message))
}

/// The end of a comparison.
pub(super) fn compare_close(subscription: &str) -> String {
    format!(r#"["NEG-CLOSE","{subscription}"]"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message<'_>, &'static str> {
        Message::parse(text)
    }

    #[test]
    fn the_object_of_an_event_is_found_whatever_is_in_it() {
        for (text, expected) in [
            (r#"["EVENT","w1",{"a":["]"]}]"#, r#"{"a":["]"]}"#),
            ("\n [ \"EVENT\" ,\t\"w1\" , {} ] ", "{}"),
            // Not one object: the decoder of events refuses it.
            (r#"["EVENT","w1",{},{}]"#, "{},{}"),
        ] {
            let Ok(Message::Event { subscription, object }) = parse(text) else { panic!("{text}") };
            assert_eq!((subscription, &text[object]), ("w1", expected));
        }
    }

    #[test]
    fn messages_have_their_texts_bounded_and_on_one_line() {
        let text = |text: &str| text.to_owned();
        let reason =
            |prefix: &str, message: &str| Reason { prefix: text(prefix), message: text(message) };
        let long = "x".repeat(100_000);
        let cut = "x".repeat(300);
        for (message, expected) in [
            (r#"["EOSE","w1"]"#.to_owned(), Message::EndOfStored { subscription: text("w1") }),
            (
                r#"["CLOSED","w1","rate-limited: slow\ndown"]"#.to_owned(),
                Message::Closed {
                    subscription: text("w1"),
                    reason: reason("rate-limited", "slow down"),
                },
            ),
            (
                r#"["CLOSED","w1"]"#.to_owned(),
                Message::Closed { subscription: text("w1"), reason: reason("", "") },
            ),
            (format!(r#"["NOTICE","{long}"]"#), Message::Notice(cut.clone())),
            (format!(r#"["AUTH","{long}"]"#), Message::Auth { challenge: cut }),
            (
                r#"["NEG-MSG","w1","61ff"]"#.to_owned(),
                Message::Compare { subscription: text("w1"), message: vec![0x61, 0xff] },
            ),
            (
                r#"["NEG-ERR","w1","blocked: too many"]"#.to_owned(),
                Message::CompareFailed {
                    subscription: text("w1"),
                    reason: reason("blocked", "too many"),
                },
            ),
            (r#"["OK","00",true,""]"#.to_owned(), Message::Other),
            (format!(r#"["{long}"]"#), Message::Other),
        ] {
            assert_eq!(parse(&message), Ok(expected));
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_rule() {
        let nested = "[".repeat(100_000);
        for (text, rule) in [
            ("", "expected an array"),
            ("{}", "expected an array"),
            (&nested, "expected an array"),
            ("[]", "an item is missing"),
            ("[1]", "expected a text"),
            (r#"["EOSE"]"#, "an item is missing"),
            (r#"["EOSE",1]"#, "expected a text"),
            (r#"["EVENT",{}]"#, "expected a subscription and an event"),
            (r#"["EVENT","w1",[]]"#, "expected a subscription and an event"),
            (r#"["NEG-MSG","w1","6"]"#, "expected lower-case hexadecimal"),
            (r#"["NEG-MSG","w1","FF"]"#, "expected lower-case hexadecimal"),
        ] {
            assert_eq!(parse(text), Err(rule), "{text:.50}");
        }
    }

    #[test]
    fn a_reason_begins_with_a_word_or_has_none() {
        let parsed = |text: &str| {
            let Reason { prefix, message } = Reason::parse(text);
            (prefix, message)
        };
        let expected = |prefix: &str, message: &str| (prefix.to_owned(), message.to_owned());
        assert_eq!(parsed("auth-required: log in"), expected("auth-required", "log in"));
        assert_eq!(parsed("error:"), expected("error", ""));
        assert_eq!(parsed("Not a word: x"), expected("", "Not a word: x"));
        assert_eq!(parsed(": x"), expected("", ": x"));
        assert!(Reason::parse("restricted: no").is_final());
        assert!(!Reason::parse("rate-limited: no").is_final());
    }
}
