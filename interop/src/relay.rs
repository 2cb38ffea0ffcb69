//! The relay of `indigo` with SQLite.

use std::process::Command;

use tempfile::TempDir;

use crate::http::Http;
use crate::pds::{Pds, Plc};
use crate::program::{Kit, Program, free_port};

/// A running relay.
#[derive(Debug)]
pub struct Relay {
    kit: Kit,
    port: u16,
    command: Command,
    program: Option<Program>,
    // Dropped after the program.
    _data: TempDir,
}

impl Relay {
    /// Starts a relay that follows these PDSs from now on.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, plc: &Plc, pds: &[&Pds]) -> Self {
        let data = tempfile::tempdir().expect("a folder for a relay");
        let (port, metrics_port) = (free_port(), free_port());
        let database = data.path().join("relay.sqlite");
        let mut command = Command::new(kit.path("relay/relay"));
        command.current_dir(data.path()).args(["--plc-host", &plc.url(), "serve"]);
        command.args(["--db-url", &format!("sqlite://{}", database.display())]);
        command.args(["--bind", &format!("127.0.0.1:{port}")]);
        command.args(["--metrics-listen", &format!("127.0.0.1:{metrics_port}")]);
        command.arg("--persist-dir").arg(data.path().join("events"));
        // The first run creates the database; the hosts are added to it before the second run.
        run(kit, &command, port).await.kill();
        for pds in pds {
            add_host(kit, &database, pds);
        }
        let program = Some(run(kit, &command, port).await);
        Self { kit: kit.clone(), port, command, program, _data: data }
    }

    /// Kills the relay without notice and starts it with its data.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn restart(&mut self) {
        Program::end(self.program.take(), self.port);
        self.program = Some(run(&self.kit, &self.command, self.port).await);
    }

    /// Whether it forwards this account's writes.
    ///
    /// # Panics
    /// If it does not know the account.
    pub async fn is_active(&self, did: &str) -> bool {
        let url = format!("{}/xrpc/com.atproto.sync.getRepoStatus?did={did}", self.url());
        Http::default().get(&url, None).await["active"] == true
    }

    /// The URL.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }
}

async fn run(kit: &Kit, command: &Command, port: u16) -> Program {
    let mut program = Program::start("relay", command, &kit.log("relay"));
    program.wait_for(&format!("http://127.0.0.1:{port}/xrpc/_health")).await;
    program
}

fn add_host(kit: &Kit, database: &std::path::Path, pds: &Pds) {
    let dir = kit.path("pds");
    let mut command = Command::new(kit.node(&dir));
    command.arg("introduce.mjs").arg(database).arg(format!("localhost:{}", pds.port()));
    let output = command.current_dir(&dir).output().expect("Node runs");
    let error_output = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the relay's database: {error_output}");
}
