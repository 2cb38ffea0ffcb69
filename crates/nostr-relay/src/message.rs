//! Messages of relays (NIP-01, NIP-42, NIP-67, NIP-77) and clients. Items of a message are read by their position;
//! further ones are ignored.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use kernels::hex;
use nostr::Filter;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use net::remote_text::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, sanitize};

/// A message of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message<'m> {
    /// An event, which is the object in this range of the message. It is not parsed.
    Event {
        subscription: Cow<'m, str>,
        object: Range<usize>,
    },
    EndOfStored {
        subscription: String,
        hint: Option<Hint>,
    },
    Closed {
        subscription: String,
        reason: Reason,
    },
    Notice(String),
    /// A request for authentication. The challenge is as it was received.
    Auth {
        challenge: String,
    },
    /// Whether the relay accepts an event.
    Accepted {
        id: String,
        is_accepted: bool,
        reason: Reason,
    },
    Compare {
        subscription: String,
        message: Vec<u8>,
    },
    CompareFailed {
        subscription: String,
        reason: Reason,
    },
    /// A message of another type.
    Other,
}

/// Whether a relay has more stored events than it has sent (NIP-67).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// It has sent all of them.
    Finish,
    /// It has more.
    More,
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

    /// Whether the same request will be refused again: it lacks a permission, or a feature of the relay. Other reasons,
    /// as `rate-limited` and `error`, may pass.
    pub fn is_final(&self) -> bool {
        const FINAL: [&str; 6] =
            ["invalid", "unsupported", "blocked", "pow", "mute", "payment-required"];
        self.is_permission() || FINAL.contains(&&*self.prefix)
    }

    /// Whether a permission is missing, which a relay may lack only until it knows who asks, or has read its own list of members.
    pub(super) fn is_permission(&self) -> bool {
        ["auth-required", "restricted"].contains(&&*self.prefix)
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

/// The message `["EVENT","…",{…}]` in its usual form. The object is not looked at beyond its end: it is parsed where it is
/// verified.
fn event(text: &str) -> Option<Message<'_>> {
    let inner = text.trim_ascii().strip_prefix('[')?.strip_suffix(']')?;
    let rest = inner.trim_ascii_start().strip_prefix(r#""EVENT""#)?;
    let (subscription, rest) = after_comma(rest)?.strip_prefix('"')?.split_once('"')?;
    let object: &RawValue = serde_json::from_str(after_comma(rest)?).ok()?;
    let is_plain = !subscription.contains('\\') && object.get().starts_with('{');
    let object = range_in(text, object.get());
    is_plain.then_some(Message::Event { subscription: Cow::Borrowed(subscription), object })
}

/// The bytes after a comma and the space around it.
fn after_comma(text: &str) -> Option<&str> {
    Some(text.trim_ascii_start().strip_prefix(',')?.trim_ascii_start())
}

/// Where a part of a text is in it.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// The first items of an array.
struct Items<'m>([Option<&'m RawValue>; MAX_ITEMS]);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items<'de>, A::Error> {
        let mut first = [None; MAX_ITEMS];
        for item in &mut first {
            *item = items.next_element()?;
            if item.is_none() {
                return Ok(Items(first));
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(first))
    }
}

fn other<'m>(message: &'m str) -> Result<Message<'m>, &'static str> {
    let Items(items) = serde_json::from_str(message).map_err(|_| "expected an array")?;
    let item = |at: usize| items[at].map(RawValue::get).ok_or("an item is missing");
    let text = |at: usize| -> Result<String, &'static str> {
        serde_json::from_str(item(at)?).map_err(|_| "expected a text")
    };
    Ok(match &*text(0)? {
        "EVENT" => {
            let rule = "expected a subscription and an event";
            let (subscription, object) = (text(1).map_err(|_| rule)?, item(2).map_err(|_| rule)?);
            if !object.starts_with('{') {
                return Err(rule);
            }
            let object = range_in(message, object);
            Message::Event { subscription: Cow::Owned(subscription), object }
        }
        "EOSE" => {
            Message::EndOfStored { subscription: text(1)?, hint: item(2).ok().and_then(hint) }
        }
        "CLOSED" => Message::Closed { subscription: text(1)?, reason: reason(text(2)) },
        "NOTICE" => Message::Notice(sanitize(&text(1)?, MAX_MESSAGE_CHARS)),
        "AUTH" => {
            let challenge = text(1)?;
            if challenge.len() > MAX_CHALLENGE_BYTES {
                return Err("a challenge is too long");
            }
            Message::Auth { challenge }
        }
        "OK" => Message::Accepted {
            id: text(1)?,
            is_accepted: item(2)? == "true",
            reason: reason(text(3)),
        },
        "NEG-MSG" => {
            let (digits, mut message) = (text(2)?, Vec::new());
            if !hex::decode_into(digits.as_bytes(), &mut message) {
                return Err("expected lower-case hexadecimal");
            }
            Message::Compare { subscription: text(1)?, message }
        }
        "NEG-ERR" => Message::CompareFailed { subscription: text(1)?, reason: reason(text(2)) },
        _ => Message::Other,
    })
}

/// The hint in a list of hints. A contradictory list counts as none; unknown hints are ignored (NIP-67).
fn hint(list: &str) -> Option<Hint> {
    let list: Vec<serde_json::Value> = serde_json::from_str(list).ok()?;
    let has = |name: &str| list.iter().any(|hint| hint == name);
    match (has("finish"), has("more")) {
        (true, false) => Some(Hint::Finish),
        (false, true) => Some(Hint::More),
        _ => None,
    }
}

/// A reason that can be missing.
fn reason(text: Result<String, &'static str>) -> Reason {
    Reason::parse(&text.unwrap_or_default())
}

/// The request for events that match a filter.
pub(super) fn request(subscription: &str, filter: &Filter) -> String {
    format!(r#"["REQ","{subscription}",{}]"#, filter.to_json())
}

/// The answer to a challenge, an event.
pub(super) fn authenticate(event: &str) -> String {
    format!(r#"["AUTH",{event}]"#)
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

/// Items of a message that are read.
const MAX_ITEMS: usize = 4;

/// Maximum length of a challenge in bytes: an answer repeats it.
const MAX_CHALLENGE_BYTES: usize = 1024;

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
            // More items than a relay has to send, and another spelling of the same texts.
            (r#"["EVENT","w1",{},{}]"#, "{}"),
            (r#"["EVENT","w1",{"a":"},{"},1]"#, r#"{"a":"},{"}"#),
            (r#"["EVENT","w1",{"a":1} , null , [1] ]"#, r#"{"a":1}"#),
            (r#"["EVENT","\u00771",{"b":{}}]"#, r#"{"b":{}}"#),
            (r#"["\u0045VENT","w1",{}]"#, "{}"),
        ] {
            let Ok(Message::Event { subscription, object }) = parse(text) else { panic!("{text}") };
            assert_eq!((&*subscription, &text[object]), ("w1", expected));
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
            (
                r#"["EOSE","w1"]"#.to_owned(),
                Message::EndOfStored { subscription: text("w1"), hint: None },
            ),
            (r#"["NOTICE","a",{},"b",[1],2]"#.to_owned(), Message::Notice(text("a"))),
            (
                r#"["CLOSED","w1","error: no",1,2]"#.to_owned(),
                Message::Closed { subscription: text("w1"), reason: reason("error", "no") },
            ),
            (r#"["AUTH","a\nb",0]"#.to_owned(), Message::Auth { challenge: text("a\nb") }),
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
            (format!(r#"["NOTICE","{long}"]"#), Message::Notice(cut)),
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
            (
                r#"["OK","00",true,"",7]"#.to_owned(),
                Message::Accepted { id: text("00"), is_accepted: true, reason: reason("", "") },
            ),
            (
                r#"["OK","00",false,"restricted: no"]"#.to_owned(),
                Message::Accepted {
                    id: text("00"),
                    is_accepted: false,
                    reason: reason("restricted", "no"),
                },
            ),
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
            (r#"["EVENT","w1",{"a":]"#, "expected an array"),
            (r#"["EVENT","w1",{}"#, "expected an array"),
            (&format!(r#"["AUTH","{}"]"#, "x".repeat(1025)), "a challenge is too long"),
            (r#"["NEG-MSG","w1","6"]"#, "expected lower-case hexadecimal"),
            (r#"["NEG-MSG","w1","FF"]"#, "expected lower-case hexadecimal"),
        ] {
            assert_eq!(parse(text), Err(rule), "{text:.50}");
        }
    }

    #[test]
    fn hints_say_if_there_is_more_and_unknown_ones_are_ignored() {
        for (item, expected) in [
            (r#"["finish"]"#, Some(Hint::Finish)),
            (r#"["auth","more",7]"#, Some(Hint::More)),
            (r#"["finish","more"]"#, None),
            ("[]", None),
            (r#"["x"]"#, None),
            (r#""finish""#, None),
            ("7", None),
        ] {
            let message = format!(r#"["EOSE","w1",{item}]"#);
            let Ok(Message::EndOfStored { hint, .. }) = parse(&message) else { panic!("{item}") };
            assert_eq!(hint, expected, "{item}");
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
        for text in ["restricted: no", "blocked: no", "pow: 20", "mute:", "payment-required: pay"] {
            assert!(Reason::parse(text).is_final(), "{text}");
        }
        assert!(!Reason::parse("rate-limited: no").is_final());
    }
}
