//! Writes a source file that contains its mutants, all behind switches.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

use crate::sites::{Form, Site};

/// A file with its mutants.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// Bytes of the text that belong to mutants, by their numbers.
    pub(crate) places: Vec<(Range<usize>, Vec<u32>)>,
}

/// Writes the file. The mutants of `sites` have the numbers from `first`, in order; those in `dropped` are left out.
pub(crate) fn render(source: &str, sites: &[Site], first: u32, dropped: &HashSet<u32>) -> Rendered {
    let mut next = first;
    let numbered = sites.iter().map(|site| {
        let ids = next..next + site.mutants.len() as u32;
        next = ids.end;
        (site, ids.zip(&site.mutants).filter(|(id, _)| !dropped.contains(id)))
    });
    let live = numbered
        .map(|(site, mutants)| {
            let texts = mutants.map(|(id, mutant)| (id, mutant.text.as_str())).collect();
            Live { form: site.form, range: site.range.clone(), texts }
        })
        .filter(|site| !site.texts.is_empty());
    let mut writer = Writer {
        source,
        sites: live.collect(),
        next: 0,
        copied: 0,
        out: Rendered { text: String::new(), places: Vec::new() },
    };
    writer.region(source.len());
    writer.out
}

/// A site with the mutants that are written.
struct Live<'a> {
    form: Form,
    range: Range<usize>,
    texts: Vec<(u32, &'a str)>,
}

struct Writer<'a> {
    source: &'a str,
    sites: Vec<Live<'a>>,
    next: usize,
    /// Bytes of the source that are written.
    copied: usize,
    out: Rendered,
}

impl Writer<'_> {
    /// Writes the source up to `end`, with its sites.
    fn region(&mut self, end: usize) {
        while self.sites.get(self.next).is_some_and(|site| site.range.start < end) {
            let at = self.next;
            self.next += 1;
            self.copy(self.sites[at].range.start);
            let start = self.out.text.len();
            match self.sites[at].form {
                Form::Body => self.each(at, |text| format!("{{ return {text}; }} ")),
                Form::Arm => self.arm(at),
                Form::Expression => self.expression(at),
            }
            let ids = self.sites[at].texts.iter().map(|(id, _)| *id).collect();
            self.out.places.push((start..self.out.text.len(), ids));
        }
        self.copy(end);
    }

    fn copy(&mut self, end: usize) {
        self.out.text.push_str(&self.source[self.copied..end]);
        self.copied = end;
    }

    /// Writes `if on(1) … else if on(2) …`, in which mutants of inner expressions are left out: one is active at a time.
    fn each(&mut self, at: usize, block: impl Fn(&str) -> String) {
        let site = &self.sites[at];
        for (index, (id, text)) in site.texts.iter().enumerate() {
            let start = self.out.text.len();
            let otherwise = if index == 0 { "" } else { "else " };
            let _ = write!(self.out.text, "{otherwise}if {SWITCH}({id}) {}", block(text));
            self.out.places.push((start..self.out.text.len(), vec![*id]));
        }
    }

    fn arm(&mut self, at: usize) {
        let id = self.sites[at].texts[0].0;
        let _ = write!(self.out.text, " if !{SWITCH}({id})");
    }

    fn expression(&mut self, at: usize) {
        self.out.text.push('(');
        self.each(at, |text| format!("{{ {text} }} "));
        self.out.text.push_str("else { ");
        self.region(self.sites[at].range.end);
        self.out.text.push_str(" })");
    }
}

const SWITCH: &str = "crate::__mutants::on";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites;

    fn rendered(source: &str, dropped: &[u32]) -> String {
        let sites = sites::find(source).unwrap();
        render(source, &sites, 1, &dropped.iter().copied().collect()).text
    }

    #[test]
    fn each_mutant_stands_behind_its_switch() {
        assert_eq!(
            rendered("fn f() -> bool { a == b }", &[2]),
            "fn f() -> bool {if crate::__mutants::on(1) { return true; }  \
             (if crate::__mutants::on(3) { (a) != (b) } else { a == b }) }"
        );
        assert_eq!(
            rendered("fn f() { match a { 1 => b, _ => c } }", &[1]),
            "fn f() { match a { 1 if !crate::__mutants::on(2) => b, _ => c } }"
        );
    }

    #[test]
    fn an_inner_mutant_stands_only_where_the_outer_ones_are_off() {
        let text = rendered("fn f() { a && b == c }", &[1]);
        assert_eq!(
            text,
            "fn f() { (if crate::__mutants::on(2) { (a) || (b == c) } else \
             { a && (if crate::__mutants::on(3) { (b) != (c) } else { b == c }) }) }"
        );
    }
}
