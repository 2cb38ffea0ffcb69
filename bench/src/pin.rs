//! On which core does a runner work? On one, where the system lets us say so, so that no peer is
//! faster for spreading its collector over others, and none loses time by being moved.

/// A core to which a runner can be bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core(#[cfg_attr(not(target_os = "linux"), expect(dead_code))] usize);

impl Core {
    /// The last core that we may use; the first ones are busier with interrupts. `None` where
    /// binding is not possible.
    pub(crate) fn choose() -> Option<Self> {
        system::last_allowed().map(Self)
    }

    /// Does `start` bound to this core. A process inherits that, and so do all of its threads.
    pub(crate) fn while_bound<T>(self, start: impl FnOnce() -> T) -> T {
        system::while_bound(self, start)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    use super::Core;

    const THIS_THREAD: Pid = Pid::from_raw(0);

    pub(super) fn last_allowed() -> Option<usize> {
        let allowed = sched_getaffinity(THIS_THREAD).ok()?;
        (0..CpuSet::count()).rev().find(|core| allowed.is_set(*core).unwrap_or(false))
    }

    /// A system that refuses is left alone: the run is then less steady, and no less fair.
    pub(super) fn while_bound<T>(core: Core, start: impl FnOnce() -> T) -> T {
        let Ok(before) = sched_getaffinity(THIS_THREAD) else { return start() };
        let mut one = CpuSet::new();
        let _ = one.set(core.0).and_then(|()| sched_setaffinity(THIS_THREAD, &one));
        let started = start();
        let _ = sched_setaffinity(THIS_THREAD, &before);
        started
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Core;

    pub(super) fn last_allowed() -> Option<usize> {
        None
    }

    pub(super) fn while_bound<T>(_: Core, start: impl FnOnce() -> T) -> T {
        start()
    }
}
