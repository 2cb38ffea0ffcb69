//! The one function as WebAssembly calls it.

#![expect(unreachable_pub, reason = "only public functions are exported")]

use wasm_bindgen::prelude::*;

use crate::answer::{self, Answer};

#[wasm_bindgen]
extern "C" {
    /// Gets the number of bytes that were read: the worker defines it.
    #[wasm_bindgen(js_namespace = self, js_name = reportProgress)]
    fn report_progress(read: f64);
}

/// An answer, whose parts are taken once.
#[wasm_bindgen]
pub struct Reply(Answer);

#[wasm_bindgen]
impl Reply {
    pub fn json(&mut self) -> String {
        std::mem::take(&mut self.0.json)
    }

    pub fn nodes(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.0.nodes)
    }

    pub fn records(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.0.records)
    }

    pub fn paths(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0.paths)
    }
}

#[wasm_bindgen]
pub fn ask(question: &str, input: &[u8]) -> Reply {
    Reply(answer::answer(question, input, |read| report_progress(read as f64)))
}
