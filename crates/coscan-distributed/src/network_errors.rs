//! Errors of the connections to workers, and between them.

use std::error::Error;

use datafusion::error::DataFusionError;
use tonic::{Code, Status};
use url::Url;

/// How the error of a task begins after a lost connection to another worker. Their errors travel as text.
const BETWEEN_WORKERS: &str = "a connection between workers was lost";

/// How the engine begins to say that a plan did not arrive in time: the connection is lost or the worker has far too much to do.
const NO_PLAN: &str = "Worker::execute_task timed-out while waiting for the plan";

/// How the error of a task begins for which its worker has no memory.
const NO_MEMORY: &str = "a worker has no memory for the query";

/// How the error of a task begins that has reached a limit of its query or its user.
const ON_WORKER: &str = "on a worker, ";

/// How memory pools begin to say that a query, or a user, has reached its limit. Alone, the query would fail again.
pub const OVER_LIMIT: [&str; 2] = ["the query holds", "the queries of user"];

/// The most bytes of the text of an error.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// How a worker begins to say that it has too many queries.
pub(crate) const BUSY: &str = "this worker is busy";

/// The workers had as many queries as they execute.
#[derive(Debug, thiserror::Error)]
#[error("the workers have too many queries; run the query later, or raise workers.queries_max")]
pub struct WorkersBusy;

impl WorkersBusy {
    pub(crate) fn into_error(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }

    /// Whether a query failed because the workers had too many.
    #[must_use]
    pub fn is(error: &DataFusionError) -> bool {
        let DataFusionError::External(error) = error.find_root() else { return false };
        error.is::<Self>()
    }
}

/// A worker was lost after the first rows were returned, or again in the second attempt.
#[derive(Debug, thiserror::Error)]
#[error("{} was lost while the query ran: {reason}; run the query again", name(worker.as_ref()))]
pub struct WorkerLost {
    worker: Option<Url>,
    // Not a source: the error of the network is not what the statement failed of.
    reason: String,
}

fn name(worker: Option<&Url>) -> String {
    worker.map_or_else(
        || "a worker".to_owned(),
        |url| format!("worker {}", url.as_str().trim_end_matches('/')),
    )
}

impl WorkerLost {
    /// Whether a query failed because a worker was lost.
    #[must_use]
    pub fn is(error: &DataFusionError) -> bool {
        let DataFusionError::External(error) = error.find_root() else { return false };
        error.is::<Self>()
    }
}

/// The error of a query as its client sees it: workers that have too many queries, a worker that was lost, or the error itself.
pub(crate) fn to_client_error(error: DataFusionError, worker: Option<&Url>) -> DataFusionError {
    if is_busy(&error) {
        return WorkersBusy.into_error();
    }
    if !is_of_network(&error) {
        return error;
    }
    let reason = match status(&error) {
        Some(status) => status.message().to_owned(),
        None => error.strip_backtrace(),
    };
    DataFusionError::External(Box::new(WorkerLost { worker: worker.cloned(), reason }))
}

/// The error of a task, in a form in which its coordinator understands it.
pub(crate) fn to_task_error(error: DataFusionError) -> DataFusionError {
    if status(&error).is_some_and(is_lost) || is_of_transport(&error) {
        let text = error.strip_backtrace();
        return DataFusionError::Execution(format!("{BETWEEN_WORKERS}: {}", shortened(text)));
    }
    match error.find_root() {
        // Of another worker.
        DataFusionError::ResourcesExhausted(text)
            if text.starts_with(NO_MEMORY) || text.starts_with(ON_WORKER) =>
        {
            error
        }
        DataFusionError::ResourcesExhausted(text) => {
            let is_limit = OVER_LIMIT.iter().any(|limit| text.starts_with(limit));
            let text = shortened(text.clone());
            DataFusionError::ResourcesExhausted(match is_limit {
                true => format!("{ON_WORKER}{text}"),
                false => format!("{NO_MEMORY}: {text}"),
            })
        }
        // It travels in the trailers of an answer, for whose bytes there is a limit.
        _ if error.to_string().len() > TEXT_BYTES_MAX => {
            DataFusionError::Execution(shortened(error.strip_backtrace()))
        }
        _ => error,
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text += " …";
    }
    text
}

/// Whether an error came from a connection and not from an operator.
pub(crate) fn is_of_network(error: &DataFusionError) -> bool {
    if status(error).is_some_and(is_lost) || is_of_transport(error) {
        return true;
    }
    let DataFusionError::Execution(text) = error.find_root() else { return false };
    text.starts_with(BETWEEN_WORKERS) || text.starts_with(NO_PLAN)
}

/// Whether a worker has refused a query because it has too many.
pub(crate) fn is_busy(error: &DataFusionError) -> bool {
    status(error).is_some_and(|status| status.message().starts_with(BUSY))
}

/// Whether a query failed because a worker had no memory for it beside other queries. Limits of the query and of its user do
/// not count: alone, it would fail again.
pub(crate) fn is_memory_short(error: &DataFusionError) -> bool {
    let DataFusionError::ResourcesExhausted(text) = error.find_root() else { return false };
    text.starts_with(NO_MEMORY)
}

fn is_lost(status: &Status) -> bool {
    // One that has a source was made here, for a connection that failed. Others, such as that of a message that is too long,
    // would be the same again.
    status.source().is_some()
        || matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
}

/// The answer of a connection in an error.
fn status(error: &DataFusionError) -> Option<&Status> {
    sources(error).find_map(|error| error.downcast_ref())
}

fn is_of_transport(error: &DataFusionError) -> bool {
    sources(error).any(|error| error.is::<tonic::transport::Error>())
}

/// An error, and what it comes from.
fn sources(error: &DataFusionError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| match error.downcast_ref() {
        Some(DataFusionError::External(error)) => Some(error.as_ref()),
        Some(DataFusionError::Shared(error)) => Some(error.as_ref()),
        Some(DataFusionError::Context(_, error)) => Some(error.as_ref()),
        _ => error.source(),
    })
}
