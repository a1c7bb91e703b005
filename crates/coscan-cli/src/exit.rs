//! How the program ends.

use std::process::ExitCode;

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has done what it was asked for.
    Success,
    /// It has failed, and has said why.
    Failure,
    /// The arguments were wrong.
    Usage,
    /// Ctrl-C has ended it.
    Interrupted,
}

impl Exit {
    /// The exit code, as shells expect it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
