//! Finds the places of a source file that have mutants, and their mutants.
//!
//! Left out: code that is not compiled for other crates, constants, patterns, `unsafe`, macros, `Debug`,
//! `size_hint`, and capacities, which no result depends on.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, ImplItem, Item, Pat, Signature, TraitItem, Type, UnOp};

use crate::configuration::is_compiled;
use crate::values;

/// A place with mutants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) form: Form,
    /// Bytes of the source that mutants replace; empty where they insert.
    pub(crate) range: Range<usize>,
    /// The function, with the type that it belongs to.
    pub(crate) function: String,
    pub(crate) mutants: Vec<Mutant>,
}

/// How a place selects a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// At the start of a body: returns the text.
    Body,
    /// After the pattern of a match arm: a guard that refuses the arm.
    Arm,
    /// Instead of an expression: the text.
    Expression,
}

/// A change of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) description: String,
    pub(crate) text: String,
}

/// Returns the places of a file from its start to its end, outer ones first.
pub(crate) fn find(source: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder { source, names: Vec::new(), sites: Vec::new() };
    finder.visit_file(&file);
    let mut sites = finder.sites;
    sites.sort_by_key(|site| (site.range.start, site.form, std::cmp::Reverse(site.range.end)));
    Ok(sites)
}

struct Finder<'a> {
    source: &'a str,
    /// The type and the functions around the place.
    names: Vec<String>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn text(&self, of: &impl Spanned) -> &str {
        &self.source[of.span().byte_range()]
    }

    fn push(&mut self, form: Form, range: Range<usize>, mutants: Vec<Mutant>) {
        let function = self.names.join("::");
        if !mutants.is_empty() && !self.names.is_empty() {
            self.sites.push(Site { form, range, function, mutants });
        }
    }

    /// The expression may be replaced by these texts.
    fn replace(&mut self, expression: &impl Spanned, mutants: Vec<Mutant>) {
        self.push(Form::Expression, expression.span().byte_range(), mutants);
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.names.push(name);
        visit(self);
        self.names.pop();
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        let name = signature.ident.to_string();
        if signature.constness.is_some() || signature.unsafety.is_some() || name == "size_hint" {
            return;
        }
        self.within(name, |finder| {
            finder.body(signature, block);
            finder.visit_block(block);
        });
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let range = block.span().byte_range();
        let now = one_line(&self.source[range.start + 1..range.end - 1]);
        let differs = |value: &String| match value.as_str() {
            "()" => !now.is_empty(),
            "Default::default()" => {
                !["Self::default()", "Default::default()"].contains(&now.as_str())
            }
            value => now != value,
        };
        let values = values::of_return(&signature.output);
        let mutants = values.into_iter().filter(differs).take(MAX_VALUES);
        let mutants =
            mutants.map(|text| Mutant { description: format!("return {text}"), text }).collect();
        self.push(Form::Body, range.start + 1..range.start + 1, mutants);
    }

    fn binary(&mut self, left: &Expr, op: &BinOp, right: &Expr, whole: &Expr) {
        let [left, old, right] = [self.text(left), self.text(op), self.text(right)];
        let place = short(self.text(whole));
        let mutants = alternatives(op).iter().map(|new| Mutant {
            description: format!("replace {old} with {new} in {place}"),
            text: format!("({left}) {new} ({right})"),
        });
        self.replace(whole, mutants.collect());
    }

    /// A condition without an operator of its own.
    fn condition(&mut self, condition: &Expr, values: &[&str]) {
        let is_plain = matches!(
            condition,
            Expr::Call(_) | Expr::MethodCall(_) | Expr::Path(_) | Expr::Field(_) | Expr::Macro(_)
        );
        if is_plain {
            let place = short(self.text(condition));
            let mutants = values.iter().map(|value| Mutant {
                description: format!("replace condition {place} with {value}"),
                text: (*value).to_owned(),
            });
            self.replace(condition, mutants.collect());
        }
    }

    fn arms(&mut self, arms: &[syn::Arm]) {
        let is_last = |arm: &syn::Arm| matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none();
        let Some(last) = arms.iter().position(is_last) else { return };
        for arm in arms[..last].iter().filter(|arm| arm.guard.is_none()) {
            let end = arm.pat.span().byte_range().end;
            let description = format!("delete arm {}", short(self.text(&arm.pat)));
            let mutant = Mutant { description, text: String::new() };
            self.push(Form::Arm, end..end, vec![mutant]);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(function) if is_compiled(&function.attrs) => {
                self.function(&function.sig, &function.block);
            }
            Item::Impl(block) if is_compiled(&block.attrs) && !is_debug(block) => {
                let name = short(self.text(&*block.self_ty)).replace("<'_>", "");
                self.within(name, |finder| visit::visit_item_impl(finder, block));
            }
            Item::Trait(item) if is_compiled(&item.attrs) => {
                let name = item.ident.to_string();
                self.within(name, |finder| visit::visit_item_trait(finder, item));
            }
            Item::Mod(module) if is_compiled(&module.attrs) => {
                visit::visit_item_mod(self, module);
            }
            _ => {}
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(function) = item
            && is_compiled(&function.attrs)
        {
            self.function(&function.sig, &function.block);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(function) = item
            && let Some(block) = &function.default
        {
            self.function(&function.sig, block);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if is_compiled(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let whole = Expr::Binary(binary.clone());
        if !has_let(&whole) {
            self.binary(&binary.left, &binary.op, &binary.right, &whole);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let operator = match unary.op {
            UnOp::Not(_) => "!",
            UnOp::Neg(_) => "-",
            _ => return visit::visit_expr_unary(self, unary),
        };
        let description = format!("delete {operator} in {}", short(self.text(unary)));
        let text = self.text(&*unary.expr).to_owned();
        self.replace(unary, vec![Mutant { description, text }]);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.condition(&branch.cond, &["true", "false"]);
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_while(&mut self, turn: &'ast syn::ExprWhile) {
        self.condition(&turn.cond, &["false"]);
        visit::visit_expr_while(self, turn);
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        self.arms(&choice.arms);
        visit::visit_expr_match(self, choice);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_compiled(&arm.attrs) {
            return;
        }
        if let Some((_, guard)) = &arm.guard
            && !has_let(guard)
        {
            let place = short(self.text(&**guard));
            let mutants = ["true", "false"].map(|value| Mutant {
                description: format!("replace guard {place} with {value}"),
                text: value.to_owned(),
            });
            self.replace(&**guard, mutants.to_vec());
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if !CAPACITIES.contains(&call.method.to_string().as_str()) {
            call.args.iter().for_each(|argument| self.visit_expr(argument));
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let name = self.text(&*call.func).rsplit("::").next().unwrap_or_default();
        if !CAPACITIES.contains(&name) {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn is_debug(block: &syn::ItemImpl) -> bool {
    let last = block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
    last.is_some_and(|last| last.ident == "Debug")
}

/// Whether an `if let` chain goes through the expression.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}

fn alternatives(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">", "<"],
        BinOp::Ge(_) => &["<", ">"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["&", "|"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::RemAssign(_) => &["/=", "+="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAndAssign(_) => &["|=", "^="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitXorAssign(_) => &["&=", "|="],
        _ => &[],
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text on one line, cut where it is long.
fn short(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Values that a function returns instead of its result.
const MAX_VALUES: usize = 6;
const MAX_TEXT_CHARS: usize = 60;

const CAPACITIES: [&str; 4] = ["with_capacity", "with_capacity_in", "reserve", "reserve_exact"];

#[cfg(test)]
mod tests {
    use super::*;

    fn described(source: &str) -> Vec<String> {
        let sites = find(source).unwrap();
        let all = sites.iter().flat_map(|site| {
            site.mutants
                .iter()
                .map(move |mutant| format!("{}: {}", site.function, mutant.description))
        });
        all.collect()
    }

    #[test]
    fn bodies_operators_arms_and_conditions_have_mutants() {
        let source = "impl A<'_> { fn f(&self, a: u8) -> bool {
            if self.ready() { return a <= 3; }
            match a { 1 => !self.x, 2 if a != 4 => true, _ => false }
        } }";
        assert_eq!(
            described(source),
            [
                "A::f: return true",
                "A::f: return false",
                "A::f: replace condition self.ready() with true",
                "A::f: replace condition self.ready() with false",
                "A::f: replace <= with > in a <= 3",
                "A::f: replace <= with < in a <= 3",
                "A::f: delete arm 1",
                "A::f: delete ! in !self.x",
                "A::f: replace guard a != 4 with true",
                "A::f: replace guard a != 4 with false",
                "A::f: replace != with == in a != 4",
            ]
        );
    }

    #[test]
    fn constants_tests_patterns_and_capacities_have_none() {
        let source = "
            const A: u8 = 1 + 2;
            const fn g() -> u8 { 1 + 2 }
            impl fmt::Debug for B { fn fmt(&self) -> bool { 1 == 2 } }
            #[cfg(test)] mod tests { fn h() -> bool { 1 == 2 } }
            fn f(a: [u8; 1 + 2]) { match a { -1 => Vec::with_capacity(1 + 2) } }";
        assert_eq!(described(source), ["f: return ()"]);
    }

    #[test]
    fn a_chain_with_let_keeps_its_form() {
        let found = described("fn f() { if let Some(a) = b && c > d && e() {} }");
        assert_eq!(
            found,
            [
                "f: return ()",
                "f: replace > with == in c > d",
                "f: replace > with < in c > d",
                "f: replace > with >= in c > d",
            ]
        );
    }
}
