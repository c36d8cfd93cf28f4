//! The functions of the language that are written in it.

/// Definitions, one after the other, each from its `def` to the next at the start of a line.
const TEXT: &str = include_str!("prelude.jq");

/// The definition of a function.
pub fn find(name: &str, parameters: usize) -> Option<&'static str> {
    definitions().find(|text| signature(text) == Some((name, parameters)))
}

/// Names and numbers of parameters, of those meant to be called.
pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    definitions().filter_map(signature).filter(|(name, _)| !name.starts_with('_'))
}

fn definitions() -> impl Iterator<Item = &'static str> {
    let starts = TEXT.match_indices("\ndef ").map(|(at, _)| at + 1);
    starts.map(|start| {
        let rest = &TEXT[start..];
        &rest[..rest.find("\ndef ").unwrap_or(rest.len())]
    })
}

fn signature(text: &'static str) -> Option<(&'static str, usize)> {
    let rest = text.strip_prefix("def ")?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
    let (name, rest) = rest.split_at(end);
    let parameters = match rest.strip_prefix('(') {
        Some(inside) => 1 + inside.split(')').next()?.matches(';').count(),
        None => 0,
    };
    Some((name, parameters))
}
