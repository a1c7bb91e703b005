//! The limits on the memory of queries and users, whether clients or other servers have sent the queries.

use std::fmt;
use std::sync::Arc;

use coscan_datafusion::SharedMemoryPool;
#[cfg(feature = "distributed")]
use coscan_distributed::QueryDescription;
use coscan_runtime::BufferManager;
use datafusion::execution::memory_pool::MemoryPool;

use super::{QueryMemory, UserMemories};
use crate::config::Limits;

/// Limits on the memory that the operators of a query and of a user's queries hold.
pub(in crate::sql) struct MemoryLimits {
    server: Arc<dyn MemoryPool>,
    /// The limit of a query, if it is configured.
    query_bytes_max: Option<u64>,
    /// The limit otherwise.
    query_bytes_default: u64,
    user_bytes_max: u64,
    users: UserMemories,
}

/// What limits the memory of a query: its user, and its session.
#[derive(Clone, Debug)]
pub(in crate::sql) struct QueryLimits {
    pub(in crate::sql) user: String,
    /// The limit of its session, if that has one.
    pub(in crate::sql) bytes_max: Option<u64>,
    /// Whether its aggregates collect values.
    pub(in crate::sql) collects_values: bool,
}

impl MemoryLimits {
    /// Limits on the memory of a manager. Users are limited by default if the server knows them.
    pub(in crate::sql) fn new(manager: &BufferManager, limits: &Limits, knows_users: bool) -> Self {
        let memory_bytes = manager.options().memory_bytes;
        let user_bytes_default = if knows_users { memory_bytes / 4 * 3 } else { u64::MAX };
        Self {
            server: SharedMemoryPool::of_manager(manager),
            query_bytes_max: limits.query_memory_max,
            query_bytes_default: memory_bytes / 2,
            user_bytes_max: limits.user_memory_max.unwrap_or(user_bytes_default),
            users: UserMemories::default(),
        }
    }

    /// A memory pool for a query, with the limits of the query, its user and the server.
    pub(in crate::sql) fn pool_for(&self, query: &QueryLimits) -> Arc<dyn MemoryPool> {
        self.pool(query, self.query_bytes_default)
    }

    /// A memory pool for the tasks of a query that another server has sent. Without `query_memory_max` there is no limit of the
    /// query, since it was sent for the memory of all workers; that of the user holds.
    #[cfg(feature = "distributed")]
    pub(in crate::sql) fn pool_for_tasks(&self, query: &QueryLimits) -> Arc<dyn MemoryPool> {
        self.pool(query, u64::MAX)
    }

    fn pool(&self, query: &QueryLimits, query_bytes_default: u64) -> Arc<dyn MemoryPool> {
        let limit = self.query_bytes_max.unwrap_or(query_bytes_default);
        let limit = query.bytes_max.map_or(limit, |own| own.min(limit));
        let user = self.users.of(&query.user, self.user_bytes_max);
        let server = Arc::clone(&self.server);
        Arc::new(QueryMemory::new(server, user, limit, query.collects_values))
    }
}

#[cfg(feature = "distributed")]
impl QueryLimits {
    /// What a worker is told of a query with this id.
    pub(in crate::sql) fn describe(&self, id: String) -> QueryDescription {
        QueryDescription {
            id: Some(id),
            user: self.user.clone(),
            memory_bytes_max: self.bytes_max,
            collects_values: self.collects_values,
        }
    }

    /// The limits of a query that another server has described.
    pub(in crate::sql) fn of(query: &QueryDescription) -> Self {
        Self {
            user: query.user.clone(),
            bytes_max: query.memory_bytes_max,
            collects_values: query.collects_values,
        }
    }
}

impl fmt::Debug for MemoryLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimits").finish_non_exhaustive()
    }
}
