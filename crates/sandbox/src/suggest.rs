//! What somebody may have meant by a misspelt name.

/// How alike two names must be: 0 is not at all, 1 is the same.
const ALIKE: f64 = 0.8;
/// What one slip of the finger leaves alike: a letter too many, too few, wrong, or swapped with the next.
const SLIP: f64 = 0.9;
/// Longer names are nobody's slip, and comparing takes the product of both lengths.
const LONGEST: usize = 64;

/// Returns the name that is most like `word`, if one is like it.
pub fn suggest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let folded = word.to_lowercase();
    let alike = |name: &'a str| {
        let other = name.to_lowercase();
        let alike = strsim::jaro_winkler(&folded, &other);
        let slip = folded.len() > 1 && strsim::osa_distance(&folded, &other) == 1;
        (if slip { alike.max(SLIP) } else { alike }, name)
    };
    let near = names.into_iter().filter(|name| name.len() <= LONGEST).map(alike);
    let best = near.filter(|(alike, _)| *alike >= ALIKE).max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, name)| name)
}

/// Returns ` (did you mean X?)`, or nothing.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    suggest(word, names).map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
        let names = ["memoryBytes", "processes", "openFiles", "grep", "sed"];
        for (slip, meant) in [
            ("memorybytes", "memoryBytes"),
            ("memoryByte", "memoryBytes"),
            ("proceses", "processes"),
            ("open_files", "openFiles"),
            ("gerp", "grep"),
            ("esd", "sed"),
        ] {
            assert_eq!(suggest(slip, names), Some(meant), "{slip}");
        }
        for other in ["", "network", "awk", &"memoryBytes".repeat(10)] {
            assert_eq!(suggest(other, names), None, "{other}");
        }
    }
}
