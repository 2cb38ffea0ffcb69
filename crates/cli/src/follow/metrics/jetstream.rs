//! Which series are there of a Jetstream? Those of a relay's stream, as far as there is something to tell:
//! nothing is judged, no key is asked for, and no repository.
//!
//! | series | labels |
//! |---|---|
//! | `last_seq`, `cursor`: what the Jetstream counts by, which in version 1 is microseconds | `host` |
//! | `lag_seconds` | |
//! | `events_total` | `kind` |
//! | `verdicts_total` | `code` |
//! | `connections_total`, `reconnects_total`, `backoff_seconds` | `host` |
//! | `refusals_total` | `host`, `status` |
//! | `notices_total` | `notice` |
//! | `queue_events` | `state`: under_way |
//! | `dropped_total`, `lines_total` | |

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::super::jetstream::{Places, Tally};
use super::super::watch::Watch;
use super::hosts;
use super::page::Page;

/// All series of a run, as they are when somebody asks.
#[derive(Debug)]
pub(in super::super) struct JetstreamSeries {
    pub(in super::super) watch: Arc<Watch>,
    pub(in super::super) tally: Arc<Tally>,
    pub(in super::super) places: Arc<Places>,
}

impl Collector for JetstreamSeries {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (watch, counts, places) = (&*self.watch, self.tally.counts(), &*self.places);
        let mut page = Page(encoder);
        let last_seqs = hosts::numbers(watch, &counts.last_seqs);
        page.gauges("last_seq", "The last number that came", "host", &last_seqs)?;
        let cursors = hosts::numbers(watch, &places.reached());
        page.gauges("cursor", "The number up to which all is acknowledged", "host", &cursors)?;
        let lag = watch.lag_seconds().unwrap_or_default();
        page.gauge("lag_seconds", "How old the last event was when it came", lag)?;
        let events: Vec<_> = counts.events.into_iter().collect();
        page.counters("events", "Events that came", "kind", &events)?;
        let verdicts: Vec<_> = counts.verdicts.into_iter().collect();
        page.counters("verdicts", "Events by verdict", "code", &verdicts)?;
        hosts::encode(&mut page, watch, &counts.notices)?;
        let queue = [("under_way".to_owned(), places.under_way() as f64)];
        page.gauges("queue_events", "Events that are not acknowledged yet", "state", &queue)?;
        page.counter("dropped", "Events that were dropped", 0)?;
        page.counter("lines", "Lines that were written", watch.lines.load(Relaxed))
    }
}
