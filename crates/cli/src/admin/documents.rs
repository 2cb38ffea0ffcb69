//! The documents of the admin API, which the server writes and the commands read.

use serde::{Deserialize, Serialize};

/// Accounts to add or remove.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountList {
    pub(crate) dids: Vec<String>,
}

/// Collections to add or remove.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectionList {
    pub(crate) collections: Vec<String>,
}

/// What to pause or resume: a destination, or the intake of events.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseTarget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<String>,
}

/// The result of a change of a list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Changed {
    /// Number of entries that were added or removed.
    pub(crate) changed: usize,
    /// Number of entries now.
    pub(crate) selected: usize,
}

/// The result of a pause or a resume.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Paused {
    /// Whether the intake of events is paused now.
    pub(crate) intake: bool,
    /// The destinations that are paused now.
    pub(crate) destinations: Vec<String>,
}

/// A page of the selected accounts, in order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AccountPage {
    /// Whether all accounts are selected: then none is listed.
    pub(crate) all: bool,
    pub(crate) accounts: Vec<String>,
    /// The last account of the page, if more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
}

/// The selected collections.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Collections {
    /// Whether all collections are selected: then none is listed.
    pub(crate) all: bool,
    pub(crate) collections: Vec<String>,
}

/// The state of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunStatus {
    /// Why the run takes no events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) obstacle: Option<String>,
    /// Whether the intake is paused.
    pub(crate) paused: bool,
    pub(crate) hosts: Vec<HostState>,
    /// Age of the last sampled event on arrival, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lag_seconds: Option<f64>,
    /// Number of selected accounts; none if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accounts: Option<usize>,
    /// Number of entries that select collections; none if all are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) collections: Option<usize>,
    /// The expression of `--where`.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) histories: Option<HistoriesState>,
    /// Number of stored changes to the command line.
    pub(crate) changes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outbox: Option<OutboxState>,
    pub(crate) destinations: Vec<DestinationState>,
}

/// A host of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostState {
    pub(crate) host: String,
    pub(crate) connected: bool,
    /// The sequence number up to which every event is stored or printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<u64>,
}

/// The accounts of the outbox by the state of their history.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HistoriesState {
    /// All that is selected was delivered.
    pub(crate) complete: u64,
    /// It was, and is compared again: more is selected, events were lost, or the account is not selected.
    pub(crate) outdated: u64,
    /// Not delivered yet.
    pub(crate) awaited: u64,
}

/// The outbox of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OutboxState {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest_seconds: f64,
}

/// A destination of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DestinationState {
    pub(crate) destination: String,
    pub(crate) paused: bool,
    /// Number of events that it has not acknowledged.
    pub(crate) undelivered: u64,
    /// Bytes of the events that it has refused, in files beside the outbox.
    #[serde(default)]
    pub(crate) refused_bytes: u64,
}

/// The state of an account.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AccountStatus {
    pub(crate) did: String,
    pub(crate) selected: bool,
    /// `unknown` before its first verified commit, `synchronized`, or `desynchronized` while its repository is awaited.
    pub(crate) state: String,
    /// Whether its events are accepted.
    pub(crate) active: bool,
    /// Whether all that is selected of it was delivered; none if its history was never asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) complete: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// The last event in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_event: Option<LastEvent>,
    pub(crate) deliveries: Vec<AccountDelivery>,
    /// Why the account is behind; none if it is not.
    pub(crate) behind: Vec<Reason>,
}

/// The last event of an account.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastEvent {
    pub(crate) host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
    pub(crate) kind: String,
    pub(crate) code: String,
    pub(crate) seconds_ago: f64,
}

/// What a destination has not acknowledged of an account.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AccountDelivery {
    pub(crate) destination: String,
    pub(crate) undelivered: u64,
    /// Id of the oldest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oldest: Option<String>,
    /// Whether all stored events were counted: otherwise there may be more.
    pub(crate) complete: bool,
}

/// Why an account is behind.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reason {
    pub(crate) reason: Behind,
    pub(crate) message: String,
}

/// Kinds of reasons why an account is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Behind {
    NotSelected,
    NoIntake,
    Inactive,
    Desynchronized,
    Revisions,
    History,
    Refused,
    Undelivered,
}

/// The answer to a request that is refused.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Behind;

    #[test]
    fn the_schema_of_an_account_has_every_reason_and_no_other() {
        let schema = include_str!("../../../../docs/formats/schemas/accounts-status.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let reasons = &schema["properties"]["behind"]["items"]["properties"]["reason"]["enum"];
        let named: Vec<Behind> = serde_json::from_value(reasons.clone()).unwrap();
        assert_eq!(named.len(), Behind::Undelivered as usize + 1);
        assert!(named.iter().zip(&named[1..]).all(|(one, next)| *one as u8 + 1 == *next as u8));
    }
}
