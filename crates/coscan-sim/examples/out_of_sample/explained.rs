//! Why the worst cases are as they are, found by looking at their runs.

/// For a case, why. Cases change when the generator does, and which are worst when a policy does.
const EXPLAINED: &[(u64, &str)] = &[];

/// Why a case is as it is, if anybody looked.
pub(crate) fn why(seed: u64) -> Option<&'static str> {
    EXPLAINED.iter().find(|(case, _)| *case == seed).map(|&(_, why)| why)
}
