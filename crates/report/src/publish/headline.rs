//! The table of the README: our rows of the chosen kinds of work, and of those at which we are slower or equal.

use results::Row;
use results::terminal::thousands;

use super::parts::PublishedRun;
use crate::picture;
use crate::standing::{self, Standing};

impl PublishedRun<'_> {
    /// Our rows by their ways, next to the fastest other peer: the chosen kinds of work, then the lost ones.
    pub(super) fn headline(&self) -> Option<String> {
        let lines = standing::headlines(self.results());
        let mut table = HEADLINE.to_owned();
        for (headline, standing) in &lines {
            table += &self.headline_row(headline.words, standing);
        }
        for standing in self.lost_or_equal() {
            table += &self.headline_row(&format!("`{}`", standing.single.work()), &standing);
        }
        (!lines.is_empty()).then_some(table)
    }

    /// The other works at which we are slower or equal, one at a time, in one of the runs.
    fn lost_or_equal(&self) -> Vec<Standing<'_>> {
        let mut lost = standing::lost_or_equal(self.results());
        for other in
            self.without_avx512.iter().flat_map(|run| standing::lost_or_equal(&run.results))
        {
            let (task, work) = (&other.single.task, other.single.work());
            let is_same =
                |one: &Standing<'_>| one.single.task == *task && one.single.work() == work;
            if !lost.iter().any(is_same) {
                lost.extend(Standing::of(standing::rows_of(self.results(), task), &work));
            }
        }
        lost.sort_by_key(|standing| self.place(&standing.single.task));
        lost
    }

    /// Where a task is in the report.
    fn place(&self, task: &str) -> Option<usize> {
        self.results().rows.iter().position(|row| row.task == task)
    }

    fn headline_row(&self, words: &str, standing: &Standing<'_>) -> String {
        let Standing { single, batch, prepared, peer, .. } = standing;
        let cell = |row: &Row, label: &str| {
            let times = picture::ratio_to(row, peer).unwrap_or_default();
            let label = if label.is_empty() { String::new() } else { format!(" ({label})") };
            format!("{times}, {}{label}", per_second(row))
        };
        let many = batch.map(|row| cell(row, row.batch_label().unwrap_or_default()));
        let prepared = prepared.map(|row| cell(row, &row.prepared_label()));
        format!(
            "| {words} | {} {} | {} | {} | {} | {} | `bench {}` |\n",
            peer.peer,
            per_second(peer),
            cell(single, ""),
            many.unwrap_or_default(),
            prepared.unwrap_or_default(),
            self.ratios_without_avx512(single).unwrap_or_default(),
            single.task
        )
    }

    /// The ratios of the second run at the work of a row: one at a time, many in a call, prepared.
    fn ratios_without_avx512(&self, row: &Row) -> Option<String> {
        let rows = standing::rows_of(&self.without_avx512?.results, &row.task);
        let Standing { single, batch, prepared, peer, .. } = Standing::of(rows, &row.work())?;
        let mut ways = vec![Some(single), batch, prepared];
        while let Some(None) = ways.last() {
            ways.pop();
        }
        let ratio = |way: Option<&Row>| match way {
            Some(row) => Some(picture::ratio(row.median()? / peer.median()?)),
            None => Some("–".to_owned()),
        };
        let ratios: Option<Vec<String>> = ways.into_iter().map(ratio).collect();
        Some(format!("{} × {}", ratios?.join("; "), peer.peer))
    }
}

/// Units per second, with a fraction where there are few: a column has one scale.
fn per_second(row: &Row) -> String {
    match row.median() {
        None => String::new(),
        Some(median) if median < 100.0 => format!("{median:.2}"),
        Some(median) => thousands(median),
    }
}

const HEADLINE: &str = "\
| work, a second | fastest other | one at a time | many in a call | with cached keys, an index or a builder | without AVX-512 | command |
|---|---:|---:|---:|---:|---:|---|
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::parts::tests::{of, published, table_rows};

    #[test]
    fn every_ratio_of_the_headline_names_its_other_and_a_column_has_one_scale() {
        let run = published();
        let run = of(&run);
        let headline = run.headline().unwrap();
        let rows = table_rows(&headline);
        assert!(rows.len() > 10);
        for row in &rows {
            let other = row[1].split(' ').next().unwrap();
            for cell in row[2..5].iter().filter(|cell| !cell.is_empty()) {
                assert!(cell.contains(&format!(" × {other}")), "{row:?}");
            }
            for speed in &row[1..5] {
                assert!(!speed.contains("ms") && !speed.contains("/s"), "{row:?}");
            }
        }
    }

    #[test]
    fn cached_keys_an_index_and_a_builder_have_a_column_of_their_own() {
        let run = published();
        let run = of(&run);
        let headline = run.headline().unwrap();
        for row in table_rows(&headline) {
            let words = ["cached", "index", "buffered"];
            let has_words = |cell: &str| words.iter().any(|word| cell.contains(word));
            assert!(!row[2..4].iter().copied().any(has_words), "{row:?}");
            assert!(row[4].is_empty() || has_words(row[4]), "{row:?}");
        }
    }

    #[test]
    fn the_ratios_without_avx512_are_of_the_second_run_and_its_lost_works_are_rows_too() {
        let (run, mut second) = (published(), published());
        let slow = |row: &&mut Row| row.peer == results::PEER && row.task == "nostr-deserialize";
        for row in second.results.rows.iter_mut().filter(slow) {
            row.per_s.as_mut().unwrap().median /= 1e3;
        }
        let works = |run: &PublishedRun<'_>| table_rows(&run.headline().unwrap()).len();
        let both = PublishedRun { without_avx512: Some(&second), ..of(&run) };
        assert!(works(&both) > works(&of(&run)));
        let table = both.headline().unwrap();
        for row in table_rows(&table) {
            let single = row[2].split(" × ").next().unwrap();
            let is_slow = row[6] == "`bench nostr-deserialize`";
            assert_eq!(row[5].starts_with(single), !is_slow, "{row:?}");
            let other = row[1].split(' ').next().unwrap();
            assert!(row[5].ends_with(&format!(" × {other}")), "{row:?}");
        }
        assert!(table_rows(&of(&run).headline().unwrap()).iter().all(|row| row[5].is_empty()));
    }
}
