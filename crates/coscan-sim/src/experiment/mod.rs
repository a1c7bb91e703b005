//! Experiments by name, the papers' and a few of our own, and runs of their cases.
//!
//! [`Prepared`] is a case with a seed. It runs under any number of policies and gives a [`Run`] for each, from which
//! [`Run::value`] takes metrics. Runs do not depend on each other, so the caller may spread them over threads.

mod measure;
mod sharing_potential;

use std::sync::Arc;

use coscan_core::Policy;

use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::spec::{Case, Spec, SpecError};
use crate::violation::Violation;
use crate::workload::Workload;
use crate::{Options, bound, run, standalone};

pub use self::sharing_potential::Potential;
pub use crate::library::{file, names};

/// An experiment by its name.
///
/// # Errors
/// If there is none of this name. The text lists all names.
pub fn find(name: &str) -> Result<Spec, FindError> {
    let text = file(name).ok_or_else(|| FindError::Unknown(name.to_owned()))?;
    Ok(Spec::parse(text)?)
}

/// The reason why an experiment could not be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No experiment has this name.
    #[error("there is no experiment `{0}`; choose from {list}, or name a file", list = names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// Its file is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// A case with a seed, so that nothing in it is random, and everything that does not depend on the policy.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The name of the case.
    pub case: String,
    /// The seed that it was made with.
    pub seed: u64,
    /// The workload.
    pub workload: Workload,
    /// The machine.
    pub machine: Machine,
    /// Latency of each query alone, with an empty pool, in nanoseconds [CS07 §5.2], in the order of
    /// [`Outcome::queries`].
    pub standalone_ns: Vec<u64>,
    /// Bytes of all pages that any query needs. Each has to be read once.
    pub bytes_compulsory: u64,
    /// Bytes that any schedule has to read with this pool, see [`bound::lower_bound_bytes`].
    pub bytes_lower_bound: u64,
}

impl Prepared {
    /// A case with a seed.
    ///
    /// # Errors
    /// If a query breaks a safety rule when it runs alone.
    pub fn new(case: &Case, seed: u64) -> Result<Self, Box<Violation>> {
        let workload = case.workload(seed);
        let machine = case.machine.clone();
        Ok(Self {
            case: case.name.clone(),
            seed,
            standalone_ns: standalone(&workload, &machine)?,
            bytes_compulsory: bound::compulsory_bytes(&workload),
            bytes_lower_bound: bound::lower_bound_bytes(&workload),
            workload,
            machine,
        })
    }

    /// Runs it under a policy.
    ///
    /// # Errors
    /// If a safety rule is broken.
    pub fn run(
        self: &Arc<Self>,
        policy: Box<dyn Policy>,
        options: Options,
    ) -> Result<Run, Box<Violation>> {
        let outcome = run(&self.workload, &self.machine, policy, options)?;
        Ok(Run { prepared: Arc::clone(self), outcome })
    }
}

/// The run of a case under a policy.
#[derive(Clone, Debug)]
pub struct Run {
    /// The case.
    pub prepared: Arc<Prepared>,
    /// Its outcome.
    pub outcome: Outcome,
}
