//! How do events stand in a file?

use std::path::Path;

use wireproof::nostr::formats::Format;

/// A way to keep many events in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// JSON, each event on a line that ends at a line feed and at nothing else. A line that begins
    /// with `#` names the group of those behind it.
    Lines,
    /// gzip of events of `nostr.proto`, hexadecimal as text, each behind its length as a LEB128 number.
    Records,
    /// The list of a format, which is in memory as a whole.
    Batch(Format),
}

impl Layout {
    /// The layout of that name: `jsonl`, `pb.gz`, or that of a format.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Lines),
            "pb.gz" => Some(Self::Records),
            _ => Format::from_name(name).map(Self::Batch),
        }
    }

    /// What a file of this name is, as far as a name tells: `.gz` is [`Records`](Self::Records).
    pub fn of_path(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension == "gz" => Self::Records,
            _ => Self::Lines,
        }
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        ["jsonl", "pb.gz"].into_iter().chain(Format::ALL.iter().map(|it| it.name())).collect()
    }

    /// The format of one event.
    pub fn format(self) -> Format {
        match self {
            Self::Lines => Format::Json,
            Self::Records => Format::ProtoString,
            Self::Batch(format) => format,
        }
    }
}
