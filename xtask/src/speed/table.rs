//! Passes as a table, which `--publish` writes into `docs/measured.md`.

use std::fs;
use std::time::Duration;

use jiff::Zoned;

use crate::process;

/// The costs of one pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub(super) events: f64,
    pub(super) seconds: f64,
    /// Of the program that delivers.
    pub(super) processor_time: Duration,
    pub(super) peak_bytes: u64,
}

impl Pass {
    fn rate(&self) -> f64 {
        self.events / self.seconds
    }

    /// Seconds of a core for 100,000 events.
    fn cost(&self) -> f64 {
        self.processor_time.as_secs_f64() / self.events * 1e5
    }
}

/// Rows of passes that were made in turn; the first row is the one that others are compared with.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<(String, Vec<Pass>)>,
}

impl Table {
    /// Adds a pass to the row of this name, and reports it.
    pub(super) fn add(&mut self, name: &str, pass: Pass) {
        eprintln!(
            "{name}: {:.0} events/s, {:.2} s of a core for 100,000",
            pass.rate(),
            pass.cost()
        );
        match self.rows.iter_mut().find(|(known, _)| known == name) {
            Some((_, passes)) => passes.push(pass),
            None => self.rows.push((name.to_owned(), vec![pass])),
        }
    }

    /// The table in Markdown. `what` heads the names; ratios name the first row.
    fn to_markdown(&self, what: &str) -> String {
        let mut text = format!(
            "| {what} | events/s per pass | ratio | seconds of a core for 100,000 events | memory at most, MiB |\n\
             |---|---:|---:|---:|---:|\n"
        );
        let Some((other, first)) = self.rows.first() else { return text };
        for (name, passes) in &self.rows {
            let rates: Vec<String> = passes.iter().map(|pass| thousands(pass.rate())).collect();
            let ratio = median(passes.iter().zip(first).map(|(pass, of)| pass.rate() / of.rate()));
            let cost = median(passes.iter().map(Pass::cost));
            let memory = passes.iter().map(|pass| pass.peak_bytes >> 20).max().unwrap_or_default();
            let rates = rates.join(", ");
            text +=
                &format!("| {name} | {rates} | {ratio:.2} × {other} | {cost:.2} | {memory} |\n");
        }
        text
    }

    /// Prints the table, and writes it into the block `name` of the page of measurements if it is for publication.
    pub(super) fn finish(&self, name: &str, what: &str, is_published: bool) -> Result<(), String> {
        report(name, &self.to_markdown(what), is_published)
    }
}

/// Prints a table, and writes it into the block `name` of the page of measurements if it is for publication.
pub(super) fn report(name: &str, table: &str, is_published: bool) -> Result<(), String> {
    println!("{table}");
    if !is_published {
        return Ok(());
    }
    let path = process::root().join("docs/measured.md");
    let page = fs::read_to_string(&path).map_err(|error| process::at(&path, &error))?;
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let block = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}{table}\n{}\n{end}{after}", origin()))
    });
    let page = block.ok_or_else(|| format!("{}: no block {name}", path.display()))?;
    fs::write(&path, page).map_err(|error| process::at(&path, &error))
}

/// When and where the passes were made.
fn origin() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = processors.lines().find(|line| line.starts_with(name));
        line.and_then(|line| Some(line.split_once(": ")?.1.to_owned())).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let name = field("model name");
    let family = field("cpu family");
    let model = field("model\t");
    let day = Zoned::now().strftime("%-d %B %Y").to_string();
    format!("Measured on {day} on {cores} cores of: {name} (family {family}, model {model}).")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A number with separators of thousands.
fn thousands(number: f64) -> String {
    let number = number as u64;
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_each_pass_and_the_median_of_its_ratios() {
        let pass = |events, seconds| Pass {
            events,
            seconds,
            processor_time: Duration::from_secs(2),
            peak_bytes: 5 << 20,
        };
        let mut table = Table::default();
        for seconds in [1.0, 2.0, 4.0] {
            table.add("standard output", pass(100_000.0, seconds));
            table.add("files", pass(50_000.0, 1.0));
        }
        let markdown = table.to_markdown("into");
        let rows: Vec<&str> = markdown.lines().skip(2).collect();
        assert_eq!(
            rows[0],
            "| standard output | 100,000, 50,000, 25,000 | 1.00 × standard output | 2.00 | 5 |"
        );
        assert_eq!(
            rows[1],
            "| files | 50,000, 50,000, 50,000 | 1.00 × standard output | 4.00 | 5 |"
        );
    }
}
