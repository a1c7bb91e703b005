//! The probability that the pool holds a chunk that a query can use.

/// The probability that a pool with random chunks of a table holds at least one that a query needs
/// [CS07 §3, formula 1 and Figure 2]; all numbers are in chunks.
///
/// A scan in order can use one chunk at a time only, which a pool holds with the probability `pool / table`.
pub(crate) fn reuse_probability(table: u32, query: u32, pool: u32) -> f64 {
    let table = f64::from(table);
    let useless = table - f64::from(query);
    let all_useless: f64 = (0..pool)
        .map(|slot| ((useless - f64::from(slot)) / (table - f64::from(slot))).max(0.0))
        .product();
    1.0 - all_useless
}

#[cfg(test)]
mod tests {
    use coscan_sim::Random;

    use super::*;

    #[test]
    fn agrees_with_drawing_pools() {
        let (table, query, pool) = (40, 4, 6);
        let mut random = Random::new(1);
        let draws = 20_000;
        let mut useful = 0;
        for _ in 0..draws {
            let mut chunks: Vec<u32> = (0..table).collect();
            let drawn = (0..pool).map(|_| {
                let position = random.below(chunks.len() as u64) as usize;
                chunks.swap_remove(position)
            });
            useful += u32::from(drawn.filter(|&chunk| chunk < query).count() > 0);
        }
        let measured = f64::from(useful) / f64::from(draws);
        let expected = reuse_probability(table, query, pool);
        assert!((measured - expected).abs() < 0.01, "{measured} and {expected}");
        assert_eq!(reuse_probability(100, 91, 10), 1.0);
    }
}
