//! The policies by name.

use std::fmt;
use std::str::FromStr;

use super::{
    Attach, Elevator, Normal, Policy, Predictive, Relevance, Relevance2004, Relevance2007, Switches,
};

/// A policy, with its switches if it has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Each scan in order, one chunk ahead; least recently used pages are evicted.
    Normal,
    /// As `normal`, but a new scan starts where a running one is.
    Attach,
    /// One cursor for the table that all scans follow.
    Elevator,
    /// Each scan in order, as `normal`, but pages with the latest next use are evicted.
    Predictive(Switches),
    /// Chunks that most waiting scans lack are read, chunks that fewest scans need are evicted: the first version.
    Relevance2004,
    /// Scores of benefit and cost, as published.
    Relevance2007,
    /// The scores of `relevance-2007`, improved, with processors scheduled, too.
    #[default]
    Relevance,
}

impl PolicyKind {
    /// All policies, simplest first, without switches.
    pub const ALL: [PolicyKind; 7] = [
        PolicyKind::Normal,
        PolicyKind::Attach,
        PolicyKind::Elevator,
        PolicyKind::Predictive(Switches::NONE),
        PolicyKind::Relevance2004,
        PolicyKind::Relevance2007,
        PolicyKind::Relevance,
    ];

    /// All policies, and those with switches also with each switch alone and with several. For tests.
    pub fn variants() -> impl Iterator<Item = PolicyKind> {
        Self::ALL.into_iter().chain(Switches::TESTED.into_iter().map(PolicyKind::Predictive))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::Normal => "normal",
            PolicyKind::Attach => "attach",
            PolicyKind::Elevator => "elevator",
            PolicyKind::Predictive(switches) => switches.policy_name(),
            PolicyKind::Relevance2004 => "relevance-2004",
            PolicyKind::Relevance2007 => "relevance-2007",
            PolicyKind::Relevance => "relevance",
        }
    }

    /// A policy of this kind with its usual parameters.
    #[must_use]
    pub fn build(self) -> Box<dyn Policy> {
        match self {
            PolicyKind::Normal => Box::new(Normal::default()),
            PolicyKind::Attach => Box::new(Attach::default()),
            PolicyKind::Elevator => Box::new(Elevator::default()),
            PolicyKind::Predictive(switches) => Box::new(Predictive::new(switches)),
            PolicyKind::Relevance2004 => Box::new(Relevance2004::default()),
            PolicyKind::Relevance2007 => Box::new(Relevance2007::default()),
            PolicyKind::Relevance => Box::new(Relevance::default()),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of an unknown policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "there is no policy `{0}`; choose one of normal, attach, elevator, predictive (with any of +sampling, \
     +short-first, +opportunistic), relevance-2004, relevance-2007, relevance"
)]
pub struct UnknownPolicy(String);

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let predictive = Switches::of_policy_name(name).map(PolicyKind::Predictive);
        predictive
            .or_else(|| Self::ALL.into_iter().find(|kind| kind.name() == name))
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}
