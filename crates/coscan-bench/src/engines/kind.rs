//! The engines by name.

use std::fmt;
use std::str::FromStr;

use coscan_core::PolicyKind;

/// The kind of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineKind {
    /// Plain DataFusion.
    DataFusion,
    /// DataFusion with coscan under this policy.
    Coscan(PolicyKind),
}

impl EngineKind {
    /// Plain DataFusion, then coscan under the policy of each generation of systems, simplest first. The papers'
    /// versions of `relevance` are left out, since the simulator compares those.
    pub fn usual() -> Vec<Self> {
        let older = [PolicyKind::Relevance2004, PolicyKind::Relevance2007];
        let policies = PolicyKind::ALL.into_iter().filter(|policy| !older.contains(policy));
        std::iter::once(Self::DataFusion).chain(policies.map(Self::Coscan)).collect()
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataFusion => f.write_str("datafusion"),
            Self::Coscan(policy) => policy.fmt(f),
        }
    }
}

/// There is no engine with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no engine `{0}`; choose from datafusion, coscan (its default policy), {policies}",
    policies = PolicyKind::ALL.map(PolicyKind::name).join(", ")
)]
pub struct UnknownEngine(String);

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        match name {
            "datafusion" => Ok(Self::DataFusion),
            "coscan" => Ok(Self::Coscan(PolicyKind::default())),
            _ => name.parse().map(Self::Coscan).map_err(|_| UnknownEngine(name.to_owned())),
        }
    }
}
