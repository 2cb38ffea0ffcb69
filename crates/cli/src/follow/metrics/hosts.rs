//! How do the hosts behave?

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::NoLabelSet;
use prometheus_client::metrics::MetricType;

use super::super::watch::Watch;
use super::page::Page;

/// Connections, refusals and waits of each host, and what the connections did.
pub(super) fn encode(
    page: &mut Page<'_>,
    watch: &Watch,
    notices: &BTreeMap<&'static str, u64>,
) -> fmt::Result {
    let manners = watch.manners();
    let all = || watch.hosts.iter().zip(&manners);
    let connections: Vec<_> = all().map(|(host, of)| (host.as_str(), of.connections)).collect();
    page.counters("connections", "Streams that were opened", "host", &connections)?;
    let again = all().map(|(host, of)| (host.as_str(), of.connections.saturating_sub(1)));
    page.counters("reconnects", "Streams opened once more", "host", &again.collect::<Vec<_>>())?;
    let waits = all().map(|(host, of)| (host.clone(), of.waiting.as_secs_f64()));
    page.gauges(
        "backoff_seconds",
        "How long the host is waited for",
        "host",
        &waits.collect::<Vec<_>>(),
    )?;
    let mut refusals = page.begin("refusals", "Streams refused", MetricType::Counter)?;
    for (host, of) in all() {
        for (status, count) in &of.refusals {
            let labels = [("host", host.clone()), ("status", status.to_string())];
            refusals.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
    }
    let notices: Vec<_> = notices.iter().map(|(name, count)| (*name, *count)).collect();
    page.counters("notices", "What connections did", "notice", &notices)
}

/// A number for each host of which there is one.
pub(super) fn numbers(watch: &Watch, of_hosts: &[Option<u64>]) -> Vec<(String, f64)> {
    let known = of_hosts.iter().enumerate().filter_map(|(host, number)| Some((host, (*number)?)));
    known.map(|(host, number)| (watch.host(host).to_owned(), number as f64)).collect()
}
