//! The runs that documents have numbers of: one with AVX-512, and one without.

use std::fs;
use std::path::Path;

use results::Results;

use super::PublishError;

/// A run in `bench/results/{name}/results.json`.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder.
    pub name: String,
    /// The results, with their rows in the order of the report.
    pub results: Results,
}

impl Run {
    /// The newest run below `root` whose rows of ours used AVX-512, or did not.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub fn newest(root: &Path, used_avx512: bool) -> Result<Option<Self>, PublishError> {
        let folder = root.join("bench/results");
        let fault = |error| PublishError::Io(folder.clone(), error);
        let mut newest: Option<Self> = None;
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let file = entry.path().join(crate::RAW);
            if !file.is_file() {
                continue;
            }
            let results = crate::read(&file)?;
            let is_newer =
                newest.as_ref().is_none_or(|newest| newest.results.started < results.started);
            if is_newer && self::used_avx512(&results) == used_avx512 {
                let name = entry.file_name().to_string_lossy().into_owned();
                newest = Some(Self { name, results });
            }
        }
        Ok(newest)
    }
}

/// Whether our rows used AVX-512: the processor has it, and they were not kept to less.
pub(crate) fn used_avx512(results: &Results) -> bool {
    let level = results.settings.as_ref().and_then(|settings| settings.backend.as_deref());
    let has_feature = results.machine.features.iter().any(|feature| feature == "avx512f");
    has_feature && level.is_none_or(|level| level == "avx512")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_processor_with_avx512_that_is_kept_to_less_counts_as_one_without() {
        let mut results = samples::published();
        assert!(used_avx512(&results));
        results.settings.as_mut().unwrap().backend = Some("avx2".to_owned());
        assert!(!used_avx512(&results));
        results.settings.as_mut().unwrap().backend = None;
        results.machine.features.retain(|feature| feature != "avx512f");
        assert!(!used_avx512(&results));
    }
}
