//! `bindgen MODULE FOLDER` writes the module without its custom sections, and the JavaScript that calls it, into a folder.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = &arguments[..] else {
        eprintln!("usage: bindgen MODULE FOLDER");
        return ExitCode::from(2);
    };
    match generate(module, folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{module}: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn generate(module: &str, folder: &str) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(module)
        .out_name("wireproof")
        .omit_default_module_path(true)
        .typescript(false);
    let bindgen = bindgen.web(true).map_err(|fault| fault.to_string())?;
    bindgen.generate(folder).map_err(|fault| fault.to_string())
}
