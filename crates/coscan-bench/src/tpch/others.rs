//! The tables of TPC-H other than `lineitem`. They are smaller, so each is written as it is generated.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatchReader;
use parquet::arrow::ArrowWriter;
use tpchgen::generators::{
    CustomerGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use super::{TpchError, check_scale, make, properties};

/// Makes `orders`, `customer`, `part`, `partsupp`, `supplier`, `nation` and `region` at `scale_factor` in `directory`,
/// as [`super::lineitem`] does. Returns the name and the path of each.
///
/// # Errors
/// As [`super::lineitem`].
pub fn others(
    directory: &Path,
    scale_factor: f64,
) -> Result<Vec<(&'static str, PathBuf)>, TpchError> {
    check_scale(scale_factor)?;
    let scale = scale_factor;
    let tables: [(&str, Box<dyn RecordBatchReader>); 7] = [
        ("orders", Box::new(OrderArrow::new(OrderGenerator::new(scale, 1, 1)))),
        ("customer", Box::new(CustomerArrow::new(CustomerGenerator::new(scale, 1, 1)))),
        ("part", Box::new(PartArrow::new(PartGenerator::new(scale, 1, 1)))),
        ("partsupp", Box::new(PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1)))),
        ("supplier", Box::new(SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)))),
        ("nation", Box::new(NationArrow::new(NationGenerator::new(scale, 1, 1)))),
        ("region", Box::new(RegionArrow::new(RegionGenerator::new(scale, 1, 1)))),
    ];
    let made = tables.into_iter().map(|(name, rows)| {
        let path = directory.join(format!("{name}-sf{scale}.parquet"));
        make(directory, &path, |file| write(file, rows))?;
        Ok((name, path))
    });
    made.collect()
}

pub(super) fn write(file: &File, rows: Box<dyn RecordBatchReader>) -> Result<(), TpchError> {
    let out = BufWriter::new(file);
    let mut writer = ArrowWriter::try_new(out, rows.schema(), Some(properties()))?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}
