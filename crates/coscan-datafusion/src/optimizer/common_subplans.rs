//! Consumers of a common subplan share its rows if they are planned alike.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::displayable;

use crate::common_subplans::operator::{CommonSubplan, CommonSubplanExec};
use crate::operator::{Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_down};

/// Lets equal [`CommonSubplanExec`]s share their rows. The rules of the optimizer may have given others different orders or
/// distributions; the planner then plans the statement without them. It must run after all rules that may change
/// consumers of one subplan differently.
pub(crate) const COMMON_SUBPLANS: Rule =
    Rule::new("coscan_common_subplans", |plan, _| common_subplans(plan));

/// Consumers that are planned alike.
struct Group {
    text: String,
    consumers: Vec<Plan>,
}

fn common_subplans(plan: &Plan) -> Changed {
    let mut groups: Vec<Group> = Vec::new();
    Arc::clone(plan).apply(|plan| {
        let Some(consumer) = plan.downcast_ref::<CommonSubplanExec>() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let input = only_input(&consumer.inputs)?.as_ref();
        let text = displayable(input).set_show_schema(true).indent(true).to_string();
        let is_alike = |group: &&mut Group| {
            let first = group.consumers.first().and_then(|first| first.downcast_ref());
            let is_same = |first: &CommonSubplanExec| first.operator.is_same(&consumer.operator);
            first.is_some_and(is_same) && group.text == text
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.consumers.push(Arc::clone(plan)),
            None => groups.push(Group { text, consumers: vec![Arc::clone(plan)] }),
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    if groups.is_empty() {
        return Ok(None);
    }
    let mut shared = Vec::new();
    for group in groups.iter().filter(|group| group.consumers.len() > 1) {
        let consumers: Vec<_> =
            group.consumers.iter().filter_map(|consumer| consumer.downcast_ref()).collect();
        shared.push((group, CommonSubplan::share(&consumers)?));
    }
    change_down(plan, |plan| {
        let Some(consumer) = plan.downcast_ref::<CommonSubplanExec>() else { return Ok(None) };
        for (group, shared) in &shared {
            let position = group.consumers.iter().position(|known| Arc::ptr_eq(known, plan));
            if let Some(shared) = position.and_then(|position| shared.get(position)) {
                return Ok(Some(Arc::clone(shared)));
            }
        }
        consumer.operator.shares().then(|| CommonSubplan::unshared(consumer)).transpose()
    })
}
