//! A program that says on standard output that it serves, and then serves until it is terminated.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use crate::process;

/// A running server; dropping it kills it.
pub(crate) struct Server {
    child: Child,
    /// Prints its further output.
    echo: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts `command` and waits until it reports that it serves.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = process::start(command.stdout(Stdio::piped()))?;
        let mut output = BufReader::new(child.stdout.take().expect("piped a line up"));
        let mut line = String::new();
        while !line.starts_with(READY) {
            line.clear();
            let len =
                output.read_line(&mut line).map_err(|error| format!("{command:?}: {error}"))?;
            print!("{line}");
            if len == 0 {
                let _ = child.wait();
                return Err(format!("{command:?}: ended before it served"));
            }
        }
        let lines = output.lines().map_while(Result::ok);
        let echo = std::thread::spawn(move || lines.for_each(|line| println!("{line}")));
        Ok(Self { child, echo: Some(echo) })
    }

    /// Terminates it and checks its exit status.
    pub(crate) fn end(mut self) -> Result<(), String> {
        let outcome = process::terminate(&mut self.child);
        if let Some(echo) = self.echo.take() {
            let _ = echo.join();
        }
        outcome
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killing a process that has ended is an error without consequence.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line that `sim serve`, `sim nostr` and `sim labeler` print before they wait.
const READY: &str = "Ctrl-C ends";
