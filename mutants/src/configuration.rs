//! `#[cfg(…)]` as the tests compile it: without `test`, as a dependency, and with every feature but some.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Lit, Meta, Token};

/// Whether an item with these attributes is compiled for other crates and is no test.
pub(crate) fn is_compiled(attributes: &[Attribute]) -> bool {
    attributes.iter().all(|attribute| match &attribute.meta {
        Meta::Path(path) => !path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| holds(&condition))
        }
        _ => true,
    })
}

fn holds(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => !path.is_ident("test") && !path.is_ident("windows"),
        Meta::NameValue(pair) => !pair.path.is_ident("feature") || is_enabled(&pair.value),
        Meta::List(list) => {
            let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let Ok(inner) = inner else { return true };
            if list.path.is_ident("any") {
                inner.iter().any(holds)
            } else if list.path.is_ident("not") {
                !inner.iter().any(holds)
            } else {
                inner.iter().all(holds)
            }
        }
    }
}

fn is_enabled(feature: &Expr) -> bool {
    let Expr::Lit(literal) = feature else { return true };
    let Lit::Str(name) = &literal.lit else { return true };
    !DISABLED_FEATURES.contains(&name.value().as_str())
}

/// Features that no test of the workspace enables.
const DISABLED_FEATURES: [&str; 1] = ["pure-rust"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_compiled(expected: bool, attribute: &str) {
        let item: syn::ItemFn = syn::parse_str(&format!("{attribute} fn f() {{}}")).unwrap();
        assert_eq!(is_compiled(&item.attrs), expected, "{attribute}");
    }

    #[test]
    fn tests_and_disabled_features_are_not_compiled() {
        assert_compiled(true, "#[inline]");
        assert_compiled(false, "#[test]");
        assert_compiled(false, "#[cfg(test)]");
        assert_compiled(true, "#[cfg(not(test))]");
        assert_compiled(false, "#[cfg(all(unix, feature = \"pure-rust\"))]");
        assert_compiled(true, "#[cfg(any(test, feature = \"secp256k1\"))]");
        assert_compiled(true, "#[cfg(all(feature = \"aws-lc\", not(feature = \"pure-rust\")))]");
    }
}
