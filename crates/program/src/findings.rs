//! Findings of a command, printed as they are found: memory holds none of them, however many there are.
//!
//! | output | findings | after them |
//! |---|---|---|
//! | text | one a line: the first 10, with `--all` every one | the number of the others, the report |
//! | JSON | every one, in the array `findings` of one document | the fields of the report |
//! | line, of one input among many | JSON: every one, in the array `findings` of one line; text: none | the report |

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

use anstream::AutoStream;
use codec::printable::{PrintableLines, escape_json};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Output, and_more};

/// A printer of findings and, after them, of the report that they belong to.
#[derive(Debug)]
pub struct Findings<W: Write = BufWriter<AutoStream<StdoutLock<'static>>>> {
    out: W,
    form: Form,
    /// Number of findings, printed or not.
    count: usize,
}

/// The form of the output.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Lines, of which this number is shown.
    Text { shown: usize },
    /// One JSON document.
    Json,
    /// One JSON document on one line.
    JsonLine,
}

impl Findings<Vec<u8>> {
    /// Prints one input of many to memory: a line of JSON if `json` is set, else the text of the report alone.
    pub fn of_one(json: bool) -> Self {
        let form = if json { Form::JsonLine } else { Form::Text { shown: 0 } };
        Self { out: Vec::new(), form, count: 0 }
    }
}

impl Findings {
    /// Prints to standard output: JSON if `json` is set, else text with the first findings or `all` of them.
    pub fn new(output: Output, json: bool, all: bool) -> Self {
        let shown = if all { usize::MAX } else { SHOWN };
        let form = if json { Form::Json } else { Form::Text { shown } };
        Self { out: BufWriter::new(output.stdout()), form, count: 0 }
    }
}

impl<W: Write> Findings<W> {
    /// Prints text to `out`, with the first findings or `all` of them.
    pub fn text_to(out: W, all: bool) -> Self {
        let shown = if all { usize::MAX } else { SHOWN };
        Self { out, form: Form::Text { shown }, count: 0 }
    }

    /// Adds a finding. It is made only if it is printed.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn add<F: Serialize + Display>(
        &mut self,
        finding: impl FnOnce() -> F,
    ) -> Result<(), Failure> {
        let index = self.count;
        self.count += 1;
        match self.form {
            Form::Text { shown } if index >= shown => {}
            Form::Text { .. } => writeln!(self.out, "{}", PrintableLines(&finding().to_string()))?,
            Form::Json | Form::JsonLine => {
                let [first, next, ..] = self.form.punctuation();
                self.out.write_all(if index == 0 { first } else { next })?;
                write_json(&mut self.out, serde_json::to_vec(&finding()))?;
            }
        }
        Ok(())
    }

    /// Ends the findings, and prints the report: in JSON its fields, which must not have `findings` among them. Returns
    /// the printed text.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn finish<R: Serialize>(
        mut self,
        report: &R,
        to_text: impl FnOnce(&R) -> String,
    ) -> Result<W, Failure> {
        let json = match self.form {
            Form::Text { shown } => {
                let more = if shown == 0 { String::new() } else { and_more(self.count, shown) };
                let text = more + &to_text(report);
                write!(self.out, "{}", PrintableLines(&text))?;
                self.out.flush()?;
                return Ok(self.out);
            }
            Form::Json => serde_json::to_vec_pretty(report),
            Form::JsonLine => serde_json::to_vec(report),
        };
        let [.., none, last] = self.form.punctuation();
        self.out.write_all(if self.count == 0 { none } else { last })?;
        // The brace that opens the report opened the document.
        write_json(&mut self.out, json.map(|json| json[1..].to_vec()))?;
        self.out.write_all(b"\n")?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl Form {
    /// The text before the first finding, before every other, instead of findings, and after the last.
    fn punctuation(self) -> [&'static [u8]; 4] {
        match self {
            Self::JsonLine => [b"{\"findings\":[", b",", b"{\"findings\":[],", b"],"],
            _ => [FIRST, NEXT, NONE, LAST],
        }
    }
}

fn write_json(out: &mut impl Write, json: serde_json::Result<Vec<u8>>) -> io::Result<()> {
    let mut json = json?;
    escape_json(&mut json, 0);
    out.write_all(&json)
}

/// Findings shown in text without `--all`.
const SHOWN: usize = 10;

const FIRST: &[u8] = b"{\n  \"findings\": [\n    ";
const NEXT: &[u8] = b",\n    ";
const LAST: &[u8] = b"\n  ],";
const NONE: &[u8] = b"{\n  \"findings\": [],";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The output for a number of findings and a report of one field.
    fn printed(form: Form, count: usize) -> String {
        let mut out = Vec::new();
        let mut findings = Findings { out: &mut out, form, count: 0 };
        for number in 0..count {
            findings.add(|| format!("finding {number}\u{1b}")).unwrap();
        }
        findings.finish(&json!({ "frames": 7 }), |report| format!("{report}\n")).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_has_the_first_findings_the_number_of_the_others_and_the_report() {
        let line = |number| format!("finding {number}\\u{{1b}}\n");
        let text = printed(Form::Text { shown: 2 }, 5);
        let expected =
            line(0) + &line(1) + "… and 3 more: --all or --json shows them\n{\"frames\":7}\n";
        assert_eq!(text, expected);
        assert_eq!(printed(Form::Text { shown: usize::MAX }, 300).lines().count(), 301);
        assert_eq!(printed(Form::Text { shown: 2 }, 0), "{\"frames\":7}\n");
    }

    #[test]
    fn one_input_of_many_is_a_line_with_every_finding_or_its_report_alone() {
        for count in [0, 1, 2] {
            let text = printed(Form::JsonLine, count);
            let document: Value = serde_json::from_str(&text).unwrap();
            let findings: Vec<_> = (0..count).map(|n| format!("finding {n}\u{1b}")).collect();
            assert_eq!(document, json!({ "findings": findings, "frames": 7 }));
            assert_eq!((text.lines().count(), text.ends_with("}\n")), (1, true));
            assert_eq!(printed(Form::Text { shown: 0 }, count), "{\"frames\":7}\n");
        }
    }

    #[test]
    fn json_is_one_document_with_every_finding_and_the_fields_of_the_report() {
        for count in [0, 1, 2, 300] {
            let text = printed(Form::Json, count);
            let document: Value = serde_json::from_str(&text).unwrap();
            let findings: Vec<_> = (0..count).map(|n| format!("finding {n}\u{1b}")).collect();
            assert_eq!(document, json!({ "findings": findings, "frames": 7 }));
            assert!(text.ends_with("}\n") && !text.contains('\u{1b}'), "{text}");
        }
    }
}
