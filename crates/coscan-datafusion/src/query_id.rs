//! The id of a query, which travels with its scans.

use std::sync::Arc;

use datafusion::execution::TaskContext;

/// The id of a query, as the program that runs it counts them: reports and events name scans by it, and EXPLAIN ANALYZE
/// shows it. It goes into the configuration of the query's session:
///
/// ```
/// # use std::sync::Arc;
/// # use coscan_datafusion::QueryId;
/// # use datafusion::prelude::SessionConfig;
/// let config = SessionConfig::new().with_extension(Arc::new(QueryId::new("q7")));
/// ```
///
/// The scans of a query without one are named by the id of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryId(Arc<str>);

impl QueryId {
    /// Creates an id from a text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the query that a task belongs to, if it has one.
    pub(crate) fn of(context: &TaskContext) -> Option<Arc<str>> {
        let id = context.session_config().get_extension::<Self>();
        id.map(|id| Arc::clone(&id.0))
    }
}
