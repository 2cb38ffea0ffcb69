//! Lines that go straight to standard output: marked where an earlier run may have printed them, acknowledged once the
//! reader has taken them. A worker collects the lines of a batch, and passes them on together.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::crash_point;
use delivery::LineForm;
use net::firehose::{Ack, DeliveredEvent, Notice};

use super::line::{EventLine, LineHeader, ResyncLines};
use super::printer::LineRecipient;
use super::repetition_marks::RepetitionMarks;
use super::stats::RunStats;
use super::status::Status;
use super::writer::{LineSender, Lines};

/// Prints lines.
pub(super) struct LinesToStdout {
    pub(super) form: LineForm,
    pub(super) lines: LineSender<Ack>,
    pub(super) marks: Arc<RepetitionMarks>,
    pub(super) stats: Arc<RunStats>,
    pub(super) status: Status,
}

impl LineRecipient for LinesToStdout {
    fn event(&self, event: &EventLine<'_, '_>, buffer: &mut Vec<u8>, ack: Ack) {
        event.write(buffer, LineHeader::Printed { is_repeated: self.is_repeated(event.event) });
        COLLECTED.with_borrow_mut(|lines| {
            lines.add(&in_form(self.form, buffer), ack);
            if lines.byte_len() >= MAX_COLLECTED_BYTES {
                self.pass_on(lines);
            }
        });
    }

    fn batch_end(&self) {
        COLLECTED.with_borrow_mut(|lines| self.pass_on(lines));
    }

    /// The last line has the acknowledgement, so the account is resynced again unless all lines were printed.
    fn repository(&self, lines: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()> {
        let mut line = Vec::new();
        let header = LineHeader::Printed { is_repeated: false };
        while !lines.write_next(&mut line, header, None)? {
            if !self.lines.push_piece(&in_form(self.form, &line)) {
                self.lines.hold(ack);
                return Ok(());
            }
            crash_point("resync/piece");
            self.stats.lines.fetch_add(1, Relaxed);
            line.clear();
        }
        self.lines.push(&in_form(self.form, &line), ack);
        crash_point("resync/last-piece");
        self.stats.lines.fetch_add(1, Relaxed);
        Ok(())
    }

    fn notice(&self, notice: &Notice) {
        self.marks.notice(notice);
    }
}

impl LinesToStdout {
    /// Passes the collected lines on to the writer.
    fn pass_on(&self, lines: &mut Lines<Ack>) {
        self.stats.lines.fetch_add(lines.len() as u64, Relaxed);
        self.lines.push_all(lines);
    }

    /// Whether an earlier run may have printed the event.
    fn is_repeated(&self, event: &DeliveredEvent<'_>) -> bool {
        let Some(seq) = event.seq else { return false };
        self.marks.is_repeated(event.host.0, seq).unwrap_or_else(|error| {
            // The next checkpoint fails for the same reason, and ends the run.
            self.status.warn("state-file", || error.to_string());
            true
        })
    }
}

/// A line in the form of the output.
pub(super) fn in_form(form: LineForm, line: &[u8]) -> Cow<'_, [u8]> {
    if form == LineForm::Events {
        return line.into();
    }
    let mut lines = Vec::with_capacity(line.len() * 2);
    match form.append(line, &mut lines) {
        Ok(_) => lines.into(),
        // A line of this program that it cannot read is printed whole.
        Err(_) => line.into(),
    }
}

thread_local! {
    /// The lines of the batch that this worker delivers.
    static COLLECTED: RefCell<Lines<Ack>> = const { RefCell::new(Lines::new()) };
}

/// Size of the collected lines at which they are passed on before the end of the batch, in bytes.
const MAX_COLLECTED_BYTES: usize = 1 << 20;
