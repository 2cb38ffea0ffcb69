//! Processes that end with their owner, and addresses for them.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::process::{self, at};

/// A process that ends with its owner.
pub(super) struct Running(pub(super) Child);

impl Running {
    /// Runs another program, which prints less than a pipe holds, to its end, for which this process must not end. Returns
    /// its output.
    pub(super) fn run_beside(&mut self, mut other: Command) -> Result<String, String> {
        let mut other = Self(process::start(other.stdout(Stdio::piped()))?);
        loop {
            self.check()?;
            match other.0.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return other.output(),
                Some(status) => return Err(status.to_string()),
                None => thread::sleep(INTERVAL),
            }
        }
    }

    /// The output of a process with a pipe.
    fn output(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let output = self.0.stdout.as_mut().ok_or("no pipe")?;
        output.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// Fails if the process has ended.
    pub(super) fn check(&mut self) -> Result<(), String> {
        match self.0.try_wait().map_err(|error| error.to_string())? {
            Some(status) => Err(format!("a program ended early: {status}")),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this machine at which nothing listens.
pub(super) fn free_address() -> Result<SocketAddr, String> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

/// Writes a token for WebSocket clients into `folder`, and returns the path of its file.
pub(super) fn token_file(folder: &Path) -> Result<String, String> {
    let path = folder.join("token");
    std::fs::write(&path, "a-token-of-the-measurement").map_err(|error| at(&path, &error))?;
    Ok(path.display().to_string())
}

/// How often a process is looked at.
pub(super) const INTERVAL: Duration = Duration::from_millis(20);
