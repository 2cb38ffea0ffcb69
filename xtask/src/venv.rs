//! Virtual environments of Python under `target/`, made from lists of pinned packages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{self, at};

/// The interpreter of an environment in `folder`, made by `python` with the packages of `pins`. It is made again when
/// these have changed.
pub(crate) fn python(folder: &Path, python: &str, pins: &[&str]) -> Result<PathBuf, String> {
    let (made, stamp) = (folder.join("bin/python"), folder.join("made-from"));
    let mut wanted = format!("{python}\n");
    for pins in pins {
        let pins = process::root().join(pins);
        wanted += &fs::read_to_string(&pins).map_err(|error| at(&pins, &error))?;
    }
    if made.exists() && fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
        return Ok(made);
    }
    process::run(process::command(python, &["-m", "venv", "--clear"]).arg(folder))?;
    for pins in pins {
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "-r",
            pins,
        ];
        process::run(&mut process::command(&made.to_string_lossy(), &install))?;
    }
    fs::write(&stamp, wanted).map_err(|error| at(&stamp, &error))?;
    Ok(made)
}
