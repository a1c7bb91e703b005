//! Settings in the first message of a client.

/// The settings that a client makes when it connects: parameters with their names, and `options` such as
/// `-c name=value`.
pub(super) fn settings(parameters: &[(String, String)]) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" | "replication" => {}
            "options" => settings.extend(options(value)),
            name if name.starts_with("_pq_.") => {}
            _ => settings.push((name.clone(), value.clone())),
        }
    }
    settings
}

fn options(text: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let (mut word, mut escaped) = (String::new(), false);
    for c in text.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            c if c.is_whitespace() && !escaped => words.push(std::mem::take(&mut word)),
            c => {
                word.push(c);
                escaped = false;
            }
        }
    }
    words.push(word);
    let settings = words.iter().filter_map(|word| {
        let word = word.strip_prefix("--").or_else(|| word.strip_prefix("-c")).unwrap_or(word);
        let (name, value) = word.split_once('=')?;
        Some((name.replace('-', "_"), value.to_owned()))
    });
    settings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings() {
        let expected = [("coscan.weight", "2"), ("application_name", "a b"), ("timezone", "UTC")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = "-c coscan.weight=2 -capplication-name=a\\ b --timezone=UTC -x";
        assert_eq!(options(text), expected);
    }
}
