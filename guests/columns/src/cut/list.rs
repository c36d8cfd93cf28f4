//! The list of what is wanted: `1,3-5,7-`.

use toolkit::quote;

/// From one number to another, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub first: u64,
    pub last: u64,
}

/// Spans in order; none overlaps another.
#[derive(Debug, PartialEq)]
pub struct List(Vec<Span>);

/// What is numbered, for the messages.
#[derive(Clone, Copy, PartialEq)]
pub enum Noun {
    Byte,
    Field,
}

impl List {
    /// Reads a list; the error is the message for it.
    pub fn parse(text: &[u8], noun: Noun) -> Result<List, String> {
        let mut spans = Vec::new();
        let mut rest = text;
        loop {
            let item = Item::take(&mut rest, noun)?;
            spans.push(item.span(noun)?);
            match rest {
                [] => break,
                [_, after @ ..] => rest = after,
            }
        }
        spans.sort_by_key(|span: &Span| span.first);
        let mut merged: Vec<Span> = Vec::new();
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.first <= last.last => last.last = last.last.max(span.last),
                _ => merged.push(span),
            }
        }
        Ok(List(merged))
    }

    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    pub fn has(&self, number: u64) -> bool {
        self.0.iter().any(|span| span.first <= number && number <= span.last)
    }

    /// All that is not on the list.
    pub fn complement(self) -> List {
        let mut others = Vec::new();
        let mut next = 1;
        for Span { first, last } in self.0 {
            if next < first {
                others.push(Span { first: next, last: first - 1 });
            }
            next = last.saturating_add(1);
        }
        if next < u64::MAX {
            others.push(Span { first: next, last: u64::MAX });
        }
        List(others)
    }
}

/// One item as it is written: numbers, and whether there is a dash.
struct Item {
    left: Option<u64>,
    dash: bool,
    right: Option<u64>,
}

impl Item {
    /// Takes an item off the front, up to what separates it from the next.
    fn take(rest: &mut &[u8], noun: Noun) -> Result<Item, String> {
        let mut item = Item { left: None, dash: false, right: None };
        loop {
            match rest {
                [] | [b',' | b' ' | b'\t', ..] => return Ok(item),
                [b'-', after @ ..] => {
                    if item.dash {
                        return Err(noun.of("invalid byte or character range", "invalid field range"));
                    }
                    if item.left == Some(0) {
                        return Err(noun.not_zero());
                    }
                    item.dash = true;
                    *rest = after;
                }
                [b'0'..=b'9', ..] => {
                    let number = Some(take_number(rest, noun)?);
                    if item.dash { item.right = number } else { item.left = number }
                }
                _ => {
                    let word = quote::word(rest);
                    let byte = format!("invalid byte/character position {word}");
                    return Err(noun.of(&byte, &format!("invalid field value {word}")));
                }
            }
        }
    }

    fn span(self, noun: Noun) -> Result<Span, String> {
        match self {
            Item { dash: false, left: None | Some(0), .. } => Err(noun.not_zero()),
            Item { dash: false, left: Some(only), .. } => Ok(Span { first: only, last: only }),
            Item { left: None, right: None, .. } => Err("invalid range with no endpoint: -".into()),
            Item { left, right: None, .. } => Ok(Span { first: left.unwrap_or(1), last: u64::MAX }),
            Item { left, right: Some(last), .. } => match left.unwrap_or(1) {
                first if last < first => Err("invalid decreasing range".into()),
                first => Ok(Span { first, last }),
            },
        }
    }
}

fn take_number(rest: &mut &[u8], noun: Noun) -> Result<u64, String> {
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(length);
    *rest = after;
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.filter(|number| *number < u64::MAX).ok_or_else(|| {
        let word = quote::word(digits);
        let byte = format!("byte/character offset {word} is too large");
        noun.of(&byte, &format!("field number {word} is too large"))
    })
}

impl Noun {
    fn of(self, byte: &str, field: &str) -> String {
        if self == Noun::Byte { byte.to_owned() } else { field.to_owned() }
    }

    fn not_zero(self) -> String {
        self.of("byte/character positions are numbered from 1", "fields are numbered from 1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<(u64, u64)> {
        let list = List::parse(text.as_bytes(), Noun::Field).expect("a list");
        list.spans().iter().map(|span| (span.first, span.last)).collect()
    }

    #[test]
    fn spans_are_in_order_and_apart() {
        assert_eq!(spans("5,1-3,2-4"), [(1, 4), (5, 5)]);
        assert_eq!(spans("3-,1 7"), [(1, 1), (3, u64::MAX)]);
    }

    #[test]
    fn a_complement_is_all_the_rest() {
        let list = List::parse(b"2,4-5", Noun::Byte).expect("a list").complement();
        assert_eq!(list.spans()[2], Span { first: 6, last: u64::MAX });
        assert_eq!(list.complement(), List::parse(b"2,4-5", Noun::Byte).expect("a list"));
    }
}
