//! Rainbow of `indigo`, which stores the events of a relay and serves them to clients.

use std::fs;
use std::process::Command;

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::program::{Kit, Program, free_port};

/// A running rainbow.
#[derive(Debug)]
pub struct Rainbow {
    kit: Kit,
    port: u16,
    command: Command,
    program: Option<Program>,
    // Dropped after the program.
    _data: TempDir,
}

impl Rainbow {
    /// Starts a rainbow that follows the relay at this URL from its first event on.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, relay: &str) -> Self {
        let data = tempfile::tempdir().expect("a folder for a rainbow");
        let (port, metrics_port) = (free_port(), free_port());
        let cursor = data.path().join("cursor");
        fs::write(&cursor, "1").expect("a cursor");
        let mut command = Command::new(kit.path("relay/rainbow"));
        command.current_dir(data.path()).args(["--upstream-host", relay]);
        command.arg("--persist-db").arg(data.path().join("events"));
        command.arg("--cursor-file").arg(&cursor);
        command.args(["--api-listen", &format!("127.0.0.1:{port}")]);
        command.args(["--metrics-listen", &format!("127.0.0.1:{metrics_port}")]);
        let program = Some(run(kit, &command, port).await);
        Self { kit: kit.clone(), port, command, program, _data: data }
    }

    /// Kills it without notice and starts it with its data.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn restart(&mut self) {
        Program::end(self.program.take(), self.port);
        self.program = Some(run(&self.kit, &self.command, self.port).await);
    }

    /// The URL for streams.
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }
}

async fn run(kit: &Kit, command: &Command, port: u16) -> Program {
    let mut program = Program::start("rainbow", command, &kit.log("rainbow"));
    program.wait_until(async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await;
    program
}
