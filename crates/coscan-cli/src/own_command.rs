//! How this program is started.

use std::ffi::OsString;
use std::sync::OnceLock;

#[cfg(feature = "server")]
use crate::Failure;

/// The command without arguments.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the command. Only the first call counts.
pub(crate) fn set(program: Vec<OsString>) {
    let _only_once = PROGRAM.set(program);
}

/// A command that starts the program again.
///
/// # Errors
/// If the command is not known.
#[cfg(feature = "server")]
pub(crate) fn again() -> Result<tokio::process::Command, Failure> {
    let Some((program, arguments)) = PROGRAM.get().and_then(|program| program.split_first()) else {
        return Err("cannot start further processes: the path of this program is not known".into());
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments);
    Ok(command)
}
