//! The processes that hold leases, as leases name them.
//!
//! A holder has a locked file among the temporary files of its machine. A process that ends unlocks it, however it
//! ends: other processes of the machine continue its lists at once, and processes of other machines when its leases
//! have ended.

use std::fs::{self, File};
use std::path::PathBuf;

use program::failure::Failure;

/// This process, as leases name it.
#[derive(Debug)]
pub(crate) struct Holder {
    name: String,
    /// Locked while the process lives.
    _file: File,
}

impl Holder {
    pub(crate) fn new() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::Local(format!("{}: {error}", std::env::temp_dir().display()))
        };
        let file = tempfile::Builder::new().prefix(PREFIX).rand_bytes(NAME_LEN).tempfile();
        let (file, path) = file.and_then(|file| Ok(file.keep()?)).map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        Ok(Self { name, _file: file })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Removes the file of a holder that has no list.
    pub(crate) fn release(&self) {
        if let Some(path) = path_of(&self.name) {
            // One that stays is empty.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a holder was a process of this machine that has ended. Its empty file stays: it may have had other lists.
pub(crate) fn is_gone(holder: &str) -> bool {
    let file = path_of(holder).and_then(|path| File::open(path).ok());
    file.is_some_and(|file| file.try_lock().is_ok())
}

/// The file of a holder; `None` for a name that no holder has.
fn path_of(holder: &str) -> Option<PathBuf> {
    let random = holder.strip_prefix(PREFIX)?;
    let is_name =
        random.len() == NAME_LEN && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| std::env::temp_dir().join(holder))
}

/// The beginning of the names of holders and of their files, and the length of the random rest.
const PREFIX: &str = "wireproof-backfill-";
const NAME_LEN: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_gone_when_its_process_has_ended_and_unknown_where_it_never_was() {
        let holder = Holder::new().unwrap();
        let (name, path) = (holder.name.clone(), path_of(&holder.name).unwrap());
        assert!(path.exists() && !is_gone(&name));
        drop(holder);
        assert!(is_gone(&name) && is_gone(&name), "of each of its lists");
        fs::remove_file(path).unwrap();
        assert!(!is_gone(&name), "another machine cannot know");
        let holder = Holder::new().unwrap();
        holder.release();
        assert!(!path_of(&holder.name).unwrap().exists());
    }

    #[test]
    fn a_name_of_a_holder_leads_to_no_other_file() {
        for name in ["", "/etc/passwd", "wireproof-backfill-../../../../../etc/passwd1", PREFIX] {
            assert_eq!(path_of(name), None, "{name}");
        }
    }
}
