//! `cargo xtask page`: builds `target/page/wireproof.html`, the page that verifies where it is opened, and tests it in Chromium.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{browser, interop, js, left_out, process};

/// What to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Build the page without testing it.
    #[arg(long)]
    build_only: bool,
}

/// Builds and tests the page, where the target of its module can be installed.
pub(crate) fn test() -> Result<(), String> {
    match js::install_target() {
        Ok(()) => run(&Options { build_only: false }),
        Err(fault) => left_out::note("page", &fault),
    }
}

/// Builds the page, and tests it unless the options say otherwise.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let page = build()?;
    if options.build_only {
        return Ok(());
    }
    process::cargo(&["test", "-p", "wireproof-page"])?;
    test_in_chromium(&page, &inputs()?)
}

/// Compiles the module and writes the page; returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    let tools = process::target("js-tools");
    interop::packages(&js::source("tools"), &tools)?;
    let module = js::compile("wireproof-page")?;
    let folder = process::empty_folder("page")?;
    let parts = process::empty_folder("page-module")?;
    js::bind(&module, &parts)?;
    let wasm = parts.join("wireproof_bg.wasm");
    js::optimize(&tools, &wasm)?;
    let page = folder.join("wireproof.html");
    let mut assemble = process::command("node", &[]);
    assemble.arg(source("assemble.mjs")).arg(parts.join("wireproof.js")).arg(wasm);
    assemble.arg(process::root().join("docs/formats/codes.md")).arg(env!("CARGO_PKG_VERSION"));
    process::run(assemble.arg(&page))?;
    Ok(page)
}

/// Writes inputs of each form, valid and broken, with the verdicts of the library on this machine.
fn inputs() -> Result<PathBuf, String> {
    let folder = process::empty_folder("page-inputs")?;
    let example = ["run", "-p", "wireproof-page", "--example", "page_inputs", "--"];
    process::run(process::command("cargo", &example).arg(&folder))?;
    Ok(folder)
}

fn test_in_chromium(page: &Path, inputs: &Path) -> Result<(), String> {
    let chromium = browser::find_or_install()?;
    let folder = process::target("page-tests");
    interop::packages(&source("tests"), &folder)?;
    let mut node = process::command("node", &[]);
    node.arg(folder.join("check.mjs")).arg(chromium).arg(page).arg(inputs);
    process::run(node.arg(process::target("page-shots")).arg(source("assemble.mjs")))
}

fn source(part: &str) -> PathBuf {
    process::root().join("bindings/page").join(part)
}
