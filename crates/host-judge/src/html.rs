//! The judgement as one self-contained page, in both themes, without scripts.

use crate::{Judgement, Kind};

/// The page.
pub fn page(judgement: &Judgement) -> String {
    let Judgement { host, kind, verdict, accounts, repositories, stream, answers, .. } = judgement;
    let mut out = String::with_capacity(8 << 10);
    let title = format!("{}: {verdict}", escape(host));
    out += "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">";
    out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
    out += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">";
    out += &format!("<title>{title}</title><style>{STYLE}</style></head><body><main>\n");
    out += &format!(
        "<h1>{}</h1>\n<p class=\"{verdict}\">{}</p>\n<dl>",
        escape(host),
        escape(&judgement.line())
    );
    let facts = [
        ("kind", (*kind).to_owned()),
        ("answers", answers.to_string()),
        ("repositories proved", format!("{repositories} of {accounts}")),
        ("messages", format!("{} live, {} of the oldest", stream.live, stream.oldest)),
        ("events proved", format!("{}, {} without a key", stream.proved, stream.without_key)),
    ];
    for (name, value) in facts {
        out += &format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    out += "</dl>\n";
    for (kind, heading) in HEADINGS {
        section(&mut out, judgement, kind, heading);
    }
    out + "</main></body></html>\n"
}

fn section(out: &mut String, judgement: &Judgement, kind: Kind, heading: &str) {
    let codes: Vec<_> = judgement.codes.iter().filter(|count| count.kind == kind).collect();
    if codes.is_empty() {
        return;
    }
    *out += &format!("<h2>{heading}</h2>\n");
    for count in codes {
        *out += &format!("<section><h3><code>{}</code> {} ×</h3>", count.code, count.count);
        if let Some(rule) = crate::rule::ALL.iter().find(|rule| rule.code == count.code) {
            *out += &format!("<p>Rule: {}.</p>", escape(rule.text));
        }
        let of_code = judgement.findings.iter().filter(|finding| finding.code == count.code);
        for (number, finding) in of_code.enumerate() {
            if number == 0 {
                *out += &format!("<p>To do: {}.</p><ul>", escape(finding.action));
            }
            *out += &format!("<li><code>{}</code>", finding.method);
            if let Some(seq) = finding.seq {
                *out += &format!(" at {seq}");
            }
            if let Some(account) = &finding.account {
                *out += &format!(" of <code>{}</code>", escape(account));
            }
            *out += &format!(": {}", escape(&finding.message));
            if !finding.command.is_empty() {
                *out += &format!("<pre>{}</pre>", escape(&finding.command));
            }
            *out += "</li>";
        }
        *out += "</ul></section>\n";
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            char => out.push(char),
        }
    }
    out
}

const HEADINGS: [(Kind, &str); 3] =
    [(Kind::Violation, "Violations"), (Kind::Unknown, "Unanswered"), (Kind::Note, "Notes")];

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d5dae0;--good:#19703b;--bad:#b3261e;--dim:#5a6472}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--paper:#14171b;--line:#353c45;--good:#6fd394;--bad:#ff8a80;--dim:#9aa5b1}}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem}h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}\
h3{font-size:1rem;margin:0}.sound{color:var(--good)}.faulty{color:var(--bad)}.unanswered{color:var(--dim)}\
dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem}dt{color:var(--dim);font-size:.85rem}dd{margin:0}\
section{border-top:1px solid var(--line);padding:1rem 0}li{overflow-wrap:anywhere;margin:.5rem 0}\
pre{background:color-mix(in srgb,var(--ink) 8%,transparent);padding:.5rem;white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}code,pre{font-size:.9rem}";
