//! The level of proof for the events of a stream: `--verify-against`.

use clap::ValueEnum;
use events::ProvedLevel;
use verify::sync::Policy;

/// The level of proof for an event before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VerifyLevel {
    /// Nothing: events are decoded.
    None,
    /// The account's key signed the commit, and every record has the hash that its operation names.
    Signature,
    /// As `signature`, and the operations are the whole change of the signed tree and continue the chain of the
    /// account.
    #[default]
    Full,
}

impl VerifyLevel {
    /// The word of the option, of lines and of metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Signature => "signature",
            Self::Full => "full",
        }
    }

    /// The word in lines; lines of the default level have none.
    pub(super) fn mark(self) -> Option<ProvedLevel> {
        match self {
            Self::None => Some(ProvedLevel::None),
            Self::Signature => Some(ProvedLevel::Signature),
            Self::Full => None,
        }
    }

    /// The policy of the verification; `None` for decoding only.
    pub(super) fn policy(self) -> Option<Policy> {
        match self {
            Self::None => None,
            Self::Signature => Some(Policy::signature_only()),
            Self::Full => Some(Policy::default()),
        }
    }

    /// A warning about the missing proof, for the operator.
    pub(super) fn warning(self) -> Option<&'static str> {
        match self {
            Self::None => Some(
                "events are not verified (--verify-against none): a host can invent, change and leave out records",
            ),
            Self::Signature => Some(
                "operations are not verified (--verify-against signature): a host can invent, change and leave out \
                 records in addition to the signed commits of an account",
            ),
            Self::Full => None,
        }
    }
}
