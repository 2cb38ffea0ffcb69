//! A PDS of arroba, an implementation in Python that is independent of the reference one.

use std::process::Command;

use serde_json::{Value, json};

use crate::http::Http;
use crate::pds::Plc;
use crate::program::{Kit, Program, free_port};

/// A running PDS with its storage in memory.
#[derive(Debug)]
pub struct Arroba {
    port: u16,
    http: Http,
    _program: Program,
}

impl Arroba {
    /// Starts a PDS with accounts of these handles, which it registers with `plc`.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, plc: &Plc, handles: &[&str]) -> Self {
        let (port, folder) = (free_port(), kit.path("arroba"));
        let mut command = Command::new(folder.join("venv/bin/python"));
        command.arg("pds.py").current_dir(&folder).env("PORT", port.to_string());
        command.env("PLC_URL", plc.url()).env("HANDLES", handles.join(","));
        command.env("REPO_TOKEN", TOKEN);
        let mut program = Program::start("arroba", &command, &kit.log("arroba"));
        program.wait_for(&format!("http://127.0.0.1:{port}/accounts")).await;
        Self { port, http: Http::default(), _program: program }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL in the documents of its accounts.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// The DID of an account.
    ///
    /// # Panics
    /// If there is none of this handle.
    pub async fn did(&self, handle: &str) -> String {
        let accounts = self.http.get(&format!("{}/accounts", self.url()), None).await;
        accounts[handle].as_str().expect("an account").to_owned()
    }

    /// Creates records of a collection in one commit, under these record keys.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn create(&self, did: &str, collection: &str, records: &[(String, Value)]) {
        let write = |(rkey, record): &(String, Value)| {
            let kind = "com.atproto.repo.applyWrites#create";
            json!({ "$type": kind, "collection": collection, "rkey": rkey, "value": record })
        };
        let writes: Vec<Value> = records.iter().map(write).collect();
        let request = json!({ "repo": did, "writes": writes });
        let url = format!("{}/xrpc/com.atproto.repo.applyWrites", self.url());
        self.http.post(&url, Some(&format!("Bearer {TOKEN}")), &request).await;
    }
}

/// Authorizes all writes; no secret.
const TOKEN: &str = "token";
