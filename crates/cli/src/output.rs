//! Where does output go? Data to standard output, what is for a person to standard error, colour
//! only where it is wanted.

use std::io::{StdoutLock, stdout};

use anstream::{AutoStream, ColorChoice};

use crate::args::Color;

/// The ways out of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    choice: ColorChoice,
}

impl Output {
    /// Uses colour as `color` says.
    pub(crate) fn new(color: Color) -> Self {
        let choice = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        // For standard error, whose stream is made where it is needed.
        choice.write_global();
        Self { choice }
    }

    /// Standard output. Styles that are written to it are left out where nobody would see them.
    pub(crate) fn stdout(self) -> AutoStream<StdoutLock<'static>> {
        AutoStream::new(stdout().lock(), self.choice)
    }
}
