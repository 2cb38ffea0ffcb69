//! Where the disk is small: what does no later stage need any more?

use std::io::ErrorKind;
use std::path::Path;
use std::{env, fs};

use crate::process;

/// Whether `WIREPROOF_SPARE_DISK` is 1: then what has been used goes, and the next run builds it anew.
pub(crate) fn is_short() -> bool {
    env::var_os("WIREPROOF_SPARE_DISK").is_some_and(|value| value == "1")
}

/// Removes what the tests were built from and into. What comes behind them is of the release build.
pub(crate) fn make() -> Result<(), String> {
    make_in(&process::target(""))
}

fn make_in(target: &Path) -> Result<(), String> {
    for used in USED {
        let folder = target.join(used);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!("{}: {error}", folder.display()));
            }
            _ => println!("removed {}", folder.display()),
        }
    }
    Ok(())
}

const USED: [&str; 6] =
    ["debug/deps", "debug/build", "debug/examples", "debug/incremental", "doc", "interop"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_goes_and_nothing_else() {
        let target = env::temp_dir().join(format!("wireproof-room-{}", std::process::id()));
        for folder in ["debug/deps/one", "interop", "release/deps", "bench"] {
            fs::create_dir_all(target.join(folder)).unwrap();
        }
        let outcome = make_in(&target);
        let is_there = |folder: &str| target.join(folder).is_dir();
        let left = ["debug/deps", "interop", "release/deps", "bench"].map(is_there);
        fs::remove_dir_all(&target).unwrap();
        assert_eq!((outcome, left), (Ok(()), [false, false, true, true]));
    }
}
