//! How does a run go, from the first frame to the last word?

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::feed::Item;
use super::handler::Handler;
use super::inbox::{Inbox, WorkerMessage};
use super::notice::Notice;
use super::run::{RunError, RunSummary};
use super::runtime::Runtime;
use super::source::Source;
use super::stop::StopSignal;

impl Runtime {
    /// Reads until somebody asks to stop, or something fails. What fails elsewhere is told in the end.
    pub(super) async fn read(
        &mut self,
        source: &mut impl Source,
        handler: &impl Handler,
        stop: &StopSignal,
    ) -> Result<(), RunError> {
        let run_state = self.run_state.clone();
        let mut ends = pin!(async {
            tokio::select! {
                () = stop.requested() => {}
                () = run_state.error.wait() => {}
            }
        });
        loop {
            tokio::select! {
                biased;
                () = &mut ends => break,
                passed = self.pass(source, handler) => passed?,
            }
        }
        self.intake.pass_on();
        Ok(())
    }

    /// Passes on what there is at once; if need be, when there is something.
    async fn pass(
        &mut self,
        source: &mut impl Source,
        handler: &impl Handler,
    ) -> Result<(), RunError> {
        let mut next = Some(source.next().await?);
        while let Some(told) = next.take() {
            match told {
                Item::Frame(arrival) => self.intake.take(arrival).await,
                Item::Notice(notice) => self.notice(&notice, handler),
            }
            if !self.intake.is_full() {
                next = source.try_next()?;
            }
        }
        self.intake.pass_on();
        Ok(())
    }

    fn notice(&mut self, notice: &Notice, handler: &impl Handler) {
        self.counters.noticed(notice);
        if let Notice::FutureCursor { host, .. } = notice {
            // What came before belongs to the numbers that are void.
            self.intake.pass_on();
            self.run_state.acks().forget(*host);
        }
        handler.notice(notice);
    }

    /// Lets everything that is under way come to its end, writes the journal for the last time, and says
    /// how it went.
    pub(super) async fn drain(mut self, patience: Duration) -> Result<RunSummary, RunError> {
        self.inboxes.iter().for_each(Inbox::close);
        if tokio::time::timeout(patience, self.workers.recv()).await.is_err() {
            self.inboxes.iter().for_each(|inbox| inbox.post(WorkerMessage::LastCall));
            self.workers.recv().await;
        }
        self.job_pool.abort_all();
        // Who has not acknowledged by then is told of in the summary.
        let _ = tokio::time::timeout(patience, self.settled()).await;
        self.write_last().await;
        match self.run_state.error.take() {
            Some(reason) => Err(reason),
            None => Ok(self.summary()),
        }
    }

    /// Waits until everything is acknowledged that was handed over.
    async fn settled(&self) {
        while self.run_state.open() > 0 && !self.run_state.error.is_set() {
            self.run_state.settling.notified().await;
        }
    }

    /// Has the journal written for the last time.
    async fn write_last(&mut self) {
        self.run_state.checkpoint_signal.request_final();
        let Some(checkpointer) = self.checkpointer.take() else { return };
        let joined = tokio::task::spawn_blocking(move || checkpointer.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            self.run_state.error.set(RunError::Panicked);
        }
    }

    fn summary(&self) -> RunSummary {
        let acks = self.run_state.acks();
        RunSummary {
            delivered: self.counters.delivered.load(Relaxed),
            unacknowledged: acks.out(),
            cursors: self.run_state.streams.iter().cloned().zip(acks.cursors()).collect(),
        }
    }
}
