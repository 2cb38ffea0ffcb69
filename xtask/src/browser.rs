//! The report page in a real browser, held to the claims in `crates/report/browser/`.
//!
//! Two pages are tested: of the quick run that the peers stage made, and of the results that the tests of
//! `report` read, in which peers answer with markup.

use std::env;
use std::path::{Path, PathBuf};

use crate::interop;
use crate::process;
use crate::programs;

/// Writes both pages and tests them in Chromium.
pub(crate) fn test() -> Result<(), String> {
    let chromium = find_or_install()?;
    let folder = process::target("browser");
    interop::packages(&process::root().join("crates/report/browser"), &folder)?;
    let quick = page("quick", &process::target("smoke.json"))?;
    let everything = process::root().join("crates/report/fixtures/everything.json");
    let everything = page("everything", &everything)?;
    let mut node = process::command("node", &[]);
    node.arg(folder.join("check.mjs")).arg(chromium).arg(process::target("report-shots"));
    process::run(node.args([quick, everything]))
}

/// Writes the page of these results and returns its path.
fn page(name: &str, results: &Path) -> Result<PathBuf, String> {
    let folder = process::target("report-pages").join(name);
    let mut report = process::command(&process::program("wireproof")?, &["report"]);
    process::run(report.arg(results).arg("--out").arg(&folder))?;
    Ok(folder.join("index.html"))
}

/// The browser that `CHROME` names, or one on the path. On Debian, root installs it.
pub(crate) fn find_or_install() -> Result<PathBuf, String> {
    match env::var_os("CHROME") {
        Some(path) => Ok(path.into()),
        None => programs::find_or_install(&NAMES, "chromium")
            .map_err(|error| format!("{error}, set CHROME to its path, or pass `--without node`")),
    }
}

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
