//! What the rules need of Markdown.

/// The lines of a text that are not in fenced blocks, with their numbers from 1 on.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then_some((number, line))
    })
}

/// The anchors of the headings of a page, as GitHub makes them.
pub(crate) fn anchors(text: &str) -> impl Iterator<Item = String> {
    headings(text).map(|heading| {
        let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    })
}

/// The headings of a page.
pub(crate) fn headings(text: &str) -> impl Iterator<Item = &str> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| line.trim_start_matches('#').trim())
}

/// The parts of a line between backticks.
pub(crate) fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_in_blocks_are_none() {
        let text = "# A `b`: c, d\n```sh\n# not one\n```\n## Two words\n";
        assert!(headings(text).eq(["A `b`: c, d", "Two words"]));
        assert!(anchors(text).eq(["a-b-c-d", "two-words"]));
    }

    #[test]
    fn code_is_between_backticks() {
        assert!(code("a `b` c `d`").eq(["b", "d"]));
        assert_eq!(code("none").count(), 0);
    }
}
