//! Earlier versions of tables in SQL: `FROM trips VERSION AS OF 12`, `FROM trips TIMESTAMP AS OF '2026-11-01'`.
//!
//! The engine's parser knows these clauses in some dialects, but its planner ignores them. This planner of relations
//! plans them.

use std::sync::Arc;
use std::time::SystemTime;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, ScalarValue, internal_err, not_impl_err, plan_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, ObjectName, TableFactor, TableVersion};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::tables::provider::SharedTableProvider;
use crate::tables::snapshot_source::SnapshotTime;

/// The number of clauses of a statement that name an earlier version of a table. Only a statement that has some needs a
/// dialect with such clauses, in which their words cannot be aliases.
#[must_use]
pub fn count_versions<'a>(tokens: impl IntoIterator<Item = &'a Token>) -> usize {
    const CLAUSES: [Keyword; 3] = [Keyword::VERSION, Keyword::TIMESTAMP, Keyword::SYSTEM_TIME];
    let words = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_)));
    let keywords: Vec<_> = words
        .map(|token| match token {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        })
        .collect();
    let is_clause = |words: &&[Keyword]| {
        CLAUSES.contains(&words[0]) && words[1..] == [Keyword::AS, Keyword::OF]
    };
    keywords.windows(3).filter(is_clause).count()
}

/// Plans tables with a clause that names a version.
#[derive(Debug)]
pub(crate) struct TimeTravel;

impl RelationPlanner for TimeTravel {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, alias, version: Some(version), .. } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let moment = moment(version, context)?;
        let plan = plan(name, moment, context)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

fn plan(
    name: ObjectName,
    moment: SnapshotTime,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let reference = context.object_name_to_table_reference(name)?;
    let source = context.context_provider().get_table_source(reference.clone())?;
    let table = source_as_provider(&source).ok();
    let Some(table) = table.as_ref().and_then(|table| table.downcast_ref::<SharedTableProvider>())
    else {
        return plan_err!(
            "{reference} is not a table with versions, so it cannot be read {moment}"
        );
    };
    let earlier = wait_for(table.clone(), moment)?;
    LogicalPlanBuilder::scan(reference, provider_as_source(earlier), None)?.build()
}

/// Opens an earlier snapshot. Planning cannot wait for a future, so this blocks the thread meanwhile.
fn wait_for(table: SharedTableProvider, moment: SnapshotTime) -> Result<Arc<dyn TableProvider>> {
    let open = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(table.at(moment))
    };
    let opened = std::thread::Builder::new().name("coscan-version".to_owned()).spawn(open)?.join();
    opened.unwrap_or_else(|_| internal_err!("opening a version of a table panicked"))
}

/// The moment that such a clause names.
fn moment(version: TableVersion, context: &mut dyn RelationPlannerContext) -> Result<SnapshotTime> {
    match version {
        TableVersion::VersionAsOf(version) => {
            let value = value(version, &DataType::UInt64, context)?;
            match value {
                ScalarValue::UInt64(Some(version)) => Ok(SnapshotTime::Version(version)),
                other => plan_err!("VERSION AS OF needs the number of a version, not {other}"),
            }
        }
        TableVersion::TimestampAsOf(time) | TableVersion::ForSystemTimeAsOf(time) => {
            let milliseconds = DataType::Timestamp(TimeUnit::Millisecond, None);
            match value(time, &milliseconds, context)? {
                ScalarValue::TimestampMillisecond(Some(time), _) => {
                    Ok(SnapshotTime::Timestamp(time))
                }
                other => plan_err!("TIMESTAMP AS OF needs a time, not {other}"),
            }
        }
        TableVersion::Function(_) | TableVersion::Changes { .. } => {
            not_impl_err!("earlier versions are named by VERSION AS OF or TIMESTAMP AS OF")
        }
    }
}

/// The value of an expression without columns, as a type.
fn value(
    expression: SqlExpr,
    data_type: &DataType,
    context: &mut dyn RelationPlannerContext,
) -> Result<ScalarValue> {
    let expression = context.sql_to_expr(expression, &DFSchema::empty())?;
    let options = Arc::new(context.context_provider().options().clone());
    let now = SystemTime::now().into();
    let simplify = SimplifyContext::builder().with_config_options(options);
    let simplify = simplify.with_query_execution_start_time(Some(now)).build();
    match ExprSimplifier::new(simplify).simplify(expression)? {
        Expr::Literal(value, _) => value.cast_to(data_type),
        other => plan_err!("the version of a table has to be a constant, not {other}"),
    }
}
