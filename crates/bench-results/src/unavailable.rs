//! Peers that could not be measured.

use serde::{Deserialize, Serialize};

/// A peer that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// The peer.
    pub peer: String,
    /// Why, in one line.
    pub reason: String,
}

impl Unavailable {
    /// The reason in a few plain words, without the output of a build.
    pub fn plain_reason(&self) -> String {
        let reason = self.reason.as_str();
        if reason.starts_with(NO_SOURCE) {
            return "its source could not be downloaded".to_owned();
        }
        if reason.contains(LOG) {
            let is_offline = OFFLINE.iter().any(|words| reason.contains(words));
            let failed = if is_offline { OFFLINE_BUILD } else { "its build failed" };
            return failed.to_owned();
        }
        let line = reason.lines().next().unwrap_or_default().replace(char::is_control, " ");
        if line.chars().count() <= LONGEST {
            return line;
        }
        line.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}

/// How a reason begins if the package of a peer's source is missing.
const NO_SOURCE: &str = "its source is not available";
/// The text before the path of a build's log.
const LOG: &str = "; see ";
/// Messages of the languages' tools without a network.
const OFFLINE: [&str; 7] = [
    "unable to connect",
    "resolve host",
    "dial tcp",
    "ENOTFOUND",
    "EAI_AGAIN",
    "download",
    "Temporary failure in name resolution",
];
const OFFLINE_BUILD: &str = "a package that it needs could not be downloaded";
/// Characters of a reason at most.
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(reason: &str) -> String {
        Unavailable { peer: "zig-zat".to_owned(), reason: reason.to_owned() }.plain_reason()
    }

    #[test]
    fn the_output_of_a_build_is_left_out() {
        let no_source = "its source is not available (python: build.zig.zon:8:20: error: unable to connect to \
                         server; see logs/zig-zat.build.log (exit status: 1)); WIREPROOF_ZAT may name a checkout";
        assert_eq!(plain(no_source), "its source could not be downloaded");
        let offline =
            "go: dial tcp: lookup proxy.golang.org; see logs/go-atmos.build.log (exit status: 1)";
        assert_eq!(plain(offline), OFFLINE_BUILD);
        assert_eq!(plain("cargo: error[E0277]; see a.log (exit status: 101)"), "its build failed");
    }

    #[test]
    fn other_reasons_are_one_short_line() {
        assert_eq!(plain("node is not installed"), "node is not installed");
        assert_eq!(plain("first\nsecond"), "first");
        assert_eq!(plain(""), "");
        let long = plain(&"é".repeat(500));
        assert!(long.chars().count() == LONGEST && long.ends_with('…'), "{long}");
    }
}
