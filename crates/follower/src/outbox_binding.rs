//! The outbox that a state folder is used with, and the level that its events are verified against: in a file of the
//! state folder.
//!
//! The cursor of the state is after the events that the outbox holds. With another outbox they would be missing,
//! and nothing else would show it. Destinations that have events of two levels would not know the level of an event.

use std::io::{ErrorKind, Write};
use std::path::Path;

use delivery::Outbox;

use super::verify_level::VerifyLevel;
use crate::failure::Failure;
use crate::files;

/// Checks that the state was used with this outbox, or with none. `cure` tells how to start without the outbox.
pub fn check(state: &Path, outbox: &Outbox, cure: &str) -> Result<(), Failure> {
    check_level(state, outbox, VerifyLevel::Full, cure)
}

/// Checks that the state was used with this outbox at this level, or with none.
pub(super) fn check_level(
    state: &Path,
    outbox: &Outbox,
    level: VerifyLevel,
    cure: &str,
) -> Result<(), Failure> {
    let (path, identity) = (state.join(FILE), outbox.identity().to_string());
    let content = match level.mark() {
        Some(level) => format!("{identity}\n{}", level.as_str()),
        None => identity.clone(),
    };
    match std::fs::read_to_string(&path) {
        Ok(known) if known.trim() == content => Ok(()),
        Ok(known) if known.lines().next() == Some(&*identity) => Err(Failure::Usage(format!(
            "--verify-against {}: the events of the outbox {} are verified against {}: name other --state, --outbox and \
             destinations; to deliver both to the same destinations, delete {}",
            level.name(),
            outbox.path().display(),
            known.lines().nth(1).unwrap_or(VerifyLevel::Full.name()),
            path.display(),
        ))),
        Ok(_) => Err(Failure::Local(format!(
            "{}: the state was used with another outbox than {}, and the events that it holds are missing there: name \
             it with --outbox; if it is lost, {cure}",
            path.display(),
            outbox.path().display()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => write(&path, &content),
        Err(error) => Err(Failure::file(&path)(error)),
    }
}

fn write(path: &Path, content: &str) -> Result<(), Failure> {
    let mut file = files::create_sibling(path)?;
    let written = writeln!(file, "{content}").and_then(|()| file.as_file().sync_all());
    written.map_err(Failure::file(path))?;
    files::persist(file, path)
}

const FILE: &str = "outbox.identity";

#[cfg(test)]
mod tests {
    use delivery::Options;

    use super::*;

    #[test]
    fn a_state_is_used_with_one_outbox_until_the_operator_says_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| Outbox::open(&dir.path().join(name), Options::default()).unwrap();
        let check = |outbox: &Outbox| check(dir.path(), outbox, "delete this file");
        check(&open("first.sqlite")).unwrap();
        check(&open("first.sqlite")).unwrap();
        let Err(Failure::Local(message)) = check(&open("second.sqlite")) else {
            panic!("accepted")
        };
        assert!(message.contains(FILE) && message.contains("second.sqlite"), "{message}");
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        check(&open("second.sqlite")).unwrap();
    }

    #[test]
    fn an_outbox_has_events_of_one_level_of_verification() {
        use VerifyLevel::{Full, None, Signature};
        for first in [Full, Signature, None] {
            let dir = tempfile::tempdir().unwrap();
            let outbox =
                Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
            check_level(dir.path(), &outbox, first, "").unwrap();
            for level in [Full, Signature, None] {
                match check_level(dir.path(), &outbox, level, "") {
                    Ok(()) => assert_eq!(level, first),
                    Err(Failure::Usage(message)) => {
                        assert_ne!(level, first);
                        let expected = format!("are verified against {}:", first.name());
                        assert!(message.contains(&expected), "{message}");
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }
}
