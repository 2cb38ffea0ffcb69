//! Language tags of BCP 47, RFC 5646 §2.1, as the strictest readers accept them.
//!
//! ```text
//! language [3 × extlang] [script] [region] variants… extensions… [private use]
//! sl-rozaj-biske        hy-Latn-IT-arevela        de-a-foo-x-bar        x-any        i-navajo
//! ```
//!
//! Two restrictions: the language has two or three letters, in lower case (longer ones are reserved, and
//! none is registered), and the whole has at most 128 bytes. No variant and no extension is repeated,
//! ignoring case. Registration of subtags is not checked.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::{ALPHANUMERIC, text_type};

text_type! {
    /// A language tag.
    Language, LanguageBuf, as_language, check_language
}

impl<'a> Language<'a> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 128;

    /// The first subtag: a language, `x` for private use, or `i` in old registrations.
    pub fn primary(self) -> &'a str {
        self.subtags().next().expect("a split has at least one part")
    }

    /// The subtags, in the order of the text.
    pub fn subtags(self) -> impl Iterator<Item = &'a str> {
        self.0.split('-')
    }
}

fn check_language(text: &str) -> Result<(), SyntaxError> {
    if text.len() > Language::MAX_LEN {
        return fail(SyntaxKind::Language, SyntaxRule::TooLong, Language::MAX_LEN);
    }
    for (at, subtag) in subtags(text) {
        check_subtag(at, subtag)?;
    }
    match text.split('-').next().unwrap_or_default() {
        "x" | "X" => check_order(text, Stage::Private { filled: false }),
        _ if is_irregular(text) => Ok(()),
        primary if primary.bytes().all(|byte| byte.is_ascii_lowercase()) => match primary.len() {
            2..=3 => check_order(text, Stage::Extlang { count: 0 }),
            len => fail(
                SyntaxKind::Language,
                if len < 2 { SyntaxRule::TooShort } else { SyntaxRule::LongPart },
                len,
            ),
        },
        _ => fail(SyntaxKind::Language, SyntaxRule::Symbol, 0),
    }
}

/// The subtags with their offsets.
fn subtags(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('-').scan(0, |start, subtag| {
        let at = *start;
        *start += subtag.len() + 1;
        Some((at, subtag))
    })
}

/// Checks the rule of every subtag: 1 to 8 letters and digits.
fn check_subtag(at: usize, subtag: &str) -> Result<(), SyntaxError> {
    match ALPHANUMERIC.prefix_len(subtag.as_bytes()) {
        len if len < subtag.len() => fail(SyntaxKind::Language, SyntaxRule::Symbol, at + len),
        0 => fail(SyntaxKind::Language, SyntaxRule::EmptyPart, at),
        1..=8 => Ok(()),
        _ => fail(SyntaxKind::Language, SyntaxRule::LongPart, at + 8),
    }
}

/// Whether the text is one of the old registrations outside the grammar. Their first subtag keeps its case.
fn is_irregular(text: &str) -> bool {
    let is_lower = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    is_lower && IRREGULAR.split(' ').any(|tag| tag.eq_ignore_ascii_case(text))
}

/// The kind of the last subtag: the next one must be of this kind or a later one.
#[derive(Clone, Copy)]
enum Stage {
    Extlang { count: u8 },
    Script,
    Region,
    Variant,
    Extension { filled: bool },
    Private { filled: bool },
}

/// Checks the order of the subtags after the first.
fn check_order(text: &str, start: Stage) -> Result<(), SyntaxError> {
    let mut stage = start;
    let mut extensions = 0u64;
    for (at, subtag) in subtags(text).skip(1) {
        stage = match (stage, subtag.len()) {
            (Stage::Private { .. }, _) => Stage::Private { filled: true },
            (Stage::Extension { filled: false }, 1) => {
                return fail(SyntaxKind::Language, SyntaxRule::Part, at);
            }
            (_, 1) if subtag.eq_ignore_ascii_case("x") => Stage::Private { filled: false },
            (_, 1) => {
                let bit = 1 << char::from(subtag.as_bytes()[0]).to_digit(36).unwrap_or(0);
                if extensions & bit != 0 {
                    return fail(SyntaxKind::Language, SyntaxRule::Repeated, at);
                }
                extensions |= bit;
                Stage::Extension { filled: false }
            }
            (Stage::Extension { .. }, _) => Stage::Extension { filled: true },
            _ => match next(stage, subtag) {
                None => return fail(SyntaxKind::Language, SyntaxRule::Part, at),
                Some(Stage::Variant) if is_repeated(&text[..at], subtag) => {
                    return fail(SyntaxKind::Language, SyntaxRule::Repeated, at);
                }
                Some(stage) => stage,
            },
        };
    }
    match stage {
        Stage::Extension { filled: false } | Stage::Private { filled: false } => {
            fail(SyntaxKind::Language, SyntaxRule::TooShort, text.len())
        }
        _ => Ok(()),
    }
}

/// The stage after a subtag of two letters or more that belongs to no extension; `None` if it is not
/// allowed there.
fn next(stage: Stage, subtag: &str) -> Option<Stage> {
    let bytes = subtag.as_bytes();
    let are_letters = bytes.iter().all(u8::is_ascii_alphabetic);
    let are_digits = bytes.iter().all(u8::is_ascii_digit);
    match (stage, bytes.len()) {
        (Stage::Extlang { count: count @ ..3 }, 3) if are_letters => {
            Some(Stage::Extlang { count: count + 1 })
        }
        (Stage::Extlang { .. }, 4) if are_letters => Some(Stage::Script),
        (Stage::Extlang { .. } | Stage::Script, 2) if are_letters => Some(Stage::Region),
        (Stage::Extlang { .. } | Stage::Script, 3) if are_digits => Some(Stage::Region),
        (_, 4) if bytes[0].is_ascii_digit() => Some(Stage::Variant),
        (_, 5..) => Some(Stage::Variant),
        _ => None,
    }
}

/// Whether `variant` is among the subtags `before` it. Subtags of other kinds never equal a variant.
fn is_repeated(before: &str, variant: &str) -> bool {
    before.split('-').any(|subtag| subtag.eq_ignore_ascii_case(variant))
}

/// RFC 5646 §2.1, `irregular`. The tags called regular follow the grammar.
pub(super) const IRREGULAR: &str = "en-GB-oed i-ami i-bnn i-default i-enochian i-hak i-klingon i-lux i-mingo i-navajo \
                         i-pwn i-tao i-tay i-tsu sgn-BE-FR sgn-BE-NL sgn-CH-DE";
