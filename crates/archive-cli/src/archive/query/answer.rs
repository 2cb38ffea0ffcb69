//! Answers a statement: a table for people, or rows in the formats that other programs read.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write, stdout};
use std::path::Path;

use codec::printable::escape_json;
use comfy_table::{ContentArrangement, Table, presets};
use query::arrow::array::RecordBatch;
use query::arrow::datatypes::SchemaRef;
use query::arrow::error::ArrowError;
use query::arrow::ipc::writer::StreamWriter;
use query::arrow::util::display::{ArrayFormatter, FormatOptions};
use query::arrow::{csv, json};
use query::parquet::arrow::ArrowWriter;
use query::parquet::errors::ParquetError;
use query::{Lexicon, Options, QueryError, Rows, Session};
use tokio::runtime::Builder;

use super::{Format, QueryArgs};
use crate::failure::Failure;
use crate::files;
use crate::log;
use crate::output::Output;
use program::controls::is_control;
use program::standard_streams;

pub(super) fn run(args: &QueryArgs, output: Output) -> Result<(), Failure> {
    let mut options =
        Options { memory_bytes: args.memory_mib as usize * (1 << 20), ..Options::default() };
    options.jobs = args.jobs.map_or(options.jobs, usize::from);
    for path in &args.lexicons {
        options.lexicons.extend(lexicons(path)?);
    }
    let runtime = Builder::new_multi_thread().worker_threads(options.jobs).enable_all().build();
    let failed = |error| Failure::Local(format!("the threads of this system: {error}"));
    runtime.map_err(failed)?.block_on(answer(args, &options, output))
}

async fn answer(args: &QueryArgs, options: &Options, output: Output) -> Result<(), Failure> {
    let archive = args.address.open().await?;
    let session = Session::open(&archive, options).await.map_err(unanswered)?;
    let rows = session.sql(&statement(&args.sql)?).await.map_err(unanswered)?;
    if args.format == Format::Table && file(args).is_none() {
        let (text, is_whole) = to_table(rows).await?;
        output.text(&text)?;
        if !is_whole {
            let message =
                format!("the table ends after {TABLE_ROWS} rows: --format csv has all of them");
            log::print(log::Level::Info, &message)?;
        }
        return Ok(());
    }
    match file(args) {
        Some(path) => {
            let created = File::create(path).map_err(Failure::file(path))?;
            write(rows, args.format, BufWriter::new(created)).await
        }
        None => write(rows, args.format, BufWriter::new(stdout())).await,
    }
}

fn file(args: &QueryArgs) -> Option<&Path> {
    args.output.as_deref().filter(|path| !files::is_standard_stream(path))
}

fn statement(sql: &str) -> Result<String, Failure> {
    if sql != "-" {
        return Ok(sql.to_owned());
    }
    let mut text = String::new();
    standard_streams::stdin()?.lock().take(MAX_STATEMENT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The lexicon of a file, or the lexicons of records in the files of a folder.
fn lexicons(path: &Path) -> Result<Vec<Lexicon>, Failure> {
    if !path.is_dir() {
        let lexicon = Lexicon::parse(&files::read(path)?);
        let refused = |error| Failure::Usage(format!("--lexicon {}: {error}", path.display()));
        return Ok(vec![lexicon.map_err(refused)?]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Failure::file(&folder))? {
            let entry = entry.map_err(Failure::file(&folder))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(Failure::file(&folder))?);
            match path.extension() {
                _ if kind.is_dir() => folders.push(path),
                Some(extension) if extension == "json" => {
                    found.extend(Lexicon::parse(&files::read(&path)?).ok());
                }
                _ => {}
            }
        }
    }
    found.sort_by(|a, b| a.view().cmp(b.view()));
    Ok(found)
}

/// A table of the first rows, and whether there are no more.
async fn to_table(mut rows: Rows) -> Result<(String, bool), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(rows.schema().fields().iter().map(|field| field.name().clone()));
    let (mut shown, format) = (0, FormatOptions::default());
    while let Some(batch) = rows.next().await.map_err(unanswered)? {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &format));
        let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(failed)?;
        for row in 0..batch.num_rows() {
            if shown == TABLE_ROWS {
                return Ok((table.trim_fmt() + "\n", false));
            }
            let cells = columns.iter().map(|column| Ok(cut(&column.value(row).try_to_string()?)));
            table.add_row(cells.collect::<Result<Vec<_>, _>>().map_err(failed)?);
            shown += 1;
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    Ok((table.trim_fmt() + "\n", true))
}

/// The start of a value that is long; line breaks are escaped.
fn cut(value: &str) -> String {
    let value: String = value.chars().take(CELL_LETTERS + 1).collect();
    let value = value.replace('\n', "\\n");
    match value.char_indices().nth(CELL_LETTERS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}

async fn write(mut rows: Rows, format: Format, out: impl Write + Send) -> Result<(), Failure> {
    let mut writer = RowWriter::new(format, &rows.schema(), out)?;
    while let Some(batch) = rows.next().await.map_err(unanswered)? {
        writer.write(&batch)?;
    }
    writer.finish()
}

/// Writes rows in one of the formats that other programs read.
enum RowWriter<W: Write + Send> {
    Csv(EscapedCsv<W>),
    Ndjson(W),
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<StreamWriter<W>>),
}

impl<W: Write + Send> RowWriter<W> {
    fn new(format: Format, schema: &SchemaRef, out: W) -> Result<Self, Failure> {
        Ok(match format {
            Format::Table | Format::Csv => Self::Csv(EscapedCsv { out, has_header: false }),
            Format::Ndjson => Self::Ndjson(out),
            Format::Parquet => Self::Parquet(Box::new(
                ArrowWriter::try_new(out, schema.clone(), None).map_err(unwritten)?,
            )),
            Format::Arrow => {
                Self::Arrow(Box::new(StreamWriter::try_new(out, schema).map_err(failed)?))
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        match self {
            Self::Csv(writer) => writer.write(batch),
            Self::Ndjson(out) => {
                let mut lines = json::LineDelimitedWriter::new(Vec::new());
                lines.write(batch).and_then(|()| lines.finish()).map_err(failed)?;
                for line in lines.into_inner().split_inclusive(|byte| *byte == b'\n') {
                    let mut line = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
                    escape_json(&mut line, 0);
                    line.push(b'\n');
                    out.write_all(&line)?;
                }
                Ok(())
            }
            Self::Parquet(writer) => writer.write(batch).map_err(unwritten),
            Self::Arrow(writer) => writer.write(batch).map_err(failed),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Csv(mut writer) => writer.out.flush()?,
            Self::Ndjson(mut out) => out.flush()?,
            Self::Parquet(writer) => writer.into_inner().map_err(unwritten)?.flush()?,
            Self::Arrow(writer) => writer.into_inner().map_err(failed)?.flush()?,
        }
        Ok(())
    }
}

/// Writes CSV with control characters of values escaped, which a terminal may obey. A line break in a value stays one, in quotes.
struct EscapedCsv<W> {
    out: W,
    has_header: bool,
}

impl<W: Write> EscapedCsv<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let is_first = !std::mem::replace(&mut self.has_header, true);
        let mut lines = csv::WriterBuilder::new().with_header(is_first).build(Vec::new());
        lines.write(batch).map_err(failed)?;
        let lines = lines.into_inner();
        let text = String::from_utf8_lossy(&lines);
        let is_escaped = |letter: char| {
            is_control(letter) || (letter.is_ascii_control() && !matches!(letter, '\n' | '\t'))
        };
        let mut rest = &*text;
        while let Some(at) = rest.find(is_escaped) {
            let (before, after) = rest.split_at(at);
            let mut letters = after.chars();
            let escape = letters.next().map(char::escape_unicode);
            write!(self.out, "{before}{}", escape.into_iter().flatten().collect::<String>())?;
            rest = letters.as_str();
        }
        Ok(self.out.write_all(rest.as_bytes())?)
    }
}

fn failed(error: ArrowError) -> Failure {
    match error {
        ArrowError::IoError(_, error) => Failure::from(error),
        error => Failure::Local(error.to_string()),
    }
}

fn unwritten(error: ParquetError) -> Failure {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => Failure::from(*error),
            Err(error) => Failure::Local(error.to_string()),
        },
        error => Failure::Local(error.to_string()),
    }
}

fn unanswered(error: QueryError) -> Failure {
    match error {
        QueryError::Statement(message) => Failure::Usage(message),
        error => Failure::Local(error.to_string()),
    }
}

/// Rows of a table for people.
const TABLE_ROWS: usize = 1_000;

/// Letters of a value in such a table.
const CELL_LETTERS: usize = 120;

/// Bytes of a statement from standard input.
const MAX_STATEMENT_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use query::arrow::array::{ArrayRef, StringArray};

    use super::*;

    #[test]
    fn control_characters_of_values_are_escaped_in_csv() {
        let values = ["a\u{1b}[31m", "b\u{9b}\r\u{202e}", "two\nlines", "é,\t\"x\""];
        let column: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let batch = RecordBatch::try_from_iter([("value", column)]).unwrap();
        let mut writer = EscapedCsv { out: Vec::new(), has_header: false };
        writer.write(&batch.slice(0, 2)).unwrap();
        writer.write(&batch.slice(2, 2)).unwrap();
        let found = String::from_utf8(writer.out).unwrap();
        let lines: Vec<&str> = found.split('\n').collect();
        assert_eq!(lines[..2], ["value", "a\\u{1b}[31m"]);
        assert!(lines[2].contains("b\\u{9b}\\u{d}\\u{202e}"), "{found:?}");
        assert_eq!(lines[3..], ["\"two", "lines\"", "\"é,\t\"\"x\"\"\"", ""]);
    }
}
