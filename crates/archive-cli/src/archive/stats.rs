//! `wireproof archive stats`: tables, files and bytes of an archive.

use archive::{Archive, Table, TableStats};
use clap::Args;
use serde::Serialize;

use super::arguments::AddressArgs;
use crate::failure::Failure;
use crate::output::{Output, table};

/// Show the tables of an archive: files, rows and bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &StatsArgs, output: Output) -> Result<(), Failure> {
    let archive = args.address.open().await?;
    let summary = StatsSummary { tables: tables(&archive).await? };
    output.document(&summary, args.json, StatsSummary::to_text)
}

async fn tables(archive: &Archive) -> Result<Vec<TableLine>, Failure> {
    let mut tables = Vec::new();
    for table in Table::ALL {
        tables.push(TableLine::new(table, &archive.table_stats(table).await?));
    }
    Ok(tables)
}

/// The report, as JSON and text, of an archive.
#[derive(Debug, Serialize)]
struct StatsSummary {
    tables: Vec<TableLine>,
}

#[derive(Debug, Serialize)]
struct TableLine {
    table: &'static str,
    /// Number of entries of the log.
    versions: u64,
    files: u64,
    rows: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_day: Option<String>,
}

impl TableLine {
    fn new(table: Table, stats: &TableStats) -> Self {
        Self {
            table: table.name(),
            versions: stats.versions,
            files: stats.files,
            rows: stats.rows,
            bytes: stats.bytes,
            first_day: stats.first_day.clone(),
            last_day: stats.last_day.clone(),
        }
    }
}

impl StatsSummary {
    fn to_text(&self) -> String {
        let rows = self.tables.iter().map(|line| {
            let days = match (&line.first_day, &line.last_day) {
                (Some(first), Some(last)) => format!("{first} to {last}"),
                _ => String::new(),
            };
            let [versions, files, rows, bytes] =
                [line.versions, line.files, line.rows, line.bytes].map(|number| number.to_string());
            [line.table.to_owned(), versions, files, rows, bytes, days]
        });
        table(["table", "versions", "files", "rows", "bytes", "days"], rows)
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof archive stats archive
  wireproof archive stats archive --json | jq '.tables[] | {table, rows}'";
