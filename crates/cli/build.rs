//! Embeds the page that the variable `WIREPROOF_PAGE` names: `cargo xtask page` builds it.

use std::env;
use std::fs;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_page)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WIREPROOF_PAGE");
    let Some(path) = env::var_os("WIREPROOF_PAGE") else { return };
    match fs::canonicalize(&path) {
        Ok(page) => {
            println!("cargo::rustc-env=WIREPROOF_PAGE_FILE={}", page.display());
            println!("cargo::rustc-cfg=has_page");
        }
        Err(error) => println!("cargo::error=WIREPROOF_PAGE: {}: {error}", path.display()),
    }
}
