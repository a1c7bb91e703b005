//! Which joint chunks a join needs.

/// The joint chunks that a join needs, given those in which each scan needs rows.
#[derive(Clone, Debug)]
pub(crate) enum Needed {
    /// Those in which the scan at this position needs rows.
    By(usize),
    /// Those that both need.
    Both(Box<Needed>, Box<Needed>),
    /// Those that one of them needs.
    Either(Box<Needed>, Box<Needed>),
}

impl Needed {
    /// The same of scans so many positions later.
    pub(crate) fn after(self, count: usize) -> Self {
        let after = |needed: Box<Self>| Box::new(needed.after(count));
        match self {
            Self::By(scan) => Self::By(scan + count),
            Self::Both(left, right) => Self::Both(after(left), after(right)),
            Self::Either(left, right) => Self::Either(after(left), after(right)),
        }
    }

    /// Whether a joint chunk is one of them.
    pub(crate) fn is(&self, by: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Self::By(scan) => by(*scan),
            Self::Both(left, right) => left.is(by) && right.is(by),
            Self::Either(left, right) => left.is(by) || right.is(by),
        }
    }
}
