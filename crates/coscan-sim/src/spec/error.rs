//! Errors in workload files.

/// An error in a workload file: its place, the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The file cannot be read. The text names the line.
    #[error("{0}")]
    Form(String),
    /// A value is invalid.
    #[error("{key}: {problem}")]
    Meaning {
        /// The key, such as `query.F.columns`.
        key: String,
        /// The problem and the remedy.
        problem: String,
    },
    /// A case of a sweep is invalid.
    #[error("case `{case}`: {error}")]
    Case {
        /// The case.
        case: String,
        /// The problem.
        error: Box<SpecError>,
    },
}

/// The error of an invalid value.
pub(crate) fn wrong(key: impl Into<String>, problem: impl Into<String>) -> SpecError {
    SpecError::Meaning { key: key.into(), problem: problem.into() }
}
