//! Builds peers with their own tools, from lock files, into the work folder, and only if their sources or
//! toolchain have changed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use protocol::{Description, one_line};

use crate::Task;
use crate::checkout::{self, Checkout};
use crate::fingerprint;
use crate::peers::{Language, Peer, PeerSource};
use crate::plan::RunnerCommand;

/// The command line of a built peer.
#[derive(Clone, Debug)]
pub(crate) struct LaunchCommand {
    program: PathBuf,
    args: Vec<OsString>,
    dir: Option<PathBuf>,
}

impl LaunchCommand {
    fn new(program: impl Into<PathBuf>, dir: &Path) -> Self {
        Self { program: program.into(), args: Vec::new(), dir: Some(dir.to_owned()) }
    }

    fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The command that starts the peer.
    pub(crate) fn command(&self) -> Command {
        let mut command = clean_command(&self.program);
        command.args(&self.args).env("PYTHONDONTWRITEBYTECODE", "1");
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    /// The command that starts the peer with at most `memory_bytes` of writable memory, where the system supports it.
    pub(crate) fn command_with_limit(&self, memory_bytes: u64) -> Command {
        let command = self.command();
        if !cfg!(unix) {
            return command;
        }
        let mut limited = Command::new("sh");
        limited.args(["-c", LIMIT_DATA, "sh"]).arg((memory_bytes >> 10).to_string());
        limited.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
        limited
    }
}

/// The file in the folder of a runner of one of our packages that names the folder of the package's crate.
const MODULE: &str = "module";

/// The variable that names the folder of a Python package that is built already, to measure in its place.
const PYTHON_PACKAGE: &str = "WIREPROOF_PYTHON_PACKAGE";

/// The folder of the npm package, from the folder of its runner. It is built by `cargo xtask js`.
const NODE_PACKAGE: &str = "../../../target/js-package";

/// The variable that names another folder with the npm package.
const NODE_PACKAGE_VARIABLE: &str = "WIREPROOF_JS_PACKAGE";

/// The variable that names the Cargo profile of the Rust runners, for runs in which speed does not count.
const RUST_PROFILE: &str = "WIREPROOF_RUST_PROFILE";

/// The profile that is measured.
const MEASURED_PROFILE: &str = "release";

/// The Cargo profile of the Rust runners, if it is not the measured one.
pub(crate) fn other_rust_profile() -> Option<String> {
    std::env::var(RUST_PROFILE).ok().filter(|profile| profile != MEASURED_PROFILE)
}

/// Limits private writable memory, in KiB. Address space does not measure it: Go and Node reserve much that they never use.
const LIMIT_DATA: &str = r#"ulimit -d "$1" 2>/dev/null; shift; exec "$@""#;

/// A peer that was built and has described itself; starts a process per row or case.
pub(crate) struct PeerProcess {
    pub(crate) peer: String,
    pub(crate) command: LaunchCommand,
    pub(crate) description: Description,
}

impl PeerProcess {
    /// Whether the peer has a variant of `task`.
    pub(crate) fn has_task(&self, task: Task) -> bool {
        self.description.tasks.get(task.name()).is_some_and(|variants| !variants.is_empty())
    }
}

/// Builds peers in the work folder and collects the versions of their tools.
pub(crate) struct Builder {
    // Absolute, because builds run in other folders.
    dir: PathBuf,
    build_limit: Duration,
    /// Versions of the tools used so far.
    toolchains: Mutex<BTreeMap<String, String>>,
}

/// Whether a peer may be built, or only found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Build,
    Find,
}

impl Builder {
    /// Builds in `dir`, an absolute path.
    pub(crate) fn new(dir: &Path, build_limit: Duration) -> Self {
        Self { dir: dir.to_owned(), build_limit, toolchains: Mutex::default() }
    }

    /// The versions of the tools used.
    pub(crate) fn into_toolchains(self) -> BTreeMap<String, String> {
        self.toolchains.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of `peer`'s standard error.
    pub(crate) fn runner_log(&self, peer: &str) -> io::Result<File> {
        File::options().create(true).append(true).open(self.log_path(peer, "run")?)
    }

    /// Empties `peer`'s log.
    pub(crate) fn clear_runner_log(&self, peer: &str) -> io::Result<()> {
        File::create(self.log_path(peer, "run")?).map(drop)
    }

    fn log_path(&self, peer: &str, phase: &str) -> io::Result<PathBuf> {
        let logs = self.dir.join("logs");
        fs::create_dir_all(&logs)?;
        Ok(logs.join(format!("{peer}.{phase}.log")))
    }

    /// Builds `peer` if needed and returns its command line, or a one-line reason why it cannot be built.
    pub(crate) fn prepare(&self, peer: &Peer) -> Result<LaunchCommand, String> {
        self.runner(peer, Mode::Build)
    }

    /// The command line of `peer` if it is built from its present sources.
    pub(crate) fn find(&self, peer: &Peer) -> Option<LaunchCommand> {
        self.runner(peer, Mode::Find).ok()
    }

    fn runner(&self, peer: &Peer, mode: Mode) -> Result<LaunchCommand, String> {
        let id = &peer.id;
        match &peer.source {
            PeerSource::Own(RunnerCommand { program, args, .. }) => {
                // Only for the record: a binary may run without the tools it was built with.
                let _ = self.tool("rustc", "--version", Path::new("."));
                let args = args.iter().map(OsString::from).collect();
                Ok(LaunchCommand { program: program.clone(), args, dir: None })
            }
            PeerSource::Folder { dir, language: Language::Rust } => self.rust(id, dir, mode),
            PeerSource::Folder { dir, language: Language::Go } => self.go(id, dir, mode),
            PeerSource::Folder { dir, language: Language::Python } => self.python(id, dir, mode),
            PeerSource::Folder { dir, language: Language::Node } => self.node(id, dir, mode),
            PeerSource::Folder { dir, language: Language::Zig } => self.zig(id, dir, mode),
            PeerSource::Folder { dir, language: Language::Executable } => {
                Ok(LaunchCommand::new(dir.join("runner"), dir))
            }
        }
    }

    /// All Rust runners share one target folder, and this repository's own runners one workspace, so that common
    /// dependencies are resolved and built once. A measured runner is selected alone: with several, Cargo would unify the features of
    /// their dependencies, and a peer would not be the program that its own users build. Runners that are not measured are selected
    /// together, so that no dependency is built with several sets of features.
    fn rust(&self, id: &str, dir: &Path, mode: Mode) -> Result<LaunchCommand, String> {
        let other = other_rust_profile();
        let selection: &[&str] = if other.is_some() { &["--workspace", "--bin", id] } else { &[] };
        let profile = other.unwrap_or_else(|| MEASURED_PROFILE.to_owned());
        let toolchain = format!("{}, {profile}", self.tool("rustc", "--version", dir)?);
        let target = self.dir.join("rust");
        let program = target.join(&profile).join(id);
        let shared = ["rust-shell", "../protocol", "Cargo.toml", "Cargo.lock"];
        let shared = shared.map(|name| sibling(dir, name));
        let sources: Vec<PathBuf> = [dir.to_owned()].into_iter().chain(shared).collect();
        self.build_if_changed(id, mode, &sources, &toolchain, &program, |build| {
            let mut cargo = clean_command("cargo");
            cargo
                .args(["build", "--locked", "--profile", &profile])
                .args(selection)
                .current_dir(dir);
            build.step(cargo.env("CARGO_TARGET_DIR", &target))
        })?;
        Ok(LaunchCommand::new(program, dir))
    }

    fn go(&self, id: &str, dir: &Path, mode: Mode) -> Result<LaunchCommand, String> {
        let toolchain = self.tool("go", "version", dir)?;
        let program = self.dir.join(id).join("runner");
        let checkout = Checkout::of(id)?;
        let source = checkout.as_ref().and_then(|checkout| checkout.dir.clone());
        let sources: Vec<PathBuf> =
            [dir.to_owned(), sibling(dir, "go-shell")].into_iter().chain(source.clone()).collect();
        let built = self.build_if_changed(id, mode, &sources, &toolchain, &program, |build| {
            let mut go = clean_command("go");
            if let Some(source) = &source {
                let workspace = program.with_file_name("go.work");
                checkout::write_go_workspace(&workspace, dir, source)
                    .map_err(|error| format!("{}: {error}", workspace.display()))?;
                go.env("GOWORK", workspace);
            }
            // The state of our repository is not part of a peer.
            go.args(["build", "-buildvcs=false", "-o"]);
            build.step(go.arg(&program).arg(".").current_dir(dir))
        });
        built.map_err(|reason| explained(checkout.as_ref(), reason))?;
        Ok(LaunchCommand::new(program, dir))
    }

    /// Sources run in place; only their requirements are installed.
    fn python(&self, id: &str, dir: &Path, mode: Mode) -> Result<LaunchCommand, String> {
        let toolchain = self.tool("python3", "--version", dir)?;
        let requirements = dir.join("requirements.txt");
        if dir.join(MODULE).is_file() {
            let package = self.python_package(id, dir, mode)?;
            return Ok(LaunchCommand::new("python3", dir).arg("runner.py").arg(package));
        }
        if !requirements.is_file() {
            return Ok(LaunchCommand::new("python3", dir).arg("runner.py"));
        }
        let venv = self.dir.join(id).join("venv");
        let python = venv.join("bin/python");
        self.build_if_changed(
            id,
            mode,
            std::slice::from_ref(&requirements),
            &toolchain,
            &python,
            |build| build.install_requirements(&requirements, &venv),
        )?;
        Ok(LaunchCommand::new(python, dir).arg("runner.py"))
    }

    /// The folder of a Python package with an extension module, as it is distributed; `module` in the runner's folder names the
    /// folder of its crate.
    fn python_package(&self, id: &str, dir: &Path, mode: Mode) -> Result<PathBuf, String> {
        if let Some(package) = std::env::var_os(PYTHON_PACKAGE) {
            return Ok(PathBuf::from(package));
        }
        let fault = |error: io::Error| format!("its module: {error}");
        let named = fs::read_to_string(dir.join(MODULE)).map_err(fault)?;
        let source = dir.join(named.trim()).canonicalize().map_err(fault)?;
        let toolchain = self.tool("rustc", "--version", dir)?;
        let (target, package) = (self.dir.join("python-module"), self.dir.join(id).join("package"));
        let sources =
            [source.clone(), sibling(&source, "../crates"), sibling(&source, "../Cargo.lock")];
        self.build_if_changed(id, mode, &sources, &toolchain, &package, |build| {
            let mut cargo = clean_command("cargo");
            cargo.args(["build", "--profile", "dist", "--locked", "--lib"]);
            build.step(cargo.env("CARGO_TARGET_DIR", &target).current_dir(&source))?;
            let module = package.join("wireproof/_wireproof.abi3.so");
            copy_files(&source.join("python"), &package)
                .and_then(|()| fs::copy(target.join("dist/lib_wireproof.so"), module).map(drop))
                .map_err(fault)
        })?;
        Ok(package)
    }

    /// npm installs packages into the folder of the sources, so the sources are copied.
    fn node(&self, id: &str, dir: &Path, mode: Mode) -> Result<LaunchCommand, String> {
        let toolchain = self.tool("node", "--version", dir)?;
        if dir.join(MODULE).is_file() {
            let package = node_package(dir)?;
            return Ok(LaunchCommand::new("node", dir).arg("runner.mjs").arg(package));
        }
        let copy = self.dir.join(id);
        let installed = copy.join("node_modules");
        self.build_if_changed(id, mode, &[dir.to_owned()], &toolchain, &installed, |build| {
            copy_files(dir, &copy).map_err(|error| format!("its sources: {error}"))?;
            let mut npm = clean_command("npm");
            build.step(npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(&copy))
        })?;
        // A peer that requires another Node than the machine's has one among its packages.
        let own = installed.join(".bin/node");
        let node = if own.exists() { own } else { PathBuf::from("node") };
        Ok(LaunchCommand::new(node, &copy).arg("runner.mjs"))
    }

    /// Zig itself is a Python package among the runner's requirements. It writes into the folder of the sources, so the
    /// sources are copied.
    fn zig(&self, id: &str, dir: &Path, mode: Mode) -> Result<LaunchCommand, String> {
        let toolchain = self.tool("python3", "--version", dir)?;
        let work = self.dir.join(id);
        let (venv, copy) = (work.join("venv"), work.join("source"));
        let program = work.join("bin/runner");
        let checkout = Checkout::of(id)?;
        let source = checkout.as_ref().and_then(|checkout| checkout.dir.clone());
        let sources: Vec<PathBuf> = [dir.to_owned()].into_iter().chain(source.clone()).collect();
        let built = self.build_if_changed(id, mode, &sources, &toolchain, &program, |build| {
            build.install_requirements(&dir.join("requirements.txt"), &venv)?;
            copy_files(dir, &copy).map_err(|error| format!("its sources: {error}"))?;
            let mut zig = clean_command(venv.join("bin/python"));
            zig.args(["-m", "ziglang", "build", "-Doptimize=ReleaseFast", "--prefix"]).arg(&work);
            if let Some(source) = &source {
                zig.arg(format!("--fork={}", source.display()));
            }
            build.step(zig.current_dir(&copy))
        });
        built.map_err(|reason| explained(checkout.as_ref(), reason))?;
        Ok(LaunchCommand::new(program, dir))
    }

    /// Calls `make` unless `product` exists and was made from these sources by this toolchain.
    fn build_if_changed(
        &self,
        id: &str,
        mode: Mode,
        sources: &[PathBuf],
        toolchain: &str,
        product: &Path,
        make: impl FnOnce(&Build) -> Result<(), String>,
    ) -> Result<(), String> {
        let fault = |error: io::Error| format!("its build folder: {error}");
        let dir = self.dir.join(id);
        fs::create_dir_all(&dir).map_err(fault)?;
        let record = dir.join("built-from");
        let present: Vec<_> = sources.iter().filter(|source| source.exists()).cloned().collect();
        let fingerprint = fingerprint::of(&present, toolchain).map_err(fault)?;
        let built_from = fs::read_to_string(&record).unwrap_or_default();
        if built_from == fingerprint && product.exists() {
            return Ok(());
        }
        if mode == Mode::Find {
            return Err("not built yet".to_owned());
        }
        let log = self.log_path(id, "build").map_err(fault)?;
        File::create(&log).map_err(fault)?;
        make(&Build { log, limit: self.build_limit })?;
        fs::write(&record, fingerprint).map_err(fault)
    }

    /// The version that the tool `name` prints in the folder `dir`.
    fn tool(&self, name: &str, flag: &str, dir: &Path) -> Result<String, String> {
        let mut toolchains = self.toolchains.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = toolchains.get(name) {
            return Ok(version.clone());
        }
        let mut command = clean_command(name);
        let output = command.arg(flag).current_dir(dir).output();
        let output = output.map_err(|error| not_started(OsStr::new(name), &error))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "{name} {flag}: {}",
                one_line(message.lines().next().unwrap_or("failed"))
            ));
        }
        let version = one_line(&String::from_utf8_lossy(&output.stdout));
        toolchains.insert(name.to_owned(), version.clone());
        Ok(version)
    }
}

/// The folder of the npm package, if it is built.
fn node_package(dir: &Path) -> Result<PathBuf, String> {
    let named = std::env::var_os(NODE_PACKAGE_VARIABLE).map(PathBuf::from);
    let package = named.unwrap_or_else(|| dir.join(NODE_PACKAGE));
    let built = package.canonicalize();
    built.map_err(|_| "its package is not built: cargo xtask js --build-only".to_owned())
}

/// A running build.
struct Build {
    log: PathBuf,
    limit: Duration,
}

impl Build {
    /// Makes a virtual environment with the packages of a requirements file.
    fn install_requirements(&self, requirements: &Path, venv: &Path) -> Result<(), String> {
        let mut make = clean_command("python3");
        self.step(make.args(["-m", "venv", "--clear"]).arg(venv))?;
        let mut pip = clean_command(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r"]);
        self.step(pip.arg(requirements))
    }

    /// Runs one command of a build with its output going to the log.
    fn step(&self, command: &mut Command) -> Result<(), String> {
        let name = command.get_program().to_owned();
        let status = self.run(command).map_err(|error| not_started(&name, &error))?;
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("{}: {} ({status})", tool_name(&name), self.error_line())),
            None => {
                Err(format!("{}: not done within {} s", tool_name(&name), self.limit.as_secs()))
            }
        }
    }

    /// Runs a command; `None` if it was killed at the time limit.
    fn run(&self, command: &mut Command) -> io::Result<Option<ExitStatus>> {
        let log = File::options().append(true).open(&self.log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.spawn()?;
        let end = Instant::now() + self.limit;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= end {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    /// The first line of the log that is an error, at its beginning or after a place in a file, else the last line.
    fn error_line(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_error = |line: &&str| {
            let begins = |mark: &&str| line.starts_with(*mark);
            ["error", "ERROR", "npm error", "npm ERR!"].iter().any(begins)
                || line.contains(": error: ")
        };
        let found = lines().find(is_error).or_else(|| lines().next_back());
        let text = format!("{}; see {}", one_line(found.unwrap_or("failed")), self.log.display());
        // Paths from the current folder on: a published run does not name the folders of a machine.
        match std::env::current_dir() {
            Ok(here) => text.replace(&format!("{}/", here.display()), ""),
            Err(_) => text,
        }
    }
}

/// The reason of a failed build, with the variable of the peer's checkout if it has one.
fn explained(checkout: Option<&Checkout>, reason: String) -> String {
    match checkout {
        Some(checkout) => checkout.explain(reason),
        None => reason,
    }
}

fn not_started(program: &OsStr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{} is not installed", tool_name(program)),
        _ => format!("{} cannot be started: {error}", tool_name(program)),
    }
}

fn tool_name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

fn sibling(dir: &Path, name: &str) -> PathBuf {
    dir.parent().map_or_else(|| PathBuf::from(name), |parent| parent.join(name))
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in fingerprint::sources_in(from)? {
        let (source, copy) = (from.join(&name), to.join(&name));
        if source.is_dir() {
            copy_files(&source, &copy)?;
        } else {
            fs::copy(source, copy)?;
        }
    }
    Ok(())
}

/// A command with the user's environment, but without the variables that `cargo run` sets and without flags that would
/// make a peer another program than its own users build.
fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_excluded_variable) {
            command.env_remove(name);
        }
    }
    command
}

fn is_excluded_variable(variable: &str) -> bool {
    const NAMES: [&str; 9] = [
        "CARGO",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_INCREMENTAL",
        "LD_LIBRARY_PATH",
        "RUSTC",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "GOFLAGS",
    ];
    const FAMILIES: [&str; 8] = [
        "CARGO_BIN_",
        "CARGO_BUILD_",
        "CARGO_CRATE_",
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_PRIMARY_",
        "CARGO_PROFILE_",
        "CARGO_TARGET_",
    ];
    NAMES.contains(&variable) || FAMILIES.iter().any(|family| variable.starts_with(family))
}

/// Interval at which a build is polled.
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_cargo_do_not_reach_a_peer_and_those_of_the_user_do() {
        assert!(
            ["CARGO_MANIFEST_DIR", "RUSTFLAGS", "CARGO_TARGET_DIR"]
                .into_iter()
                .all(is_excluded_variable)
        );
        assert!(
            !["CARGO_HOME", "RUSTUP_HOME", "GOPROXY", "PATH"].into_iter().any(is_excluded_variable)
        );
    }

    #[test]
    fn a_failed_build_reports_the_first_line_that_is_an_error() {
        for line in ["error: no such crate", "build.zig.zon:8:20: error: unable to connect"] {
            let dir = tempfile::tempdir().unwrap();
            let log = dir.path().join("log");
            File::create(&log).unwrap();
            let build = Build { log, limit: Duration::from_secs(60) };
            let mut script = Command::new("sh");
            script.args(["-c", "echo compiling; echo \"$0\" >&2; echo '  ^~~~'; exit 3", line]);
            let reason = build.step(&mut script).unwrap_err();
            assert!(reason.starts_with(&format!("sh: {line}; see ")), "{reason}");
        }
    }

    #[test]
    fn a_missing_tool_is_reported_as_not_installed() {
        let dir = tempfile::tempdir().unwrap();
        let builder = Builder::new(dir.path(), Duration::from_secs(60));
        let reason =
            builder.tool("a-tool-that-does-not-exist", "--version", dir.path()).unwrap_err();
        assert_eq!(reason, "a-tool-that-does-not-exist is not installed");
    }

    #[test]
    fn a_build_is_killed_at_its_time_limit() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        File::create(&log).unwrap();
        let build = Build { log, limit: Duration::ZERO };
        let reason = build.step(Command::new("sleep").arg("600")).unwrap_err();
        assert_eq!(reason, "sleep: not done within 0 s");
    }
}
