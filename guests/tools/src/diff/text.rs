//! A file as lines, and what makes two lines the same.

/// What is not looked at when lines are compared.
#[derive(Clone, Copy, Default)]
pub struct Ignored {
    pub case: bool,
    /// Every blank.
    pub all_space: bool,
    /// How many blanks there are, and those at the end.
    pub space_change: bool,
    pub trailing_space: bool,
    pub tab_expansion: bool,
    pub trailing_cr: bool,
    /// Whether the last line has its newline.
    pub last_newline: bool,
}

/// A file's lines, each with its newline but perhaps the last.
pub struct Text {
    pub lines: Vec<Vec<u8>>,
    pub is_binary: bool,
}

impl Text {
    pub fn new(content: &[u8], ignored: Ignored) -> Text {
        let is_binary = content.iter().take(32 * 1024).any(|&byte| byte == 0);
        let mut lines: Vec<Vec<u8>> =
            content.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        if ignored.trailing_cr {
            for line in lines.iter_mut().filter(|line| line.ends_with(b"\r\n")) {
                line.truncate(line.len() - 2);
                line.push(b'\n');
            }
        }
        Text { lines, is_binary }
    }

    /// A line without its newline.
    pub fn line(&self, at: usize) -> &[u8] {
        let line = &self.lines[at];
        line.strip_suffix(b"\n").unwrap_or(line)
    }

    /// The lines as they are compared.
    pub fn keys(&self, ignored: Ignored) -> Vec<Vec<u8>> {
        self.lines.iter().map(|line| key(line, ignored)).collect()
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

fn key(line: &[u8], ignored: Ignored) -> Vec<u8> {
    let newline = line.ends_with(b"\n");
    let mut text = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    let blind_to_end = ignored.all_space || ignored.space_change || ignored.trailing_space;
    if ignored.tab_expansion {
        text = expand(&text);
    }
    if blind_to_end {
        let end = text.iter().rposition(|&byte| !is_blank(byte)).map_or(0, |at| at + 1);
        text.truncate(end);
    }
    if ignored.all_space {
        text.retain(|&byte| !is_blank(byte));
    } else if ignored.space_change {
        let runs = text.chunk_by(|left, right| is_blank(*left) && is_blank(*right));
        text = runs.flat_map(|run| if is_blank(run[0]) { b" " } else { run }.to_vec()).collect();
    }
    if ignored.case {
        text.make_ascii_lowercase();
    }
    // The last line without its newline differs from one with it, but for those who look at no blanks.
    if newline || blind_to_end || ignored.last_newline {
        text.push(b'\n');
    }
    text
}

pub fn expand(text: &[u8]) -> Vec<u8> {
    let mut expanded = Vec::new();
    for &byte in text {
        match byte {
            b'\t' => expanded.resize((expanded.len() / 8 + 1) * 8, b' '),
            byte => expanded.push(byte),
        }
    }
    expanded
}
