//! Standard output with acknowledgements: events from the outbox, and their ids back on standard input.
//!
//! A line of standard input acknowledges the event with this id and all that were printed before it. The next run
//! prints unacknowledged events again.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read, Write};
use std::thread;

use codec::printable::Printable;
use delivery::{Consumer, Event, LineForm, OutboxError};
use net::firehose::StopSignal;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::status::Status;
use crate::failure::Failure;

/// Prints the events of a consumer until a stop is requested or the reader ends, and acknowledges those whose ids come
/// back.
pub(super) async fn deliver(
    mut consumer: Consumer,
    form: LineForm,
    stop: StopSignal,
    status: Status,
) -> Result<(), Failure> {
    let (mut ids, output) = start_threads()?;
    let mut printed = PrintedLines::default();
    loop {
        tokio::select! {
            biased;
            () = stop.requested() => return Ok(()),
            id = ids.recv() => match id {
                Some(id) => printed.acknowledge(&id, &consumer, &status)?,
                None => break,
            },
            () = output.closed() => break,
            batch = next_batch(&mut consumer, form, &output), if printed.has_room() => {
                let Some(lines) = batch? else { break };
                printed.0.extend(lines);
            }
        }
    }
    stop.request();
    let unacknowledged = unacknowledged(&consumer);
    match unacknowledged {
        0 => Ok(()),
        count => Err(Failure::Local(format!(
            "standard input or output was closed, and {count} events are not acknowledged: the next run prints them \
             again"
        ))),
    }
}

fn unacknowledged(consumer: &Consumer) -> u64 {
    let consumers = consumer.outbox().status().consumers;
    consumers.iter().find(|of| of.name == consumer.name()).map_or(0, |of| of.behind)
}

/// Passes the next events to the writing thread, and returns their lines; `None` if it has ended. Cancel-safe.
async fn next_batch(
    consumer: &mut Consumer,
    form: LineForm,
    output: &Sender<Vec<u8>>,
) -> Result<Option<Vec<PrintedLine>>, Failure> {
    let Ok(permit) = output.reserve().await else { return Ok(None) };
    let events = consumer.next_events().await?;
    let mut lines = Vec::with_capacity(events.iter().map(|event| event.payload().len() + 1).sum());
    let mut printed = Vec::with_capacity(events.len());
    for event in &events {
        let paths = form.append(event.payload(), &mut lines).map_err(|error| {
            let (id, code) = (Printable(event.id()), error.code());
            Failure::Local(format!("the stored event {id} is no line: {error} ({code})"))
        })?;
        printed.extend(printed_lines(event, &paths));
    }
    permit.send(lines);
    Ok(Some(printed))
}

/// The lines of an event: one, or one per path. The last of them acknowledges the event.
fn printed_lines(event: &Event, paths: &[String]) -> impl Iterator<Item = PrintedLine> {
    let line = |(index, path)| {
        let id = format!("{}/{path}", event.id()).into();
        PrintedLine { id, position: (index + 1 == paths.len()).then(|| event.position()) }
    };
    let whole = paths.is_empty().then(|| (event.id().into(), Some(event.position())));
    let whole = whole.map(|(id, position)| PrintedLine { id, position });
    paths.iter().enumerate().map(line).chain(whole)
}

/// A printed line.
#[derive(Debug)]
struct PrintedLine {
    id: Box<str>,
    /// The position of its event, if the line is the event's last.
    position: Option<u64>,
}

/// Printed lines that are not acknowledged, in their order.
#[derive(Debug, Default)]
struct PrintedLines(VecDeque<PrintedLine>);

impl PrintedLines {
    fn has_room(&self) -> bool {
        self.0.len() < MAX_UNACKNOWLEDGED
    }

    /// Acknowledges the first line with this id, and those before it.
    fn acknowledge(
        &mut self,
        id: &str,
        consumer: &Consumer,
        status: &Status,
    ) -> Result<(), OutboxError> {
        let Some(at) = self.0.iter().position(|line| *line.id == *id) else {
            status.warn("unknown-acknowledgement", || {
                format!("standard input: `{id}` is not the id of an event that awaits an acknowledgement")
            });
            return Ok(());
        };
        let positions: Vec<u64> = self.0.drain(..=at).filter_map(|line| line.position).collect();
        consumer.acknowledge(positions)
    }
}

/// Starts the threads that read ids and write lines. They end when their streams are closed.
fn start_threads() -> io::Result<(Receiver<String>, Sender<Vec<u8>>)> {
    let (send_id, ids) = channel(MAX_QUEUED_IDS);
    let (output, lines) = channel(1);
    let start = |name: &str| thread::Builder::new().name(name.to_owned());
    start("acknowledgements").spawn(move || read_ids(io::stdin().lock(), &send_id))?;
    start("lines").spawn(move || write_lines(lines))?;
    Ok((ids, output))
}

fn read_ids(mut input: impl BufRead, ids: &Sender<String>) {
    let mut line = Vec::new();
    while input.by_ref().take(MAX_ID_BYTES).read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        let id = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if !id.is_empty() && ids.blocking_send(id).is_err() {
            return;
        }
        line.clear();
    }
}

fn write_lines(mut lines: Receiver<Vec<u8>>) {
    let mut output = io::stdout();
    while let Some(bytes) = lines.blocking_recv() {
        if output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// Number of printed lines without an acknowledgement at which no more are printed.
const MAX_UNACKNOWLEDGED: usize = 8192;

/// Number of ids that are read in advance, and the maximum length of one in bytes.
const MAX_QUEUED_IDS: usize = 1024;
const MAX_ID_BYTES: u64 = 16 << 10;
