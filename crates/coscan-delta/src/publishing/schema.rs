//! Columns of a table as Delta Lake has them.

use std::collections::BTreeSet;
use std::fmt::Write;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use delta_kernel::engine::arrow_conversion::TryFromArrow;
use delta_kernel::schema::StructType;

/// Characters that names of columns have only in tables that map columns.
const RESERVED: [char; 11] = [' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '\r', '='];

/// Columns as the log has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DeltaSchema {
    /// As JSON.
    pub(super) json: String,
    /// Whether a column is a timestamp without a time zone, which is a feature of the table.
    pub(super) has_timestamp_ntz: bool,
}

impl DeltaSchema {
    /// The columns of a table, or the reason why Delta Lake cannot have them.
    pub(super) fn new(columns: &Schema) -> Result<Self, String> {
        check_fields(columns.fields())?;
        let in_delta = StructType::try_from_arrow(columns).map_err(|error| error.to_string())?;
        let json = serde_json::to_string(&in_delta).map_err(|error| error.to_string())?;
        let has_timestamp_ntz = columns.fields().iter().any(is_timestamp_ntz);
        Ok(Self { json, has_timestamp_ntz })
    }
}

/// Checks names and types of columns, or of the fields of a struct.
fn check_fields(fields: &Fields) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for field in fields {
        let name = field.name();
        if name.is_empty() || name.contains(RESERVED) {
            return Err(format!(
                "the name of column {name:?} is empty or has white space or one of ,;{{}}()="
            ));
        }
        if !names.insert(name.to_lowercase()) {
            return Err(format!("two columns are called {name}, apart from upper and lower case"));
        }
        check_type(field)?;
    }
    Ok(())
}

/// Checks that other engines read the column as coscan writes it to Parquet files.
fn check_type(field: &Field) -> Result<(), String> {
    let instead = match field.data_type() {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Date32
        | DataType::Timestamp(TimeUnit::Microsecond, None) => return Ok(()),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if is_utc(zone) => return Ok(()),
        DataType::Decimal128(precision, scale) if (0..=*precision as i8).contains(scale) => {
            return Ok(());
        }
        DataType::List(item) | DataType::LargeList(item) => return check_type(item),
        DataType::Map(entries, _) => return check_type(entries),
        DataType::Struct(fields) => return check_fields(fields),
        DataType::Timestamp(..) => "declare it as TIMESTAMP(6), or with the time zone UTC",
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            "use a signed type"
        }
        _ => "use another one",
    };
    let (name, data_type) = (field.name(), field.data_type());
    Err(format!("column {name} is of type {data_type}, which Delta Lake does not have: {instead}"))
}

fn is_utc(zone: &str) -> bool {
    zone.eq_ignore_ascii_case("utc")
}

/// Whether a column has timestamps without a time zone.
fn is_timestamp_ntz(field: &FieldRef) -> bool {
    match field.data_type() {
        DataType::Timestamp(_, zone) => zone.is_none(),
        DataType::List(item) | DataType::LargeList(item) => is_timestamp_ntz(item),
        DataType::Struct(fields) => fields.iter().any(is_timestamp_ntz),
        DataType::Map(entries, _) => is_timestamp_ntz(entries),
        _ => false,
    }
}

/// The name of a table's directory: that of the table, with `@` and two digits for each byte that is not a letter, a digit, `-`
/// or `_`. URLs have all of these as they are.
pub(super) fn directory_name(table: &str) -> String {
    table.bytes().fold(String::new(), |mut name, byte| {
        match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            true => name.push(char::from(byte)),
            false => drop(write!(name, "@{byte:02X}")),
        }
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_delta_lake_does_not_have_are_refused() {
        let reason = |name: &str, data_type: DataType| {
            DeltaSchema::new(&Schema::new(vec![Field::new(name, data_type, true)])).err()
        };
        let item = Field::new("a", DataType::UInt8, true);
        for (name, data_type, expected) in [
            ("a", DataType::UInt32, "use a signed type"),
            ("a", DataType::Timestamp(TimeUnit::Nanosecond, None), "TIMESTAMP(6)"),
            ("a", DataType::Timestamp(TimeUnit::Microsecond, Some("+02:00".into())), "zone UTC"),
            ("a", DataType::Decimal256(50, 2), "use another one"),
            ("a b", DataType::Int64, "\"a b\""),
            ("a", DataType::List(item.clone().into()), "UInt8"),
            ("a", DataType::Struct(vec![item.clone()].into()), "UInt8"),
        ] {
            let reason = reason(name, data_type).expect(expected);
            assert!(reason.contains(expected), "{reason}");
        }
        let twice = [("a", DataType::Int64), ("A", DataType::Int64)];
        let twice = twice.map(|(name, data_type)| Field::new(name, data_type, true));
        assert!(DeltaSchema::new(&Schema::new(twice.to_vec())).is_err());
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(reason("a", utc), None);
    }

    #[test]
    fn names_of_tables_are_names_of_directories() {
        assert_eq!(directory_name("line_item-2"), "line_item-2");
        assert_eq!(directory_name("../x y"), "@2E@2E@2Fx@20y");
        assert_eq!(directory_name("é@"), "@C3@A9@40");
    }
}
