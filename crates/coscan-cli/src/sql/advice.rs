//! Advice on errors, in terms of the shell.

use coscan_datafusion::QueryError;
use datafusion::prelude::SessionContext;

use crate::Failure;

/// Advice of the lower layers, with its equivalent in the shell.
const IN_THE_SHELL: [(&str, &str); 4] = [
    (
        "Consider increasing the memory limit config: 'datafusion.runtime.memory_limit', or decreasing the config: ",
        "Give coscan more memory (--memory), or decrease ",
    ),
    (
        "give coscan more memory, or let fewer queries run at once",
        "give coscan more memory (--memory){jobs}",
    ),
    (
        "Give coscan more memory; if several queries run, fewer at once need less",
        "Give coscan more memory (--memory){jobs}",
    ),
    ("open the table again", "REFRESH TABLE lists its files again"),
];

/// Additional advice if other statements may run at the same time.
const FEWER_JOBS: &str = ", or let fewer scripts run at once (--jobs)";

/// The failure of a statement. `is_alone` is whether no other statement can run at the same time.
pub(super) fn failure(error: QueryError, context: &SessionContext, is_alone: bool) -> Failure {
    let mut text = error.to_string();
    for (below, here) in IN_THE_SHELL {
        let jobs = if is_alone { "" } else { FEWER_JOBS };
        text = text.replace(below, &here.replace("{jobs}", jobs));
    }
    if let Some(name) = quoted_name(&text, context) {
        text += &format!("; a name with capital letters is in double quotes: \"{name}\"");
    }
    text.into()
}

/// The name of the table that a query meant but did not find, since its name differs in case.
fn quoted_name(error: &str, context: &SessionContext) -> Option<String> {
    let (_, named) = error.split_once("table '")?;
    let (named, _) = named.split_once("' not found")?;
    let config = context.copied_config();
    let catalog = &config.options().catalog;
    let schema = format!("{}.{}.", catalog.default_catalog, catalog.default_schema);
    let named = named.strip_prefix(&schema)?;
    let tables = context.catalog(&catalog.default_catalog)?.schema(&catalog.default_schema)?;
    tables.table_names().into_iter().find(|name| name.eq_ignore_ascii_case(named))
}
