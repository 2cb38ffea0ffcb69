//! What does Ctrl-C do? The first one stops and lets everything come to its end, the second one does
//! not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::signal::unix::{Signal, SignalKind, signal};
use wireproof::net::firehose::StopSignal;

use super::status::Status;
use crate::failure::{Failure, INTERRUPTED};

/// Whether somebody asked to stop.
#[derive(Clone, Debug)]
pub(super) struct Stopping(Arc<AtomicBool>);

impl Stopping {
    /// Waits for signals from now on, beside everything else.
    pub(super) fn start(stop: StopSignal, status: Status) -> Self {
        let asked = Arc::new(AtomicBool::new(false));
        let (interrupts, ends) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        if let (Ok(mut interrupts), Ok(mut ends)) = (interrupts, ends) {
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                next(&mut interrupts, &mut ends).await;
                asked.store(true, Relaxed);
                stop.request();
                status.say("finishing what is under way; once more to end at once");
                next(&mut interrupts, &mut ends).await;
                std::process::exit(i32::from(INTERRUPTED));
            });
        }
        Self(asked)
    }

    /// How a run ends that has come to its end in order.
    pub(super) fn conclude(&self) -> Result<(), Failure> {
        match self.0.load(Relaxed) {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }
}

async fn next(interrupts: &mut Signal, ends: &mut Signal) {
    tokio::select! {
        _ = interrupts.recv() => {}
        _ = ends.recv() => {}
    }
}
