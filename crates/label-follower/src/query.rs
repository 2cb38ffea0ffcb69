//! `com.atproto.label.queryLabels`: the labels of a labeler by their subjects, page by page, judged.

use atproto::label::LabelPage;
use base::now_micros;
use events::LabelLine;
use follower::Status;
use net::http::{Limits, Url};
use program::failure::Failure;
use program::network::Network;
use tokio::time::Instant;
use verify::labels::{LabelJudge, ReceivedLabel};

use crate::counts::Counts;
use crate::key_table::KeyTable;
use crate::labeler::Labeler;
use crate::lines::label_line;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Subjects, or the beginnings of subjects with a star at their end.
    pub patterns: Vec<String>,
    /// Maximum number of labels.
    pub max_labels: u64,
    /// Whether labels count that a key signed which the labeler had earlier.
    pub accept_earlier_keys: bool,
}

/// How a query has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryEnd {
    /// The labels by verdict.
    pub counts: Counts,
    /// Whether the service has more labels than the query wants.
    pub has_more: bool,
}

impl Query {
    /// Asks the labeler, and passes on every label with its verdict as a line.
    ///
    /// # Errors
    /// If the service does not answer, answers with something else, or repeats a page; the error of `line`.
    pub async fn run(
        &self,
        network: &Network,
        labeler: &Labeler,
        mut line: impl FnMut(&LabelLine<'_>) -> Result<(), Failure>,
    ) -> Result<QueryEnd, Failure> {
        let keys = KeyTable::open(network.resolver.clone(), MIN_REFRESH, None, Status::hidden())?;
        let mut judge = LabelJudge::new([0; 16], self.accept_earlier_keys);
        let (mut cursor, mut end) = (None::<String>, QueryEnd::default());
        while end.counts.received < self.max_labels {
            let url = self.url(labeler, cursor.as_deref(), self.max_labels - end.counts.received);
            let page = fetch(network, &url).await?;
            let received = Instant::now();
            let is_last = page.cursor.is_none() || page.labels.is_empty();
            let wanted =
                usize::try_from(self.max_labels - end.counts.received).unwrap_or(usize::MAX);
            let labels = &page.labels[..page.labels.len().min(wanted)];
            let labels: Vec<ReceivedLabel<'_>> = labels
                .iter()
                .map(|bytes| ReceivedLabel { bytes, service: Some(labeler.did.as_str()) })
                .collect();
            let outcomes = judged(&keys, &mut judge, labeler, &labels, received).await;
            for (label, outcome) in labels.iter().zip(outcomes) {
                end.counts.received += 1;
                end.counts.verified += u64::from(outcome.is_ok());
                end.counts.refused += u64::from(outcome.is_err());
                end.counts.negations +=
                    u64::from(outcome.is_ok_and(|judged| judged.label.fields.is_negation()));
                let host = Some(labeler.origin().into());
                line(&LabelLine { host, ..label_line(*label, &outcome) })?;
            }
            if is_last {
                return Ok(end);
            }
            if cursor == page.cursor {
                return Err(Failure::Network(format!("{}: the same page twice", labeler.origin())));
            }
            cursor = page.cursor;
        }
        Ok(QueryEnd { has_more: true, ..end })
    }

    fn url(&self, labeler: &Labeler, cursor: Option<&str>, wanted: u64) -> Url {
        let mut url = labeler.method("com.atproto.label.queryLabels");
        let mut query = url.query_pairs_mut();
        self.patterns.iter().for_each(|pattern| {
            query.append_pair("uriPatterns", pattern);
        });
        query.append_pair("limit", &wanted.min(PAGE_LABELS).to_string());
        if let Some(cursor) = cursor {
            query.append_pair("cursor", cursor);
        }
        drop(query);
        url
    }
}

/// The verdicts on a page. If a label does not prove, its source is looked up again.
async fn judged<'a>(
    keys: &KeyTable,
    judge: &mut LabelJudge,
    labeler: &Labeler,
    labels: &[ReceivedLabel<'a>],
    received: Instant,
) -> Vec<verify::labels::LabelOutcome<'a>> {
    loop {
        let known = keys.of_batch(labeler.did.as_did(), crate::judge::sources(labels)).await;
        let now = i64::try_from(now_micros()).unwrap_or(i64::MAX);
        let outcomes = judge.judge(labels, &known, now);
        let unproved = crate::judge::unproved(labels, &outcomes);
        let service = labeler.did.as_did();
        if unproved.is_empty() || !keys.refresh(service, &unproved, received).await {
            return outcomes;
        }
    }
}

async fn fetch(network: &Network, url: &Url) -> Result<LabelPage, Failure> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let response = network.http.get(url, &PAGE).await?;
    if response.status != 200 {
        return Err(Failure::Network(format!("{host}: status {} of queryLabels", response.status)));
    }
    LabelPage::parse(&response.body).map_err(|error| Failure::Network(format!("{host}: {error}")))
}

const PAGE: Limits = Limits { max_bytes: 4 << 20, ..Limits::DOCUMENT };

/// Labels of a page, the maximum that the method allows.
const PAGE_LABELS: u64 = 250;

const MIN_REFRESH: std::time::Duration = std::time::Duration::from_secs(1);
