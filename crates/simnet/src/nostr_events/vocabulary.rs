//! Generated text: words, other scripts, emoji, links and quotes.
//!
//! There are some thousand words with a skewed distribution, so that the text compresses about as well
//! as text written by people.

use crate::random::Random;

/// Words and relay addresses, the frequent ones first.
#[derive(Clone, Debug)]
pub(super) struct Vocabulary {
    words: Vec<String>,
    relays: Vec<String>,
}

impl Vocabulary {
    /// Draws the words and addresses.
    pub(super) fn generate(random: &mut Random) -> Self {
        let mut words: Vec<String> = FREQUENT.map(str::to_owned).to_vec();
        words.extend((words.len()..WORDS).map(|_| invent_word(random)));
        let relays = (0..RELAYS)
            .map(|_| format!("wss://{}.{}.example", invent_word(random), invent_word(random)));
        Self { relays: relays.collect(), words }
    }

    /// A random word.
    pub(super) fn word(&self, random: &mut Random) -> &str {
        frequent(&self.words, random)
    }

    /// A random relay address.
    pub(super) fn relay(&self, random: &mut Random) -> &str {
        frequent(&self.relays, random)
    }

    /// The length of the longest relay address in bytes.
    pub(super) fn longest_relay(&self) -> usize {
        self.relays.iter().map(String::len).max().unwrap_or_default()
    }

    /// A random web address.
    pub(super) fn link(&self, random: &mut Random) -> String {
        let [host, path] = [self.word(random), self.word(random)];
        format!("https://{host}.example/{path}/{:08x}.jpg", random.next_u64() as u32)
    }

    /// Words of at least `bytes` bytes together.
    pub(super) fn title(&self, random: &mut Random, bytes: usize) -> String {
        let mut title = self.word(random).to_owned();
        while title.len() < bytes {
            title.push(' ');
            title.push_str(self.word(random));
        }
        title
    }

    /// Text whose JSON has at most `bytes` bytes, and hardly less.
    pub(super) fn prose(&self, random: &mut Random, bytes: usize) -> String {
        let script = match random.below(30) {
            0 => Script::Ideographs,
            1 => Script::Cyrillic,
            2..=5 => Script::LatinWithEmoji,
            _ => Script::Latin,
        };
        self.write(random, script, bytes)
    }

    /// The same without characters that JSON escapes.
    pub(super) fn plain(&self, random: &mut Random, bytes: usize) -> String {
        self.write(random, Script::Plain, bytes)
    }

    fn write(&self, random: &mut Random, script: Script, bytes: usize) -> String {
        let (mut text, mut len) = (String::with_capacity(bytes), 0);
        let mut misses = 0;
        while len < bytes && misses < 4 {
            let piece = self.piece(random, script);
            let more = json_len(&piece);
            if len + more > bytes {
                misses += 1;
                continue;
            }
            len += more;
            text.push_str(&piece);
        }
        text
    }

    /// A word and the separator after it.
    fn piece(&self, random: &mut Random, script: Script) -> String {
        let separator = *random.pick::<&str>(&SEPARATORS);
        match script {
            Script::Plain => format!("{} ", self.word(random)),
            Script::Ideographs if random.chance(1, 14) => "。".to_owned(),
            Script::Ideographs => random.pick(&IDEOGRAPHS).to_string(),
            Script::Cyrillic => {
                let syllables = random.between(1, 4);
                let syllable = |_| *random.pick::<&str>(&CYRILLIC);
                (0..syllables).map(syllable).collect::<String>() + separator
            }
            Script::LatinWithEmoji if random.chance(1, 12) => {
                format!("{} ", random.pick::<&str>(&EMOJI))
            }
            _ => match random.below(240) {
                0 => format!("{} ", self.link(random)),
                1 => format!("nostr:npub1{} ", bech32(random, 58)),
                2 | 3 => format!("#{} ", self.word(random)),
                4 | 5 => format!("\"{}\" ", self.word(random)),
                6 => "\\o/ ".to_owned(),
                7 => format!("{}\u{2019}s ", self.word(random)),
                _ => format!("{}{separator}", self.word(random)),
            },
        }
    }
}

/// The script of a text.
#[derive(Clone, Copy)]
enum Script {
    Latin,
    LatinWithEmoji,
    Ideographs,
    Cyrillic,
    /// Latin words only.
    Plain,
}

/// One of the `items`, the n-th about as often as 1/n.
fn frequent<'i, T: AsRef<str>>(items: &'i [T], random: &mut Random) -> &'i str {
    items[rank(items.len(), random)].as_ref()
}

/// A number below `count`; small numbers are the most frequent.
pub(super) fn rank(count: usize, random: &mut Random) -> usize {
    let below = random.below(count as u64) + 1;
    let below = random.below(below) + 1;
    random.below(below) as usize
}

/// A number below `count`, the n-th about 1/n as often as the first.
pub(super) fn log_rank(count: usize, random: &mut Random) -> usize {
    let magnitude = random.below(u64::from(count.ilog2()) + 1);
    random.below(1 << magnitude) as usize
}

/// Random characters of the bech32 alphabet.
pub(super) fn bech32(random: &mut Random, chars: usize) -> String {
    digits(random, b"qpzry9x8gf2tvdw0s3jn54khce6mua7l", chars)
}

/// The padded base64 of `bytes` random bytes.
pub(super) fn base64(random: &mut Random, bytes: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = digits(random, ALPHABET, (4 * bytes).div_ceil(3));
    // The last bits of the last character before padding are 0.
    match bytes % 3 {
        1 => text.replace_range(text.len() - 1.., "A=="),
        2 => text.replace_range(text.len() - 1.., "A="),
        _ => {}
    }
    text
}

fn digits<const N: usize>(random: &mut Random, alphabet: &[u8; N], chars: usize) -> String {
    (0..chars).map(|_| char::from(*random.pick(alphabet))).collect()
}

/// An invented word.
fn invent_word(random: &mut Random) -> String {
    let syllables = random.between(1, 3);
    let mut word = String::new();
    for _ in 0..syllables {
        word.push_str(random.pick::<&str>(&ONSETS));
        word.push_str(random.pick::<&str>(&NUCLEI));
    }
    word.push_str(random.pick::<&str>(&CODAS));
    word
}

/// The length of text in JSON in bytes, without quotes.
pub(super) fn json_len(text: &str) -> usize {
    let escaped = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        ..0x20 => "\\u0000".len(),
        _ => 1,
    };
    text.as_bytes().iter().map(escaped).sum()
}

const WORDS: usize = 8_000;
const RELAYS: usize = 120;

const FREQUENT: [&str; 40] = [
    "the", "to", "and", "a", "of", "is", "in", "I", "it", "you", "for", "that", "on", "this",
    "with", "are", "be", "not", "have", "as", "but", "they", "at", "was", "we", "your", "what",
    "if", "all", "can", "from", "so", "more", "just", "people", "like", "about", "will", "or",
    "good",
];
const ONSETS: [&str; 24] = [
    "b", "br", "c", "ch", "d", "f", "fl", "g", "h", "k", "l", "m", "n", "p", "pr", "r", "s", "sh",
    "st", "t", "tr", "v", "w", "",
];
const NUCLEI: [&str; 12] = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "ou", "oo", "y"];
const CODAS: [&str; 16] =
    ["", "", "", "n", "r", "s", "t", "d", "l", "ng", "m", "st", "ck", "ly", "er", "ed"];
const SEPARATORS: [&str; 24] = [
    " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", " ", ", ",
    ", ", ". ", ".\n", ".\n\n", "? ",
];
const CYRILLIC: [&str; 20] = [
    "по", "на", "ст", "во", "ра", "ко", "ни", "те", "но", "ли", "да", "мы", "пе", "ре", "че", "ло",
    "ка", "го", "се", "ть",
];
const IDEOGRAPHS: [char; 96] = [
    'の', 'に', 'は', 'て', 'を', 'が', 'と', 'で', 'し', 'た', 'す', 'な', 'い', 'る', 'ま', 'れ',
    '日', '本', '人', '大', '今', '見', '中', '国', '年', '月', '時', '分', '上', '下', '前', '後',
    '会', '社', '員', '新', '聞', '電', '車', '駅', '海', '山', '川', '空', '雨', '花', '水', '火',
    '的', '是', '不', '了', '在', '有', '我', '他', '这', '们', '来', '到', '说', '要', '就', '出',
    '你', '生', '自', '以', '着', '之', '过', '家', '学', '对', '可', '里', '小', '多', '天', '能',
    '好', '都', '然', '没', '于', '起', '还', '发', '成', '事', '只', '作', '当', '想', '看', '文',
];
pub(super) const EMOJI: [&str; 16] = [
    "😂",
    "🤙",
    "❤️",
    "🔥",
    "👍",
    "🙏",
    "😎",
    "🚀",
    "👀",
    "💜",
    "🫡",
    "🌊",
    "⚡",
    "🧡",
    "😅",
    "👩‍🚀",
];
