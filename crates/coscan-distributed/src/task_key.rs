//! The key of a task, in a header of the request that sends its plan: the engine sends it in the body only.

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion_distributed::TaskKey;
use http::{HeaderMap, HeaderValue};

/// The name of the header.
const NAME: &str = "coscan-task";

/// Adds the key of a task.
pub(crate) fn add_task_key(headers: &mut HeaderMap, key: &TaskKey) -> Result<()> {
    let TaskKey { query_id, stage_id, task_number } = key;
    let value = HeaderValue::try_from(format!("{query_id}/{stage_id}/{task_number}"));
    headers.insert(NAME, value.map_err(|error| exec_datafusion_err!("{error}"))?);
    Ok(())
}

/// The key of a task, if its coordinator has sent it. All tasks of an execution of a query have the same `query_id`, and those of
/// another execution have another one.
pub(crate) fn task_key(headers: &HeaderMap) -> Option<TaskKey> {
    let mut parts = headers.get(NAME)?.to_str().ok()?.split('/');
    let query_id = parts.next()?.parse().ok()?;
    let stage_id = parts.next()?.parse().ok()?;
    let task_number = parts.next()?.parse().ok()?;
    Some(TaskKey { query_id, stage_id, task_number })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = TaskKey { query_id: Uuid::new_v4(), stage_id: 3, task_number: 14 };
        let mut headers = HeaderMap::new();
        assert_eq!(task_key(&headers), None);
        add_task_key(&mut headers, &key).expect("text");
        assert_eq!(task_key(&headers), Some(key));
        for wrong in ["", "/", "1/2/3", "00000000-0000-0000-0000-000000000000/1"] {
            headers.insert(NAME, HeaderValue::from_static(wrong));
            assert_eq!(task_key(&headers), None, "{wrong}");
        }
    }
}
