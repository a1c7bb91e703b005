//! `format`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub(super) fn format() -> ScalarUDF {
    ScalarUDF::new_from_impl(Format(Signature::variadic_any(Volatility::Immutable)))
}

/// `format(form, values…)`: `%s` stands for a value, `%I` for a value quoted as a name, `%L` for a value quoted as a
/// text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Format(Signature);

impl ScalarUDFImpl for Format {
    fn name(&self) -> &str {
        "format"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let texts = arrays.iter().map(|array| cast(array, &DataType::Utf8));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let value = |column: usize, row: usize| {
            let texts = texts.get(column)?.as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row))
        };
        let rows = arrays.first().map_or(0, |array| array.len());
        let formatted = (0..rows).map(|row| {
            value(0, row).map(|form| {
                let (mut text, mut next, mut rest) = (String::new(), 1, form);
                while let Some((before, after)) = rest.split_once('%') {
                    text.push_str(before);
                    let argument = value(next, row);
                    let sign = after.chars().next();
                    match sign {
                        Some('s') => text.push_str(argument.unwrap_or_default()),
                        Some('I') => text.push_str(&quoted(argument.unwrap_or_default(), '"')),
                        Some('L') => text
                            .push_str(&argument.map_or("NULL".to_owned(), |it| quoted(it, '\''))),
                        Some('%') => text.push('%'),
                        _ => {}
                    }
                    next += usize::from(sign != Some('%'));
                    rest = sign.map_or("", |sign| &after[sign.len_utf8()..]);
                }
                text + rest
            })
        });
        Ok(ColumnarValue::Array(Arc::new(formatted.collect::<StringArray>()) as ArrayRef))
    }
}

/// A text in quotes. Names are quoted only if necessary.
pub(super) fn quoted(text: &str, quote: char) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if quote == '"' && text.chars().all(is_plain) && !text.is_empty() {
        return text.to_owned();
    }
    format!("{quote}{}{quote}", text.replace(quote, &quote.to_string().repeat(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted() {
        for (text, name, literal) in
            [("a_1", "a_1", "'a_1'"), ("A\"b'", "\"A\"\"b'\"", "'A\"b'''"), ("", "\"\"", "''")]
        {
            assert_eq!((&*quoted(text, '"'), &*quoted(text, '\'')), (name, literal));
        }
    }
}
