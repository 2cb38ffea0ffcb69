//! Builds for other systems: zig as C compiler and linker, from pinned packages under `target/`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::{process, venv};

/// The folder of zig, `cargo-zigbuild` and maturin.
pub(crate) struct Zig {
    bin: PathBuf,
}

impl Zig {
    /// Installs the tools, and Rust's standard library of every target.
    pub(crate) fn install(targets: &[String]) -> Result<Self, String> {
        let folder = process::target("packages/tools");
        venv::python(&folder, "python3", &["packaging/requirements.txt"])?;
        process::run(process::command("rustup", &["target", "add"]).args(targets))?;
        Ok(Self { bin: folder.join("bin") })
    }

    /// A command that builds for `target`, without paths of this machine in its output.
    pub(crate) fn command(&self, program: &str, target: &str) -> Result<Command, String> {
        let path = env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.bin.clone()).chain(env::split_paths(&path));
        let mut command = process::command(program, &[]);
        command.env("PATH", env::join_paths(paths).map_err(|error| error.to_string())?);
        command.env("RUSTFLAGS", remap("--remap-path-prefix="));
        let mut flags = remap("-ffile-prefix-map=");
        if target.contains("windows") {
            // The allocator states when it was compiled, which zig refuses by default.
            flags.push_str(" -Wno-error=date-time");
        }
        command.env(format!("CFLAGS_{}", target.replace('-', "_")), flags);
        Ok(command)
    }
}

/// The name of a folder of this machine that `bytes` contain.
pub(crate) fn folder_in(bytes: &[u8]) -> Option<String> {
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    folders_of_this_machine().into_iter().map(|(folder, _)| folder).find(|folder| contains(folder))
}

/// Options that replace the folders of this machine by short names.
pub(crate) fn remap(option: &str) -> String {
    let folders = folders_of_this_machine().into_iter();
    folders.map(|(folder, name)| format!("{option}{folder}={name}")).collect::<Vec<_>>().join(" ")
}

/// Folders that compilers write into binaries, with the names that replace them.
fn folders_of_this_machine() -> Vec<(String, &'static str)> {
    let home = |variable, folder| {
        let of_user = || env::home_dir().unwrap_or_default().join(folder);
        env::var_os(variable).map_or_else(of_user, PathBuf::from).display().to_string()
    };
    vec![
        (process::root().display().to_string(), "wireproof"),
        (home("CARGO_HOME", ".cargo"), "cargo"),
        (home("RUSTUP_HOME", ".rustup"), "rustup"),
    ]
}
