//! Reading lines and printing them, page after page.

use super::column::{Column, State, columns_of};
use super::heading::Heading;
use super::layout::{FOOTER_LINES, Layout, Shown, to_tab};
use super::pen::Pen;
use toolkit::out::Out;
use toolkit::quote;
use toolkit::source::{Bytes, Source};
use wardian_abi as abi;

struct File {
    name: Vec<u8>,
    bytes: Bytes,
}

/// A line that waits to be printed, and how wide it is.
struct Stored {
    text: Vec<u8>,
    width: i64,
}

pub struct Pages<'a> {
    layout: &'a Layout,
    pen: Pen<'a>,
    files: Vec<File>,
    columns: Vec<Column>,
    heading: Heading,
    page: u64,
    /// How many files have something for this page.
    ready: i64,
    line_number: i64,
    skipped_number: i64,
    /// How far the line that is read goes.
    position: i64,
    /// Lines that were read before they can be printed, and the one that is being read.
    stored: Vec<Stored>,
    storing: Vec<u8>,
    is_storing: bool,
    heading_due: bool,
    feed_due: bool,
    /// Something was printed, so that the page must be filled up.
    pads: bool,
    /// What is to be skipped before a column's text; 0 for nothing.
    padding: i64,
    line_is_empty: bool,
    align_due: bool,
    feed_only: bool,
}

impl<'a> Pages<'a> {
    /// Opens the files that are printed together, if there are any.
    pub fn open(
        layout: &'a mut Layout,
        names: &[Vec<u8>],
        quiet: bool,
        code: &mut i32,
        out: &'a mut Out,
    ) -> Option<Pages<'a>> {
        if let Err(message) = layout.settle(names.len()) {
            out.complain(message);
            out.flush();
            abi::exit(1);
        }
        let stdin = [b"-".to_vec()];
        // Which file each column shows: standard input may be several, which take turns.
        let (mut files, mut shown) = (Vec::<File>::new(), Vec::new());
        let mut heading = Heading::new(layout, None);
        for name in if names.is_empty() { &stdin } else { names } {
            if let Some(same) = files.iter().position(|file| file.name == b"-" && name == b"-") {
                shown.push(same);
                continue;
            }
            match Source::open(name) {
                Ok(source) => {
                    if !layout.parallel && name != b"-" {
                        heading = Heading::new(layout, Some((name, &source)));
                    }
                    shown.push(files.len());
                    files.push(File { name: name.clone(), bytes: Bytes::new(source) });
                }
                Err(error) => {
                    *code = 1;
                    if !quiet {
                        out.complain(format_args!("{}: {error}", quote::if_needed(name)));
                    }
                }
            }
        }
        if files.is_empty() {
            return None;
        }
        if layout.parallel {
            layout.columns = shown.len();
        }
        let columns = columns_of(layout, &shown);
        Some(Pages {
            pen: Pen::new(layout, out),
            ready: shown.len() as i64,
            line_number: layout.first_number,
            skipped_number: layout.first_number,
            layout,
            files,
            columns,
            heading,
            page: 1,
            position: 0,
            stored: Vec::new(),
            storing: Vec::new(),
            is_storing: false,
            heading_due: false,
            feed_due: false,
            pads: false,
            padding: 0,
            line_is_empty: true,
            align_due: false,
            feed_only: false,
        })
    }

    /// Prints the pages from one to another. The error is a complaint that ends it all.
    pub fn print(mut self, first: u64, last: u64) -> Result<(), String> {
        if first > 1 {
            self.skip_to(first)?;
            if self.ready < 1 {
                return Ok(());
            }
            self.page = first;
            self.line_number = self.skipped_number;
        }
        while self.page <= last && self.print_page()? {
            self.page += 1;
            self.release();
        }
        Ok(())
    }

    fn print_page(&mut self) -> Result<bool, String> {
        self.begin_page()?;
        if self.ready_columns() == 0 {
            return Ok(false);
        }
        self.heading_due = self.layout.extremities;
        let mut pads = false;
        let mut lines = self.layout.body_lines * if self.layout.double_space { 2 } else { 1 };
        while lines > 0 && self.ready_columns() > 0 {
            pads |= self.print_line()?;
            if self.pads {
                self.pen.put_text("\n");
                lines -= 1;
            }
            if self.ready_columns() == 0 && !self.layout.extremities {
                break;
            }
            if self.layout.double_space && pads {
                self.pen.put_text("\n");
                lines -= 1;
            }
        }
        if lines == 0 {
            let open = self.columns.iter_mut().filter(|column| column.state == State::Open);
            open.for_each(|column| column.page_was_full = true);
        }
        if pads && self.layout.extremities {
            self.end_page(lines + FOOTER_LINES);
        } else if self.layout.keeps_feeds && std::mem::take(&mut self.feed_due) {
            self.pen.put_text("\x0c");
        }
        Ok(true)
    }

    fn end_page(&mut self, lines: i64) {
        if self.layout.form_feed {
            self.pen.put_text("\x0c");
            return;
        }
        for _ in 0..lines {
            self.pen.put_text("\n");
        }
    }

    /// Says how many lines each column has on this page; reads them first, where that must be known before.
    fn begin_page(&mut self) -> Result<(), String> {
        if self.layout.storing {
            self.store_page()?;
            for column in &mut self.columns {
                column.left = column.stored as i64;
            }
            return Ok(());
        }
        for column in &mut self.columns {
            column.left = if column.state == State::Open { self.layout.body_lines } else { 0 };
        }
        Ok(())
    }

    fn ready_columns(&self) -> usize {
        let is_ready = |column: &&Column| {
            matches!(column.state, State::Open | State::FeedFound)
                || self.layout.storing && column.stored > 0 && column.left > 0
        };
        self.columns.iter().filter(is_ready).count()
    }

    /// Prints a line of each column; says whether anything was there.
    fn print_line(&mut self) -> Result<bool, String> {
        self.pen.begin_line();
        self.pads = false;
        self.align_due = false;
        self.line_is_empty = true;
        let mut pads = false;
        for at in 0..self.columns.len() {
            self.position = 0;
            if self.columns[at].left > 0 || self.columns[at].state == State::FeedFound {
                self.feed_only = false;
                self.padding = self.columns[at].start;
                if self.layout.storing {
                    self.print_stored(at);
                } else if !self.read_line(at)? {
                    self.drop_rest(at)?;
                }
                pads |= self.pads;
                self.columns[at].left -= 1;
                if self.columns[at].left <= 0 && self.ready_columns() == 0 {
                    break;
                }
                self.align_after(at);
            } else if self.layout.parallel {
                match self.line_is_empty {
                    true => self.align_due = true,
                    false => self.align(at),
                }
            }
            if self.layout.has_separator {
                self.pen.separators += 1;
            }
        }
        Ok(pads)
    }

    /// Keeps the place of a file that has ended, beside others that have not.
    fn align_after(&mut self, at: usize) {
        let state = self.columns[at].state;
        if !self.layout.parallel || state == State::Open {
            return;
        }
        if self.line_is_empty {
            self.align_due = true;
        } else if state == State::Closed || state == State::OnHold && self.feed_only {
            self.align(at);
        }
    }

    /// Leaves a column empty.
    fn align(&mut self, at: usize) {
        self.padding = self.columns[at].start;
        self.begin_column();
        if self.columns[at].numbered {
            self.put_number(false);
        }
    }

    fn begin_column(&mut self) {
        let separator = self.layout.separator.len() as i64;
        if separator < self.padding {
            self.pen.move_to(self.padding - separator);
            self.padding = 0;
        }
        if self.layout.has_separator {
            self.pen.put_separator();
        }
    }

    fn put_heading(&mut self) {
        self.pen.column = 0;
        self.pen.move_to(self.layout.margin);
        self.pen.put_blanks();
        self.pen.put_text("\n\n");
        let page = format!("Page {}", self.page);
        let spare = (self.heading.spare - page.len() as i64).max(0);
        let (left, right) = ((spare / 2).max(1) as usize, (spare - spare / 2).max(1) as usize);
        let Heading { date, title, .. } = &self.heading;
        for (blanks, text) in [(self.layout.margin as usize, date), (left, title), (right, &page)] {
            self.pen.put_spaces(blanks);
            self.pen.put_text(text);
        }
        self.pen.put_text("\n\n\n");
        self.heading_due = false;
        self.pen.column = 0;
    }

    /// Reads a line of a column's file and prints or stores it; says whether that was all of it.
    fn read_line(&mut self, at: usize) -> Result<bool, String> {
        let mut byte = self.next_byte(at);
        if byte == Some(b'\x0c') && self.columns[at].page_was_full {
            byte = self.next_byte(at);
            if byte == Some(b'\n') {
                byte = self.next_byte(at);
            }
        }
        self.columns[at].page_was_full = false;
        let before = self.position;
        let mut clump = Vec::new();
        match byte {
            None => return self.close(at).map(|()| true),
            Some(b'\x0c') => {
                self.feed_only = true;
                if self.heading_due && !self.layout.storing {
                    self.pads = true;
                    self.put_heading();
                } else {
                    self.feed_due |= self.layout.keeps_feeds;
                }
                self.end_at_feed(at);
                return Ok(true);
            }
            Some(b'\n') => {}
            Some(byte) => self.show(byte, &mut clump),
        }
        if self.is_too_far(before) {
            return Ok(false);
        }
        if !self.is_storing {
            self.begin_text(at);
        }
        if self.columns[at].numbered {
            self.put_number(self.layout.truncate && !self.layout.parallel);
        }
        self.line_is_empty = false;
        if byte == Some(b'\n') {
            return Ok(true);
        }
        self.read_rest(at, clump)
    }

    fn read_rest(&mut self, at: usize, mut clump: Vec<u8>) -> Result<bool, String> {
        loop {
            for byte in clump.drain(..) {
                match self.is_storing {
                    true => self.storing.push(byte),
                    false => self.pen.put(byte),
                }
            }
            let byte = match self.next_byte(at) {
                Some(b'\n') => return Ok(true),
                None => return self.close(at).map(|()| true),
                Some(b'\x0c') => {
                    self.feed_due |= self.layout.keeps_feeds;
                    self.end_at_feed(at);
                    return Ok(true);
                }
                Some(byte) => byte,
            };
            let before = self.position;
            self.show(byte, &mut clump);
            if self.is_too_far(before) {
                return Ok(false);
            }
        }
    }

    /// Whether a line is cut here.
    fn is_too_far(&mut self, before: i64) -> bool {
        let too_far = self.layout.truncate && self.position > self.layout.column_width;
        if too_far {
            self.position = before;
        }
        too_far
    }

    /// What comes before the text of a column: the heading, columns that are empty, the separator.
    fn begin_text(&mut self, at: usize) {
        self.pads = true;
        if self.heading_due {
            self.put_heading();
        }
        if self.layout.parallel && self.align_due {
            let empty = std::mem::take(&mut self.pen.separators);
            for column in 0..empty as usize {
                self.align(column);
                self.pen.separators += 1;
            }
            self.padding = self.columns[at].start;
            self.pen.blanks = if self.layout.truncate { self.layout.column_width } else { 0 };
            self.align_due = false;
        }
        self.begin_column();
    }

    fn put_number(&mut self, counts: bool) {
        let (sign, digits) = self.layout.number;
        let mut text = toolkit::pad::before(self.line_number, ' ', digits as usize).into_bytes();
        self.line_number += 1;
        // The last digits say more than the first.
        text.drain(..text.len() - digits as usize);
        let blanks = self.layout.number_width - digits;
        match self.layout.columns > 1 && sign == b'\t' {
            true => text.extend(std::iter::repeat_n(b' ', blanks as usize)),
            false => text.push(sign),
        }
        match self.is_storing {
            true => self.storing.extend(text),
            false => text.into_iter().for_each(|byte| self.pen.put(byte)),
        }
        if self.layout.columns == 1 && sign == b'\t' {
            self.pen.skip_to_tab();
        }
        if counts {
            self.position += self.layout.number_width;
        }
    }

    /// What is printed for a byte; the position moves on by its width.
    fn show(&mut self, byte: u8, clump: &mut Vec<u8>) {
        let (sign, width) = self.layout.input_tab;
        let width = match byte {
            byte if byte == sign || byte == b'\t' => {
                let width = to_tab(if byte == sign { width } else { 8 }, self.position);
                match self.layout.untabify {
                    true => clump.extend(std::iter::repeat_n(b' ', width as usize)),
                    false => clump.push(byte),
                }
                width
            }
            b' '..=b'~' => {
                clump.push(byte);
                1
            }
            byte => match self.layout.shown {
                Shown::Hat if byte < 128 => {
                    clump.extend([b'^', byte ^ 0x40]);
                    2
                }
                Shown::AsTheyAre => {
                    // Nothing is to the left of the first column.
                    if byte != 0x08 || self.position > 0 {
                        clump.push(byte);
                    }
                    if byte == 0x08 { -1 } else { 0 }
                }
                _ => {
                    clump.extend(format!("\\{byte:03o}").bytes());
                    4
                }
            },
        };
        self.position = (self.position + width).max(0);
    }

    fn next_byte(&mut self, at: usize) -> Option<u8> {
        self.files[self.columns[at].file].bytes.next_byte()
    }

    /// Passes over what is left of a line.
    fn drop_rest(&mut self, at: usize) -> Result<(), String> {
        loop {
            match self.next_byte(at) {
                Some(b'\n') => return Ok(()),
                None => return self.close(at),
                Some(b'\x0c') => {
                    self.feed_due |= self.layout.keeps_feeds;
                    self.end_at_feed(at);
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// A form feed, with the newline behind it, ends a file's part of the page.
    fn end_at_feed(&mut self, at: usize) {
        let file = &mut self.files[self.columns[at].file].bytes;
        if file.peek() == Some(b'\n') {
            file.next_byte();
        }
        match self.layout.parallel {
            true => self.columns[at].state = State::OnHold,
            false => {
                let state = if self.layout.storing { State::FeedFound } else { State::OnHold };
                self.columns.iter_mut().for_each(|column| column.state = state);
            }
        }
        self.columns[at].left = 0;
        self.ready -= 1;
    }

    fn close(&mut self, at: usize) -> Result<(), String> {
        if self.columns[at].state == State::Closed {
            return Ok(());
        }
        let file = &self.files[self.columns[at].file];
        if let Some(error) = file.bytes.error {
            return Err(format!("{}: {error}", quote::if_needed(&file.name)));
        }
        match self.layout.parallel {
            true => {
                self.columns[at].state = State::Closed;
                self.columns[at].left = 0;
            }
            false => {
                for column in &mut self.columns {
                    column.state = State::Closed;
                    if column.stored == 0 {
                        column.left = 0;
                    }
                }
            }
        }
        self.ready -= 1;
        Ok(())
    }

    /// After a page: what waited for the next goes on.
    fn release(&mut self) {
        for column in self.columns.iter_mut().filter(|column| column.state == State::OnHold) {
            column.state = State::Open;
            self.ready += 1;
        }
        if self.layout.storing {
            self.ready = i64::from(self.columns[0].state != State::Closed);
        }
    }

    /// Reads as much as a page has room for, and spreads it over the columns.
    fn store_page(&mut self) -> Result<(), String> {
        self.is_storing = true;
        self.stored.clear();
        self.columns.iter_mut().for_each(|column| column.stored = 0);
        'page: for at in 0..self.columns.len() {
            for _ in 0..self.layout.body_lines {
                if self.ready < 1 {
                    break 'page;
                }
                if self.columns[at].state == State::Open {
                    self.store_line(at)?;
                }
            }
        }
        let (lines, columns) = (self.stored.len(), self.columns.len());
        let mut next = 0;
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.stored = lines / columns + usize::from(at < lines % columns);
            column.next = next;
            next += column.stored;
        }
        self.is_storing = false;
        Ok(())
    }

    fn store_line(&mut self, at: usize) -> Result<(), String> {
        self.position = 0;
        if !self.read_line(at)? {
            self.drop_rest(at)?;
        }
        let text = std::mem::take(&mut self.storing);
        if self.columns[at].state == State::Open || !text.is_empty() {
            self.columns[at].stored += 1;
            self.stored.push(Stored { text, width: self.position });
        }
        Ok(())
    }

    fn print_stored(&mut self, at: usize) {
        self.pads = true;
        if self.heading_due {
            self.put_heading();
        }
        let next = self.columns[at].next;
        self.columns[at].next += 1;
        if self.columns[at].state == State::FeedFound {
            self.columns.iter_mut().for_each(|column| column.state = State::OnHold);
            if self.columns[0].left <= 0 {
                self.pads = self.layout.extremities;
                return;
            }
        }
        self.begin_column();
        let Some(stored) = self.stored.get(next) else { return };
        for byte in &stored.text {
            self.pen.put(*byte);
        }
        if self.pen.blanks == 0 {
            let start = self.columns[at].start;
            let separator = self.layout.separator.len() as i64;
            self.pen.column = start + stored.width;
            if start - separator == self.layout.margin {
                self.pen.column -= separator;
            }
        }
    }

    /// Passes over the pages before one.
    fn skip_to(&mut self, page: u64) -> Result<(), String> {
        for skipped in 1..page {
            for line in 0..self.layout.body_lines {
                let is_last = line + 1 == self.layout.body_lines;
                for at in 0..self.columns.len() {
                    if self.columns[at].state == State::Open {
                        self.skip_line(at, is_last)?;
                    }
                }
            }
            if self.layout.storing {
                let open = self.columns.iter_mut().filter(|column| column.state != State::Closed);
                open.for_each(|column| column.state = State::OnHold);
            }
            self.release();
            if self.ready < 1 {
                toolkit::complain(
                    "pr",
                    format_args!("starting page number {page} exceeds page count {skipped}"),
                );
                break;
            }
        }
        Ok(())
    }

    fn skip_line(&mut self, at: usize, is_last: bool) -> Result<(), String> {
        let mut byte = self.next_byte(at);
        if byte == Some(b'\x0c') && self.columns[at].page_was_full {
            byte = self.next_byte(at);
            if byte == Some(b'\n') {
                byte = self.next_byte(at);
            }
        }
        self.columns[at].page_was_full = is_last;
        let only_feed = byte == Some(b'\x0c');
        loop {
            match byte {
                Some(b'\n') => break,
                None => {
                    self.close(at)?;
                    break;
                }
                Some(b'\x0c') => {
                    if is_last && self.layout.parallel {
                        self.columns[at].page_was_full = false;
                    } else if is_last {
                        self.columns.iter_mut().for_each(|column| column.page_was_full = false);
                    }
                    self.end_at_feed(at);
                    break;
                }
                _ => byte = self.next_byte(at),
            }
        }
        let counts = self.layout.counts_skipped && !only_feed;
        if counts && (!self.layout.parallel || at == 0) {
            self.skipped_number += 1;
        }
        Ok(())
    }
}
