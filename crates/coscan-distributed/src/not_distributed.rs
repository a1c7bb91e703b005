//! The reasons why a statement is not distributed.

use std::error::Error;
use std::fmt;

use coscan_datafusion::NotDivisible;
use datafusion::error::DataFusionError;

/// The reason why a statement is executed by its server alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotDistributed {
    /// The server has no workers.
    NoMembers,
    /// No worker is healthy.
    NoWorkers,
    /// It reads no shared table.
    NoSharedTable,
    /// The plan has one stage: its scans are small or have one partition, or there is one worker.
    OneTask,
    /// An operator cannot be sent to workers.
    Operator(String),
    /// A function is not known to workers, or has limits that only this server keeps.
    Function(String),
    /// A window function has a FILTER or IGNORE NULLS, or is evaluated in reverse order, which the form of plans that are sent
    /// leaves out.
    Window(String),
    /// It has a limit or an offset of 2^32 rows or more, which the form of plans that are sent cuts off.
    LargeLimit,
    /// It names so many files that workers would refuse its plan.
    TooManyFiles,
    /// The plan, or an expression in it, is nested more deeply than plans that are sent can be.
    TooDeep,
    /// The engine has no plan for several workers.
    NoPlan(String),
    /// A scan cannot be divided.
    Scan(NotDivisible),
}

impl fmt::Display for NotDistributed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not distributed: ")?;
        match self {
            Self::NoMembers => f.write_str("this server has no workers; name them in workers.members"),
            Self::NoWorkers => {
                f.write_str("no worker answers with the version of this server; see system.workers")
            }
            Self::NoSharedTable => f.write_str("it reads no shared table"),
            Self::OneTask => f.write_str(
                "its scans read less than workers.divided_bytes_min or have one partition, or only one worker answers",
            ),
            Self::Operator(name) => write!(f, "workers do not execute {name}"),
            Self::Function(name) => write!(f, "workers do not evaluate {name}()"),
            Self::Window(name) => {
                write!(f, "a window function with FILTER or IGNORE NULLS, or in reverse order, is not sent: {name}")
            }
            Self::LargeLimit => f.write_str("limits of 2^32 rows or more are not sent"),
            Self::TooManyFiles => f.write_str("its tables have too many files for a plan that is sent"),
            Self::TooDeep => f.write_str("it is nested too deeply"),
            Self::NoPlan(reason) => write!(f, "there is no plan for several workers: {reason}"),
            Self::Scan(reason) => write!(f, "{reason}"),
        }
    }
}

impl Error for NotDistributed {}

impl NotDistributed {
    /// The reason as an error of planning.
    pub(crate) fn into_error(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }

    /// The reason in an error of planning, if it is one.
    #[must_use]
    pub fn of(error: &DataFusionError) -> Option<&Self> {
        let DataFusionError::External(error) = error.find_root() else { return None };
        error.downcast_ref()
    }
}
