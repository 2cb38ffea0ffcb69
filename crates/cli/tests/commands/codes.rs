//! The page of codes and the JSON Schemas list every code of the program, and no other.
//!
//! Codes are the texts in functions named `code` or `…_code`, in constants named `…_CODE`, and the variants of `Code` that are used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use events::Code;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItemFn, ItemConst, ItemFn, ItemMod, LitStr};

use crate::schemas;

#[test]
fn the_page_of_codes_lists_each_code_once_with_its_meaning_and_what_to_do() {
    let page = read("docs/formats/codes.md");
    let listed: Vec<&str> = rows(&page).collect();
    let different: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), different.len(), "a code has one row");
    let codes = codes_of_the_program();
    let of_python = codes_of_the_python_package();
    let names: BTreeSet<&str> = codes.iter().chain(&of_python).map(String::as_str).collect();
    let missing: Vec<_> = names.difference(&different).collect();
    let unknown: Vec<_> = different.difference(&names).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
}

#[test]
fn the_schemas_have_the_codes_of_the_page_except_warnings() {
    let page = read("docs/formats/codes.md");
    let (of_data, _) = page.split_once("## Warnings").unwrap();
    let schema = schemas::read("follow/types.json");
    let listed = schema["$defs"]["Code"]["enum"].as_array().unwrap();
    let listed: Vec<&str> = listed.iter().filter_map(|code| code.as_str()).collect();
    assert_eq!(listed, rows(of_data).collect::<Vec<_>>(), "in the order of the page");
}

#[test]
fn the_hostile_set_has_codes_of_the_page() {
    let page = read("docs/formats/codes.md");
    let listed: BTreeSet<&str> = rows(&page).collect();
    let set = simnet::hostile::CaseSet::generate(&simnet::hostile::Spec::default());
    let codes: BTreeSet<&str> = set.cases().iter().filter_map(|case| case.code).collect();
    assert!(codes.len() > 50 && codes.is_subset(&listed), "{:?}", codes.difference(&listed));
}

/// The codes in the first column of the tables. Every row has three columns that are not empty.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [code, meaning, cure] = *columns else { panic!("three columns: {row}") };
        assert!(meaning.ends_with('.') && cure.ends_with('.'), "sentences: {row}");
        code.trim_matches('`')
    })
}

fn codes_of_the_program() -> BTreeSet<String> {
    let mut found = Codes::default();
    for path in sources(&root().join("crates")) {
        let text = std::fs::read_to_string(&path).unwrap();
        found.visit_file(
            &syn::parse_file(&text).unwrap_or_else(|error| panic!("{path:?}: {error}")),
        );
    }
    let is_used = |code: &&Code<'_>| found.variants.contains(&format!("{code:?}"));
    let used = Code::ALL.iter().filter(is_used).map(|code| code.as_str().to_owned());
    let codes: BTreeSet<String> = found.codes.iter().cloned().chain(used).collect();
    assert!(codes.len() > 80, "{codes:?}");
    codes
}

/// The texts of the Python package that have the form of a code.
fn codes_of_the_python_package() -> BTreeSet<String> {
    let sources = sources(&root().join("bindings/python/src"));
    let texts = sources.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let texts: Vec<String> = text.split('"').map(str::to_owned).collect();
        texts
    });
    let is_code = |text: &String| {
        let mut parts = text.split('/');
        let is_name = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        text == "dag-cbor" || parts.clone().count() == 2 && parts.all(is_name)
    };
    let codes: BTreeSet<String> = texts.filter(is_code).collect();
    assert!(codes.contains("event/unencodable") && codes.len() > 20, "{codes:?}");
    codes
}

/// The sources of the crates, without tests and the simulated network.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_left_out = |path: &PathBuf| {
        ["tests", "tests.rs", "benches", "examples", "simnet"]
            .iter()
            .any(|name| path.ends_with(name))
    };
    let of = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    };
    let files = entries.filter(|path| !is_left_out(path)).flat_map(of);
    files.filter(|path| path.extension().is_some_and(|name| name == "rs")).collect()
}

#[derive(Default)]
struct Codes {
    codes: BTreeSet<String>,
    /// The variants of `Code` that are used.
    variants: BTreeSet<String>,
    /// Number of surrounding functions and constants that hold codes.
    depth: usize,
}

impl Codes {
    fn within(&mut self, holds_codes: bool, visit: impl FnOnce(&mut Self)) {
        self.depth += usize::from(holds_codes);
        visit(self);
        self.depth -= usize::from(holds_codes);
    }
}

impl<'ast> Visit<'ast> for Codes {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let holds = is_code(&function.sig.ident);
        self.within(holds, |codes| visit::visit_item_fn(codes, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        let holds = is_code(&function.sig.ident);
        self.within(holds, |codes| visit::visit_impl_item_fn(codes, function));
    }

    fn visit_item_const(&mut self, constant: &'ast ItemConst) {
        let holds = constant.ident.to_string().ends_with("_CODE");
        self.within(holds, |codes| visit::visit_item_const(codes, constant));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let [.., name, variant] = &*path.segments.iter().collect::<Vec<_>>()
            && name.ident == "Code"
        {
            self.variants.insert(variant.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    /// Documentation is not code.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        if self.depth > 0 {
            self.codes.insert(text.value());
        }
    }
}

fn is_code(name: &Ident) -> bool {
    name == "code" || name.to_string().ends_with("_code")
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is = |attribute: &Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test")
    };
    attributes.iter().any(is)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}
