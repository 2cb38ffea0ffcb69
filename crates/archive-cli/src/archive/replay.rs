//! `wireproof archive replay`: the events of an archive in order of arrival, as frames or as lines.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::serve::ArchivedLines;
use archive::{Archive, ArchiveServer, EventRate, ReplayedEvent, ServeOptions, Table};
use atproto::corpus;
use atproto::syntax::Datetime;
use clap::{Args, ValueEnum};
use mapping::MappedFile;
use serde::Serialize;

use super::arguments::AddressArgs;
use super::serve::{serve, signals, warn_if_reachable};
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::output::Output;
use crate::progress::ProgressLine;

/// Write the events of an archive in order of arrival, as frames or as lines.
///
/// Replay skips hidden events, refused events, and commits in compact form; it states the number of compact commits at
/// the end. Frames are written as a file that `frames verify` and `archive import` read. Lines have the form of
/// `follow`, with the stored verdict. At ws://ADDRESS:PORT, events are served until a client has received all of them:
/// frames as in `archive serve`, lines at /lines with one line per text message.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// The file, which is replaced; `-` for standard output, or ws://ADDRESS:PORT to serve.
    #[arg(long, value_name = "FILE|-|ws://ADDRESS:PORT")]
    to: Target,
    /// The form of the events.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Frames)]
    format: Form,
    /// Leave out events that arrived before this time, or before this number of the archive: 2026-07-01T00:00:00Z.
    #[arg(long, value_name = "TIME|ARRIVAL")]
    since: Option<Arrival>,
    /// Leave out events that arrived after this time or number.
    #[arg(long, value_name = "TIME|ARRIVAL")]
    until: Option<Arrival>,
    /// Maximum number of events per second; `max` for no maximum. Clients do not share it.
    #[arg(long, value_name = "N|max", default_value = "max")]
    rate: Rate,
    /// Print one JSON document about the replay.
    #[arg(long)]
    json: bool,
}

/// Where a replay goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Stdout,
    File(PathBuf),
    WebSocket(SocketAddr),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(address) = text.strip_prefix("ws://") {
            let address = address.trim_end_matches('/').parse().map_err(|_| {
                "expected an IP address and a port, as in ws://127.0.0.1:2480".to_owned()
            });
            return address.map(Self::WebSocket);
        }
        match text {
            "-" => Ok(Self::Stdout),
            _ if text.contains("://") => Err("expected a file, - or ws://ADDRESS:PORT".to_owned()),
            _ => Ok(Self::File(text.into())),
        }
    }
}

/// The form of the events of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The frames as received.
    #[default]
    Frames,
    /// One line of JSON per event.
    Lines,
}

/// A number of an archive, or the time that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival(i64);

impl FromStr for Arrival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self(number));
        }
        Datetime::parse(text)
            .map(|time| Self(time.unix_micros()))
            .map_err(|error| error.to_string())
    }
}

/// A maximum of events a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate(Option<NonZeroU32>);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self(None)),
            _ => text
                .parse()
                .map(|rate| Self(Some(rate)))
                .map_err(|_| "expected a number of events a second, from 1, or max".to_owned()),
        }
    }
}

impl ReplayArgs {
    fn arrivals(&self) -> RangeInclusive<i64> {
        let number = |arrival: Option<Arrival>| arrival.map(|Arrival(number)| number);
        number(self.since).unwrap_or(i64::MIN)..=number(self.until).unwrap_or(i64::MAX)
    }
}

pub(super) async fn run(args: &ReplayArgs, output: Output) -> Result<(), Failure> {
    if args.json && args.to == Target::Stdout {
        return Err(Failure::Usage("--json: standard output has the events (--to -)".to_owned()));
    }
    let archive = args.address.open().await?;
    let summary = match &args.to {
        Target::WebSocket(address) => return serve_range(archive, *address, args).await,
        Target::File(path) => write_file(archive, path, args).await?,
        Target::Stdout => {
            let summary = write_stdout(archive, args, output).await?;
            let summary = ReplaySummary { form: args.format, ..summary };
            // If standard error is closed, the output remains.
            let _ = log::print(Level::Info, summary.to_text().trim_end());
            return Ok(());
        }
    };
    let summary = ReplaySummary { form: args.format, ..summary };
    output.document(&summary, args.json, ReplaySummary::to_text)
}

/// Serves the events until a client has received all of them.
async fn serve_range(
    archive: Archive,
    address: SocketAddr,
    args: &ReplayArgs,
) -> Result<(), Failure> {
    let signals = signals()?;
    let mut options = ServeOptions::default();
    options.arrivals = args.arrivals();
    options.follows = false;
    options.rate = args.rate.0;
    warn_if_reachable("--to ws://", address);
    let mut server = ArchiveServer::bind(archive, address, options).await?;
    if args.format == Form::Lines {
        server = server.with_lines(|replayed| {
            let mut line = Vec::new();
            ArchivedLines::default().write(&replayed.event(), replayed.number(), &mut line).ok()?;
            line.pop();
            String::from_utf8(line).ok()
        });
    }
    serve(server, None, signals).await
}

async fn write_file(
    archive: Archive,
    path: &Path,
    args: &ReplayArgs,
) -> Result<ReplaySummary, Failure> {
    let mut file = BufWriter::new(File::create(path).map_err(Failure::file(path))?);
    let failed = |error| Failure::file(path)(error);
    match args.format {
        Form::Frames => write_frames(archive, args, args.rate, &mut file, &failed).await,
        Form::Lines => write_lines(archive, args, &mut file, &failed).await,
    }
}

async fn write_stdout(
    archive: Archive,
    args: &ReplayArgs,
    output: Output,
) -> Result<ReplaySummary, Failure> {
    if args.format == Form::Lines {
        let mut out = BufWriter::new(output.bytes());
        return write_lines(archive, args, &mut out, &stdout_failure).await;
    }
    // The count of the frames is before them.
    let mut file = BufWriter::new(tempfile::tempfile()?);
    let summary = write_frames(archive, args, Rate(None), &mut file, &Failure::from).await?;
    let file = MappedFile::of(file.get_ref())?;
    let mut out = BufWriter::new(output.bytes());
    let mut rate = args.rate.0.map(EventRate::new);
    out.write_all(&file[..4]).map_err(stdout_failure)?;
    let frames = corpus::frames(&file).map_err(|error| Failure::Local(error.to_string()))?;
    for frame in frames {
        if let Some(rate) = &mut rate {
            rate.ready().await;
        }
        write_frame(&mut out, frame).map_err(stdout_failure)?;
    }
    out.flush().map_err(stdout_failure)?;
    Ok(summary)
}

/// Writes a file of frames, whose count comes last.
async fn write_frames(
    archive: Archive,
    args: &ReplayArgs,
    rate: Rate,
    file: &mut (impl Write + Seek),
    failed: &impl Fn(io::Error) -> Failure,
) -> Result<ReplaySummary, Failure> {
    file.write_all(&[0; 4]).map_err(failed)?;
    let mut summary = ReplaySummary::default();
    let replayed = each(archive, args, rate, |replayed| {
        let frame = replayed.event().frame;
        write_frame(file, frame).map_err(failed)?;
        summary.frame_count += 1;
        summary.bytes += frame.len() as u64;
        Ok(())
    });
    summary.left_out_count = replayed.await?;
    let count = u32::try_from(summary.frame_count).map_err(|_| {
        Failure::Local(
            "a file has at most 4,294,967,295 frames: choose --since and --until".to_owned(),
        )
    })?;
    let written = file.rewind().and_then(|()| {
        file.write_all(&count.to_be_bytes())?;
        file.flush()
    });
    written.map_err(failed)?;
    Ok(summary)
}

fn write_frame(out: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    out.write_all(&(frame.len() as u32).to_be_bytes())?;
    out.write_all(frame)
}

async fn write_lines(
    archive: Archive,
    args: &ReplayArgs,
    out: &mut impl Write,
    failed: &impl Fn(io::Error) -> Failure,
) -> Result<ReplaySummary, Failure> {
    let mut lines = ArchivedLines::default();
    let mut line = Vec::new();
    let mut summary = ReplaySummary::default();
    let replayed = each(archive, args, args.rate, |replayed| {
        line.clear();
        let written = lines.write(&replayed.event(), replayed.number(), &mut line);
        written
            .map_err(|why| Failure::Refused(format!("{why}; `archive verify` names the file")))?;
        out.write_all(&line).map_err(failed)?;
        // At a rate, a reader waits for every line.
        if args.rate.0.is_some() {
            out.flush().map_err(failed)?;
        }
        summary.frame_count += 1;
        summary.bytes += line.len() as u64;
        Ok(())
    });
    summary.left_out_count = replayed.await?;
    out.flush().map_err(failed)?;
    Ok(summary)
}

/// Passes the events on, at a rate; returns the number of events stored without a frame.
async fn each(
    archive: Archive,
    args: &ReplayArgs,
    rate: Rate,
    mut on_event: impl FnMut(&ReplayedEvent) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut progress = ProgressLine::new();
    let mut done = 0;
    let total = archive.table_stats(Table::Events).await?.rows;
    let mut replay = archive.replay_events(args.arrivals()).await?;
    let mut rate = rate.0.map(EventRate::new);
    while let Some(replayed) = replay.next().await? {
        if let Some(rate) = &mut rate {
            rate.ready().await;
        }
        on_event(&replayed)?;
        done += 1;
        if done % PROGRESS_EVENTS == 0 {
            progress.at("events".to_owned(), done, total);
        }
    }
    progress.end();
    Ok(replay.left_out())
}

fn stdout_failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Local(
            "the reader of standard output closed it before it had all events".to_owned(),
        ),
        _ => error.into(),
    }
}

/// The report, as JSON and text, of a replay.
#[derive(Debug, Default, Serialize)]
struct ReplaySummary {
    #[serde(skip)]
    form: Form,
    /// Frames, or lines.
    frame_count: u64,
    bytes: u64,
    /// Events that are stored without their frame.
    left_out_count: u64,
}

impl ReplaySummary {
    fn to_text(&self) -> String {
        let left_out = match self.left_out_count {
            0 => String::new(),
            count => {
                format!("{count} commits left out: they are in compact form, without their frame\n")
            }
        };
        let form = match self.form {
            Form::Frames => "frames",
            Form::Lines => "lines",
        };
        format!("{} {form}, {} bytes\n{left_out}", self.frame_count, self.bytes)
    }
}

/// Events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 256;

const EXAMPLES: &str = "\
Examples:
  wireproof archive replay archive --to frames.bin
  wireproof archive replay archive --to frames.bin --since 2026-07-01T00:00:00Z
  wireproof archive replay archive --to - --format lines --rate 100 | jq .did
  wireproof archive replay archive --to ws://127.0.0.1:4490";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_file_standard_output_or_an_address() {
        assert_eq!("-".parse(), Ok(Target::Stdout));
        assert_eq!("frames.bin".parse(), Ok(Target::File("frames.bin".into())));
        let address = "127.0.0.1:2480".parse().unwrap();
        assert_eq!("ws://127.0.0.1:2480/".parse(), Ok(Target::WebSocket(address)));
        for wrong in ["ws://localhost:2480", "ws://127.0.0.1", "wss://127.0.0.1:2480", "s3://x"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_arrival_is_a_number_or_a_time() {
        assert_eq!("1782864000000000".parse(), Ok(Arrival(1_782_864_000_000_000)));
        assert_eq!("2026-07-01T00:00:00Z".parse(), Ok(Arrival(1_782_864_000_000_000)));
        assert!("yesterday".parse::<Arrival>().is_err());
    }

    #[test]
    fn a_rate_is_a_number_from_one_or_max() {
        assert_eq!("max".parse(), Ok(Rate(None)));
        assert_eq!("5".parse(), Ok(Rate(NonZeroU32::new(5))));
        assert!(["0", "-1", "fast", ""].iter().all(|wrong| wrong.parse::<Rate>().is_err()));
    }
}
