//! `--json`: a line for each event.

use super::print::{Printer, Totals};
use crate::lines::{Position, Role};
use std::time::Duration;
use toolkit::out::Out;

/// A text, or its bytes where it is none.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{{\"text\":{}}}", quoted(text)),
        Err(_) => format!("{{\"bytes\":\"{}\"}}", toolkit::digits::encode(bytes, toolkit::digits::BASE64)),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            char if char < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

fn elapsed(time: Duration) -> String {
    format!(
        "{{\"secs\":{},\"nanos\":{},\"human\":\"{:.6}s\"}}",
        time.as_secs(),
        time.subsec_nanos(),
        time.as_secs_f64()
    )
}

/// A line that was selected, or stands beside one; the first of a file comes after its name.
pub fn line(printer: &mut Printer<'_>, line: &[u8], position: Position, role: Role) {
    let path = text(printer.target.shown());
    if printer.scratch.is_empty() {
        printer.put(format!("{{\"type\":\"begin\",\"data\":{{\"path\":{path}}}}}\n"));
        printer.scratch.push(1);
    }
    let is_match = (role == Role::Selected) != printer.options.invert;
    let matches = if is_match { printer.matches_in(line) } else { Vec::new() };
    event(printer, &[line, b"\n"].concat(), position, role, &matches);
}

/// One event for some lines.
pub fn event(
    printer: &mut Printer<'_>,
    lines: &[u8],
    position: Position,
    role: Role,
    matches: &[(usize, usize)],
) {
    let path = text(printer.target.shown());
    let kind = if role == Role::Selected { "match" } else { "context" };
    let submatches: Vec<String> = matches
        .iter()
        .map(|(from, to)| format!("{{\"match\":{},\"start\":{from},\"end\":{to}}}", text(&lines[*from..*to])))
        .collect();
    printer.put(format!(
        "{{\"type\":\"{kind}\",\"data\":{{\"path\":{path},\"lines\":{},\"line_number\":{},\"absolute_offset\":{},\
         \"submatches\":[{}]}}}}\n",
        text(lines),
        position.number,
        position.offset,
        submatches.join(",")
    ));
}

/// The end of a file that something was said of.
pub fn end(printer: &mut Printer<'_>, is_match: bool) {
    if printer.scratch.is_empty() {
        return;
    }
    let path = text(printer.target.shown());
    let offset = printer.zero_offset().map_or("null".to_owned(), |offset| offset.to_string());
    let file = &printer.file;
    let line = format!(
        "{{\"type\":\"end\",\"data\":{{\"path\":{path},\"binary_offset\":{offset},\"stats\":{{\"elapsed\":{},\
         \"searches\":1,\"searches_with_match\":{},\"bytes_searched\":{},\"bytes_printed\":{},\
         \"matched_lines\":{},\"matches\":{}}}}}}}\n",
        elapsed(file.searching),
        u8::from(is_match),
        file.bytes_searched,
        file.bytes_printed,
        file.lines,
        file.matches,
    );
    printer.out.put(line);
}

/// The last line.
pub fn summary(totals: &Totals, time: Duration, out: &mut Out) {
    let human = |time: Duration| {
        format!(
            "{{\"human\":\"{:.6}s\",\"nanos\":{},\"secs\":{}}}",
            time.as_secs_f64(),
            time.subsec_nanos(),
            time.as_secs()
        )
    };
    out.put(format!(
        "{{\"data\":{{\"elapsed_total\":{},\"stats\":{{\"bytes_printed\":{},\"bytes_searched\":{},\"elapsed\":{},\
         \"matched_lines\":{},\"matches\":{},\"searches\":{},\"searches_with_match\":{}}}}},\"type\":\"summary\"}}\n",
        human(time),
        totals.bytes_printed,
        totals.bytes_searched,
        human(totals.searching),
        totals.lines,
        totals.matches,
        totals.files,
        totals.files_with_match,
    ));
}
