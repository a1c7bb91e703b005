//! The joint chunks that a join needs.

/// The joint chunks that a join needs, in terms of the joint chunks in which each scan needs rows.
#[derive(Clone, Debug)]
pub(crate) enum Needed {
    /// The joint chunks in which the scan with this index needs rows.
    By(usize),
    /// The joint chunks that both sides need.
    Both(Box<Needed>, Box<Needed>),
    /// The joint chunks that at least one side needs.
    Either(Box<Needed>, Box<Needed>),
}

impl Needed {
    /// Adds `count` to the indexes of all scans.
    pub(crate) fn after(self, count: usize) -> Self {
        let after = |needed: Box<Self>| Box::new(needed.after(count));
        match self {
            Self::By(scan) => Self::By(scan + count),
            Self::Both(left, right) => Self::Both(after(left), after(right)),
            Self::Either(left, right) => Self::Either(after(left), after(right)),
        }
    }

    /// Whether a joint chunk is needed, given a function that tells which scans need it.
    pub(crate) fn is(&self, by: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Self::By(scan) => by(*scan),
            Self::Both(left, right) => left.is(by) && right.is(by),
            Self::Either(left, right) => left.is(by) || right.is(by),
        }
    }
}
