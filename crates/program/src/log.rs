//! Messages on standard error: their levels, and their form as text or as lines of JSON with a time.

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use atproto::syntax::DatetimeBuf;
use clap::{ArgAction, Args, ValueEnum};
use codec::printable::PrintableLines;
use serde::Serialize;

use crate::library_messages;
use crate::output::write_json_line;

/// Which messages are printed, and how.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogArgs {
    /// Print warnings and errors only, and no progress; twice, errors only.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    quiet: u8,
    /// Print every warning of `follow` instead of one per minute and kind, and its rates every ten seconds.
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet")]
    verbose: u8,
    /// Form of the messages on standard error: text, or a JSON object a line with time, level and message, without
    /// progress.
    #[arg(long = "log", env = "WIREPROOF_LOG", value_enum, global = true, value_name = "FORM")]
    #[arg(default_value_t = LogForm::Text)]
    log_form: LogForm,
}

/// The form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogForm {
    Text,
    Json,
}

/// The weight of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The command fails.
    Error,
    /// Something is lost, refused or failing.
    Warning,
    /// Progress of the command.
    Info,
    /// Details for an operator who looks for a fault.
    Debug,
}

/// The settings of the process.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// The least level that is printed.
    level: Level,
    form: LogForm,
}

impl LogArgs {
    /// Applies the arguments to this process. Messages before are printed as text.
    pub fn apply(self) {
        let level = match (self.quiet, self.verbose) {
            (0, 0) => Level::Info,
            (0, _) => Level::Debug,
            (1, _) => Level::Warning,
            (_, _) => Level::Error,
        };
        // A process has one command line.
        let _ = SETTINGS.set(Settings { level, form: self.log_form });
        // In a process with a subscriber of its own, the messages of the libraries go there.
        library_messages::pass(prints, |level, text| {
            // If standard error is closed, the command's work remains.
            let _ = print(level, text);
        });
    }
}

/// Whether messages of a level are printed.
pub fn prints(level: Level) -> bool {
    level <= settings().level
}

/// Whether progress may be shown on a terminal.
pub fn shows_progress() -> bool {
    prints(Level::Info) && settings().form == LogForm::Text
}

/// Prints a message, which may quote strangers.
///
/// # Errors
/// If standard error cannot be written.
pub fn print(level: Level, message: &str) -> io::Result<()> {
    if !prints(level) {
        return Ok(());
    }
    match settings().form {
        LogForm::Text => {
            writeln!(anstream::stderr(), "wireproof: {}", PrintableLines(message))
        }
        LogForm::Json => print_json(level, message),
    }
}

fn print_json(level: Level, message: &str) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'m> {
        time: Option<DatetimeBuf>,
        level: Level,
        message: &'m str,
    }
    // The level has a key of its own.
    let message = message.strip_prefix("warning: ").unwrap_or(message);
    let mut line = Vec::new();
    write_json_line(&mut line, &Line { time: now(), level, message })?;
    // One call, so that no other line comes between.
    io::stderr().write_all(&line)
}

fn now() -> Option<DatetimeBuf> {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_micros();
    DatetimeBuf::from_unix_micros(i64::try_from(micros).ok()?)
}

fn settings() -> Settings {
    SETTINGS.get().copied().unwrap_or(Settings { level: Level::Info, form: LogForm::Text })
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
