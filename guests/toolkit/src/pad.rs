//! Texts filled up to a width that users choose. `format!` panics above 65,535.

pub use wardian_clock::WIDEST;

/// Fills a text up in front.
pub fn before(text: impl std::fmt::Display, fill: char, width: usize) -> String {
    let text = text.to_string();
    let missing = width.saturating_sub(text.chars().count());
    let mut padded = fill.to_string().repeat(missing);
    padded.push_str(&text);
    padded
}

/// Fills a text up behind.
pub fn after(text: impl std::fmt::Display, fill: char, width: usize) -> String {
    let mut padded = text.to_string();
    let missing = width.saturating_sub(padded.chars().count());
    padded.push_str(&fill.to_string().repeat(missing));
    padded
}
