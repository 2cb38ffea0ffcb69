//! Which lines and words of the report stand out, where colour is wanted?

use anstyle::{AnsiColor, Style};

/// What a table is about.
pub(super) const TITLE: Style = Style::new().bold();
/// The names of its columns.
pub(super) const HEADING: Style = Style::new().underline();
/// The fastest row of its kind that did the same work.
pub(super) const FASTEST: Style = AnsiColor::Green.on_default();
/// An answer that is not right.
pub(super) const WRONG: Style = AnsiColor::Red.on_default().bold();
/// A row like the others.
pub(super) const PLAIN: Style = Style::new();

/// The text in a style.
pub(super) fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The lines of a table, the first as a heading and the others each in its style, and what stands between
/// double asterisks as wrong.
pub(super) fn table(text: &str, styles: &[Style]) -> String {
    let rows = styles.iter().chain(std::iter::repeat(&PLAIN));
    let styles = std::iter::once(&HEADING).chain(rows);
    let lines = text.lines().zip(styles).map(|(line, style)| wrong_words(&painted(*style, line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What stands between double asterisks is wrong; the asterisks stay, for those who see no colour.
pub(super) fn wrong_words(text: &str) -> String {
    let mut parts = text.split("**");
    let mut painted_text = parts.next().unwrap_or_default().to_owned();
    while let Some(word) = parts.next() {
        match parts.next() {
            Some(rest) => painted_text += &(painted(WRONG, &format!("**{word}**")) + rest),
            None => painted_text += &format!("**{word}"),
        }
    }
    painted_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_heading_and_rows_and_reads_the_same_without_colour() {
        let plain = "peer  must\na     **accepts**\nb     refuses";
        let painted = table(plain, &[FASTEST]);
        assert!(painted.starts_with("\u{1b}[4mpeer  must\u{1b}[0m\n\u{1b}[32ma "), "{painted:?}");
        assert!(painted.contains("\u{1b}[31m**accepts**\u{1b}[0m"), "{painted:?}");
        assert!(painted.ends_with("\nb     refuses"), "{painted:?}");
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), plain);
    }

    #[test]
    fn asterisks_that_enclose_nothing_are_left_alone() {
        for text in ["", "a ** b", "no word"] {
            assert_eq!(wrong_words(text), text);
        }
    }
}
