//! `{a,b}` and `[1-3]` in URLs.

/// A part of a pattern.
enum Part {
    Fixed(String),
    Set(Vec<String>),
    Numbers { from: u64, to: u64, step: u64, width: usize },
    Letters { from: u8, to: u8, step: u8 },
}

impl Part {
    fn count(&self) -> u64 {
        match self {
            Part::Fixed(_) => 1,
            Part::Set(words) => words.len() as u64,
            Part::Numbers { from, to, step, .. } => (to - from) / step + 1,
            Part::Letters { from, to, step } => u64::from((to - from) / step) + 1,
        }
    }

    fn at(&self, index: u64) -> String {
        match self {
            Part::Fixed(text) => text.clone(),
            Part::Set(words) => words[index as usize].clone(),
            Part::Numbers { from, step, width, .. } => toolkit::pad::before(from + index * step, '0', *width),
            Part::Letters { from, step, .. } => char::from(from + index as u8 * step).to_string(),
        }
    }
}

/// A URL with all it stands for.
pub struct Glob {
    parts: Vec<Part>,
    pub count: u64,
}

/// What is wrong with a pattern, and where.
pub struct Wrong {
    pub message: &'static str,
    pub position: usize,
}

const MOST: u64 = 100_000;

impl Glob {
    /// A URL that is no pattern.
    pub fn plain(url: &str) -> Glob {
        Glob { parts: vec![Part::Fixed(url.to_owned())], count: 1 }
    }

    pub fn parse(url: &str) -> Result<Glob, Wrong> {
        let bytes = url.as_bytes();
        let mut parts = Vec::new();
        let mut fixed = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if matches!(bytes.get(at + 1), Some(b'{' | b'}' | b'[' | b']')) => {
                    fixed.push(bytes[at + 1]);
                    at += 2;
                }
                b'[' if is_address(&url[at..]) => {
                    let end = url[at..].find(']').unwrap_or(0);
                    fixed.extend_from_slice(&bytes[at..=at + end]);
                    at += end + 1;
                }
                b'{' | b'[' => {
                    flush(&mut parts, &mut fixed);
                    let (part, length) = match bytes[at] {
                        b'{' => set(&url[at + 1..], at + 1)?,
                        _ => range(&url[at + 1..], at + 1)?,
                    };
                    parts.push(part);
                    at += 1 + length;
                }
                b'}' | b']' => {
                    return Err(Wrong { message: "unmatched close brace/bracket", position: at + 1 });
                }
                byte => {
                    fixed.push(byte);
                    at += 1;
                }
            }
        }
        flush(&mut parts, &mut fixed);
        let count = parts.iter().try_fold(1_u64, |product, part| product.checked_mul(part.count()));
        match count.filter(|count| *count <= MOST) {
            Some(count) => Ok(Glob { parts, count }),
            None => Err(Wrong { message: "range overflow", position: 0 }),
        }
    }

    fn indices(&self, mut number: u64) -> Vec<u64> {
        let mut indices: Vec<u64> = Vec::new();
        for part in self.parts.iter().rev() {
            indices.push(number % part.count());
            number /= part.count();
        }
        indices.reverse();
        indices
    }

    /// The URL of a number.
    pub fn url(&self, number: u64) -> String {
        self.parts.iter().zip(self.indices(number)).map(|(part, index)| part.at(index)).collect()
    }

    /// Puts what `#1`, `#2`… stand for into the name of an output.
    pub fn fill(&self, name: &str, number: u64) -> String {
        let changing: Vec<String> = self
            .parts
            .iter()
            .zip(self.indices(number))
            .filter(|(part, _)| !matches!(part, Part::Fixed(_)))
            .map(|(part, index)| part.at(index))
            .collect();
        let mut text = String::new();
        let mut rest = name;
        while let Some(at) = rest.find('#') {
            let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let number: usize = rest[at + 1..at + 1 + digits].parse().unwrap_or(0);
            text += &rest[..at];
            match number.checked_sub(1).and_then(|index| changing.get(index)) {
                Some(value) => text += value,
                None => text += &rest[at..at + 1 + digits],
            }
            rest = &rest[at + 1 + digits..];
        }
        text + rest
    }
}

fn flush(parts: &mut Vec<Part>, fixed: &mut Vec<u8>) {
    if !fixed.is_empty() {
        parts.push(Part::Fixed(String::from_utf8_lossy(&std::mem::take(fixed)).into_owned()));
    }
}

/// Whether a bracket begins an IPv6 address.
fn is_address(text: &str) -> bool {
    let inner = text[1..].split(']').next().unwrap_or_default();
    text.contains(']')
        && inner.split('%').next().is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok())
}

fn set(text: &str, position: usize) -> Result<(Part, usize), Wrong> {
    let end = text.find('}').ok_or(Wrong { message: "unmatched brace", position })?;
    let inner = &text[..end];
    if inner.is_empty() {
        return Err(Wrong { message: "empty string within braces", position: position + 1 });
    }
    if inner.contains(['{', '[']) {
        return Err(Wrong { message: "nested brace", position: position + 1 });
    }
    Ok((Part::Set(inner.split(',').map(str::to_owned).collect()), end + 1))
}

fn range(text: &str, position: usize) -> Result<(Part, usize), Wrong> {
    let specification = Wrong { message: "bad range specification", position: position + 1 };
    let Some(end) = text.find(']') else { return Err(specification) };
    let bad = Wrong { message: "bad range", position: position + end + 2 };
    let (span, step) = match text[..end].split_once(':') {
        Some((span, step)) => (span, step.parse::<u64>().ok().filter(|step| *step > 0)),
        None => (&text[..end], Some(1)),
    };
    let (Some((from, to)), Some(step)) = (span.split_once('-'), step) else { return Err(specification) };
    if let ([from], [to]) = (from.as_bytes(), to.as_bytes())
        && from.is_ascii_alphabetic()
        && to.is_ascii_alphabetic()
    {
        let step = u8::try_from(step).map_err(|_| Wrong { ..bad })?;
        return match from <= to {
            true => Ok((Part::Letters { from: *from, to: *to, step }, end + 1)),
            false => Err(bad),
        };
    }
    let width = if from.starts_with('0') { from.len() } else { 0 };
    match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to && width <= 64 => {
            Ok((Part::Numbers { from, to, step, width }, end + 1))
        }
        (Ok(_), Ok(_)) => Err(bad),
        _ => Err(specification),
    }
}
