//! Limits of this process for what it reads from a file of strangers.

use std::io;

/// From now on, the address space of this process has at most `address_bytes`, it writes no file beyond `file_bytes`, and it
/// leaves no image of its memory when a signal ends it. Elsewhere than on Linux it has no effect.
///
/// # Errors
/// If the system refuses a limit.
pub fn limit_process(address_bytes: u64, file_bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        linux::limit(libc::RLIMIT_CORE, 0)?;
        linux::limit(libc::RLIMIT_FSIZE, file_bytes)?;
        linux::limit(libc::RLIMIT_AS, address_bytes)?;
    }
    let _ = (address_bytes, file_bytes);
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    /// Lowers a limit; one that is lower stays.
    #[expect(unsafe_code, reason = "limits are set by calls of C, and this is the only place")]
    pub(super) fn limit(resource: libc::__rlimit_resource_t, max: u64) -> io::Result<()> {
        let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call writes the two numbers of `limits`, which outlives it.
        if unsafe { libc::getrlimit(resource, &mut limits) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let max = limits.rlim_max.min(max);
        limits = libc::rlimit { rlim_cur: max, rlim_max: max };
        // SAFETY: the call reads the two numbers of `limits`, which outlives it.
        match unsafe { libc::setrlimit(resource, &limits) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
