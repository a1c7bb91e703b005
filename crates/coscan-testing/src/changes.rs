//! Random changes of tables, as statements.

use coscan_core::SplitMix64;

/// Added to the key of a row that is inserted, so that no other row has it.
const NEW_KEYS: u64 = 1_000_000_000;

/// What is changed, and how much.
#[derive(Clone, Copy, Debug)]
pub struct RandomChanges<'a> {
    /// The name of the table.
    pub table: &'a str,
    /// Columns that identify a row. They get no other values. The first is a column of whole numbers below a billion.
    pub keys: &'a [&'a str],
    /// All columns, of which some are not among the keys.
    pub columns: &'a [&'a str],
    /// The number of statements.
    pub statements: u64,
    /// Each statement changes about one of so many rows.
    pub one_in: u64,
}

/// Statements, in their order, that delete rows, give columns other values and insert rows like those that are there, in
/// transactions, of which some are rolled back. Some are followed by a checkpoint. Equal arguments give equal statements.
///
/// # Panics
/// If there is no key, or nothing but keys.
#[must_use]
pub fn random_changes(seed: u64, changes: RandomChanges<'_>) -> Vec<String> {
    let RandomChanges { table, keys, columns, statements, one_in } = changes;
    let (mut random, key) = (SplitMix64(seed), keys[0]);
    let mut changes = Vec::new();
    let (mut is_open, mut inserted) = (false, 0);
    for _ in 0..statements {
        if !is_open && random.below(3) == 0 {
            is_open = true;
            changes.push("BEGIN".to_owned());
        }
        let condition = format!("{key} * 7 % {one_in} = {}", random.below(one_in));
        let others: Vec<_> = columns.iter().filter(|column| !keys.contains(column)).collect();
        changes.push(match random.below(4) {
            0 => format!("DELETE FROM {table} WHERE {condition}"),
            1 => {
                inserted += 1;
                let values = columns.iter().map(|column| match *column == key {
                    true => format!("{key} + {}", inserted * NEW_KEYS),
                    false => (*column).to_owned(),
                });
                let values = values.collect::<Vec<_>>().join(", ");
                format!("INSERT INTO {table} SELECT {values} FROM {table} WHERE {condition} AND {key} < {NEW_KEYS}")
            }
            _ => {
                let first = random.below(others.len() as u64) as usize;
                let assigned = others[first..].iter().take(1 + random.below(3) as usize);
                let assigned = assigned.map(|column| match random.below(3) {
                    0 => format!("{column} = (SELECT max({column}) FROM {table})"),
                    1 => format!("{column} = (SELECT min({column}) FROM {table})"),
                    _ => format!("{column} = NULL"),
                });
                let assigned = assigned.collect::<Vec<_>>().join(", ");
                format!("UPDATE {table} SET {assigned} WHERE {condition}")
            }
        });
        if is_open && random.below(2) == 0 {
            is_open = false;
            changes.push(if random.below(4) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned());
        }
        if !is_open && random.below(6) == 0 {
            changes.push(format!("VACUUM FULL {table}"));
        }
    }
    if is_open {
        changes.push("COMMIT".to_owned());
    }
    changes
}
