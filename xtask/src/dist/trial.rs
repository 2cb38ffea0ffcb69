//! The distribution, tried where it is installed: a repository is verified, an account of a simulated network is followed into
//! SQLite, and a task of the benchmark runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{self, at};
use crate::server::Server;

/// Starts a program by its name, with these variables.
type Launch<'a> = dyn Fn(&str, &[(&str, &str)]) -> Command + 'a;

/// Programs and where they run.
pub(super) struct Trial<'a> {
    /// A program of the root with these variables.
    pub(super) launch: &'a Launch<'a>,
    /// The program of the simulated network, which listens on this machine.
    pub(super) network: &'a Path,
    /// An empty folder for the files of the trial.
    pub(super) files: &'a Path,
    /// The name of this folder in the root.
    pub(super) seen_as: &'a str,
}

impl Trial<'_> {
    /// Runs all steps; the benchmark, which starts itself once more, only where `can_start_itself`.
    pub(super) fn run(&self, can_start_itself: bool) -> Result<(), String> {
        for name in ["repository.car", "repository.did.json"] {
            let from = process::root().join("docs/guide/examples").join(name);
            let to = self.files.join(name);
            fs::copy(&from, &to).map_err(|error| at(&from, &error))?;
        }
        self.verify()?;
        self.write_page()?;
        self.follow()?;
        if can_start_itself {
            self.bench()
        } else {
            println!(
                "no benchmark: it starts itself, and this system starts programs of another processor only with binfmt_misc"
            );
            Ok(())
        }
    }

    fn verify(&self) -> Result<(), String> {
        let mut verify = (self.launch)("wireproof", &[]);
        verify.arg("verify").arg(self.path("repository.car"));
        process::run(verify.arg("--did-doc").arg(self.path("repository.did.json")))
    }

    fn write_page(&self) -> Result<(), String> {
        let mut page = (self.launch)("wireproof", &[]);
        process::run(page.args(["page", "--out"]).arg(self.path("page.html")))
    }

    fn follow(&self) -> Result<(), String> {
        let mut serve = Command::new(self.network);
        let server = Server::start(serve.args(["sim", "serve", "--relays", "1"]))?;
        let mut follow = (self.launch)("wireproof", &NETWORK);
        follow.args(["follow", "--dids", "ada.test", "--backfill", "--cursor", "oldest"]);
        follow.args(["--events", "2", "--state"]).arg(self.path("state"));
        follow.arg("--to").arg(format!("sqlite:{}", self.path("posts.db")));
        process::run(&mut follow)?;
        server.end()?;
        let database = self.files.join("posts.db");
        let tables = fs::read(&database).map_err(|error| at(&database, &error))?;
        let has = |text: &[u8]| tables.windows(text.len()).any(|window| window == text);
        if has(b"app.bsky.feed.post") {
            Ok(())
        } else {
            Err(format!("{}: no record of the account", database.display()))
        }
    }

    fn bench(&self) -> Result<(), String> {
        let mut bench = (self.launch)("wireproof-bench", &[]);
        bench.args(["bench", "decode", "--quick", "--passes", "1", "--warmup", "0"]);
        bench.args(["--peers", "wireproof", "--work-dir"]).arg(self.path("bench"));
        process::run(&mut bench)
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.seen_as)
    }
}

/// The simulated network of `sim serve`.
const NETWORK: [(&str, &str); 3] = [
    ("WIREPROOF_PLC", "http://localhost:4480"),
    ("WIREPROOF_DEVELOPMENT_PORT", "4481"),
    ("WIREPROOF_HOST", "http://localhost:4483"),
];
