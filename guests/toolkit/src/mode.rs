//! Permission bits: as `ls` prints them, and as `chmod` is told them.

/// The ten characters of `ls -l`.
pub fn letters(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o010_000 => 'p',
        0o140_000 => 's',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o100_000 => '-',
        _ => '?',
    };
    let mut text = String::from(kind);
    for (shift, special, set, unset) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => set,
            (false, true) => unset,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// A change of permission bits, such as `u+x,go=`.
#[derive(Clone)]
pub struct Change(Vec<Step>);

#[derive(Clone)]
struct Step {
    operator: u8,
    /// The bits the step may touch: those of the classes named, or all but the umask's when none was.
    affected: u32,
    names_classes: bool,
    value: Value,
}

#[derive(Clone)]
enum Value {
    /// Bits; `X` among them only for directories and what is executable already.
    Bits { bits: u32, conditional_execute: bool },
    /// The bits another class has.
    CopyOf(u32),
    /// All bits, given in octal; those mentioned may also clear a directory's set-id bits.
    Octal { bits: u32, mentioned: u32 },
}

impl Change {
    /// Exactly the bits of a reference file.
    pub fn exactly(mode: u32) -> Change {
        let value = Value::Octal { bits: mode & 0o7777, mentioned: 0o7777 };
        Change(vec![Step { operator: b'=', affected: 0o7777, names_classes: true, value }])
    }

    /// Reads a mode; `None` when it is none.
    pub fn parse(text: &[u8]) -> Option<Change> {
        if text.first().is_some_and(|byte| (b'0'..=b'7').contains(byte)) {
            let bits = octal(text)?;
            let mentioned = if text.len() < 5 { (bits & 0o6000) | 0o1777 } else { 0o7777 };
            let value = Value::Octal { bits, mentioned };
            return Some(Change(vec![Step { operator: b'=', affected: 0o7777, names_classes: true, value }]));
        }
        let mut steps = Vec::new();
        for clause in text.split(|&byte| byte == b',') {
            let classes = clause.iter().take_while(|byte| b"ugoa".contains(byte)).count();
            let affected = clause[..classes].iter().fold(0, |bits, class| bits | class_bits(*class));
            let mut rest = &clause[classes..];
            if rest.is_empty() {
                return None;
            }
            while !rest.is_empty() {
                steps.push(take_step(&mut rest, affected)?);
            }
        }
        Some(Change(steps))
    }

    /// The mode after the change. With no classes named, bits of `umask` stay as they are.
    pub fn apply(&self, mode: u32, is_dir: bool, umask: u32) -> u32 {
        let mut new = mode & 0o7777;
        for step in &self.0 {
            new = step.apply(new, is_dir, umask);
        }
        new
    }

    /// Whether the change as written would have done the same without a umask, `a` being meant.
    pub fn apply_without_umask(&self, mode: u32, is_dir: bool) -> u32 {
        self.apply(mode, is_dir, 0)
    }
}

impl Step {
    fn apply(&self, mode: u32, is_dir: bool, umask: u32) -> u32 {
        // A directory's set-id bits are only cleared by name.
        let mut kept = if is_dir { 0o6000 } else { 0 };
        let mut value = match self.value {
            Value::Bits { bits, conditional_execute } => {
                let executable = is_dir || mode & 0o111 != 0;
                kept &= !(bits & 0o6000);
                bits | if conditional_execute && executable { 0o111 } else { 0 }
            }
            Value::CopyOf(class) => {
                let bits = mode & class;
                [4, 2, 1].iter().filter(|bit| bits & (*bit * 0o111) != 0).map(|bit| bit * 0o111).sum()
            }
            Value::Octal { bits, mentioned } => {
                kept &= !mentioned;
                bits
            }
        };
        let affected = if self.names_classes { self.affected } else { 0o7777 & !umask };
        value &= affected & !(kept & !value);
        match self.operator {
            b'+' => mode | value,
            b'-' => mode & !value,
            _ => {
                let reach = if self.names_classes { self.affected } else { 0o7777 };
                (mode & (!reach | kept)) | value
            }
        }
    }
}

fn octal(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o7777)
}

fn class_bits(class: u8) -> u32 {
    match class {
        b'u' => 0o4700,
        b'g' => 0o2070,
        b'o' => 0o1007,
        _ => 0o7777,
    }
}

/// Takes `+x`, `-g`, `=rwX`, `=644` off the front of a clause.
fn take_step(rest: &mut &[u8], classes: u32) -> Option<Step> {
    let (&operator, after) = rest.split_first().filter(|(byte, _)| b"+-=".contains(byte))?;
    let step = |affected, value| Step { operator, affected, names_classes: affected != 0, value };
    let digits = after.iter().take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if digits > 0 {
        let bits = octal(&after[..digits])?;
        *rest = &after[digits..];
        return (classes == 0 && rest.is_empty())
            .then(|| step(0o7777, Value::Octal { bits, mentioned: 0o7777 }));
    }
    if let Some((class, after)) = after.split_first().filter(|(byte, _)| b"ugo".contains(byte)) {
        *rest = after;
        return Some(step(classes, Value::CopyOf(class_bits(*class) & 0o777)));
    }
    let (mut bits, mut conditional_execute) = (0, false);
    let length = after.iter().take_while(|byte| b"rwxXst".contains(byte)).count();
    for permission in &after[..length] {
        match permission {
            b'r' => bits |= 0o444,
            b'w' => bits |= 0o222,
            b'x' => bits |= 0o111,
            b'X' => conditional_execute = true,
            b's' => bits |= 0o6000,
            _ => bits |= 0o1000,
        }
    }
    *rest = &after[length..];
    Some(step(classes, Value::Bits { bits, conditional_execute }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, mode: u32) -> u32 {
        Change::parse(text.as_bytes()).unwrap().apply(mode, false, 0o022)
    }

    #[test]
    fn modes_change_as_chmod_says() {
        assert_eq!(changed("u+x,go=", 0o644), 0o700);
        assert_eq!(changed("+x", 0o644), 0o755);
        assert_eq!(changed("+w", 0o444), 0o644);
        assert_eq!(changed("g=u", 0o604), 0o664);
        assert_eq!(changed("a+X", 0o644), 0o644);
        assert_eq!(changed("a+X", 0o744), 0o755);
        assert_eq!(changed("u+s,+t", 0o755), 0o5755);
        assert_eq!(changed("=", 0o777), 0);
        assert_eq!(changed("4755", 0), 0o4755);
        assert!(
            Change::parse(b"u+q").is_none() && Change::parse(b"8").is_none() && Change::parse(b"u").is_none()
        );
    }

    #[test]
    fn modes_print_as_ls_does() {
        assert_eq!(letters(0o104_755), "-rwsr-xr-x");
        assert_eq!(letters(0o041_776), "drwxrwxrwT");
    }
}
