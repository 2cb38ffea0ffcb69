//! The reference PLC directory, with its database in memory.

use std::process::Command;

use crate::kit::Kit;
use crate::program::{Program, free_port};

/// A running directory.
#[derive(Debug)]
pub struct Plc {
    port: u16,
    _program: Program,
}

impl Plc {
    /// Starts one that knows nobody.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit) -> Self {
        let (port, dir) = (free_port(), kit.path("pds"));
        let mut command = Command::new(kit.node(&dir));
        command.arg("plc.mjs").current_dir(&dir).env("PORT", port.to_string());
        let mut program = Program::start("plc", &command, &kit.log("plc"));
        program.wait_for(&format!("http://127.0.0.1:{port}/_health")).await;
        Self { port, _program: program }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }
}
