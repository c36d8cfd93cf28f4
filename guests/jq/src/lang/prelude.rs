//! The functions of the language that are written in it.

/// Definitions, one after the other, each from its `def` to the next at the start of a line.
const TEXT: &str = include_str!("prelude.jq");
/// What yq has besides, or otherwise.
const YQ: &str = include_str!("yq.jq");

/// The definition of a function.
pub fn find(name: &str, parameters: usize, is_yq: bool) -> Option<&'static str> {
    let of_yq = definitions(YQ).filter(|_| is_yq);
    of_yq.chain(definitions(TEXT)).find(|text| signature(text) == Some((name, parameters)))
}

/// Whether yq has a function besides jq's, or otherwise.
pub fn is_of_yq(name: &str, parameters: usize) -> bool {
    definitions(YQ).any(|text| signature(text) == Some((name, parameters)))
}

/// Names and numbers of parameters, of those meant to be called.
pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    definitions(TEXT).filter_map(signature).filter(|(name, _)| !name.starts_with('_'))
}

fn definitions(text: &'static str) -> impl Iterator<Item = &'static str> {
    let starts = text.match_indices("\ndef ").map(|(at, _)| at + 1);
    starts.map(move |start| {
        let rest = &text[start..];
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
