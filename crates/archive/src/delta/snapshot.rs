//! A table as of a version of its log: the result of all actions up to it.

use std::collections::BTreeMap;

use super::action::{Action, Add, MetaData, Protocol, Remove, Txn};
use crate::error::ArchiveFault;

/// A table as of a version of its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Number of versions: the next one.
    pub(crate) next_version: u64,
    pub(crate) metadata: Option<MetaData>,
    pub(super) protocol: Option<Protocol>,
    /// The files, by path within the table's folder.
    pub(crate) files: BTreeMap<String, Add>,
    /// The files that were removed, by path within the table's folder, and when.
    pub(crate) removed: BTreeMap<String, i64>,
    /// The last version of every application.
    pub(crate) txns: BTreeMap<String, i64>,
    /// The programs that added files and are not this one, by path.
    pub(crate) writers: BTreeMap<String, String>,
}

impl Snapshot {
    /// Applies an action of an entry, which this program committed if `writer` is `None`.
    pub(super) fn apply(
        &mut self,
        action: Action,
        writer: Option<&str>,
    ) -> Result<(), ArchiveFault> {
        match action {
            Action::Protocol(protocol) => self.protocol = Some(protocol),
            Action::MetaData(metadata) => self.metadata = Some(*metadata),
            Action::Add(add) => {
                check_file(&add)?;
                self.removed.remove(&add.path);
                match writer {
                    Some(writer) => drop(self.writers.insert(add.path.clone(), writer.to_owned())),
                    None => drop(self.writers.remove(&add.path)),
                }
                self.files.insert(add.path.clone(), *add);
            }
            Action::Remove(remove) => {
                self.files.remove(&remove.path);
                self.writers.remove(&remove.path);
                if is_table_file(&remove.path) {
                    self.removed.insert(remove.path, remove.deletion_timestamp.unwrap_or_default());
                }
            }
            Action::Txn(txn) => drop(self.txns.insert(txn.app_id, txn.version)),
            Action::CommitInfo(_) | Action::Sidecar(_) => {}
        }
        Ok(())
    }

    /// Checks that a table with versions can be read and written.
    pub(super) fn check(&self) -> Result<(), ArchiveFault> {
        if self.next_version == 0 {
            return Ok(());
        }
        let Some(protocol) = &self.protocol else {
            return Err(ArchiveFault::Log("no entry has the protocol of the table".to_owned()));
        };
        if self.metadata.is_none() {
            return Err(ArchiveFault::Log("no entry has the metadata of the table".to_owned()));
        }
        check_protocol(protocol)
    }

    /// Whether rows may not be deleted.
    pub(super) fn is_append_only(&self) -> bool {
        let value = self.metadata.as_ref().and_then(|table| table.configuration.get(APPEND_ONLY));
        value.is_some_and(|value| value == "true")
    }

    /// The actions of a checkpoint of this state. Removed files are named for a month: their leftovers after a crash
    /// are deleted by their names.
    pub(super) fn actions(&self, now_ms: i64) -> Vec<Action> {
        let protocol = self.protocol.clone().map(Action::Protocol);
        let metadata = self.metadata.clone().map(|metadata| Action::MetaData(Box::new(metadata)));
        let txns = self.txns.iter().map(|(app_id, version)| {
            Action::Txn(Txn { app_id: app_id.clone(), version: *version, last_updated: None })
        });
        let adds = self
            .files
            .values()
            .map(|add| Action::Add(Box::new(Add { data_change: false, ..add.clone() })));
        let is_recent = |removed: &i64| now_ms.saturating_sub(*removed) < REMOVED_MS;
        let removed = self.removed.iter().filter(move |(_, removed)| is_recent(removed));
        let removes = removed.map(|(path, removed)| {
            Action::Remove(Box::new(Remove {
                path: path.clone(),
                deletion_timestamp: Some(*removed),
                data_change: false,
                extended_file_metadata: Some(false),
                partition_values: None,
                size: None,
            }))
        });
        protocol.into_iter().chain(metadata).chain(txns).chain(removes).chain(adds).collect()
    }
}

/// Whether a path is one of a file of a table: below its folder, and not in the log's folder. No other file is read or
/// deleted.
pub(crate) fn is_table_file(path: &str) -> bool {
    let is_name = |part: &str| {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"=._-+".contains(&byte);
        !part.is_empty() && !part.starts_with(['.', '_']) && part.bytes().all(is_usual)
    };
    path.ends_with(".parquet") && path.split('/').all(is_name)
}

fn check_file(add: &Add) -> Result<(), ArchiveFault> {
    let Add { path, .. } = add;
    if !is_table_file(path) {
        return Err(ArchiveFault::Log(format!("the file {path} is not below the table's folder")));
    }
    match add.deletion_vector {
        Some(_) => Err(ArchiveFault::Protocol { demanded: "deletion vectors".to_owned() }),
        None => Ok(()),
    }
}

fn check_protocol(protocol: &Protocol) -> Result<(), ArchiveFault> {
    let Protocol { min_reader_version: reader, min_writer_version: writer, .. } = protocol;
    let features = |features: &Option<Vec<String>>, known: &[&str]| {
        let features = features.iter().flatten();
        let mut unknown = features.filter(|feature| !known.contains(&&***feature));
        unknown.next().map(|feature| format!("the feature {feature}"))
    };
    let demanded = match (*reader, *writer) {
        (0..=1, 0..=2) => None,
        (0..=1, WITH_FEATURES) => features(&protocol.writer_features, &KNOWN_FEATURES),
        (WITH_FEATURES_TO_READ, WITH_FEATURES) => {
            let reading = features(&protocol.reader_features, &KNOWN_FEATURES);
            reading.or_else(|| features(&protocol.writer_features, &KNOWN_FEATURES))
        }
        (2.., _) => Some(format!("version {reader} for readers")),
        _ => Some(format!("version {writer} for writers")),
    };
    demanded.map_or(Ok(()), |demanded| Err(ArchiveFault::Protocol { demanded }))
}

/// The versions of the protocol from which a table lists its features.
const WITH_FEATURES_TO_READ: u32 = 3;
const WITH_FEATURES: u32 = 7;

/// The features of a table that this program knows. Tables of archives have no invariants.
const KNOWN_FEATURES: [&str; 4] =
    ["appendOnly", "invariants", "v2Checkpoint", "vacuumProtocolCheck"];

const APPEND_ONLY: &str = "delta.appendOnly";

/// Time for which a checkpoint names removed files, in milliseconds.
const REMOVED_MS: i64 = 30 * 24 * 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(reader: u32, writer: u32, features: &[&str]) -> Protocol {
        let features = Some(features.iter().map(|feature| (*feature).to_owned()).collect());
        Protocol {
            min_reader_version: reader,
            min_writer_version: writer,
            reader_features: features.clone(),
            writer_features: features,
        }
    }

    #[test]
    fn a_table_that_demands_what_is_not_known_is_refused() {
        for (reader, writer, features) in
            [(1, 2, &[][..]), (1, 7, &["appendOnly"]), (3, 7, &["v2Checkpoint"])]
        {
            check_protocol(&protocol(reader, writer, features)).unwrap();
        }
        for (reader, writer, features) in [
            (2, 5, &[][..]),
            (1, 3, &[]),
            (3, 7, &["deletionVectors"]),
            (1, 7, &["rowTracking"]),
            (4, 7, &[]),
            (3, 8, &[]),
            (u32::MAX, u32::MAX, &[]),
        ] {
            let found = check_protocol(&protocol(reader, writer, features));
            assert!(matches!(found, Err(ArchiveFault::Protocol { .. })), "{reader} {writer}");
        }
    }

    #[test]
    fn only_a_path_below_the_folder_of_a_table_is_a_file_of_it() {
        for path in ["day=2026-07-01/a.parquet", "part-00000-1.c000.zstd.parquet"] {
            assert!(is_table_file(path), "{path}");
        }
        for path in [
            "_delta_log/00000000000000000000.json",
            "_delta_log/x.parquet",
            "../ops/a.parquet",
            "/etc/a.parquet",
            "s3://bucket/a.parquet",
            "day=2026-07-01//a.parquet",
            "day%3D1/a.parquet",
            "day=2026-07-01/a.txt",
            "",
        ] {
            assert!(!is_table_file(path), "{path}");
        }
    }
}
