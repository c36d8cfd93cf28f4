//! `sort --debug`: shows which parts of the lines are compared.

use super::key::Key;
use super::lines::{Rules, is_numeric};
use super::order::{Order, is_blank};
use toolkit::complain;

/// Says what may be a surprise about the keys.
pub fn warn(keys: &[Key], rules: &Rules<'_>) {
    complain("sort", "text ordering performed using simple byte comparison");
    for (at, key) in keys.iter().enumerate() {
        let number = at + 1;
        if is_numeric(key.how.order) && key.spans_fields() {
            complain("sort", format_args!("key {number} is numeric and spans multiple fields"));
        }
    }
    if rules.keys.iter().any(|key| is_numeric(key.how.order)) {
        complain("sort", "note numbers use '.' as a decimal point in this locale");
    }
}

/// The lines, each with its keys underlined below it.
pub fn show(lines: &[&[u8]], keys: &[Key], rules: &Rules<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend(line.iter().map(|&byte| if byte == b'\t' { b'>' } else { byte }));
        out.push(rules.end);
        for key in rules.keys.iter() {
            let cut = key.cut(line, rules.separator);
            let start = cut.as_ptr() as usize - line.as_ptr() as usize;
            underline(start, cut, key.how.order, &mut out);
        }
        if !(rules.stable || rules.unique) || keys.is_empty() && rules.keys.is_empty() {
            underline(0, line, Order::Text, &mut out);
        }
    }
    out
}

/// Of a number only its own characters count.
fn underline(start: usize, text: &[u8], order: Order, out: &mut Vec<u8>) {
    let (mut start, mut text) = (start, text);
    if order != Order::Text {
        let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
        (start, text) = (start + blanks, &text[blanks..]);
    }
    if is_numeric(order) {
        let is_part =
            |(at, byte): &(usize, &u8)| byte.is_ascii_digit() || **byte == b'.' || *at == 0 && **byte == b'-';
        let length = text.iter().enumerate().take_while(is_part).count();
        text = &text[..length];
    }
    out.extend(std::iter::repeat_n(b' ', start));
    match text.len() {
        0 => out.extend(b"^ no match for key"),
        length => out.extend(std::iter::repeat_n(b'_', length)),
    }
    out.push(b'\n');
}
