//! Values that replace the result of a function, by its return type.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypePath};

/// Expressions of the return type, as text; not all of them compile. None for `!` and `impl Trait`.
pub(crate) fn of_return(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, of) => of_type(of),
    }
}

fn of_type(of: &Type) -> Vec<String> {
    match of {
        Type::Path(path) => of_path(path),
        Type::Reference(reference) => of_reference(&reference.elem),
        Type::Tuple(tuple) => of_tuple(&tuple.elems.iter().map(of_type).collect::<Vec<_>>()),
        Type::Array(array) => each(&of_type(&array.elem), |value| {
            // The length is inferred.
            format!("std::array::from_fn(|_| {value})")
        }),
        Type::Paren(inner) => of_type(&inner.elem),
        Type::ImplTrait(_) | Type::Never(_) => Vec::new(),
        _ => default(),
    }
}

fn of_path(path: &TypePath) -> Vec<String> {
    let Some(last) = path.path.segments.last() else { return default() };
    let arguments = type_arguments(&last.arguments);
    let inner = || arguments.first().map_or_else(default, |inner| of_type(inner));
    match last.ident.to_string().as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => texts(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => texts(&["0", "1", "-1"]),
        "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
        "char" => texts(&["'\\0'", "'x'"]),
        "String" => texts(&["String::new()", "String::from(\"xyzzy\")"]),
        "Option" => also("None", each(&inner(), |value| format!("Some({value})"))),
        "Result" => each(&inner(), |value| format!("Ok({value})")),
        "Vec" => also("Vec::new()", each(&inner(), |value| format!("vec![{value}]"))),
        name @ ("Box" | "Arc" | "Rc" | "Mutex" | "Cell" | "RefCell") => {
            each(&inner(), |value| format!("{name}::new({value})"))
        }
        _ => default(),
    }
}

fn of_reference(to: &Type) -> Vec<String> {
    match to {
        Type::Path(path) if path.path.is_ident("str") => texts(&["\"\"", "\"xyzzy\""]),
        Type::Slice(slice) => also(
            "&mut []",
            each(&of_type(&slice.elem), |value| format!("Vec::leak(vec![{value}])")),
        ),
        other => each(&of_type(other), |value| format!("Box::leak(Box::new({value}))")),
    }
}

/// Every element's values, together with the first values of the others.
fn of_tuple(elements: &[Vec<String>]) -> Vec<String> {
    if elements.is_empty() {
        return texts(&["()"]);
    }
    if elements.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let first: Vec<&str> = elements.iter().map(|values| values[0].as_str()).collect();
    let mut tuples = vec![format!("({},)", first.join(", "))];
    for (at, values) in elements.iter().enumerate() {
        for value in &values[1..] {
            let mut tuple = first.clone();
            tuple[at] = value;
            tuples.push(format!("({},)", tuple.join(", ")));
        }
    }
    tuples
}

fn type_arguments(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return Vec::new() };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    });
    types.collect()
}

fn default() -> Vec<String> {
    texts(&["Default::default()"])
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

fn each(values: &[String], wrap: impl Fn(&str) -> String) -> Vec<String> {
    values.iter().map(|value| wrap(value)).collect()
}

fn also(first: &str, rest: Vec<String>) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(signature: &str) -> Vec<String> {
        of_return(&syn::parse_str::<syn::Signature>(signature).unwrap().output)
    }

    #[test]
    fn a_type_within_a_type_gives_each_of_its_values() {
        assert_eq!(values("fn f()"), ["()"]);
        assert_eq!(
            values("fn f() -> Result<Option<bool>, E>"),
            ["Ok(None)", "Ok(Some(true))", "Ok(Some(false))"]
        );
        assert_eq!(values("fn f() -> (u8, bool)"), ["(0, true,)", "(1, true,)", "(0, false,)"]);
        assert_eq!(values("fn f() -> &'static str"), ["\"\"", "\"xyzzy\""]);
        assert_eq!(values("fn f() -> fmt::Result"), ["Ok(Default::default())"]);
    }

    #[test]
    fn an_opaque_type_and_no_return_give_no_value() {
        assert!(values("fn f() -> impl Iterator<Item = u8>").is_empty());
        assert!(values("fn f() -> !").is_empty());
        assert!(values("fn f() -> Option<(u8, impl Fn())>").len() == 1);
    }
}
