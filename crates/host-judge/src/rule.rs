//! The rules of hosts that this crate judges itself: code, rule, and what to do.
//!
//! Events, repositories and proofs that break a rule of their own have the code of that rule, as everywhere else.

/// How a finding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The host breaks a rule.
    Violation,
    /// The host did not answer, so nothing is decided.
    Unknown,
    /// The host may do this, and its readers should know.
    Note,
}

/// A rule of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable code.
    pub code: &'static str,
    /// How a finding counts.
    pub kind: Kind,
    /// The rule in a sentence.
    pub text: &'static str,
    /// The remedy, for the operator of the host.
    pub action: &'static str,
}

macro_rules! rules {
    ($($name:ident $kind:ident $code:literal $text:literal, $action:literal;)+) => {
        $(#[doc = $text] pub const $name: Rule = Rule {
            code: $code,
            kind: Kind::$kind,
            text: $text,
            action: $action,
        };)+

        /// All rules of this crate.
        pub const ALL: &[Rule] = &[$($name),+];
    };
}

rules! {
    UNANSWERED Unknown "host/unanswered" "the host answers requests",
        "try again later; until then this is unknown";
    NO_KEYS Unknown "host/no-keys" "the directory answers, so that signatures can be verified",
        "try again when the directory answers";
    NO_METHOD Violation "method/missing" "a host has the methods of `com.atproto.sync` that its readers need",
        "serve the method, or let the proxy pass it";
    SCHEMA Violation "answer/schema" "an answer has the fields of its lexicon, of their types",
        "compare the answer with the lexicon of the method";
    CODING Violation "answer/coding" "a body is compressed only for a client that asks for it",
        "let the server or its proxy heed `Accept-Encoding`";
    REDIRECT Violation "answer/redirect" "a redirect leads to a public host",
        "correct the target of the redirect";
    CUT Violation "answer/cut" "a body is complete",
        "look for a time limit or a size limit in front of the server";
    STALLED Violation "answer/stalled" "a body keeps coming",
        "look for a time limit or a deadlock in the server";
    RATE_HEADERS Violation "answer/rate-limit" "the headers of the rate limit do not contradict one another",
        "state a remainder that is not above the limit";
    RATE_UNSTATED Note "answer/rate-unstated" "an answer of status 429 says when to come back",
        "send `Retry-After` or `RateLimit-Reset`, so that clients wait and do not guess";
    ANY_ACCOUNT Violation "error/unknown-account" "a host has no status of an account that it does not have",
        "answer RepoNotFound";
    LIST_ENTRY Violation "list/entry" "every entry of `listRepos` names an account, its commit and its revision",
        "remove the entry";
    LIST_REPEATED Violation "list/repeated" "`listRepos` names an account once",
        "page by a key that is unique and does not change";
    LIST_CURSOR Violation "list/cursor" "the cursor of `listRepos` moves on",
        "return the cursor of the next page, and none after the last";
    LIST_UNSERVED Violation "list/unserved" "the host has every account that `listRepos` names",
        "remove the account from the list";
    LIST_OMITTED Violation "list/omitted" "`listRepos` names every account that the host has",
        "add the account to the list: backfills miss it";
    LIST_REV Violation "list/rev" "`listRepos` states the newest commit of an account",
        "update the list with the repository";
    LIST_STATUS Violation "list/status" "`listRepos` and `getRepoStatus` state the same status",
        "update both with the account";
    STATUS_ACCOUNT Violation "status/account" "`getRepoStatus` answers about the requested account",
        "return the requested account";
    STATED_REV Violation "repo/stated-rev" "a stated revision is the revision of the signed commit",
        "read the revision from the newest commit, not from a copy";
    OTHER_COMMIT Violation "repo/other-commit" "one revision is one commit",
        "never sign two commits of one revision; check for a restored backup";
    STALE_REPO Violation "repo/stale" "`getRepo` has the commit that `getLatestCommit` names, or a newer one",
        "do not serve repositories from a cache";
    FUTURE_REPO Violation "repo/future-rev" "a revision is not ahead of the clock",
        "set the clock of the host, and repair the repository: its next commits are ignored until then";
    ENDLESS_REPO Violation "repo/endless" "an archive ends after the repository",
        "end the archive after the last block of the commit";
    REFUSED_REPO Violation "repo/unserved" "the host serves the repository of an active account",
        "serve it, or state the account's status";
    SERVED_INACTIVE Violation "repo/served-inactive" "the host does not serve the repository of an inactive account",
        "refuse it with the error of its status";
    REPO_UNREAD Note "repo/unread" "a sampled repository is larger than this judge reads",
        "verify it with `wireproof verify`";
    BLOCK_MISSING Violation "blocks/missing" "`getBlocks` sends every requested block, or BlockNotFound",
        "answer BlockNotFound for a block that is not there";
    BLOCK_EXTRA Violation "blocks/extra" "`getBlocks` sends no other block",
        "send the requested blocks alone";
    OTHER_RECORD Violation "record/other" "`getRecord` and `getRepo` of one commit have the same record",
        "read both from the repository";
    NO_STREAM Violation "stream/missing" "a host has `subscribeRepos`",
        "serve the stream, or let the proxy pass WebSocket upgrades";
    REFUSED_STREAM Unknown "stream/refused" "the host opens its stream",
        "allow this reader";
    SILENT_STREAM Violation "stream/silent" "an open stream answers pings",
        "answer pings, or close the connection";
    TOO_SLOW Violation "stream/too-slow" "only a reader that is behind is told ConsumerTooSlow",
        "compare with the reader's own position";
    CLOSED_STREAM Violation "stream/closes" "a stream stays open",
        "look for a time limit or a size limit in front of the server";
    STREAM_ERROR Violation "stream/error" "a stream ends with an error that the lexicon names",
        "use FutureCursor or ConsumerTooSlow";
    LOST_EVENT Violation "stream/lost-event" "a live stream has every event that its replay has",
        "send every stored event: readers break their chains of proofs here";
    TEXT Violation "frame/text" "a message is binary",
        "send frames as binary messages";
    UNKNOWN_FRAME Note "frame/unknown" "a frame has a known operation and type",
        "readers skip it";
    SEQ_REPEATED Violation "seq/repeated" "a sequence number is sent once on a connection",
        "send every event once";
    SEQ_ORDER Violation "seq/regressed" "sequence numbers increase",
        "send events in the order of their numbers: a cursor loses the earlier one";
    SEQ_REUSED Violation "seq/reused" "a sequence number is of one event",
        "never use a number again";
    REPLAY_DIFFERS Violation "replay/differs" "a replay has an event as it was sent live",
        "store frames, or encode them the same way again";
    REPLAY_MISSING Violation "replay/missing" "a replay has every event that was sent live",
        "store an event before sending it";
    CURSOR_IGNORED Violation "cursor/ignored" "a stream starts after its cursor",
        "replay the events after the cursor, or from the oldest one";
    CURSOR_OUTDATED Violation "cursor/outdated" "only a cursor before the window is told OutdatedCursor",
        "compare the cursor with the oldest stored event";
    CURSOR_UNSTATED Note "cursor/unstated" "a cursor before the window is told OutdatedCursor",
        "send `#info` with OutdatedCursor first, so that readers know of the gap";
    CURSOR_FUTURE Violation "cursor/future" "a cursor ahead of the stream is told FutureCursor",
        "end the stream with the error FutureCursor: readers miss events after a reset otherwise";
    SEQ_RESET Violation "seq/reset" "sequence numbers do not start again",
        "go on after the last number after a restart";
    STALE_SYNC Violation "sync/stale-rev" "a `#sync` does not go back",
        "send `#sync` with the newest commit only";
    LARGE_SYNC Violation "sync/limit" "a `#sync` has the commit only, in at most 10,000 bytes",
        "send the commit block only";
    CONTRADICTION Violation "account/contradiction" "an active account has no status of an inactive one",
        "send `active: false` with the status";
    ACCOUNT_STATUS Violation "account/other-status" "`#account` and `getRepoStatus` state the same status",
        "send `#account` whenever the status changes, and answer with it";
    INACTIVE_COMMIT Violation "account/inactive-commit" "an inactive account has no commits",
        "send `#account` before the first commit of an account that is active again";
    OTHER_HOST Violation "event/host" "a PDS sends commits of accounts that it hosts",
        "stop serving accounts that have moved";
}

/// The remedy for an event, a repository or a proof that breaks a rule of its own.
pub const OF_DATA: &str = "docs/formats/codes.md has the rule of this code; compare the server's code with the specification";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_code_of_its_own() {
        let mut codes: Vec<_> = ALL.iter().map(|rule| rule.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ALL.len());
        let is_plain = |code: &&str| {
            code.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'/' | b'-'))
        };
        assert!(codes.iter().all(is_plain));
    }

    #[test]
    fn the_reference_page_lists_every_code_with_its_rule_and_what_to_do() {
        let page = include_str!("../../../docs/reference/doctor.md");
        let (_, page) = page.split_once("## Findings about a host").unwrap();
        let rows: Vec<&str> = page.lines().filter(|row| row.starts_with("| `")).collect();
        let row = |rule: &Rule| {
            let kind = match rule.kind {
                Kind::Violation => "",
                Kind::Unknown => " (unknown)",
                Kind::Note => " (note)",
            };
            format!("| `{}`{kind} | {} | {} |", rule.code, rule.text, rule.action)
        };
        assert_eq!(rows, ALL.iter().map(row).collect::<Vec<_>>());
    }
}
