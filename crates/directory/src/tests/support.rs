//! Mirrors and accounts of tests.

use std::path::PathBuf;

use atproto::plc::ExportLine;
use store::{PlcMirror, PlcMirrorReader};
use tempfile::TempDir;

/// A mirror in a folder of its own.
pub(super) struct TestMirror {
    folder: TempDir,
}

impl TestMirror {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("plc.sqlite")
    }

    /// Adds lines, all of which must be accepted.
    pub(super) fn apply(&self, lines: &[ExportLine]) {
        let mut mirror = PlcMirror::open(&self.path(), "https://plc.directory").unwrap();
        let applied = mirror.apply(lines).unwrap();
        assert_eq!(applied.refused, []);
    }

    pub(super) fn reader(&self) -> PlcMirrorReader {
        PlcMirrorReader::open(&self.path()).unwrap()
    }
}

/// The lines of an export.
pub(super) fn parse_lines(export: &str) -> Vec<ExportLine> {
    export.lines().map(|line| ExportLine::parse(line.as_bytes()).unwrap()).collect()
}
