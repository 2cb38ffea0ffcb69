//! Programs of this machine: found on the path, or installed from Debian's packages by root.

use std::env;
use std::path::PathBuf;

use crate::process;

/// The first of `names` on the path, after an installation of `package` if there is none.
pub(crate) fn find_or_install(names: &[&str], package: &str) -> Result<PathBuf, String> {
    if let Some(found) = find(names) {
        return Ok(found);
    }
    if is_root() && on_path("apt-get").is_some() {
        let install = ["install", "--yes", "--no-install-recommends", package];
        process::run(&mut process::command("apt-get", &["update"]))?;
        process::run(&mut process::command("apt-get", &install))?;
    }
    find(names).ok_or_else(|| {
        format!("no {} on the path: install it (Debian: apt-get install {package})", names[0])
    })
}

/// Whether a program is on the path.
pub(crate) fn is_present(program: &str) -> bool {
    on_path(program).is_some()
}

/// The first of `names` on the path.
fn find(names: &[&str]) -> Option<PathBuf> {
    names.iter().find_map(|name| on_path(name))
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn is_root() -> bool {
    let user = process::output(&mut process::command("id", &["-u"]));
    user.is_ok_and(|id| id.trim() == "0")
}
