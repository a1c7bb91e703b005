//! Tests of the code that `coscan-pdt` is compared with, `benches/layers`: a comparison of two wrong things says nothing.

#[path = "../../benches/layers/pdt/mod.rs"]
mod pdt;
#[path = "../../benches/layers/product.rs"]
mod product;
#[path = "../../benches/support/random.rs"]
mod random;
#[path = "../../benches/layers/subjects.rs"]
mod subjects;

mod histories;
mod model;
mod same;
