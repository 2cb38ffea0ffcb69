//! The memory that an evaluation takes at most, by the size of the record.
//!
//! Sizes are sums: a constant, and per loop variable a multiple of its size. All elements of a list are together as large as
//! the list, so that a loop over a part of every element of a list makes no more than a loop over the list.

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

/// The size in bytes of the largest record that an expression may be evaluated on, up to `limit`.
pub(super) fn max_record_bytes(expression: &IdedExpr, limit: usize) -> usize {
    let fits = |bytes: usize| Estimate::new(bytes).peak(expression) <= MAX_EVALUATION_BYTES;
    let (mut fitting, mut beyond) = (0, limit + 1);
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    fitting
}

/// A size in bytes: a constant, and multiples of the sizes of the variables of loops, from the outermost on.
#[derive(Clone, Debug, Default)]
struct Size {
    constant: f64,
    of_variables: Vec<f64>,
}

impl Size {
    fn of(constant: f64) -> Self {
        Self { constant, of_variables: Vec::new() }
    }

    fn plus(mut self, other: &Self) -> Self {
        self.constant += other.constant;
        let len = self.of_variables.len().max(other.of_variables.len());
        self.of_variables.resize(len, 0.0);
        for (factor, more) in self.of_variables.iter_mut().zip(&other.of_variables) {
            *factor += more;
        }
        self
    }

    fn times(mut self, factor: f64) -> Self {
        self.constant *= factor;
        self.of_variables.iter_mut().for_each(|of| *of *= factor);
        self
    }

    /// Takes the multiple of the variable at a depth out.
    fn take(&mut self, depth: usize) -> f64 {
        self.of_variables.get_mut(depth).map_or(0.0, std::mem::take)
    }
}

/// The size of an expression's value, and the memory that its evaluation takes.
struct Made {
    /// The size of its value.
    value: Size,
    /// The most memory at a time while it is evaluated.
    peak: Size,
}

impl Made {
    /// A value that is made of parts.
    fn value(value: Size, parts: Size) -> Self {
        let peak = parts.plus(&value);
        Self { value, peak }
    }
}

/// The estimate for records of one size.
struct Estimate<'e> {
    record: f64,
    /// The name and the largest size of every variable that is known here.
    loops: Vec<(&'e str, Option<&'e str>, f64)>,
}

impl<'e> Estimate<'e> {
    fn new(record_bytes: usize) -> Self {
        Self { record: ELEMENT_BYTES * record_bytes as f64, loops: Vec::new() }
    }

    fn peak(&mut self, expression: &'e IdedExpr) -> f64 {
        let peak = self.made(expression).peak;
        self.largest(&peak)
    }

    /// The largest value of a size.
    fn largest(&self, size: &Size) -> f64 {
        let of_loops = size
            .of_variables
            .iter()
            .zip(&self.loops)
            .map(|(factor, (.., largest))| factor * largest);
        size.constant + of_loops.sum::<f64>()
    }

    fn made(&mut self, expression: &'e IdedExpr) -> Made {
        match &expression.expr {
            Expr::Unspecified => Made::value(Size::default(), Size::default()),
            Expr::Literal(literal) => {
                Made::value(Size::of(literal_bytes(literal)), Size::default())
            }
            Expr::Ident(name) => Made::value(self.variable(name), Size::default()),
            Expr::Select(select) => self.made(&select.operand),
            Expr::Call(call) => {
                self.call(&call.func_name, call.target.as_deref().into_iter().chain(&call.args))
            }
            Expr::List(list) => self.all(list.elements.iter()),
            Expr::Map(map) => self.all(map.entries.iter().flat_map(|entry| parts(&entry.expr))),
            Expr::Struct(of) => self.all(of.entries.iter().flat_map(|entry| parts(&entry.expr))),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn variable(&self, name: &str) -> Size {
        let is_of = |(one, two, _): &(&str, Option<&str>, f64)| *one == name || *two == Some(name);
        match self.loops.iter().rposition(is_of) {
            Some(depth) => {
                let mut of_variables = vec![0.0; depth + 1];
                of_variables[depth] = 1.0;
                Size { constant: 0.0, of_variables }
            }
            None if name == "record" => Size::of(self.record),
            // The results that a loop has collected are counted with its iterations.
            None if name.starts_with('@') => Size::default(),
            None => Size::of(MAX_TEXT_BYTES),
        }
    }

    /// A list of values.
    fn all(&mut self, elements: impl Iterator<Item = &'e IdedExpr>) -> Made {
        let (mut value, mut peak) = (Size::of(ELEMENT_BYTES), Size::default());
        for element in elements {
            let made = self.made(element);
            value = value.plus(&made.value).plus(&Size::of(ELEMENT_BYTES));
            peak = peak.plus(&made.peak);
        }
        Made::value(value, peak)
    }

    fn call(&mut self, name: &str, arguments: impl Iterator<Item = &'e IdedExpr>) -> Made {
        let own = match name {
            "string" => NUMBER_TEXT_BYTES,
            _ => SCALAR_BYTES,
        };
        let (mut value, mut peak) = (Size::of(own), Size::default());
        for argument in arguments {
            let made = self.made(argument);
            if !is_scalar(name) {
                value = value.plus(&made.value);
            }
            peak = peak.plus(&made.peak);
        }
        Made::value(value, peak)
    }

    fn comprehension(&mut self, comprehension: &'e ComprehensionExpr) -> Made {
        let range = self.made(&comprehension.iter_range);
        let largest = self.largest(&range.value);
        let depth = self.loops.len();
        let second = comprehension.iter_var2.as_deref();
        self.loops.push((&comprehension.iter_var, second, largest));
        let steps = [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
        let [condition, step, result] = steps.map(|step| self.made(step));
        self.loops.truncate(depth);

        // One element can be as large as the whole range.
        let at_once = |mut size: Size| {
            let factor = size.take(depth);
            size.plus(&range.value.clone().times(factor))
        };
        let in_step = at_once(condition.peak.plus(&step.peak).plus(&result.peak));
        let collected = match &comprehension.accu_init.expr {
            Expr::Literal(_) => Size::of(SCALAR_BYTES),
            // The elements together are as large as the range. A list that grows is twice as large for a moment.
            _ => self.sum(step.value, &range.value, depth).times(2.0),
        };
        Made { peak: range.peak.plus(&in_step).plus(&collected), value: collected }
    }

    /// The collected values of all iterations over a range.
    fn sum(&self, mut each: Size, range: &Size, depth: usize) -> Size {
        let of_elements = range.clone().times(each.take(depth));
        let iterations = range.clone().times(1.0 / ELEMENT_BYTES);
        // Of two sizes that depend on loops around this one, one is taken at its largest.
        let collected = if each.of_variables.iter().all(|factor| *factor == 0.0) {
            iterations.times(each.constant)
        } else {
            each.clone().times(self.largest(&iterations))
        };
        of_elements.plus(&collected)
    }
}

/// The expressions of an entry.
fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

fn literal_bytes(literal: &LiteralValue) -> f64 {
    SCALAR_BYTES
        + match literal {
            LiteralValue::String(text) => text.inner().len() as f64,
            LiteralValue::Bytes(bytes) => bytes.inner().len() as f64,
            _ => 0.0,
        }
}

/// Whether the value of a function or an operator has one size, whatever its arguments are.
fn is_scalar(name: &str) -> bool {
    let is_operator = name.starts_with(['_', '!', '-', '@']);
    let is_of_its_arguments =
        ["_?_:_", "_+_", "_[_]", "_[?_]", "_?._", "string", "bytes"].contains(&name);
    !is_of_its_arguments && (is_operator || SCALAR_FUNCTIONS.contains(&name))
}

const SCALAR_FUNCTIONS: [&str; 9] =
    ["size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "bool"];

/// Maximum memory that the values of an evaluation take at a time, in bytes.
const MAX_EVALUATION_BYTES: f64 = (64 << 20) as f64;

/// Memory of an element of a list or map at least, in bytes. An element of a record takes at least one byte of the record.
const ELEMENT_BYTES: f64 = 64.0;

/// Maximum memory of a number or a truth value.
const SCALAR_BYTES: f64 = 64.0;

/// Maximum memory of the text of a number.
const NUMBER_TEXT_BYTES: f64 = 512.0;

/// Maximum memory of a text variable.
const MAX_TEXT_BYTES: f64 = 4096.0;

#[cfg(test)]
mod tests {
    use cel::Env;

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn max_bytes(text: &str) -> usize {
        let program = Env::stdlib().compile(text).unwrap();
        max_record_bytes(program.expression(), LIMIT)
    }

    #[test]
    fn what_makes_no_values_is_evaluated_on_any_record() {
        for text in [
            "true",
            "record.text.startsWith('a') && record.n > 2",
            "'a' in record.langs",
            "record.a.exists(x, x.b == 1)",
            "record.a.exists(x, x.b.exists(y, y == x.c))",
        ] {
            assert!(max_bytes(text) >= 200 << 10, "{text}: {}", max_bytes(text));
        }
    }

    #[test]
    fn a_loop_over_parts_of_elements_makes_no_more_than_one_over_all() {
        let nested = max_bytes("record.a.map(x, x.b.map(y, y.c)).size() > 1");
        assert!(nested > 8 << 10, "{nested}");
        let filtered = max_bytes("record.a.exists(x, x.b.filter(y, y.c == 1).size() > 1)");
        assert!(filtered > 32 << 10, "{filtered}");
    }

    #[test]
    fn values_that_grow_with_the_square_of_a_record_are_for_small_records() {
        for text in [
            "record.a.map(x, record.a).size() > 1",
            "record.a.map(x, record.a.map(y, y)).size() > 1",
            "record.a.map(x, record.a.filter(y, y == x)).size() > 1",
            "record.a.map(x, x.b.map(y, x)).size() > 1",
            "record.a.exists(x, record.a.map(y, x).size() > 1)",
            "record.a.map(x, string(record.t) + record.u).size() > 1",
        ] {
            let bytes = max_bytes(text);
            assert!((64..3000).contains(&bytes), "{text}: {bytes}");
        }
        let cube = max_bytes("record.a.map(x, record.a.map(y, record.a)).size() > 1");
        assert!(cube < 100, "{cube}");
    }

    #[test]
    fn a_text_that_an_expression_repeats_counts_each_time() {
        let chain = format!("({}).size() > 1", vec!["record.t"; 500].join(" + "));
        assert!(max_bytes(&chain) < 10 << 10, "{}", max_bytes(&chain));
        let list = format!("[{}].size() > 1", vec!["record"; 500].join(","));
        assert!(max_bytes(&list) < 10 << 10, "{}", max_bytes(&list));
    }
}
