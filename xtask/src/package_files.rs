//! Every published package has the files that its code includes: a path that leads out of it is missing in what is published.
//!
//! A symbolic link within a package is followed when it is packed.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::process;

/// The files of a package that include a file outside of it, each with that path.
fn outside(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in rust_files(&folder.join("src")) {
        let text = std::fs::read_to_string(&file).expect("a source file");
        // Tests are not built from a package.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let parent = file.parent().expect("a file has a folder");
        let leads_out = |path: &str| {
            let path = normal(&parent.join(path));
            !path.starts_with(folder)
        };
        let paths = included(text).into_iter().filter(|path| leads_out(path));
        found.extend(paths.map(|path| format!("{}: {path}", file.display())));
    }
    found
}

/// The paths in `include_str!`, `include_bytes!` and `include!`, as literals.
fn included(text: &str) -> Vec<&str> {
    let after = text.split("include").skip(1).filter_map(|after| {
        let call = ["_str!(", "_bytes!(", "!("].iter().find_map(|call| after.strip_prefix(call))?;
        call.trim_start().strip_prefix('"')?.split('"').next()
    });
    after.collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// A path without `..`, as its text says.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

/// The folders of the packages that are published.
fn published(metadata: &Value) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().expect("packages");
    let is_published =
        |package: &&Value| package["publish"].as_array().is_none_or(|to| !to.is_empty());
    let manifests = packages.iter().filter(is_published).map(|package| &package["manifest_path"]);
    let folder =
        |path: &Value| Path::new(path.as_str().expect("a path")).parent().map(Path::to_owned);
    manifests.filter_map(folder).collect()
}

#[test]
fn no_published_package_includes_a_file_of_another_folder() {
    let folders = published(&process::metadata().unwrap());
    assert!(folders.len() > 30, "{} packages", folders.len());
    let found: Vec<String> = folders.iter().flat_map(|folder| outside(folder)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_path_that_leads_out_of_the_package_is_found() {
    let folder = process::empty_folder("package-files").unwrap();
    let source = folder.join("src/deep");
    std::fs::create_dir_all(&source).unwrap();
    let text = "include_str!(\"../../data/a.txt\"); include_bytes!(\n \"../../../b.bin\")";
    std::fs::write(source.join("mod.rs"), text).unwrap();
    let found = outside(&folder);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("mod.rs: ../../../b.bin"), "{found:?}");
}
