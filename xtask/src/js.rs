//! `cargo xtask js`: builds the npm package into `target/js-package` and tests it, installed in an empty project, in Node and
//! in Chromium.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::process::{self, at};
use crate::{browser, interop, js_measured, left_out, zig};

/// What to run, and over how many inputs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Build the package without testing it.
    #[arg(long)]
    build_only: bool,
    /// Build the package, and measure it next to other packages by the benchmark that `cargo xtask stage build-all` built.
    #[arg(long)]
    measure: bool,
    /// Number of mutated inputs whose verdicts are compared.
    #[arg(long, default_value_t = 2_000)]
    inputs: u32,
}

/// Builds and tests the package with the default options, where its target can be installed.
pub(crate) fn test() -> Result<(), String> {
    match install_target() {
        Ok(()) => run(&Options { build_only: false, measure: false, inputs: 2_000 }),
        Err(fault) => left_out::note("js", &fault),
    }
}

/// Installs the standard library for WebAssembly.
pub(crate) fn install_target() -> Result<(), String> {
    process::run(&mut process::command("rustup", &["target", "add", WASM]))
}

/// Builds the package, and tests it unless the options say otherwise.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let tools = process::target("js-tools");
    interop::packages(&source("tools"), &tools)?;
    let package = build(&tools)?;
    if options.measure {
        return js_measured::measure();
    }
    if options.build_only {
        return Ok(());
    }
    let cases = native_verdicts(options.inputs)?;
    let project = install(&package)?;
    test_in_node(&project, &cases)?;
    test_in_chromium(&tools, &project, &cases)
}

/// Compiles the module, writes the package and returns its folder.
fn build(tools: &Path) -> Result<PathBuf, String> {
    let module = compile("wireproof-js")?;
    let package = process::empty_folder("js-package")?;
    copy(&source("js"), &package.join("js"))?;
    for file in ["package.json", "README.md"] {
        copy(&source(file), &package.join(file))?;
    }
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&process::root().join(file), &package.join(file))?;
    }
    let folder = package.join("js/wasm");
    bind(&module, &folder)?;
    optimize(tools, &folder.join("wireproof_bg.wasm"))?;
    Ok(package)
}

/// Compiles the module of a crate and returns its path.
pub(crate) fn compile(package: &str) -> Result<PathBuf, String> {
    let target = process::target_folder()?;
    install_target()?;
    let arguments = ["build", "--profile=js", "-p", package, "--lib", "--target", WASM];
    let mut cargo = process::command("cargo", &arguments);
    let flags = format!("-Ctarget-feature=+simd128 {}", zig::remap("--remap-path-prefix="));
    process::run(cargo.env("RUSTFLAGS", flags))?;
    Ok(target.join(WASM).join("js").join(format!("{}.wasm", package.replace('-', "_"))))
}

/// Writes the module without its custom sections, and the JavaScript that calls it.
pub(crate) fn bind(module: &Path, folder: &Path) -> Result<(), String> {
    let manifest = source("bindgen/Cargo.toml");
    let mut bindgen = process::command("cargo", &["run", "--locked", "--quiet"]);
    bindgen.arg("--manifest-path").arg(manifest);
    bindgen.arg("--target-dir").arg(process::target("js-bindgen"));
    process::run(bindgen.arg("--").arg(module).arg(folder))
}

/// Optimizes the module in place.
pub(crate) fn optimize(tools: &Path, module: &Path) -> Result<(), String> {
    let mut optimizer = process::command("node", &[]);
    optimizer.arg(tools.join("node_modules/binaryen/bin/wasm-opt")).args(OPTIMIZATIONS);
    process::run(optimizer.arg(module).arg("-o").arg(module))
}

/// Writes the inputs, and the verdicts of the library on this machine.
fn native_verdicts(inputs: u32) -> Result<PathBuf, String> {
    let folder = process::empty_folder("js-cases")?;
    let example = ["run", "-p", "wireproof-js", "--example", "verdicts", "--"];
    let mut verdicts = process::command("cargo", &example);
    left_out::configure(&mut verdicts);
    process::run(verdicts.arg(&folder).arg(inputs.to_string()))?;
    Ok(folder)
}

/// Packs the package, and installs it in an empty project with the tests.
fn install(package: &Path) -> Result<PathBuf, String> {
    let project = process::empty_folder("js-project")?;
    let mut pack = process::command("npm", &["pack", "--silent", "--pack-destination"]);
    process::run(pack.arg(&project).current_dir(package))?;
    let manifest = project.join("package.json");
    fs::write(&manifest, r#"{ "private": true, "type": "module" }"#)
        .map_err(|error| at(&manifest, &error))?;
    let install = ["install", "--no-audit", "--no-fund", "--offline", "./wireproof-0.1.0.tgz"];
    process::run(process::command("npm", &install).current_dir(&project))?;
    copy(&source("tests"), &project.join("tests"))?;
    copy(&source("README.md"), &project.join("tests/README.md"))?;
    Ok(project)
}

fn test_in_node(project: &Path, cases: &Path) -> Result<(), String> {
    let mut node = process::command("node", &["--expose-gc", "--test", "tests/"]);
    node.env("WIREPROOF_CASES", cases).env("WIREPROOF_PACKAGE", process::target("js-package"));
    process::run(node.current_dir(project))
}

fn test_in_chromium(tools: &Path, project: &Path, cases: &Path) -> Result<(), String> {
    let chromium = browser::find_or_install()?;
    let script = tools.join("chromium.mjs");
    let mut node = process::command("node", &[]);
    process::run(node.arg(script).arg(chromium).arg(project).arg(cases))
}

/// Copies a file, or a folder with everything in it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).map_err(|error| at(from, &error));
    }
    fs::create_dir_all(to).map_err(|error| at(to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| at(from, &error))?.flatten() {
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

pub(crate) fn source(part: &str) -> PathBuf {
    process::root().join("bindings/js").join(part)
}

const WASM: &str = "wasm32-unknown-unknown";

/// The features of WebAssembly that every supported engine has, and what is left out of the module.
const OPTIMIZATIONS: [&str; 11] = [
    "-O2",
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-simd",
    "--strip-debug",
    "--strip-producers",
    "--strip-target-features",
];
