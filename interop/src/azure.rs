//! A server of Azure blobs with a folder of its own: Azurite.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::program::{Kit, Program, free_port};

/// A server of Azure blobs.
#[derive(Debug)]
pub struct Azure {
    port: u16,
    // Killed before its folder is deleted.
    _program: Program,
    _folder: TempDir,
}

impl Azure {
    /// Starts a server with one container.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, container: &str) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder for Azurite"));
        let installed = kit.path("azure");
        let mut server = Command::new(kit.node(&installed));
        server.arg(installed.join("node_modules/azurite/dist/src/blob/main.js"));
        server.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
        server.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location"]);
        server.arg(folder.path());
        let mut program = Program::start("azurite", &server, &kit.log("azurite"));
        let accepts = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        program.wait_until(accepts).await;
        let azure = Self { port, _program: program, _folder: folder };
        azure.create_container(kit, &installed, container);
        azure
    }

    fn create_container(&self, kit: &Kit, installed: &Path, container: &str) {
        let mut create = Command::new(kit.node(installed));
        create.arg(installed.join("container.mjs"));
        let url = format!("http://127.0.0.1:{}", self.port);
        let output = create.args([&url, ACCOUNT, KEY, container]).output().expect("Node starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the container is not created: {errors}");
    }

    /// The variables by which a client finds the server.
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", self.port);
        let variables = [
            ("AZURE_STORAGE_ENDPOINT", &*endpoint),
            ("AZURE_ALLOW_HTTP", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }
}

/// The account that Azurite has, and its key, which are the same everywhere.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
