//! Which kinds of work can be measured?

/// A kind of work, with units that are the same for every peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Firehose frames into values: header, payload, CAR, every block.
    Decode,
}

impl Task {
    /// All tasks.
    pub const ALL: [Self; 1] = [Self::Decode];

    /// The name in requests, results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
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
        }
    }
}
