//! The engines by name.

use std::fmt;
use std::str::FromStr;

use coscan_core::PolicyKind;
use coscan_datafusion::ShareResults;

const COSCAN: &str = "coscan";
const COSCAN_RUNNING: &str = "coscan-running";

/// The kind of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Plain DataFusion.
    DataFusion,
    /// DataFusion with coscan under this policy, without shared results: the policies are compared by what they read.
    Policy(PolicyKind),
    /// DataFusion with coscan as it is by default, but for its memory: results are shared with running and with later queries.
    Coscan,
    /// DataFusion with coscan, which shares results with running queries only.
    CoscanRunning,
}

impl EngineKind {
    /// Plain DataFusion, then coscan under the policy of each generation of systems, simplest first, then coscan with shared
    /// results. The papers' versions of `relevance` are left out, since the simulator compares those.
    pub fn usual() -> Vec<Self> {
        let older = [PolicyKind::Relevance2004, PolicyKind::Relevance2007];
        let policies = PolicyKind::ALL.into_iter().filter(|policy| !older.contains(policy));
        std::iter::once(Self::DataFusion)
            .chain(policies.map(Self::Policy))
            .chain([Self::Coscan])
            .collect()
    }

    /// The policy of coscan. `None` for plain DataFusion.
    pub fn policy(self) -> Option<PolicyKind> {
        match self {
            Self::DataFusion => None,
            Self::Policy(policy) => Some(policy),
            Self::Coscan | Self::CoscanRunning => Some(PolicyKind::default()),
        }
    }

    /// The queries with which results are shared.
    pub fn share_results(self) -> ShareResults {
        match self {
            Self::DataFusion | Self::Policy(_) => ShareResults::Never,
            Self::Coscan => ShareResults::Kept,
            Self::CoscanRunning => ShareResults::Running,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataFusion => f.write_str("datafusion"),
            Self::Policy(policy) => policy.fmt(f),
            Self::Coscan => f.write_str(COSCAN),
            Self::CoscanRunning => f.write_str(COSCAN_RUNNING),
        }
    }
}

/// There is no engine with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no engine `{0}`; choose from datafusion, coscan (its default policy, with shared results), coscan-running \
     (with results shared among queries that run at the same time only), or without shared results {policies}",
    policies = PolicyKind::ALL.map(PolicyKind::name).join(", ")
)]
pub struct UnknownEngine(String);

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        match name {
            "datafusion" => Ok(Self::DataFusion),
            COSCAN => Ok(Self::Coscan),
            COSCAN_RUNNING => Ok(Self::CoscanRunning),
            _ => name.parse().map(Self::Policy).map_err(|_| UnknownEngine(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn engines_have_the_names_by_which_they_are_chosen() {
        let all = EngineKind::usual().into_iter().chain([EngineKind::CoscanRunning]);
        for kind in all {
            assert_eq!(kind.to_string().parse::<EngineKind>().unwrap(), kind);
        }
        assert_eq!(EngineKind::Coscan.to_string(), "coscan");
        let policy = EngineKind::Policy(PolicyKind::Relevance);
        assert_eq!(policy.share_results(), ShareResults::Never);
        assert!("coscan-kept".parse::<EngineKind>().is_err());
    }
}
