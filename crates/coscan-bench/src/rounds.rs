//! Runs that are compared take turns, so that disturbances of the machine hit all of them.

use crate::runner::EngineError;

/// Runs each variant once, beginning with another one in each round. The results are in the order of the variants.
pub(crate) async fn in_turn<V, R>(
    round: usize,
    variants: &[V],
    run: impl AsyncFn(&V) -> Result<R, EngineError>,
) -> Result<Vec<R>, EngineError> {
    let first = round % variants.len().max(1);
    let mut results = Vec::with_capacity(variants.len());
    for variant in variants[first..].iter().chain(&variants[..first]) {
        results.push(run(variant).await?);
    }
    results.rotate_right(first);
    Ok(results)
}

/// Runs each variant in every round, and at least once. Returns the results of each variant, in the order of rounds.
pub(crate) async fn interleaved<V, R>(
    rounds: usize,
    variants: &[V],
    run: impl AsyncFn(&V) -> Result<R, EngineError>,
) -> Result<Vec<Vec<R>>, EngineError> {
    let mut results: Vec<Vec<R>> = variants.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds.max(1) {
        let round = in_turn(round, variants, &run).await?;
        results.iter_mut().zip(round).for_each(|(results, result)| results.push(result));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn variants_alternate_in_going_first_and_keep_their_results() {
        let order = RefCell::new(Vec::new());
        let run = async |&variant: &char| {
            order.borrow_mut().push(variant);
            Ok(order.borrow().len())
        };
        let results = interleaved(3, &['a', 'b'], run).now_or_never().expect("no waiting");
        assert_eq!(results.expect("no errors"), [[1, 4, 5], [2, 3, 6]]);
        assert_eq!(order.into_inner(), ['a', 'b', 'b', 'a', 'a', 'b']);
    }
}
