//! Rows in the forms text and CSV.
#![allow(clippy::unwrap_used)]
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, Schema};
use proptest::prelude::*;

use super::*;

fn reader(columns: usize, form: &CopyForm, has_header: bool) -> CopyReader {
    let fields = (0..columns).map(|at| Field::new(at.to_string(), DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    CopyReader::new(schema, form.clone(), has_header)
}

/// The rows that are read from bytes in pieces of a size.
fn rows(
    mut reader: CopyReader,
    bytes: &[u8],
    piece: usize,
) -> Result<Vec<Vec<Option<String>>>, String> {
    let mut rows = Vec::new();
    let mut take = |reader: &mut CopyReader, is_last| {
        while let Some(batch) = reader.next_batch(is_last).unwrap() {
            for row in 0..batch.num_rows() {
                let value = |column: &ArrayRef| {
                    let texts = column.as_string::<i32>();
                    texts.is_valid(row).then(|| texts.value(row).to_owned())
                };
                rows.push(batch.columns().iter().map(value).collect());
            }
        }
    };
    for piece in bytes.chunks(piece) {
        reader.read(piece).map_err(|error| error.text)?;
        take(&mut reader, false);
    }
    reader.finish().map_err(|error| error.text)?;
    take(&mut reader, true);
    Ok(rows)
}

fn text() -> CopyForm {
    CopyForm::Text { delimiter: b'\t', null: "\\N".to_owned() }
}

fn csv() -> CopyForm {
    CopyForm::Csv { delimiter: b',', null: String::new(), quote: b'"' }
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

#[test]
fn escapes_and_nulls_of_text() {
    let bytes = b"a\\tb\t\\N\n\\\\N\t\\x41\\102\\q\r\n\t\n\\.\nignored";
    for piece in [1, 2, 100] {
        let read = rows(reader(2, &text(), false), bytes, piece).unwrap();
        let first = vec![Some("a\tb".to_owned()), None];
        assert_eq!(read, [first, some(&["\\N", "ABq"]), some(&["", ""])]);
    }
}

#[test]
fn quotes_and_nulls_of_csv() {
    let bytes = b"id,name\n1,\"a \"\"b\"\"\n,c\"\n2,\n3,\"\"\n";
    for piece in [1, 3, 100] {
        let read = rows(reader(2, &csv(), true), bytes, piece).unwrap();
        let second = vec![Some("2".to_owned()), None];
        assert_eq!(read, [some(&["1", "a \"b\"\n,c"]), second, some(&["3", ""])]);
    }
}

#[test]
fn wrong_rows_are_told_by_their_number() {
    let error = |bytes: &[u8]| rows(reader(2, &csv(), false), bytes, 100).unwrap_err();
    assert_eq!(error(b"1,2\n1\n"), "row 2 of COPY has 1 of 2 columns");
    assert_eq!(error(b"1,2\n1,2,3\n"), "row 2 of COPY has more than 2 columns");
    assert_eq!(error(b"\xff,2\n"), "row 1 of COPY is not UTF-8");
    assert_eq!(error(b"1,2\n\"1,2\n"), "row 2 of COPY ends within quotes");
}

proptest! {
    #[test]
    fn what_is_copied_out_is_copied_in(
        values in prop::collection::vec(
            prop::collection::vec(prop::option::of("[ -~\n\r\t\u{8}é\\\\\"]{0,12}"), 3),
            0..20,
        ),
        piece in 1..50_usize,
    ) {
        for form in [text(), csv()] {
            let mut bytes = bytes::BytesMut::new();
            for row in &values {
                for (column, value) in row.iter().enumerate() {
                    if column > 0 {
                        bytes.extend(form.delimiter());
                    }
                    form.add(&mut bytes, value.as_deref().map(str::as_bytes));
                }
                bytes.extend(b"\n");
            }
            prop_assert_eq!(&rows(reader(3, &form, false), &bytes, piece).unwrap(), &values);
        }
    }

    #[test]
    fn any_bytes_are_rows_or_an_error(bytes: Vec<u8>, piece in 1..20_usize) {
        for form in [text(), csv()] {
            drop(rows(reader(2, &form, false), &bytes, piece));
        }
    }
}
