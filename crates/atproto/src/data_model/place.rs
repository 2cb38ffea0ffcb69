//! Where in a record is an item?

use std::fmt::Write;

use super::{DataError, DataFault};

/// The way to an item, which is written down only if it is asked for.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    above: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Whole,
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The place of the whole record.
    pub(super) const WHOLE: Self = Self { above: None, step: Step::Whole };

    #[inline]
    pub(super) fn below(&'p self, step: Step<'p>) -> Self {
        Self { above: Some(self), step }
    }

    /// Says what is wrong here.
    #[cold]
    pub(super) fn flag(&self, fault: DataFault) -> Result<(), DataError> {
        let mut place = String::new();
        self.write(&mut place);
        Err(DataError { fault, item_path: place.into() })
    }

    fn write(&self, out: &mut String) {
        if let Some(above) = self.above {
            above.write(out);
        }
        if out.len() > MAX_BYTES {
            return;
        }
        match self.step {
            Step::Whole => {}
            Step::Index(at) => write!(out, "/{at}").expect("a string takes all"),
            Step::Key(key) => {
                let cut = key.floor_char_boundary(MAX_BYTES);
                write!(out, "/{}", &key[..cut]).expect("a string takes all");
                out.push_str(if cut < key.len() { "…" } else { "" });
            }
        }
    }
}

/// Behind so many bytes no further key is told, and so many of each.
const MAX_BYTES: usize = 200;
