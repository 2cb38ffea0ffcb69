//! The outbox that a state folder is used with: its identity, in a file of the state folder.
//!
//! The cursor of the state is after the events that the outbox holds. With another outbox they would be missing, and
//! nothing else would show it.

use std::io::{ErrorKind, Write};
use std::path::Path;

use wireproof::delivery::Outbox;

use crate::failure::Failure;
use crate::files;

/// Checks that the state was used with this outbox, or with none.
pub(super) fn check(state: &Path, outbox: &Outbox) -> Result<(), Failure> {
    let (path, identity) = (state.join(FILE), outbox.identity().to_string());
    match std::fs::read_to_string(&path) {
        Ok(known) if known.trim() == identity => Ok(()),
        Ok(_) => Err(Failure::Local(format!(
            "{}: the state was used with another outbox than {}, and the events that it holds are missing there: name \
             it with --outbox; if it is lost, delete this file and start with --cursor at the last event that every \
             destination has, or with --backfill",
            path.display(),
            outbox.path().display()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => write(&path, &identity),
        Err(error) => Err(Failure::file(&path)(error)),
    }
}

fn write(path: &Path, identity: &str) -> Result<(), Failure> {
    let mut file = files::create_sibling(path)?;
    let written = writeln!(file, "{identity}").and_then(|()| file.as_file().sync_all());
    written.map_err(Failure::file(path))?;
    files::persist(file, path)
}

const FILE: &str = "outbox.identity";

#[cfg(test)]
mod tests {
    use wireproof::delivery::Options;

    use super::*;

    #[test]
    fn a_state_is_used_with_one_outbox_until_the_operator_says_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| Outbox::open(&dir.path().join(name), Options::default()).unwrap();
        check(dir.path(), &open("first.sqlite")).unwrap();
        check(dir.path(), &open("first.sqlite")).unwrap();
        let Err(Failure::Local(message)) = check(dir.path(), &open("second.sqlite")) else {
            panic!("accepted")
        };
        assert!(message.contains(FILE) && message.contains("second.sqlite"), "{message}");
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        check(dir.path(), &open("second.sqlite")).unwrap();
    }
}
