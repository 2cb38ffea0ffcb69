//! Which kinds of work can be measured?

/// A kind of work, with units that are the same for every peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Firehose frames into values: header, payload, CAR, every block.
    Decode,
    /// Signed commits: whose key is it, and is the signature the key's?
    Sigs,
    /// Nostr events: is the BIP-340 signature the author's?
    Schnorr,
}

impl Task {
    /// All tasks, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Decode, Self::Sigs, Self::Schnorr];

    /// The name in requests, results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Sigs => "sigs",
            Self::Schnorr => "schnorr",
        }
    }

    /// The task of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// What is counted a second.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Decode => "frame",
            Self::Sigs => "commit",
            Self::Schnorr => "event",
        }
    }
}
