//! The check of an expression before it is evaluated: its names, and the number of nested loops.

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

/// Maximum number of nested loops.
pub(super) const MAX_LOOPS: usize = 2;

/// Refuses unknown names, patterns that are not in the expression, and too many nested loops; returns the
/// number of those.
pub(super) fn check(program: &Program) -> Result<usize, String> {
    let mut checker = Checker { program, scope: VARIABLES.to_vec(), max_loops: 0 };
    checker.visit(program.expression(), 0)?;
    Ok(checker.max_loops)
}

struct Checker<'p> {
    program: &'p Program,
    /// The variables that are known here.
    scope: Vec<&'p str>,
    max_loops: usize,
}

impl<'p> Checker<'p> {
    /// Checks an expression within this number of loops. Its depth is bounded by the parser.
    fn visit(&mut self, expression: &'p IdedExpr, loops: usize) -> Result<(), String> {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.check_variable(expression, name),
            Expr::Select(select) => self.visit(&select.operand, loops),
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                if !is_operator(name) && !FUNCTIONS.contains(&name) {
                    return Err(self.error(expression, &format!("unknown function `{name}`")));
                }
                if name == "matches" {
                    let pattern = call.args.last().map(|last| &last.expr);
                    if !matches!(pattern, Some(Expr::Literal(LiteralValue::String(_)))) {
                        return Err(self.error(expression, "expected a text as pattern"));
                    }
                    // The pattern is compiled every time.
                    self.enter(expression, if loops > 0 { loops + 1 } else { 0 })?;
                }
                call.target.iter().try_for_each(|target| self.visit(target, loops))?;
                call.args.iter().try_for_each(|argument| self.visit(argument, loops))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|of| self.visit(of, loops)),
            Expr::Map(map) => map.entries.iter().try_for_each(|of| self.entry(&of.expr, loops)),
            Expr::Struct(of) => of.entries.iter().try_for_each(|of| self.entry(&of.expr, loops)),
            Expr::Comprehension(of) => {
                self.visit(&of.iter_range, loops)?;
                self.visit(&of.accu_init, loops)?;
                self.enter(expression, loops + 1)?;
                let known = self.scope.len();
                self.scope.extend([of.iter_var.as_str(), of.accu_var.as_str()]);
                self.scope.extend(of.iter_var2.as_deref());
                for part in [&of.loop_cond, &of.loop_step, &of.result] {
                    self.visit(part, loops + 1)?;
                }
                self.scope.truncate(known);
                Ok(())
            }
        }
    }

    fn entry(&mut self, entry: &'p EntryExpr, loops: usize) -> Result<(), String> {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value, loops),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key, loops)?;
                self.visit(&entry.value, loops)
            }
        }
    }

    fn check_variable(&self, expression: &IdedExpr, name: &str) -> Result<(), String> {
        if name.starts_with('@') || self.scope.contains(&name) {
            Ok(())
        } else {
            let known = VARIABLES.join(", ");
            let text = format!("unknown variable `{name}`: expected one of {known}");
            Err(self.error(expression, &text))
        }
    }

    fn enter(&mut self, expression: &IdedExpr, loops: usize) -> Result<(), String> {
        self.max_loops = self.max_loops.max(loops);
        if loops > MAX_LOOPS {
            let text = format!("at most {MAX_LOOPS} nested loops are allowed");
            Err(self.error(expression, &text))
        } else {
            Ok(())
        }
    }

    fn error(&self, expression: &IdedExpr, text: &str) -> String {
        match self.program.source_info().offset_for(expression.id) {
            Some((start, _)) => format!("column {}: {text}", start + 1),
            None => text.to_owned(),
        }
    }
}

/// Whether a function is an operator of the language.
fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@'])
}

/// The variables of a condition.
const VARIABLES: [&str; 7] = ["record", "did", "rev", "action", "collection", "rkey", "live"];

/// The functions of a condition.
const FUNCTIONS: [&str; 11] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "bytes",
];
