//! What did the command print?

use serde::Deserialize;

/// A line of standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Which of the processes printed it, from 0.
    pub(crate) run: usize,
    /// The port of the host that told it.
    pub(crate) port: u16,
    pub(crate) seq: Option<i64>,
    pub(crate) kind: Box<str>,
    pub(crate) did: Box<str>,
    pub(crate) rev: Box<str>,
    pub(crate) verdict: Box<str>,
    /// The stable name of the verdict.
    pub(crate) code: Box<str>,
}

/// A line as it is printed, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct Printed<'a> {
    #[serde(default)]
    host: &'a str,
    seq: Option<i64>,
    #[serde(default)]
    kind: &'a str,
    #[serde(default)]
    did: Option<&'a str>,
    #[serde(default)]
    rev: Option<&'a str>,
    #[serde(default)]
    verdict: Option<&'a str>,
    #[serde(default)]
    code: Option<&'a str>,
}

impl Heard {
    /// Reads a whole line.
    ///
    /// # Panics
    /// If it is not what the command prints.
    pub(crate) fn parse(run: usize, line: &str) -> Self {
        let printed: Printed<'_> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let port = printed.host.trim_end_matches('/').rsplit(':').next().unwrap_or_default();
        Self {
            run,
            port: port.parse().unwrap_or(0),
            seq: printed.seq,
            kind: printed.kind.into(),
            did: printed.did.unwrap_or_default().into(),
            rev: printed.rev.unwrap_or_default().into(),
            verdict: printed.verdict.unwrap_or_default().into(),
            code: printed.code.unwrap_or_default().into(),
        }
    }

    /// Whether it was proved, and continues what was known.
    pub(crate) fn is_verified(&self) -> bool {
        &*self.code == "verified"
    }
}
