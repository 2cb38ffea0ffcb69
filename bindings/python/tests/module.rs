//! The module is a library that Python can load. Everything else is tested in Python, in the files next to this
//! one.

use std::{env, fs};

#[test]
fn the_library_has_the_entry_point_that_python_looks_for() {
    let folder = env::current_exe().unwrap();
    let library = folder.with_file_name(format!(
        "{}_wireproof{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    ));
    let bytes = fs::read(&library).unwrap();
    let name = b"PyInit__wireproof";
    assert!(bytes.windows(name.len()).any(|window| window == name), "{}", library.display());
}
