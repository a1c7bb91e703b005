//! What may be wrong with a file.

/// What is wrong with a file, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It cannot be read: the text names the line.
    #[error("{0}")]
    Form(String),
    /// It can be read, but makes no sense.
    #[error("{key}: {problem}")]
    Meaning {
        /// The key, such as `query.F.columns`.
        key: String,
        /// What is wrong with it, and what to write instead.
        problem: String,
    },
    /// A case of a sweep makes no sense.
    #[error("case `{case}`: {error}")]
    Case {
        /// The case.
        case: String,
        /// What is wrong with it.
        error: Box<SpecError>,
    },
}

/// An error of meaning.
pub(super) fn wrong(key: impl Into<String>, problem: impl Into<String>) -> SpecError {
    SpecError::Meaning { key: key.into(), problem: problem.into() }
}
