//! Crash points: named places around the durable steps of a run, at which a test ends the process.
//!
//! In a build with debug assertions, `WIREPROOF_CRASH_POINT=NAME@N` ends the process when it passes the point
//! `NAME` for the `N`th time, and `WIREPROOF_CRASH_MARKER` names a file that is written before, as proof. The end
//! is an `abort`: as after `kill -9`, no destructor has run and no buffer of the process was flushed. Other builds
//! have no crash points.

/// Marks a place between two durable steps. `name` is unique, and listed in `docs/reliability.md`.
#[doc(hidden)]
#[inline(always)]
pub fn crash_point(name: &str) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::env;
    use std::fs::File;
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// The point at which this process ends.
    struct Armed {
        name: String,
        /// Number of passages before the last one.
        remaining: AtomicU64,
        marker: String,
    }

    static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
        let (name, passages) = split(env::var("WIREPROOF_CRASH_POINT").ok()?)?;
        let marker = env::var("WIREPROOF_CRASH_MARKER").ok()?;
        Some(Armed { name, remaining: AtomicU64::new(passages), marker })
    });

    fn split(point: String) -> Option<(String, u64)> {
        let (name, passages) = point.split_once('@')?;
        Some((name.to_owned(), passages.parse().ok()?))
    }

    pub(super) fn pass(name: &str) {
        let Some(armed) = ARMED.as_ref().filter(|armed| armed.name == name) else { return };
        if armed.remaining.fetch_sub(1, Relaxed) != 1 {
            return;
        }
        // Without the marker the test fails.
        let _ = File::create(&armed.marker)
            .and_then(|mut file| file.write_all(name.as_bytes()).and_then(|()| file.sync_all()));
        std::process::abort();
    }
}
