//! The documents of the admin API, which the server writes and the commands read.

use serde::{Deserialize, Serialize};

/// Accounts to add or remove.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountList {
    /// Their DIDs.
    pub dids: Vec<String>,
}

/// Collections to add or remove.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionList {
    /// The collections, or prefixes of collections.
    pub collections: Vec<String>,
}

/// The target of a pause or a resumption: a destination, or the intake of events.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseTarget {
    /// The destination; none for the intake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
}

/// The result of a change of a list.
#[derive(Debug, Serialize, Deserialize)]
pub struct Changed {
    /// Number of entries that were added or removed.
    pub changed: usize,
    /// Number of entries now.
    pub selected: usize,
}

/// The result of a pause or a resume.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paused {
    /// Whether the intake of events is paused now.
    pub intake: bool,
    /// The destinations that are paused now.
    pub destinations: Vec<String>,
}

/// A page of the selected accounts, in order.
#[derive(Debug, Serialize, Deserialize)]
pub struct AccountPage {
    /// Whether all accounts are selected: then none is listed.
    pub all: bool,
    /// Their DIDs.
    pub accounts: Vec<String>,
    /// The last account of the page, if more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The selected collections.
#[derive(Debug, Serialize, Deserialize)]
pub struct Collections {
    /// Whether all collections are selected: then none is listed.
    pub all: bool,
    /// The collections, or prefixes of collections.
    pub collections: Vec<String>,
}

/// The state of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunStatus {
    /// Why the run takes no events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Whether the intake is paused.
    pub paused: bool,
    /// The hosts.
    pub hosts: Vec<HostState>,
    /// Age of the last sampled event on arrival, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_seconds: Option<f64>,
    /// Number of selected accounts; none if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<usize>,
    /// Number of entries that select collections; none if all are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<usize>,
    /// The expression of `--where`.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The histories, if accounts get theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histories: Option<HistoriesState>,
    /// Number of stored changes to the command line.
    pub changes: usize,
    /// The outbox, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox: Option<OutboxState>,
    /// The destinations.
    pub destinations: Vec<DestinationState>,
}

/// A host of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostState {
    /// Its origin.
    pub host: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// The sequence number up to which every event is stored or printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

/// The accounts of the outbox by the state of their history.
#[derive(Debug, Serialize, Deserialize)]
pub struct HistoriesState {
    /// All that is selected was delivered.
    pub complete: u64,
    /// It was, and is compared again: more is selected, events were lost, or the account is not selected.
    pub outdated: u64,
    /// Not delivered yet.
    pub awaited: u64,
}

/// The outbox of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct OutboxState {
    /// Number of events in it.
    pub events: u64,
    /// Their size.
    pub bytes: u64,
    /// Age of the oldest.
    pub oldest_seconds: f64,
}

/// A destination of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct DestinationState {
    /// Its name.
    pub destination: String,
    /// Whether it is paused.
    pub paused: bool,
    /// Number of events that it has not acknowledged.
    pub undelivered: u64,
    /// Bytes of the events that it has refused, in files next to the outbox.
    #[serde(default)]
    pub refused_bytes: u64,
}

/// The state of an account.
#[derive(Debug, Serialize, Deserialize)]
pub struct AccountStatus {
    /// The account.
    pub did: String,
    /// Whether its events are selected.
    pub selected: bool,
    /// `unknown` before its first verified commit, `synchronized`, or `desynchronized` while its repository is awaited.
    pub state: String,
    /// Whether its events are accepted.
    pub active: bool,
    /// Whether all that is selected of it was delivered; none if its history was never asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// The collections of which all was delivered; none without a history, and while all collections are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_in: Option<Vec<String>>,
    /// The last verified revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The CID of its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The last event in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event: Option<LastEvent>,
    /// The destinations that have not acknowledged all.
    pub deliveries: Vec<AccountDelivery>,
    /// Why the account is behind; none if it is not.
    pub behind: Vec<Reason>,
}

/// The last event of an account.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastEvent {
    /// Its origin.
    pub host: String,
    /// Its sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Its kind.
    pub kind: String,
    /// The code of its verdict.
    pub code: String,
    /// How long ago it came.
    pub seconds_ago: f64,
}

/// The events of an account that a destination has not acknowledged.
#[derive(Debug, Serialize, Deserialize)]
pub struct AccountDelivery {
    /// Its name.
    pub destination: String,
    /// Number of events that it has not acknowledged.
    pub undelivered: u64,
    /// Id of the oldest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// Whether all stored events were counted: otherwise there may be more.
    pub complete: bool,
}

/// Why an account is behind.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reason {
    /// The kind.
    pub reason: Behind,
    /// For a person.
    pub message: String,
}

/// Kinds of reasons why an account is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// It is not selected.
    NotSelected,
    /// The run takes no events.
    NoIntake,
    /// It is inactive.
    Inactive,
    /// Its repository is awaited.
    Desynchronized,
    /// Its revisions go back.
    Revisions,
    /// Its history is awaited.
    History,
    /// Its last event was refused.
    Refused,
    /// A destination has not acknowledged all.
    Undelivered,
}

/// The answer to a request that is refused.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// For a person.
    pub message: String,
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
