//! Places of a common subplan share its rows if they are planned alike.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::displayable;

use crate::common_subplans::operator::{CommonSubplan, CommonSubplanExec};
use crate::operator::{Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_down};

/// Gives equal [`CommonSubplanExec`]s their common rows, and removes others: the rules of the optimizer may have given the
/// places of a subplan different orders or distributions. It must run after all rules.
pub(crate) const COMMON_SUBPLANS: Rule =
    Rule::new("coscan_common_subplans", |plan, _| common_subplans(plan));

/// Places that are planned alike.
struct Group {
    text: String,
    places: Vec<Plan>,
}

fn common_subplans(plan: &Plan) -> Changed {
    let mut groups: Vec<Group> = Vec::new();
    Arc::clone(plan).apply(|plan| {
        let Some(place) = plan.downcast_ref::<CommonSubplanExec>() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let input = only_input(&place.inputs)?.as_ref();
        let text = displayable(input).set_show_schema(true).indent(true).to_string();
        let is_alike = |group: &&mut Group| {
            let first = group.places.first().and_then(|first| first.downcast_ref());
            let is_same = |first: &CommonSubplanExec| first.operator.is_same(&place.operator);
            first.is_some_and(is_same) && group.text == text
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.places.push(Arc::clone(plan)),
            None => groups.push(Group { text, places: vec![Arc::clone(plan)] }),
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    if groups.is_empty() {
        return Ok(None);
    }
    let mut shared = Vec::new();
    for group in groups.iter().filter(|group| group.places.len() > 1) {
        let places: Vec<_> = group.places.iter().filter_map(|place| place.downcast_ref()).collect();
        let number = shared.len() + 1;
        shared.push((group, CommonSubplan::share(&places, number)?));
    }
    change_down(plan, |plan| {
        let Some(place) = plan.downcast_ref::<CommonSubplanExec>() else { return Ok(None) };
        for (group, shared) in &shared {
            let position = group.places.iter().position(|known| Arc::ptr_eq(known, plan));
            if let Some(shared) = position.and_then(|position| shared.get(position)) {
                return Ok(Some(Arc::clone(shared)));
            }
        }
        Ok(Some(Arc::clone(only_input(&place.inputs)?)))
    })
}
