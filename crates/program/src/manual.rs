//! Completion scripts and manual pages, both made from the definition of the arguments.

use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Prints the completion script of a program for `shell`.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_completions(
    mut program: Command,
    shell: Shell,
    output: Output,
) -> Result<(), Failure> {
    // Through memory: `generate` panics if standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "wireproof", &mut script);
    output.raw(&script)
}

/// Writes a manual page for a program and for its commands into `folder`.
///
/// # Errors
/// If a page cannot be written.
pub fn write_pages(program: Command, folder: &Path) -> Result<(), Failure> {
    files::create_folder(folder)?;
    let mut program = program.disable_help_subcommand(true);
    program.build();
    write_page_of(&program, "wireproof", folder)
}

/// Writes the page of `command`, whose page is called `name`, and the pages of the commands below it.
fn write_page_of(command: &Command, name: &str, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    Man::new(command.clone()).title(name).render(&mut page).map_err(Failure::file(&path))?;
    files::write(&path, page)?;
    for below in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_page_of(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(())
}
