//! Where is the state file?

use std::env;
use std::path::PathBuf;

use wireproof::store::{Options, Store};

use super::args::FollowArgs;
use crate::failure::Failure;

/// Opens the state file in the folder that is given, or in the one for such things.
pub(super) fn open(args: &FollowArgs) -> Result<Store, Failure> {
    let folder = args.state.clone().map_or_else(usual, Ok)?;
    let mut options = Options::default();
    options.max_bytes = args.state_bytes;
    Ok(Store::open(&folder.join(FILE), options)?)
}

fn usual() -> Result<PathBuf, Failure> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = || variable("HOME").map(|home| home.join(".local").join("state"));
    match variable("XDG_STATE_HOME").or_else(of_user) {
        Some(folder) => Ok(folder.join("wireproof")),
        None => {
            Err(Failure::Usage("no home: say where to keep the place, with --state".to_owned()))
        }
    }
}

const FILE: &str = "state.sqlite";
