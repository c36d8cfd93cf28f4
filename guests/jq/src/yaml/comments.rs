//! Comments: found between the scalars, and given to the entries they stand before or after.

use super::{Dress, Form};

/// A comment and where it is.
pub struct Comment {
    /// From 1, as the parser counts.
    line: usize,
    column: usize,
    text: String,
    /// Whether nothing else is on its line.
    alone: bool,
}

impl Comment {
    pub fn is_before(&self, line: usize) -> bool {
        self.line < line
    }
}

/// The comments of a text, given where its scalars are, in order: nothing in those is one.
pub fn find(text: &str, scalars: &[(usize, usize)]) -> Vec<Comment> {
    let mut comments = Vec::new();
    let mut scalars = scalars.iter().peekable();
    let (mut line, mut column, mut alone, mut after_blank) = (1, 0, true, true);
    let mut letters = text.chars().enumerate().peekable();
    while let Some((at, letter)) = letters.next() {
        while scalars.peek().is_some_and(|(_, end)| *end <= at) {
            scalars.next();
        }
        let within = scalars.peek().is_some_and(|(start, _)| *start <= at);
        if letter == '#' && after_blank && !within {
            let mut comment = String::from(letter);
            while let Some((_, letter)) = letters.next_if(|(_, letter)| *letter != '\n') {
                comment.push(letter);
            }
            let text = comment.trim_end().to_owned();
            comments.push(Comment { line, column, text, alone });
            continue;
        }
        after_blank = letter.is_ascii_whitespace();
        alone = alone && after_blank;
        column += 1;
        if letter == '\n' {
            (line, column, alone) = (line + 1, 0, true);
        }
    }
    comments
}

/// Gives comments to the entries of a document. Those after the last are the rest.
pub fn attach(root: &mut Dress, comments: Vec<Comment>) -> Vec<String> {
    let (mut foot, mut places) = (Vec::new(), Vec::new());
    if !comments.is_empty() {
        entries(root, &mut Vec::new(), &mut places);
    }
    for comment in comments {
        let found = if comment.alone {
            // The first entry that begins after it, and the outermost there.
            places.iter().find(|(at, _)| at.0 > comment.line)
        } else {
            places.iter().rfind(|(at, _)| *at <= (comment.line, comment.column))
        };
        match found.and_then(|(_, path)| entry_at(root, path)) {
            Some(entry) if comment.alone => entry.head.push(comment.text),
            Some(entry) => entry.line = Some(comment.text),
            None => foot.push(comment.text),
        }
    }
    foot
}

type Place = ((usize, usize), Vec<usize>);

/// All entries with where they begin, from the outside in and from the first to the last.
fn entries(node: &Dress, path: &mut Vec<usize>, places: &mut Vec<Place>) {
    places.push((node.at, path.clone()));
    let children: Vec<&Dress> = match &node.form {
        Form::Sequence(items, _) => items.iter().collect(),
        Form::Mapping(entries, _) => entries.iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    };
    for (index, child) in children.into_iter().enumerate() {
        path.push(index);
        entries(child, path, places);
        path.pop();
    }
}

fn entry_at<'a>(node: &'a mut Dress, path: &[usize]) -> Option<&'a mut Dress> {
    let Some((index, rest)) = path.split_first() else { return Some(node) };
    match &mut node.form {
        Form::Sequence(items, _) => entry_at(items.get_mut(*index)?, rest),
        Form::Mapping(entries, _) => entry_at(&mut entries.get_mut(*index)?.1, rest),
        _ => None,
    }
}
