//! A Python for 64-bit ARM on a machine of another kind: Debian's packages, unpacked under `target/`, in an emulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{self, at};
use crate::programs;

/// The interpreter with the packages of `folder` on its path.
///
/// # Errors
///
/// Without the emulator, or where Debian's package manager cannot fetch the interpreter.
pub(crate) fn command(folder: &Path) -> Result<Command, String> {
    let emulator = programs::find_or_install(&["qemu-aarch64-static"], "qemu-user-static")?;
    let root = process::target("emulated-python");
    let python = root.join("usr/bin/python3");
    if !python.exists() {
        unpack(&root)?;
    }
    let mut command = process::command(&emulator.to_string_lossy(), &["-L"]);
    command.arg(&root).arg(python).env("PYTHONPATH", folder);
    Ok(command)
}

/// Downloads the packages of the interpreter as for an empty system, and unpacks them.
fn unpack(root: &Path) -> Result<(), String> {
    let state = process::empty_folder("emulated-python-packages")?;
    for folder in ["lists/partial", "archives/partial"] {
        let folder = state.join(folder);
        fs::create_dir_all(&folder).map_err(|error| at(&folder, &error))?;
    }
    let (status, options) = (state.join("status"), state.join("options"));
    fs::write(&status, "").map_err(|error| at(&status, &error))?;
    let text = format!(
        "APT::Architecture \"arm64\";\nAPT::Architectures \"arm64\";\nAPT::Sandbox::User \"root\";\n\
         Dir::State \"{0}\";\nDir::State::status \"{1}\";\nDir::Cache \"{0}\";\n",
        state.display(),
        status.display()
    );
    fs::write(&options, text).map_err(|error| at(&options, &error))?;
    let apt = |arguments: &[&str]| {
        process::run(process::command("apt-get", arguments).env("APT_CONFIG", &options))
    };
    apt(&["--quiet=2", "update"])?;
    apt(&[
        "--quiet=2",
        "--yes",
        "--download-only",
        "--no-install-recommends",
        "install",
        "python3",
    ])?;
    let archives = state.join("archives");
    for entry in fs::read_dir(&archives).map_err(|error| at(&archives, &error))?.flatten() {
        let package = entry.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            let mut unpack = process::command("dpkg-deb", &["--extract"]);
            process::run(unpack.arg(package).arg(root))?;
        }
    }
    Ok(())
}
