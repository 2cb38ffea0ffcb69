//! Placeholder text: random words, some of them with characters of several bytes.

use crate::random::Random;

/// `words` words separated by spaces.
pub(crate) fn sentence(random: &mut Random, words: u64) -> String {
    let mut text = String::new();
    for at in 0..words {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(word(random));
    }
    text
}

/// One word.
pub(crate) fn word(random: &mut Random) -> &'static str {
    random.pick::<&str>(&WORDS)
}

const WORDS: [&str; 40] = [
    "and",
    "the",
    "over",
    "harbour",
    "of",
    "quiet",
    "signal",
    "window",
    "tide",
    "paper",
    "bright",
    "a",
    "lantern",
    "carried",
    "north",
    "by",
    "letters",
    "slowly",
    "river",
    "is",
    "counting",
    "stone",
    "garden",
    "with",
    "rain",
    "early",
    "morning",
    "train",
    "to",
    "bread",
    "yellow",
    "naïve",
    "Straße",
    "猫",
    "静かな",
    "письмо",
    "🌊",
    "🚲",
    "café",
    "…",
];
