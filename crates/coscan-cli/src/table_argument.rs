//! Tables on the command line.

/// Parses `NAME=URL` into the name and the location of a table.
///
/// # Errors
/// A sentence that lists the accepted forms.
pub(crate) fn parse_table(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && !url.is_empty() => {
            Ok((name.to_owned(), url.to_owned()))
        }
        _ => Err("write NAME=URL, for example trips=data/trips/*.parquet".to_owned()),
    }
}
