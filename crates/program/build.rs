//! Embeds the page that the variable `WIREPROOF_PAGE` names: `cargo xtask page` builds it.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_page)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WIREPROOF_PAGE");
    let Some(path) = env::var_os("WIREPROOF_PAGE") else { return };
    let page = Path::new(&path);
    if page.is_absolute() && page.is_file() {
        println!("cargo::rustc-env=WIREPROOF_PAGE_FILE={}", page.display());
        println!("cargo::rustc-cfg=has_page");
    } else {
        println!("cargo::error=WIREPROOF_PAGE: {}: no absolute path of a file", page.display());
    }
}
