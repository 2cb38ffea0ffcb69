//! A command that serves until it is asked to end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use crate::process;

/// One that runs; dropping it ends it without ado.
pub(crate) struct Server {
    child: Child,
    /// Prints what it goes on to say.
    echo: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts `command` behind what sets its variables, and waits until it says how it is ended: then it
    /// serves.
    pub(crate) fn start(variables: &str, command: &str) -> Result<Self, String> {
        // The shell makes room for it, so that the process is the server's own.
        let script = format!("{variables}exec {command}");
        let mut shell = process::command("sh", &["-ec", &script]);
        let mut child = process::start(shell.stdout(Stdio::piped()))?;
        let mut output = BufReader::new(child.stdout.take().expect("piped a line up"));
        let mut line = String::new();
        while !line.starts_with(READY) {
            line.clear();
            let len = output.read_line(&mut line).map_err(|error| format!("{command}: {error}"))?;
            print!("{line}");
            if len == 0 {
                let _ = child.wait();
                return Err(format!("{command}: it ended before it served"));
            }
        }
        let lines = output.lines().map_while(Result::ok);
        let echo = std::thread::spawn(move || lines.for_each(|line| println!("{line}")));
        Ok(Self { child, echo: Some(echo) })
    }

    /// Ends it, and says whether it ended well.
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
        // Of one that has ended already, nothing is left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `sim serve` says last before it waits.
const READY: &str = "Ctrl-C ends";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_awaited_and_asked_to_end() {
        let script = "sh -c 'trap \"echo bye; exit 0\" TERM; echo Ctrl-C ends it; \
                      while :; do sleep 0.01; done'";
        let server = Server::start("", script).unwrap();
        assert_eq!(server.end(), Ok(()));
    }

    #[test]
    fn one_that_ends_by_itself_has_not_served() {
        assert!(Server::start("", "true").is_err_and(|error| error.contains("before it served")));
    }

    #[test]
    fn one_that_ends_badly_is_told() {
        let script =
            "sh -c 'trap \"exit 3\" TERM; echo Ctrl-C ends it; while :; do sleep 0.01; done'";
        assert!(Server::start("", script).unwrap().end().is_err_and(|error| error.contains("3")));
    }
}
