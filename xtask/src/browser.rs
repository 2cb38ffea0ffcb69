//! Is the report page in a real browser what it claims to be?
//!
//! The pages are those of the quick run that the peers have just made, and of the results that the tests
//! of `report` read, whose peers answer with markup. What is claimed stands in `crates/report/browser/`.

use std::env;
use std::path::{Path, PathBuf};

use crate::interop;
use crate::process;
use crate::tally::Tally;
use crate::toolchains::{Toolchain, Without};

/// Writes the pages, and looks at them with Chromium.
pub(crate) fn test(without: &Without, tally: &mut Tally) -> Result<(), String> {
    if !without.has(Toolchain::Node) {
        println!("left out: the browser is driven by Node");
        tally.skipped += 1;
        return Ok(());
    }
    let chromium = find_or_install()?;
    let folder = process::target("browser");
    interop::packages(&process::root().join("crates/report/browser"), &folder)?;
    let quick = page("quick", &process::target("smoke.json"))?;
    let everything = process::root().join("crates/report/fixtures/everything.json");
    let everything = page("everything", &everything)?;
    let mut node = process::command("node", &[]);
    node.arg(folder.join("check.mjs")).arg(chromium).arg(process::target("report-shots"));
    node.args([quick, everything]);
    process::run_watched(&mut node, |line| {
        if let Some((passed, failed)) = counts(line) {
            tally.passed += passed;
            tally.failed += failed;
        }
    })
}

/// Writes the page of these results, and answers where it is.
fn page(name: &str, results: &Path) -> Result<PathBuf, String> {
    let folder = process::target("report-pages").join(name);
    let mut report = process::command("cargo", &["run", "--quiet", "--release", "--", "report"]);
    process::run(report.arg(results).arg("--out").arg(&folder))?;
    Ok(folder.join("index.html"))
}

/// How many claims held and did not, of the line that says so.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (passed, failed) = line.strip_prefix("report in a browser: ")?.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}

/// The browser that `CHROME` names, or one on the path; on Debian, who may install packages gets it.
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
    let told = process::output(&mut process::command("id", &["-u"]));
    told.is_ok_and(|id| id.trim() == "0")
}

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const ADVICE: &str = "no Chromium is on the path: install one (Debian: apt-get install chromium), name one \
                      by CHROME=/path/to/it, or say `--without node`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_held_and_did_not_is_read_from_the_last_line() {
        assert_eq!(counts("report in a browser: 30 passed, 2 failed"), Some((30, 2)));
        assert_eq!(counts("quick: nothing is wider than a phone: 400 px"), None);
    }
}
