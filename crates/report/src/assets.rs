//! The parts that every page shares: skeleton, style, scripts, and the policy that allows only these.

use std::borrow::Cow;

use data_encoding::BASE64;
use kernels::sha256;

/// Assembles the page; `data` is JSON, `body` is markup.
pub(crate) fn assemble(title: &str, body: &str, data: &str) -> String {
    let script = script();
    let data = without_markup(data);
    let policy = policy(&script, STYLE);
    let parts = [
        ("policy", policy.as_str()),
        ("title", title),
        ("style", STYLE),
        ("body", body),
        ("data", &data),
        ("script", &script),
    ];
    fill(SKELETON, &parts)
}

/// Allows this script and this style, and loading nothing.
fn policy(script: &str, style: &str) -> String {
    let hash = |text: &str| BASE64.encode(&sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

/// The modules as one script without comments and indentation: they declare no name twice, and imports come first.
fn script() -> String {
    let mut script = String::from("\"use strict\";\n(() => {\n");
    for module in MODULES {
        for line in module.lines().map(str::trim_start).filter(|line| is_kept(line)) {
            script += line.strip_prefix("export ").unwrap_or(line);
            script.push('\n');
        }
    }
    script + "})();\n"
}

/// Whether a line of a module stays in the script.
fn is_kept(line: &str) -> bool {
    let dropped = ["import ", "//", "/**"];
    !line.is_empty() && !dropped.iter().any(|begin| line.starts_with(begin))
}

/// The same JSON without characters that could end a script or begin a comment.
fn without_markup(json: &str) -> Cow<'_, str> {
    if !json.contains(['<', '>', '&']) {
        return json.into();
    }
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").into()
}

/// Replaces placeholders by the parts with their names; placeholders inside parts are left alone.
fn fill(skeleton: &str, parts: &[(&str, &str)]) -> String {
    let mut pieces = skeleton.split("{{");
    let mut page = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("the skeleton's placeholders are closed");
        let part = parts.iter().find(|(known, _)| *known == name);
        page += part.expect("the skeleton's placeholders are known").1;
        page += rest;
    }
    page
}

const SKELETON: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");

/// In the order of their imports.
const MODULES: [&str; 7] = [
    include_str!("../page/js/model.js"),
    include_str!("../page/js/choices.js"),
    include_str!("../page/js/bars.js"),
    include_str!("../page/js/details.js"),
    include_str!("../page/js/rows.js"),
    include_str!("../page/js/tables.js"),
    include_str!("../page/js/main.js"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_script_and_style_of_the_page_is_in_its_policy_and_nothing_else_is_allowed() {
        let page = assemble("a title", "<main></main>", "{}");
        for (open, close) in [("<script>", "</script>"), ("<style>", "</style>")] {
            for inline in page.split(open).skip(1) {
                let text = inline.split_once(close).unwrap().0;
                let hash = BASE64.encode(&sha256::digest(text.as_bytes()));
                assert!(page.contains(&format!("'sha256-{hash}'")), "{open} {:.60}", text);
            }
        }
        assert!(page.contains("default-src 'none'; script-src 'sha256-"));
        assert!(!page.contains("unsafe-inline") && !page.contains("unsafe-eval"));
    }

    #[test]
    fn data_cannot_end_its_script() {
        let json = r#"{"note":"</script><!-- &"}"#;
        let safe = without_markup(json);
        assert!(!safe.contains(['<', '>', '&']));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
            serde_json::from_str::<serde_json::Value>(json).unwrap()
        );
    }

    #[test]
    fn nothing_in_a_script_or_style_ends_it() {
        for text in [&script(), STYLE] {
            let text = text.to_lowercase();
            assert!(
                !text.contains("</script") && !text.contains("</style") && !text.contains("<!--")
            );
        }
    }

    #[test]
    fn a_part_that_looks_like_a_placeholder_is_left_alone() {
        assert_eq!(fill("a{{b}}c{{d}}", &[("b", "{{d}}"), ("d", "!")]), "a{{d}}c!");
    }

    #[test]
    fn comments_and_texts_of_modules_end_on_their_line() {
        for line in MODULES.iter().flat_map(|module| module.lines()) {
            let is_open = line.trim_start().starts_with("/*") && !line.trim_end().ends_with("*/");
            assert!(!is_open && line.matches('`').count() % 2 == 0, "{line}");
        }
    }

    #[test]
    fn modules_declare_no_name_twice_and_import_only_from_earlier_ones() {
        let mut names = BTreeSet::new();
        for module in MODULES {
            for line in module.lines().filter(|line| line.starts_with("import ")) {
                let imported = line.split_once('{').unwrap().1.split_once('}').unwrap().0;
                for name in imported.split(',') {
                    assert!(names.contains(name.trim()), "{line}");
                }
            }
            for line in module.lines() {
                let line = line.strip_prefix("export ").unwrap_or(line);
                let line = line.strip_prefix("async ").unwrap_or(line);
                let declared = ["function ", "const ", "let ", "class "];
                if let Some(rest) = declared.iter().find_map(|word| line.strip_prefix(word)) {
                    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
                    let name = rest.split(|letter| !is_name(letter)).next().unwrap();
                    assert!(names.insert(name.to_owned()), "{name} is declared twice");
                }
            }
        }
    }
}
