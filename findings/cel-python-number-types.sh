#!/bin/sh
# cel-python compares no integer with a floating-point or an unsigned number: `2 > 1.5` is an error. The specification of CEL compares numbers of
# all three types by value, as the crate cel does.
. "$(dirname "$0")/common.sh"
needs cargo cc python3
python_packages cel-python==0.5.0
cat > evaluate.py <<'PY'
import sys, celpy
environment = celpy.Environment()
for expression in sys.argv[1:]:
    try:
        print(environment.program(environment.compile(expression)).evaluate({}))
    except celpy.CELEvalError as error:
        print("error")
PY
cargo_program "cel@=0.15.0" <<'RUST'
fn main() {
    for expression in std::env::args().skip(1) {
        let program = cel::Program::compile(&expression).unwrap();
        match program.execute(&cel::Context::default()) {
            Ok(cel::Value::Bool(value)) => println!("{value}"),
            other => println!("{other:?}"),
        }
    }
}
RUST
expect "cel 0.15.0, 2 > 1, 2 > 1.5, 1u == 1" "$(./program '2 > 1' '2 > 1.5' '1u == 1' | paste -sd' ' -)" "true true true"
expect "cel-python 0.5.0" "$(venv/bin/python evaluate.py '2 > 1' '2 > 1.5' '1u == 1' | paste -sd' ' -)" "True error error"
