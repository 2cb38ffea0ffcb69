//! The parts of documents that a run fills in, by the names in their markers.

use results::terminal::{self, thousands};
use results::{Results, Row, Sizes, percent_of_json};

use crate::standing::{self, Headline, Standing};
use crate::{machine, picture};

/// A run, for a document in a folder `depth` below the root.
pub(super) struct PublishedRun<'r> {
    pub(super) name: &'r str,
    pub(super) results: &'r Results,
    pub(super) depth: usize,
}

impl PublishedRun<'_> {
    /// The part called `name`; `None` if it is unknown or the run lacks it.
    ///
    /// | name | content |
    /// |---|---|
    /// | `headline` | the table of the README: our rows one at a time and in batches, next to the fastest other peer |
    /// | `table TASK` | the table, legend and summary of a task, as `wireproof bench` prints them |
    /// | `example TASK` | the head of that table: our best row, the best other one, and the baseline |
    /// | `measured` | the time, machine and file of the run |
    /// | `run`, `date`, `machine` | a link to the run's file, its day, the machine |
    /// | `batch times`, `single times` | the least and greatest ratio of the headline |
    /// | `hostile cases` | the number of hostile inputs of the run |
    /// | `nostr advice` | which format of Nostr events to pick, with the parts below |
    /// | `real events` | the number of Nostr events of the network |
    /// | `raw FORMAT`, `framed FORMAT` | their size in a format as a percentage of JSON: bare, and all together under Zstandard |
    /// | `time TASK VARIANT` | our median time for a unit in nanoseconds |
    /// | `decoding VARIANT` | the percentage of the time of `nostr-validated` that decoding alone takes |
    pub(super) fn part(&self, name: &str) -> Option<String> {
        match name.split_once(' ').unwrap_or((name, "")) {
            ("headline", "") => self.headline(),
            ("table", task) => self.table(task),
            ("example", task) => self.example(task),
            ("measured", "") => Some(self.measured()),
            ("run", "") => Some(self.link()),
            ("date", "") => Some(self.date()),
            ("machine", "") => Some(machine::words(&self.results.machine)),
            ("batch", "times") => self.range(|standing| standing.batch_times()),
            ("single", "times") => self.range(|standing| Some(standing.single_times())),
            ("hostile", "cases") => cases(self.results).map(|cases| cases.to_string()),
            ("nostr", "advice") => self.nostr_advice(),
            ("real", "events") => Some(thousands(self.ours(SIZE, "json@real")?.units as f64)),
            ("raw", format) => self.real_size(format, |sizes| sizes.raw),
            ("framed", format) => self.real_size(format, |sizes| sizes.framed_zstd3),
            ("time", row) => Some(thousands(self.time_ns(row.split_once(' ')?)?)),
            ("decoding", variant) => self.decoding_share(variant),
            _ => None,
        }
    }

    fn link(&self) -> String {
        let (root, name) = ("../".repeat(self.depth), self.name);
        format!("[bench/results/{name}]({root}bench/results/{name}/results.json)")
    }

    /// `21 November 2026`
    fn date(&self) -> String {
        let started: Result<jiff::Timestamp, _> = self.results.started.parse();
        started.map_or_else(
            |_| self.results.started.clone(),
            |at| at.strftime("%-d %B %Y").to_string(),
        )
    }

    fn measured(&self) -> String {
        let Results { machine, settings, .. } = self.results;
        let passes = settings
            .as_ref()
            .map_or(String::new(), |settings| format!(" of {} passes", settings.passes));
        let tools: Vec<String> = machine.toolchains.iter().map(tool).collect();
        let date = self.date();
        let words = machine::words(machine);
        let link = self.link();
        let (features, os) = (machine.features.join(", "), &machine.os);
        wrapped(&format!(
            "All numbers come from one run{passes}, {link}, measured on {date} on one core of: {words}; {os}; {}; \
             instruction sets: {features}.",
            tools.join(", ")
        ))
    }

    /// The least and the greatest of the headline's ratios.
    fn range(&self, times: fn(&Standing<'_>) -> Option<f64>) -> Option<String> {
        let headlines = standing::headlines(self.results);
        let times = || headlines.iter().filter_map(|(_, standing)| times(standing));
        let (least, greatest) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
        Some(format!("{least:.1} to {greatest:.1}"))
    }

    /// The advice with a part in the place of every `{NAME}`.
    fn nostr_advice(&self) -> Option<String> {
        let (mut text, mut rest) = (String::new(), ADVICE);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, later) = after.split_once('}')?;
            text = text + before + &self.part(name)?;
            rest = later;
        }
        Some(text + rest)
    }

    /// Our row of a task.
    fn ours(&self, task: &str, variant: &str) -> Option<&Row> {
        let rows = standing::rows_of(self.results, task);
        rows.iter().find(|row| row.peer == results::PEER && row.variant == variant)
    }

    /// A size of the real events in a format as a percentage of JSON.
    fn real_size(&self, format: &str, len: fn(&Sizes) -> u64) -> Option<String> {
        let rows: Vec<&Row> = standing::rows_of(self.results, SIZE).iter().collect();
        let row = self.ours(SIZE, &format!("{format}@real"))?;
        Some(format!("{:.1}", percent_of_json(row, &rows, len)?))
    }

    /// Our median time for a unit, by task and variant.
    fn time_ns(&self, (task, variant): (&str, &str)) -> Option<f64> {
        Some(1e9 / self.ours(task, variant)?.median()?)
    }

    /// The percentage of decoding in the time of decoding and verifying, one by one or in batches.
    fn decoding_share(&self, variant: &str) -> Option<String> {
        let format = variant.split('/').next().unwrap_or(variant);
        let decoding = self.time_ns(("nostr-deserialize", format))?;
        let all = self.time_ns(("nostr-validated", variant))?;
        Some(format!("{:.0}", 100.0 * decoding / all))
    }

    fn headline(&self) -> Option<String> {
        let lines = standing::headlines(self.results);
        let mut table = HEADLINE.to_owned();
        for (headline, standing) in &lines {
            table += &headline_row(headline, standing);
        }
        if let Some(sentence) = hostile_sentence(self.results) {
            table += &format!("\n{sentence}\n");
        }
        (!lines.is_empty()).then_some(table)
    }

    fn table(&self, task: &str) -> Option<String> {
        let rows = standing::rows_of(self.results, task);
        (!rows.is_empty()).then(|| self.text(rows.to_vec()))
    }

    /// The fastest representing rows of us and of the fastest other peer, and the row that ratios refer to.
    fn example(&self, task: &str) -> Option<String> {
        let rows = standing::rows_of(self.results, task);
        let first = rows.iter().find(|row| standing::represents(row))?;
        let group =
            || rows.iter().filter(|row| standing::represents(row) && row.group() == first.group());
        let ours = group().find(|row| row.peer == results::PEER);
        let fastest_other = group().find(|row| !results::is_ours(&row.peer))?;
        let baseline = terminal::baseline_row(first, &rows.iter().collect::<Vec<_>>(), None);
        let mut best: Vec<Row> =
            ours.into_iter().chain([fastest_other]).chain(baseline).cloned().collect();
        best.dedup_by(|a, b| a.peer == b.peer && a.variant == b.variant);
        let text = self.text(best);
        let table: Vec<&str> =
            text.lines().take_while(|line| !line.starts_with("ratio:")).collect();
        Some(format!("{}\n```", table.join("\n").trim_end()))
    }

    /// The rows as `wireproof bench` prints them.
    fn text(&self, rows: Vec<Row>) -> String {
        let only = Results { rows, unavailable: Vec::new(), ..self.results.clone() };
        format!("```text\n{}```", terminal::text(&only, None))
    }
}

fn headline_row(headline: &Headline, standing: &Standing<'_>) -> String {
    let Standing { single, batch, peer } = standing;
    let times = |row: &Row| picture::ratio_to(row, peer).unwrap_or_default();
    let (many, many_times) = match batch {
        Some(row) => {
            let label = row.batch_label().map_or(String::new(), |label| format!(" ({label})"));
            (format!("{}{label}", per_second(row)), times(row))
        }
        None => (String::new(), String::new()),
    };
    format!(
        "| {} | {} {} | {} | {} | {many} | {many_times} | `bench {}` |\n",
        headline.words,
        peer.peer,
        per_second(peer),
        per_second(single),
        times(single),
        headline.task
    )
}

/// Units per second, with a fraction where there are few: a column has one scale.
fn per_second(row: &Row) -> String {
    match row.median() {
        None => String::new(),
        Some(median) if median < 100.0 => format!("{median:.2}"),
        Some(median) => thousands(median),
    }
}

/// The rejections of hostile repositories by us and by the best other peer.
fn hostile_sentence(results: &Results) -> Option<String> {
    let rows = || standing::rows_of(results, "hostile").iter().filter(|row| row.variant == "repo");
    let refused = |row: &Row| row.counts.get("refused").unwrap_or_default();
    let ours = rows().find(|row| row.peer == results::PEER)?;
    let best = rows().filter(|row| !results::is_ours(&row.peer)).max_by_key(|row| refused(row))?;
    let invalid = |row: &Row| {
        let outcomes = ["refused", "accepted", "crashed", "hung"];
        outcomes.iter().filter_map(|name| row.counts.get(name)).sum::<u64>()
    };
    Some(format!(
        "Of {} malformed repositories, Wireproof rejects {} and {}, the next, {} (`bench hostile`).",
        invalid(ours),
        refused(ours),
        best.peer,
        refused(best)
    ))
}

/// The number of distinct hostile cases of the run.
fn cases(results: &Results) -> Option<usize> {
    let rows = standing::rows_of(results, "hostile");
    let names: std::collections::HashSet<&str> =
        rows.iter().flat_map(|row| &row.cases).map(|case| case.name.as_str()).collect();
    (!names.is_empty()).then_some(names.len())
}

/// The version of a tool, with its name where the version does not begin with it.
fn tool((name, version): (&String, &String)) -> String {
    let version = version.replace(char::is_control, " ");
    let has_name = version
        .to_lowercase()
        .starts_with(name.trim_end_matches(|digit: char| digit.is_ascii_digit()));
    if has_name { version } else { format!("{name} {version}") }
}

/// The text in lines of the documents' width.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if line.len() + word.len() >= WIDTH && !line.is_empty() {
            lines.push(word.to_owned());
        } else {
            let space = if line.is_empty() { "" } else { " " };
            *line += &format!("{space}{word}");
        }
    }
    lines.join("\n")
}

const WIDTH: usize = 120;

const ADVICE: &str = include_str!("nostr_advice.md");

const SIZE: &str = "nostr-size";

const HEADLINE: &str = "\
| work | fastest other, per second | Wireproof one at a time, per second | ratio | many in a call, per second | ratio | command |
|---|---:|---:|---:|---:|---:|---|
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn every_ratio_of_the_headline_names_its_other_and_a_column_has_one_scale() {
        let results = samples::published();
        let run = PublishedRun { name: "a-run", results: &results, depth: 0 };
        let headline = run.headline().unwrap();
        let rows: Vec<Vec<&str>> = headline
            .lines()
            .skip(2)
            .filter(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert!(rows.len() > 10);
        for row in &rows {
            let other = row[1].split(' ').next().unwrap();
            for ratio in [row[3], row[5]].into_iter().filter(|ratio| !ratio.is_empty()) {
                assert!(ratio.contains(&format!(" × {other}")), "{row:?}");
            }
            for speed in [row[1], row[2], row[4]] {
                assert!(!speed.contains("ms") && !speed.contains("/s"), "{row:?}");
            }
        }
        assert!(headline.ends_with("(`bench hostile`).\n"), "{headline}");
    }
}
