//! The files of the experiments: the papers', in the order of the papers, then our own.

/// The names and the files.
const FILES: &[(&str, &str)] = &[
    ("cs04-table1", include_str!("../experiments/cs04-table1.toml")),
    ("cs04-figure3", include_str!("../experiments/cs04-figure3.toml")),
    ("cs04-figure4", include_str!("../experiments/cs04-figure4.toml")),
    ("cs04-figure5", include_str!("../experiments/cs04-figure5.toml")),
    ("cs04-table3", include_str!("../experiments/cs04-table3.toml")),
    ("cs04-figure7", include_str!("../experiments/cs04-figure7.toml")),
    ("cs04-table4", include_str!("../experiments/cs04-table4.toml")),
    ("cs04-figure8", include_str!("../experiments/cs04-figure8.toml")),
    ("cs07-example", include_str!("../experiments/cs07-example.toml")),
    ("cs07-table2", include_str!("../experiments/cs07-table2.toml")),
    ("cs07-figure5", include_str!("../experiments/cs07-figure5.toml")),
    ("cs07-figure6", include_str!("../experiments/cs07-figure6.toml")),
    ("cs07-figure7", include_str!("../experiments/cs07-figure7.toml")),
    ("cs07-figure8", include_str!("../experiments/cs07-figure8.toml")),
    ("cs07-table3", include_str!("../experiments/cs07-table3.toml")),
    ("cs07-table4", include_str!("../experiments/cs07-table4.toml")),
    ("cs11-table3.1", include_str!("../experiments/cs11-table3.1.toml")),
    ("cs11-table6.1", include_str!("../experiments/cs11-table6.1.toml")),
    ("cs11-figure6.2", include_str!("../experiments/cs11-figure6.2.toml")),
    ("cs11-figure6.3", include_str!("../experiments/cs11-figure6.3.toml")),
    ("cs11-figure6.4", include_str!("../experiments/cs11-figure6.4.toml")),
    ("cs11-table6.2", include_str!("../experiments/cs11-table6.2.toml")),
    ("cs11-figure6.7-joins", include_str!("../experiments/cs11-figure6.7-joins.toml")),
    ("cs11-figure6.7-mixed", include_str!("../experiments/cs11-figure6.7-mixed.toml")),
    ("cs11-figure7.3", include_str!("../experiments/cs11-figure7.3.toml")),
    ("half-in-order", include_str!("../experiments/half-in-order.toml")),
    ("half-in-order-table2", include_str!("../experiments/half-in-order-table2.toml")),
    ("in-order-places", include_str!("../experiments/in-order-places.toml")),
    ("short-under-long", include_str!("../experiments/short-under-long.toml")),
    ("small-hot-table", include_str!("../experiments/small-hot-table.toml")),
    ("changing-table", include_str!("../experiments/changing-table.toml")),
    ("two-versions", include_str!("../experiments/two-versions.toml")),
];

/// The names of the experiments.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// The file of an experiment.
#[must_use]
pub fn file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(other, _)| *other == name).map(|&(_, text)| text)
}
