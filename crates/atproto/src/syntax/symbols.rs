//! Which symbols may stand in which texts: one table, a bit a class.

/// A set of symbols: a union of classes.
#[derive(Clone, Copy)]
pub(super) struct Symbols(u8);

pub(super) const LOWER: Symbols = Symbols(1);
pub(super) const LETTER: Symbols = Symbols(1 | 2);
pub(super) const ALPHANUMERIC: Symbols = Symbols(1 | 2 | 4);
/// What a label of a name holds.
pub(super) const LABEL: Symbols = Symbols(1 | 2 | 4 | HYPHEN);
/// What follows the method of a DID.
pub(super) const DID: Symbols = Symbols(1 | 2 | 4 | HYPHEN | DOT_COLON_LINE | PERCENT);
/// What a record key holds.
pub(super) const RECORD_KEY: Symbols = Symbols(1 | 2 | 4 | HYPHEN | DOT_COLON_LINE | TILDE);

impl Symbols {
    #[inline(always)]
    pub(super) fn has(self, byte: u8) -> bool {
        CLASSES[usize::from(byte)] & self.0 != 0
    }

    /// How many of these symbols `bytes` begin with.
    #[inline(always)]
    pub(super) fn prefix_len(self, bytes: &[u8]) -> usize {
        bytes.iter().position(|byte| !self.has(*byte)).unwrap_or(bytes.len())
    }
}

const HYPHEN: u8 = 8;
const DOT_COLON_LINE: u8 = 16;
const PERCENT: u8 = 32;
const TILDE: u8 = 64;

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            b'0'..=b'9' => 4,
            b'-' => HYPHEN,
            b'.' | b':' | b'_' => DOT_COLON_LINE,
            b'%' => PERCENT,
            b'~' => TILDE,
            _ => 0,
        };
        byte += 1;
    }
    classes
};
