//! What is the same on every page: skeleton, style, scripts? And under which policy does it load?

use std::borrow::Cow;

use data_encoding::BASE64;
use wireproof::kernels::sha256;

/// The page of these parts; `data` is JSON, and `body` is markup.
pub(crate) fn assemble(title: &str, body: &str, data: &str) -> String {
    let script = script();
    let data = without_markup(data);
    let policy = policy(&[PLOT, &script], &[STYLE, PLOT_STYLE]);
    let parts = [
        ("policy", policy.as_str()),
        ("title", title),
        ("style", STYLE),
        ("body", body),
        ("data", &data),
        ("plot", PLOT),
        ("script", &script),
    ];
    fill(SKELETON, &parts)
}

/// Nothing is loaded, from nowhere, and only these scripts and styles count.
fn policy(scripts: &[&str], styles: &[&str]) -> String {
    let hashes = |texts: &[&str]| {
        let hash =
            |text: &&str| format!(" 'sha256-{}'", BASE64.encode(&sha256::digest(text.as_bytes())));
        texts.iter().map(hash).collect::<String>()
    };
    format!(
        "default-src 'none'; script-src{}; style-src{}; base-uri 'none'; form-action 'none'",
        hashes(scripts),
        hashes(styles)
    )
}

/// The modules as one script: they have no names in common, and what they import stands before them.
fn script() -> String {
    let mut script = String::from("\"use strict\";\n(() => {\n");
    for module in MODULES {
        for line in module.lines().filter(|line| !line.starts_with("import ")) {
            script += line.strip_prefix("export ").unwrap_or(line);
            script.push('\n');
        }
    }
    script + "})();\n"
}

/// The same JSON, in which nothing can end a script or begin a comment.
fn without_markup(json: &str) -> Cow<'_, str> {
    if !json.contains(['<', '>', '&']) {
        return json.into();
    }
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").into()
}

/// Puts the parts into the places that are called by their names; what a part holds is no place.
fn fill(skeleton: &str, parts: &[(&str, &str)]) -> String {
    let mut pieces = skeleton.split("{{");
    let mut page = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("the skeleton's places are closed");
        let part = parts.iter().find(|(known, _)| *known == name);
        page += part.expect("the skeleton's places are known").1;
        page += rest;
    }
    page
}

const SKELETON: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
const PLOT: &str = include_str!("../vendor/plot.min.js");
/// Of every package in it.
pub(crate) const PLOT_LICENCES: &str = include_str!("../vendor/plot.licences.txt");
/// What Observable Plot puts into a picture that is called `distribution`.
const PLOT_STYLE: &str = include_str!("../vendor/plot.style.css");

/// In the order in which they need each other.
const MODULES: [&str; 7] = [
    include_str!("../page/js/model.js"),
    include_str!("../page/js/filter.js"),
    include_str!("../page/js/sort.js"),
    include_str!("../page/js/baseline.js"),
    include_str!("../page/js/details.js"),
    include_str!("../page/js/distribution.js"),
    include_str!("../page/js/main.js"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use data_encoding::HEXLOWER;

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
        for text in [PLOT, &script(), STYLE, PLOT_STYLE] {
            let text = text.to_lowercase();
            assert!(
                !text.contains("</script") && !text.contains("</style") && !text.contains("<!--")
            );
        }
    }

    #[test]
    fn a_part_that_looks_like_a_place_is_left_as_it_is() {
        assert_eq!(fill("a{{b}}c{{d}}", &[("b", "{{d}}"), ("d", "!")]), "a{{d}}c!");
    }

    #[test]
    fn modules_have_no_names_in_common_and_import_only_what_stands_before_them() {
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

    #[test]
    fn the_chart_library_is_the_one_that_its_readme_says() {
        let readme = include_str!("../vendor/README.md");
        let hash = HEXLOWER.encode(&sha256::digest(PLOT.as_bytes()));
        assert!(readme.contains(&hash), "vendor/README.md does not name {hash}");
    }
}
