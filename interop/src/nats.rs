//! A server of NATS JetStream with a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use async_nats::Client;
use tempfile::TempDir;

use crate::program::{Kit, Program, free_port};

/// A server of NATS, which is killed and started again with its data.
#[derive(Debug)]
pub struct Nats {
    kit: Kit,
    port: u16,
    program: Option<Program>,
    // Dropped after the program.
    folder: TempDir,
}

impl Nats {
    /// Starts a server with JetStream and these lines of configuration.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for NATS");
        let (port, store) = (free_port(), folder.path().join("data"));
        let fixed =
            format!("listen: \"127.0.0.1:{port}\"\njetstream: {{ store_dir: {store:?} }}\n");
        fs::write(folder.path().join("nats.conf"), fixed + config).expect("a file");
        let mut nats = Self { kit: kit.clone(), port, program: None, folder };
        nats.run().await;
        nats
    }

    /// Kills the server without notice.
    pub fn kill(&mut self) {
        Program::end(self.program.take(), self.port);
    }

    /// Starts the server, after a kill if it runs.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn run(&mut self) {
        self.kill();
        let mut server = Command::new(self.kit.path("nats/nats-server"));
        server.arg("--config").arg(self.folder.path().join("nats.conf"));
        let mut program = Program::start("nats", &server, &self.kit.log("nats"));
        let port = self.port;
        let accepts = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        program.wait_until(accepts).await;
        self.program = Some(program);
    }

    /// A client without credentials, if the server accepts it.
    pub async fn try_connect(&self) -> Option<Client> {
        async_nats::connect(&self.address()).await.ok()
    }

    /// The host and the port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Writes a file next to the configuration, and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    }
}
