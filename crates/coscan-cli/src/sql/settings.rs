//! Statements on settings that the engine would run in a way that does not work with coscan.

use coscan_datafusion::SessionSettings;
use datafusion::common::config_err;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, Statement};
use datafusion::prelude::SessionContext;

/// A setting for which the engine would replace coscan's memory pool by its own.
const MEMORY_LIMIT: &str = "datafusion.runtime.memory_limit";

/// Runs a statement if it resets a setting of coscan. Returns whether it has.
///
/// # Errors
/// If it sets a setting that coscan controls, or resets a setting that does not exist.
pub(super) fn run(context: &SessionContext, plan: &LogicalPlan) -> Result<bool> {
    let (variable, resets) = match plan {
        LogicalPlan::Statement(Statement::SetVariable(set)) => (set.variable.as_str(), false),
        LogicalPlan::Statement(Statement::ResetVariable(reset)) => (reset.variable.as_str(), true),
        _ => return Ok(false),
    };
    if variable.eq_ignore_ascii_case(MEMORY_LIMIT) {
        return config_err!(
            "coscan has one memory budget for pages, decoded columns and operators, which --memory sets; \
             {MEMORY_LIMIT} cannot be set"
        );
    }
    let Some(setting) = variable.strip_prefix("coscan.").filter(|_| resets) else {
        return Ok(false);
    };
    let state = context.state_ref();
    let mut state = state.write();
    match state.config_mut().options_mut().extensions.get_mut::<SessionSettings>() {
        Some(settings) => settings.reset(setting).map(|()| true),
        None => Ok(false),
    }
}
