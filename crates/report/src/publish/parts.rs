//! The parts of documents that a run fills in, by the names in their markers.

use results::terminal::{self, thousands};
use results::{Results, Row, Sizes, percent_of_json};

use super::Run;
use crate::machine;
use crate::standing::{self, Standing};

/// A run, for a document in a folder `depth` below the root.
pub(super) struct PublishedRun<'r> {
    pub(super) run: &'r Run,
    /// The second run, for processors without AVX-512.
    pub(super) without_avx512: Option<&'r Run>,
    pub(super) depth: usize,
}

impl PublishedRun<'_> {
    /// The part called `name`; `None` if it is unknown or the run lacks it.
    ///
    /// | name | content |
    /// |---|---|
    /// | `accepted` | what every implementation did with malformed repositories |
    /// | `headline` | the table of the README: our rows by their ways, next to the fastest other peer, and the ratios without AVX-512; first the chosen kinds of work, then the others at which we are slower or equal in one of the runs |
    /// | `not measured` | the peers that were not measured, with the reasons |
    /// | `table TASK` | the table, legend and summary of a task, as `wireproof bench` prints them |
    /// | `example TASK` | the head of that table: our best row, the best other one, and the baseline |
    /// | `measured`, `measured without AVX-512` | the time, machine and file of the run, and of the second one |
    /// | `run`, `date`, `machine` | a link to the run's file, its day, the machine |
    /// | `batch times`, `batch times without AVX-512`, `single times` | the least and greatest ratio of the headline |
    /// | `hostile cases` | the number of hostile inputs of the run |
    /// | `nostr advice` | which format of Nostr events to pick, with the parts below |
    /// | `real events` | the number of Nostr events of the network |
    /// | `raw FORMAT`, `framed FORMAT` | their size in a format as a percentage of JSON: bare, and all together under Zstandard |
    /// | `time TASK VARIANT` | our median time for a unit in nanoseconds |
    /// | `decoding VARIANT` | the percentage of the time of `nostr-validated` that decoding alone takes |
    pub(super) fn part(&self, name: &str) -> Option<String> {
        match name.split_once(' ').unwrap_or((name, "")) {
            ("accepted", "") => self.accepted(),
            ("headline", "") => self.headline(),
            ("not", "measured") => Some(self.not_measured()),
            ("table", task) => self.table(task),
            ("example", task) => self.example(task),
            ("measured", "") => Some(self.measured()),
            ("measured", WITHOUT) => self.measured_without_avx512(),
            ("run", "") => Some(self.link()),
            ("date", "") => Some(self.date()),
            ("machine", "") => Some(machine::words(&self.results().machine)),
            ("batch", "times") => range(self.results(), |standing| standing.batch_times()),
            ("batch", "times without AVX-512") => {
                range(&self.without_avx512?.results, |standing| standing.batch_times())
            }
            ("single", "times") => range(self.results(), |standing| Some(standing.single_times())),
            ("hostile", "cases") => cases(self.results()).map(|cases| cases.to_string()),
            ("nostr", "advice") => self.nostr_advice(),
            ("real", "events") => Some(thousands(self.ours(SIZE, "json@real")?.units as f64)),
            ("raw", format) => self.real_size(format, |sizes| sizes.raw),
            ("framed", format) => self.real_size(format, |sizes| sizes.framed_zstd3),
            ("time", row) => Some(thousands(self.time_ns(row.split_once(' ')?)?)),
            ("decoding", variant) => self.decoding_share(variant),
            _ => None,
        }
    }

    pub(super) fn results(&self) -> &Results {
        &self.run.results
    }

    fn link(&self) -> String {
        self.link_to(self.run)
    }

    fn link_to(&self, run: &Run) -> String {
        let (root, name) = ("../".repeat(self.depth), &run.name);
        format!("[bench/results/{name}]({root}bench/results/{name}/{})", crate::RAW)
    }

    /// `21 November 2026`
    fn date(&self) -> String {
        date(self.results())
    }

    fn measured(&self) -> String {
        wrapped(&format!("All numbers come from one run{}.", self.when_and_where(self.run)))
    }

    fn measured_without_avx512(&self) -> Option<String> {
        let run = self.without_avx512?;
        let level = run.results.settings.as_ref()?.backend.as_ref();
        let kept = level.map(|level| {
            format!(
                " `--backend {level}` kept our rows below AVX-512; the others were not limited."
            )
        });
        let run = self.when_and_where(run);
        let kept = kept.unwrap_or_default();
        Some(wrapped(&format!(
            "Only the ratios without AVX-512 come from a second run{run}.{kept}"
        )))
    }

    /// The passes, file, day and machine of a run.
    fn when_and_where(&self, run: &Run) -> String {
        let Results { machine, settings, .. } = &run.results;
        let passes = settings
            .as_ref()
            .map_or(String::new(), |settings| format!(" of {} passes", settings.passes));
        let tools: Vec<String> = machine.toolchains.iter().map(tool).collect();
        let date = date(&run.results);
        let words = machine::words(machine);
        let link = self.link_to(run);
        let (features, os) = (machine.features.join(", "), &machine.os);
        format!(
            "{passes}, {link}, measured on {date} on one core of: {words}; {os}; {}; instruction sets: {features}",
            tools.join(", ")
        )
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
        let rows = standing::rows_of(self.results(), task);
        rows.iter().find(|row| row.peer == results::PEER && row.variant == variant)
    }

    /// A size of the real events in a format as a percentage of JSON.
    fn real_size(&self, format: &str, len: fn(&Sizes) -> u64) -> Option<String> {
        let rows: Vec<&Row> = standing::rows_of(self.results(), SIZE).iter().collect();
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

    /// What every implementation did with malformed and with valid repositories.
    fn accepted(&self) -> Option<String> {
        let is_of_repositories = |row: &&Row| row.variant == "repo" && row.cases.len() > 1;
        let rows = standing::rows_of(self.results(), "hostile").iter().filter(is_of_repositories);
        let mut rows: Vec<&Row> = rows.collect();
        let malformed = invalid(rows.first()?);
        rows.retain(|row| invalid(row) == malformed);
        rows.sort_by_key(|row| (count(row, "accepted"), row.valid_refused, &row.peer));
        let mut table =
            format!("| implementation | malformed repositories accepted, of {malformed} |{VALID}");
        for row in rows {
            let ends = count(row, "crashed") + count(row, "hung");
            let refused = row.valid_refused.unwrap_or_default();
            table +=
                &format!("| {} | {} | {ends} | {refused} |\n", row.peer, count(row, "accepted"));
        }
        Some(table)
    }

    /// The peers that were not measured, with the reasons.
    fn not_measured(&self) -> String {
        let peers = self.results().unavailable.iter();
        let peers: Vec<String> =
            peers.map(|of| format!("{}: not measured, {}", of.peer, of.plain_reason())).collect();
        if peers.is_empty() {
            "All implementations were measured.".to_owned()
        } else {
            wrapped(&format!("{}.", peers.join("; ")))
        }
    }

    fn table(&self, task: &str) -> Option<String> {
        let rows = standing::rows_of(self.results(), task);
        (!rows.is_empty()).then(|| self.text(rows.to_vec()))
    }

    /// The fastest representing rows of us and of the fastest other peer, and the row that ratios refer to.
    fn example(&self, task: &str) -> Option<String> {
        let rows = standing::rows_of(self.results(), task);
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
        let only = Results { rows, unavailable: Vec::new(), ..self.results().clone() };
        format!("```text\n{}```", terminal::text(&only, None))
    }
}

/// The least and the greatest of the headline's ratios.
fn range(results: &Results, times: fn(&Standing<'_>) -> Option<f64>) -> Option<String> {
    let headlines = standing::headlines(results);
    let times = || headlines.iter().filter_map(|(_, standing)| times(standing));
    let (least, greatest) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    Some(format!("{least:.1} to {greatest:.1}"))
}

/// The day of a run: `21 November 2026`.
fn date(results: &Results) -> String {
    let started: Result<jiff::Timestamp, _> = results.started.parse();
    started.map_or_else(|_| results.started.clone(), |at| at.strftime("%-d %B %Y").to_string())
}

/// The number of malformed cases with this outcome.
fn count(row: &Row, outcome: &str) -> u64 {
    row.counts.get(outcome).unwrap_or_default()
}

/// The number of malformed cases of a row.
fn invalid(row: &Row) -> u64 {
    ["refused", "accepted", "crashed", "hung"].iter().map(|outcome| count(row, outcome)).sum()
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

const WITHOUT: &str = "without AVX-512";

const ADVICE: &str = include_str!("nostr_advice.md");

const SIZE: &str = "nostr-size";

const VALID: &str = " crashed or hung | valid ones refused |
|---|---:|---:|---:|
";

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::samples;

    pub(in crate::publish) fn published() -> Run {
        Run { name: "a-run".to_owned(), results: samples::published() }
    }

    pub(in crate::publish) fn of(run: &Run) -> PublishedRun<'_> {
        PublishedRun { run, without_avx512: None, depth: 0 }
    }

    pub(in crate::publish) fn table_rows(text: &str) -> Vec<Vec<&str>> {
        let rows = text.lines().skip(2).filter(|line| line.starts_with('|'));
        rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }

    #[test]
    fn malformed_repositories_are_counted_for_every_implementation_and_the_strictest_is_first() {
        let run = published();
        let run = of(&run);
        let table = run.accepted().unwrap();
        let accepted: Vec<u64> =
            table_rows(&table).iter().map(|row| row[1].parse().unwrap()).collect();
        assert!(accepted.len() > 5 && accepted.is_sorted(), "{table}");
        assert!(table.contains(&format!("| {} | 0 | 0 | 0 |", results::PEER)), "{table}");
    }

    #[test]
    fn a_peer_that_was_not_measured_is_named_with_the_reason() {
        let mut run = published();
        let reason = "its source is not available (python: no network)".to_owned();
        run.results.unavailable = vec![results::Unavailable { peer: "zig-zat".to_owned(), reason }];
        let text = "zig-zat: not measured, its source could not be downloaded.";
        assert_eq!(of(&run).not_measured(), text);
        run.results.unavailable.clear();
        assert_eq!(of(&run).not_measured(), "All implementations were measured.");
    }

    #[test]
    fn the_second_run_is_named_with_what_our_rows_were_kept_to() {
        let (run, mut second) = (published(), published());
        second.results.settings.as_mut().unwrap().backend = Some("avx2".to_owned());
        let both = PublishedRun { without_avx512: Some(&second), ..of(&run) };
        let measured = both.measured_without_avx512().unwrap().replace('\n', " ");
        assert!(measured.starts_with("Only the ratios without AVX-512 come from"), "{measured}");
        assert!(measured.contains("`--backend avx2` kept our rows"), "{measured}");
        assert_eq!(of(&run).measured_without_avx512(), None);
    }
}
