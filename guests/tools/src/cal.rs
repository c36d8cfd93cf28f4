//! `cal`: a calendar.

use toolkit::args::{Tool, bytes_of};
use toolkit::clock::{self, Clock};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input};
use wardian_clock::Civil;

const TOOL: Tool = Tool {
    name: "cal",
    short: "13A:B:hjmMNySn:",
    long: &[],
    help: "\
Usage: cal [-13hMSy] [-A n] [-B n] [[month] year]
 -1  show one month (the default)
 -3  show the months before and after, too
 -A n, -B n  show n months after and before
 -M  weeks begin on Monday
 -S  weeks begin on Sunday (the default)
 -y  show the whole year
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

/// Months since year 0.
type Month = i32;

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let today = Clock::new().at(clock::now());
    let (mut before, mut after, mut monday, mut whole_year) = (0, 0, false, false);
    for (letter, text) in &parsed.options {
        let number = text.as_deref().and_then(input::number::<Month>).unwrap_or(1).clamp(0, 1200);
        match letter {
            '3' => (before, after) = (1, 1),
            'A' => after = number,
            'B' => before = number,
            'n' => after = number - 1,
            'm' | 'M' => monday = true,
            'y' => whole_year = true,
            _ => {}
        }
    }
    let (month, year) = match &parsed.operands[..] {
        [] => (today.month as i32, today.year as i32),
        [year] => {
            whole_year = true;
            (1, year_from(year)?)
        }
        [month, year, ..] => (month_from(month)?, year_from(year)?),
    };
    let mut out = Out::new("cal");
    if whole_year {
        out.put(format!("{:^60}", year).trim_end().to_owned() + "\n");
        for quarter in 0..4 {
            let months: Vec<Month> = (0..3).map(|at| year * 12 + quarter * 3 + at).collect();
            print_row(&months, monday, false, &mut out);
            if quarter < 3 {
                out.put("\n");
            }
        }
        return Ok(0);
    }
    let first = year * 12 + month - 1 - before;
    let all: Vec<Month> = (first..first + before + 1 + after).collect();
    all.chunks(3).for_each(|row| print_row(row, monday, true, &mut out));
    Ok(0)
}

fn year_from(text: &[u8]) -> Result<i32, i32> {
    input::number(text).filter(|year| (1..=9999).contains(year)).ok_or_else(|| {
        complain("cal", format_args!("year `{}' not in range 1..9999", String::from_utf8_lossy(text)));
        64
    })
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn month_from(text: &[u8]) -> Result<i32, i32> {
    let name = String::from_utf8_lossy(text).to_lowercase();
    let named = MONTHS.iter().position(|month| name.len() > 2 && month.to_lowercase().starts_with(&name));
    let number = input::number(text).filter(|month| (1..=12).contains(month));
    number.or(named.map(|at| at as i32 + 1)).ok_or_else(|| {
        complain(
            "cal",
            format_args!("{} is neither a month number (1..12) nor a name", String::from_utf8_lossy(text)),
        );
        64
    })
}

/// Months side by side.
fn print_row(months: &[Month], monday: bool, with_year: bool, out: &mut Out) {
    let blocks: Vec<Vec<String>> = months.iter().map(|month| block(*month, monday, with_year)).collect();
    for line in 0..8 {
        let cells: Vec<&str> = blocks.iter().map(|block| block[line].as_str()).collect();
        out.put(cells.concat() + "\n");
    }
}

/// A month's eight lines, 20 columns wide and two blanks.
fn block(month: Month, monday: bool, with_year: bool) -> Vec<String> {
    let (year, number) = (month.div_euclid(12), month.rem_euclid(12));
    let name = MONTHS[number as usize];
    let title = if with_year { format!("{name} {year}") } else { name.to_owned() };
    let week = if monday { "Mo Tu We Th Fr Sa Su" } else { "Su Mo Tu We Th Fr Sa" };
    let mut lines = vec![format!("{title:^20}  "), format!("{week}  ")];
    let first = |number: i32| Civil {
        year: i64::from(year),
        month: i64::from(number) + 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
    };
    let length = first(number).days_until(&first(number + 1));
    let offset = (first(number).weekday() - i64::from(monday)).rem_euclid(7);
    let cells: Vec<String> =
        (0..offset).map(|_| "  ".to_owned()).chain((1..=length).map(|day| format!("{day:2}"))).collect();
    for week in 0..6 {
        let days = cells.iter().skip(week * 7).take(7).cloned().collect::<Vec<_>>().join(" ");
        lines.push(format!("{days:<20}  "));
    }
    lines
}
