//! The labeler of Skyware, with its labels in SQLite.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::http::Http;
use crate::program::{Kit, Program, free_port};

/// A running labeler.
#[derive(Debug)]
pub struct Labeler {
    port: u16,
    http: Http,
    program: Program,
}

impl Labeler {
    /// Starts the labeler with this secret key in hexadecimal, whose `did:key` its document has.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, database: &Path, secret: &str, did_key: &str) -> Self {
        Self::start_at(kit, free_port(), database, secret, did_key).await
    }

    /// The same on a port.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_at(
        kit: &Kit,
        port: u16,
        database: &Path,
        secret: &str,
        did_key: &str,
    ) -> Self {
        let folder = kit.path("labeler");
        let (did, service) = (did(port), free_port());
        let document = json!({
            "id": did,
            "verificationMethod": [{
                "id": format!("{did}#atproto_label"),
                "type": "Multikey",
                "controller": did,
                "publicKeyMultibase": did_key.strip_prefix("did:key:").unwrap_or(did_key),
            }],
            "service": [{
                "id": "#atproto_labeler",
                "type": "AtprotoLabeler",
                "serviceEndpoint": format!("http://localhost:{service}"),
            }],
        });
        let mut command = Command::new(kit.node(&folder));
        command.arg("labeler.mjs").current_dir(&folder).env("PORT", port.to_string());
        command.env("SERVICE_PORT", service.to_string());
        command.env("DID", did).env("SIGNING_KEY", secret).env("DATABASE", database);
        command.env("DOCUMENT", document.to_string());
        let mut program = Program::start("labeler", &command, &kit.log("labeler"));
        program.wait_for(&format!("http://127.0.0.1:{port}/.well-known/did.json")).await;
        Self { port, http: Http::default(), program }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The DID.
    pub fn did(&self) -> String {
        did(self.port)
    }

    /// Has it create labels: `uri`, `val`, and more; one with `sig`, in base64, is stored as it is.
    ///
    /// # Panics
    /// If it rejects the request.
    pub async fn create(&self, labels: &Value) {
        let url = format!("http://127.0.0.1:{}/labels", self.port);
        self.http.post(&url, None, labels).await;
    }

    /// Kills it without notice.
    pub fn kill(self) {
        self.program.kill();
    }
}

fn did(port: u16) -> String {
    format!("did:web:localhost%3A{port}")
}
