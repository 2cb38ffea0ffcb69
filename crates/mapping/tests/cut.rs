//! A mapped file that another process cuts: the end of the process, with the name of the file.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::process::Command;

use wireproof_mapping::{MappedFile, exit_on_cut_files};

/// In the process that ends: the file to read.
const CHILD: &str = "WIREPROOF_TEST_CUT_FILE";

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_the_process_with_its_name() {
    if let Some(path) = std::env::var_os(CHILD) {
        exit_on_cut_files(4).unwrap();
        let other = MappedFile::open(&std::env::current_exe().unwrap()).unwrap();
        let mapped = MappedFile::open(path.as_ref()).unwrap();
        File::options().write(true).open(path).unwrap().set_len(10).unwrap();
        let sum: u64 = other.iter().chain(mapped.iter()).map(|byte| u64::from(*byte)).sum();
        panic!("the pages after the end were read: {sum}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("repository.car");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_file_that_is_cut_while_it_is_read_ends_the_process_with_its_name"]);
    let output = child.arg("--nocapture").env(CHILD, &path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text.contains("repository.car: another program cut the file"), "{text}");
}
