//! The report page in a real browser, held to the claims in `crates/report/browser/`.
//!
//! Two pages are tested: of the quick run that the peers stage made, and of the results that the tests of
//! `report` read, in which peers answer with markup.

use std::env;
use std::path::{Path, PathBuf};

use crate::interop;
use crate::process;

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
fn find_or_install() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("CHROME") {
        return Ok(path.into());
    }
    if let Some(found) = find() {
        return Ok(found);
    }
    if is_root() && on_path("apt-get").is_some() {
        let install = ["install", "--yes", "--no-install-recommends", "chromium"];
        process::run(&mut process::command("apt-get", &["update"]))?;
        process::run(&mut process::command("apt-get", &install))?;
    }
    find().ok_or_else(|| ADVICE.to_owned())
}

fn find() -> Option<PathBuf> {
    NAMES.into_iter().find_map(on_path)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn is_root() -> bool {
    let user = process::output(&mut process::command("id", &["-u"]));
    user.is_ok_and(|id| id.trim() == "0")
}

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const ADVICE: &str = "no Chromium on the path: install it (Debian: apt-get install chromium), set \
                      CHROME=/path/to/chromium, or pass `--without node`";
