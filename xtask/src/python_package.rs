//! The tests of the Python package, over the module that the workspace's build has made, in every Python that is here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::process::{self, at};
use crate::{left_out, venv};

/// In which Python to run the tests.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Run them in this interpreter without a global lock, Python 3.14 or later, over a module that is built for it.
    #[arg(long, value_name = "PYTHON")]
    free_threaded: Option<PathBuf>,
}

/// Builds the module and runs the tests.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    process::build_all()?;
    match &options.free_threaded {
        Some(python) => test_free_threaded(python),
        None => test(),
    }
}

/// Runs the tests in an interpreter without a global lock, except the comparisons with `libipld`, which needs one.
fn test_free_threaded(python: &Path) -> Result<(), String> {
    let target = process::target("free-threaded");
    let mut build = process::command("cargo", &["build", "-p", "wireproof-python", "--lib"]);
    process::run(build.env("PYO3_PYTHON", python).env("CARGO_TARGET_DIR", &target))?;
    let module = target.join("debug/lib_wireproof.so");
    let package = assemble("free-threaded", &module, "_wireproof.so")?;
    let folder = process::target("python-tests/free-threaded");
    let python = venv::python(&folder, &python.to_string_lossy(), &[FREE_THREADED_PINS])?;
    let script = "import sys, wireproof; assert not sys._is_gil_enabled(), 'the lock is on'";
    let mut check = process::command(&python.to_string_lossy(), &["-c", script]);
    process::run(check.env("PYTHONPATH", &package))?;
    run_tests(&python, &package, &["bindings/python/tests"])
}

/// Runs the tests of the package, and the tests of `libipld` against its replacement.
pub(crate) fn test() -> Result<(), String> {
    let (package, python) = (built("tests")?, python()?);
    run_tests(&python, &package, &["bindings/python/tests"])?;
    run_tests_of_libipld(&python, &package)?;
    for other in others(&python)? {
        run_tests(&other_python(&other)?, &package, &["bindings/python/tests"])?;
    }
    Ok(())
}

/// Makes the environments in which the tests run.
pub(crate) fn make_environments() -> Result<(), String> {
    others(&python()?)?.iter().try_for_each(|other| other_python(other).map(drop))
}

/// The interpreter of the environment that `python` makes, with the packages that every Python gets.
fn other_python(python: &Path) -> Result<PathBuf, String> {
    let name = python.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = process::target("python-tests").join(name);
    venv::python(&folder, &python.to_string_lossy(), &[PINS])
}

/// The interpreter with all libraries and engines.
pub(crate) fn python() -> Result<PathBuf, String> {
    let pins = [PINS, LIBRARY_PINS, CLUSTER_PINS];
    venv::python(&process::target("python-tests/all"), "python3", &pins)
}

/// The package with the module of the workspace's build, for one user of it: users may run in parallel.
pub(crate) fn built(user: &str) -> Result<PathBuf, String> {
    let module = process::target_folder()?.join("debug/deps/lib_wireproof.so");
    assemble(user, &module, "_wireproof.abi3.so")
}

/// Puts the package together as it is installed: Python's files, and the module under this name.
fn assemble(user: &str, module: &Path, name: &str) -> Result<PathBuf, String> {
    let package = process::empty_folder(&format!("python-package/{user}"))?;
    let copied = ["-r", "bindings/python/python/wireproof"];
    process::run(process::command("cp", &copied).arg(&package))?;
    let placed = package.join("wireproof").join(name);
    fs::copy(module, &placed).map_err(|error| at(module, &error))?;
    Ok(package)
}

fn run_tests(python: &Path, package: &Path, arguments: &[&str]) -> Result<(), String> {
    println!("--- {}", python.display());
    process::run(tests(python, package)?.args(arguments))
}

/// The program that runs tests over the package.
pub(crate) fn tests(python: &Path, package: &Path) -> Result<Command, String> {
    let mut tests =
        process::command(&python.to_string_lossy(), &["-m", "pytest", "-p", "no:cacheprovider"]);
    left_out::configure(&mut tests);
    tests.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("WIREPROOF_COMMAND", process::program("wireproof")?);
    Ok(tests)
}

/// Runs the tests in the source distribution of `libipld` with `wireproof.libipld` in its place.
fn run_tests_of_libipld(python: &Path, package: &Path) -> Result<(), String> {
    let folder = process::target("python-tests/libipld");
    let script = r#"
        if ! [ -e "$2/source" ]; then
            mkdir -p "$2"
            "$1" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary libipld --dest "$2" "$4"
            mkdir "$2/unpacked"
            tar -xzf "$2"/libipld-*.tar.gz -C "$2/unpacked" --strip-components=1
            mv "$2/unpacked" "$2/source"
        fi
        "$3" corpus generate repository --records 300 --out "$2/corpus" > "$2/corpus.log"
        cp "$2/corpus/repository.car" "$2/source/data/repo.car"
    "#;
    let (wireproof, pin) = (process::program("wireproof")?, pinned("libipld")?);
    let mut shell = process::command("sh", &["-ec", script, "libipld"]);
    // The metadata of the source are made by maturin, which is in the environment.
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = python.parent().map(Path::to_path_buf).into_iter().chain(env::split_paths(&path));
    shell.env("PATH", env::join_paths(paths).map_err(|error| error.to_string())?);
    process::run(shell.arg(python).arg(&folder).arg(wireproof).arg(pin))?;
    let plugin = ["-p", "wireproof_in_place_of_libipld"];
    let tests = folder.join("source/pytests");
    let plugins = process::root().join("bindings/python/tests/plugins");
    let paths = env::join_paths([package, &plugins]).map_err(|error| error.to_string())?;
    let arguments = [plugin[0], plugin[1], &*tests.to_string_lossy()];
    run_tests(python, Path::new(&paths), &arguments)
}

/// A pinned package, `NAME==VERSION`.
fn pinned(name: &str) -> Result<String, String> {
    let pins = process::root().join(PINS);
    let text = fs::read_to_string(&pins).map_err(|error| at(&pins, &error))?;
    let is_named = |line: &&str| line.split("==").next() == Some(name);
    let line = text.lines().find(is_named);
    line.map(str::to_owned).ok_or_else(|| format!("{}: {name} is not pinned", pins.display()))
}

/// The oldest supported and the newest Python of this machine, without the one that has run.
fn others(ran: &Path) -> Result<Vec<PathBuf>, String> {
    let ran = version(ran)?;
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for minor in OLDEST..OLDEST + 10 {
        let python = find(&format!("python3.{minor}"));
        found.extend(python.map(|python| (minor, python)));
    }
    let ends = [found.first(), found.last()];
    let mut ends: Vec<(u32, PathBuf)> = ends.into_iter().flatten().cloned().collect();
    ends.dedup();
    Ok(ends.into_iter().filter(|(minor, _)| *minor != ran).map(|(_, python)| python).collect())
}

/// The interpreter of this name on the path, or among the versions of pyenv.
fn find(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let works = |python: &PathBuf| python.is_file() && version(python).is_ok();
    let on_path = env::split_paths(&paths).map(|folder| folder.join(name)).find(works);
    on_path.or_else(|| {
        let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
        let root = root.or_else(|| env::home_dir().map(|home| home.join(".pyenv")))?;
        let versions = fs::read_dir(root.join("versions")).ok()?;
        versions.flatten().map(|version| version.path().join("bin").join(name)).find(works)
    })
}

/// The second number of the version.
fn version(python: &Path) -> Result<u32, String> {
    let script = "import sys; print(sys.version_info[1])";
    let printed =
        process::output(&mut process::command(&python.to_string_lossy(), &["-c", script]))?;
    printed.trim().parse().map_err(|_| format!("{} printed {printed}", python.display()))
}

/// The packages that every Python gets, and the packages that one gets in addition.
const PINS: &str = "bindings/python/requirements-test.txt";
const LIBRARY_PINS: &str = "bindings/python/requirements-test-libraries.txt";
const CLUSTER_PINS: &str = "bindings/python/requirements-test-cluster.txt";
const FREE_THREADED_PINS: &str = "bindings/python/requirements-test-free-threaded.txt";

/// The second number of the oldest supported version.
const OLDEST: u32 = 10;
