//! Limits of this process for reading a stranger's file.

use std::io;

#[cfg(target_os = "linux")]
use rustix::process::Resource;

/// From now on, the address space of this process has at most `address_bytes`, it writes no file beyond `file_bytes`, and it
/// leaves no image of its memory when a signal ends it. Elsewhere than on Linux it has no effect.
///
/// # Errors
/// If the system refuses a limit.
pub fn limit_process(address_bytes: u64, file_bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        linux::limit(Resource::Core, 0)?;
        linux::limit(Resource::Fsize, file_bytes)?;
        linux::limit(Resource::As, address_bytes)?;
    }
    let _ = (address_bytes, file_bytes);
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Lowers a limit; one that is lower stays.
    pub(super) fn limit(resource: Resource, max: u64) -> io::Result<()> {
        let maximum = getrlimit(resource).maximum;
        let max = Some(maximum.map_or(max, |maximum| maximum.min(max)));
        Ok(setrlimit(resource, Rlimit { current: max, maximum: max })?)
    }
}
