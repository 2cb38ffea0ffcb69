//! How is a series written?

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use wireproof::net::firehose::DurationHistogram;

/// A page in the making.
pub(super) struct Page<'e>(pub(super) DescriptorEncoder<'e>);

impl Page<'_> {
    pub(super) fn begin<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    pub(super) fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: &[(&str, u64)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        for (value, count) in counts {
            let labels = [(label, *value)];
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        Ok(())
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.begin(name, help, MetricType::Gauge)?.encode_gauge(&value)
    }

    pub(super) fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(String, f64)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Gauge)?;
        for (of, value) in values {
            metric.encode_family(&[(label, of.as_str())])?.encode_gauge(value)?;
        }
        Ok(())
    }

    pub(super) fn histograms(
        &mut self,
        name: &str,
        help: &str,
        stages: &[(&str, &DurationHistogram)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Histogram)?;
        for (stage, durations) in stages {
            let last = durations.buckets.len() - 1;
            let end =
                |at: usize| if at == last { f64::INFINITY } else { (1u64 << at) as f64 / 1e6 };
            let counts = durations.buckets.iter().enumerate();
            let buckets: Vec<_> = counts.map(|(at, count)| (end(at), *count)).collect();
            let sum = durations.sum_micros as f64 / 1e6;
            let labels = [("stage", *stage)];
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                sum,
                durations.count(),
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}
