//! Floating-point numbers as bash's `printf` has them: the C library's long double of x86-64, whose mantissa is 64
//! bits wide. Decimal digits are exact; only the number read is rounded.

/// A number: `mantissa` × 2^`exponent`, the mantissa's highest bit set unless it is 0.
pub struct Float {
    pub negative: bool,
    pub kind: Kind,
}

pub enum Kind {
    Finite { mantissa: u64, exponent: i32 },
    Infinite,
    NotANumber,
}

/// Powers of ten beyond these are 0 or infinite.
const MAX_POWER: i64 = 5000;

impl Float {
    pub fn integer(value: u64) -> Float {
        Float { negative: false, kind: rounded(&Big::new(value), 0, false) }
    }

    /// Reads as much of a text as is a number; answers it and how long it was.
    pub fn read(text: &[u8]) -> (Float, usize) {
        let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let signed = matches!(text.get(blanks), Some(b'-' | b'+'));
        let negative = text.get(blanks) == Some(&b'-');
        let start = blanks + usize::from(signed);
        let rest = &text[start..];
        let lower = rest.to_ascii_lowercase();
        for (word, infinite) in [(&b"infinity"[..], true), (b"inf", true), (b"nan", false)] {
            if lower.starts_with(word) {
                let kind = if infinite { Kind::Infinite } else { Kind::NotANumber };
                return (Float { negative, kind }, start + word.len());
            }
        }
        let hex = lower.starts_with(b"0x") && lower.get(2).is_some_and(|byte| byte.is_ascii_hexdigit());
        let (kind, len) = if hex { hexadecimal(&lower) } else { decimal(&lower) };
        (Float { negative, kind }, if len == 0 { 0 } else { start + len })
    }

    /// The digits of a finite number, for one of the letters `e`, `f`, `g` and `a`.
    pub fn digits(&self, letter: u8, precision: Option<usize>, alternate: bool) -> Option<String> {
        let Kind::Finite { mantissa, exponent } = self.kind else { return None };
        if letter == b'a' {
            return Some(with_point(hexadecimal_digits(mantissa, exponent, precision), alternate, 'p'));
        }
        let number = Decimal::exact(mantissa, exponent);
        let precision = precision.unwrap_or(6);
        let text = match letter {
            b'f' => number.fixed(precision),
            b'e' => number.scientific(precision),
            _ => number.general(precision, alternate),
        };
        Some(with_point(text, alternate, 'e'))
    }
}

/// With `#` there is always a point, before the exponent if there is one.
fn with_point(mut text: String, alternate: bool, exponent: char) -> String {
    if alternate && !text.contains('.') {
        text.insert(text.find(exponent).unwrap_or(text.len()), '.');
    }
    text
}

/// Digits, a point, an exponent: the integer they make and the power of ten it is times.
fn decimal(text: &[u8]) -> (Kind, usize) {
    let (mut digits, mut power, mut at, mut point, mut any) = (Big::new(0), 0_i64, 0, false, false);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                any = true;
                // Digits that far to the right change nothing; to the left they count as zeros.
                if digits.words.len() < 600 {
                    digits.multiply_add(10, u32::from(byte - b'0'));
                    power -= i64::from(point);
                } else {
                    power += i64::from(!point);
                }
            }
            b'.' if !point => point = true,
            _ => break,
        }
        at += 1;
    }
    if !any {
        return (Kind::Finite { mantissa: 0, exponent: 0 }, 0);
    }
    if text.get(at) == Some(&b'e')
        && let Some((value, len)) = signed_number(&text[at + 1..])
    {
        power = power.saturating_add(value);
        at += 1 + len;
    }
    (scaled(digits, power), at)
}

/// A sign and digits, and how long they are.
fn signed_number(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let len = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[sign..sign + len]).ok().filter(|digits| !digits.is_empty())?;
    let value = digits.parse().unwrap_or(i64::from(i32::MAX));
    Some((if text[0] == b'-' { -value } else { value }, sign + len))
}

/// An integer times a power of ten, rounded.
fn scaled(mut digits: Big, power: i64) -> Kind {
    if digits.is_zero() || power < -MAX_POWER {
        return Kind::Finite { mantissa: 0, exponent: 0 };
    }
    if power > MAX_POWER {
        return Kind::Infinite;
    }
    if power >= 0 {
        (0..power).for_each(|_| digits.multiply_add(10, 0));
        return rounded(&digits, 0, false);
    }
    let mut divisor = Big::new(1);
    (power..0).for_each(|_| divisor.multiply_add(10, 0));
    let shift = (divisor.bits() + 66).saturating_sub(digits.bits());
    digits.shift_left(shift);
    let (quotient, remains) = digits.divide(&divisor);
    rounded(&quotient, -(shift as i32), remains)
}

/// The nearest number with 64 bits, ties to even; `sticky` says that something was cut off already.
fn rounded(value: &Big, exponent: i32, sticky: bool) -> Kind {
    let bits = value.bits();
    if bits == 0 {
        return Kind::Finite { mantissa: 0, exponent: 0 };
    }
    let cut = bits as i32 - 64;
    if cut <= 0 {
        return Kind::Finite { mantissa: value.top(), exponent: exponent + cut };
    }
    let mantissa = value.top();
    let half = value.bit(cut as usize - 1);
    let below = sticky || (0..cut as usize - 1).any(|at| value.bit(at));
    let up = half && (below || mantissa & 1 == 1);
    let exponent = exponent + cut;
    match mantissa.checked_add(u64::from(up)) {
        Some(mantissa) => Kind::Finite { mantissa, exponent },
        None => Kind::Finite { mantissa: 1 << 63, exponent: exponent + 1 },
    }
}

/// `0x1.8p3`
fn hexadecimal(text: &[u8]) -> (Kind, usize) {
    let (mut digits, mut power, mut at, mut point) = (Big::new(0), 0_i64, 2, false);
    while let Some(&byte) = text.get(at) {
        match (byte as char).to_digit(16) {
            Some(digit) if digits.words.len() < 600 => {
                digits.multiply_add(16, digit);
                power -= 4 * i64::from(point);
            }
            Some(_) => power += 4 * i64::from(!point),
            None if byte == b'.' && !point => point = true,
            None => break,
        }
        at += 1;
    }
    if text.get(at) == Some(&b'p')
        && let Some((value, len)) = signed_number(&text[at + 1..])
    {
        power = power.saturating_add(value);
        at += 1 + len;
    }
    let kind = match rounded(&digits, 0, false) {
        Kind::Finite { mantissa, exponent } if mantissa > 0 => match i64::from(exponent) + power {
            beyond if beyond > 16_384 => Kind::Infinite,
            below if below < -16_600 => Kind::Finite { mantissa: 0, exponent: 0 },
            exponent => Kind::Finite { mantissa, exponent: exponent as i32 },
        },
        zero => zero,
    };
    (kind, at)
}

/// As the C library writes a long double: its first digit holds four bits.
fn hexadecimal_digits(mantissa: u64, exponent: i32, precision: Option<usize>) -> String {
    if mantissa == 0 {
        let zeros = "0".repeat(precision.unwrap_or(0));
        let dot = if zeros.is_empty() { "" } else { "." };
        return format!("0x0{dot}{zeros}p+0");
    }
    let mut value = u128::from(mantissa);
    let mut exponent = exponent + 60;
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let cut = 60 - 4 * precision as u32;
        let (half, rest) = (1_u128 << (cut - 1), value & ((1 << cut) - 1));
        value = value >> cut << cut;
        if rest > half || rest == half && value >> cut & 1 == 1 {
            value += 1 << cut;
        }
        if value >> 64 != 0 {
            value >>= 4;
            exponent += 4;
        }
    }
    let mut digits = format!("{:015x}", value & ((1 << 60) - 1));
    match precision {
        Some(precision) => {
            digits.truncate(precision);
            let missing = precision - digits.len();
            digits.push_str(&"0".repeat(missing));
        }
        None => digits.truncate(digits.trim_end_matches('0').len()),
    }
    let dot = if digits.is_empty() { "" } else { "." };
    format!("0x{:x}{dot}{digits}p{exponent:+}", value >> 60)
}

/// A number as decimal digits, `scale` of them after the point.
struct Decimal {
    digits: Vec<u8>,
    scale: usize,
}

impl Decimal {
    /// All the digits there are: a power of two has finitely many.
    fn exact(mantissa: u64, exponent: i32) -> Decimal {
        let mut value = Big::new(mantissa);
        let mut scale = 0;
        if mantissa > 0 && exponent >= 0 {
            value.shift_left(exponent as usize);
        } else if mantissa > 0 {
            // Half of a number is five tenths of it.
            let spare = (mantissa.trailing_zeros() as i32).min(-exponent);
            value = Big::new(mantissa >> spare);
            scale = (-exponent - spare) as usize;
            (0..scale).for_each(|_| value.multiply_add(5, 0));
        }
        Decimal { digits: value.to_decimal(), scale }
    }

    /// The first digits, the last of them rounded to the nearest, ties to even. One more when all were nines.
    fn first(digits: &[u8], keep: usize) -> Vec<u8> {
        let mut kept: Vec<u8> = digits.iter().copied().take(keep).collect();
        kept.resize(keep, b'0');
        let rest = digits.get(keep..).unwrap_or_default();
        let odd = kept.last().is_some_and(|digit| digit % 2 == 1);
        let up = match rest.split_first() {
            Some((b'5', below)) => odd || below.iter().any(|digit| *digit != b'0'),
            Some((first, _)) => *first > b'5',
            None => false,
        };
        if up {
            let nines = kept.iter().rev().take_while(|digit| **digit == b'9').count();
            let at = kept.len() - nines;
            kept[at..].fill(b'0');
            match at.checked_sub(1) {
                Some(at) => kept[at] += 1,
                None => kept.insert(0, b'1'),
            }
        }
        kept
    }

    fn fixed(&self, precision: usize) -> String {
        // A zero before the point, so that there is always a digit to round.
        let missing = (self.scale + 1).saturating_sub(self.digits.len());
        let mut digits = vec![b'0'; missing];
        digits.extend_from_slice(&self.digits);
        let whole = digits.len() - self.scale;
        let kept = Decimal::first(&digits, whole + precision);
        let (whole, fraction) = kept.split_at(kept.len() - precision);
        join(whole, fraction)
    }

    /// The significant digits, rounded, and the power of ten of the first.
    fn significant(&self, count: usize) -> (Vec<u8>, i64) {
        let zeros = self.digits.iter().take_while(|digit| **digit == b'0').count();
        let digits = &self.digits[zeros..];
        if digits.is_empty() {
            return (vec![b'0'; count], 0);
        }
        let mut power = digits.len() as i64 - self.scale as i64 - 1;
        let mut kept = Decimal::first(digits, count);
        if kept.len() > count {
            kept.truncate(count);
            power += 1;
        }
        (kept, power)
    }

    fn scientific(&self, precision: usize) -> String {
        let (digits, power) = self.significant(precision + 1);
        with_power(&join(&digits[..1], &digits[1..]), power)
    }

    fn general(&self, precision: usize, keep_zeros: bool) -> String {
        let precision = precision.max(1);
        let (digits, power) = self.significant(precision);
        let strip = |text: String| match keep_zeros || !text.contains('.') {
            true => text,
            false => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        };
        if power < -4 || power >= precision as i64 {
            return with_power(&strip(join(&digits[..1], &digits[1..])), power);
        }
        strip(self.fixed(usize::try_from(precision as i64 - 1 - power).unwrap_or(0)))
    }
}

fn join(whole: &[u8], fraction: &[u8]) -> String {
    let dot: &[u8] = if fraction.is_empty() { b"" } else { b"." };
    String::from_utf8_lossy(&[whole, dot, fraction].concat()).into_owned()
}

fn with_power(digits: &str, power: i64) -> String {
    format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

/// A natural number of any size, its lowest 32 bits first and no zeros at its end.
struct Big {
    words: Vec<u32>,
}

impl Big {
    fn new(value: u64) -> Big {
        let mut big = Big { words: vec![value as u32, (value >> 32) as u32] };
        big.trim();
        big
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.words.is_empty()
    }

    fn bits(&self) -> usize {
        self.words.last().map_or(0, |last| self.words.len() * 32 - last.leading_zeros() as usize)
    }

    fn bit(&self, at: usize) -> bool {
        self.words.get(at / 32).is_some_and(|word| word >> (at % 32) & 1 == 1)
    }

    /// The 64 highest bits, or all of them.
    fn top(&self) -> u64 {
        let bits = self.bits();
        let low = bits.saturating_sub(64);
        let value = (low..bits).fold(0_u64, |value, at| value | u64::from(self.bit(at)) << (at - low));
        if bits < 64 { value << (64 - bits) } else { value }
    }

    fn multiply_add(&mut self, factor: u32, add: u32) {
        let mut carry = u64::from(add);
        for word in &mut self.words {
            let product = u64::from(*word) * u64::from(factor) + carry;
            *word = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.words.push(carry as u32);
        }
    }

    fn shift_left(&mut self, by: usize) {
        self.multiply_add(1 << (by % 32), 0);
        self.words.splice(0..0, std::iter::repeat_n(0, by / 32));
        self.trim();
    }

    fn at_least(&self, other: &Big) -> bool {
        let order = self.words.len().cmp(&other.words.len());
        order.then_with(|| self.words.iter().rev().cmp(other.words.iter().rev())).is_ge()
    }

    fn subtract(&mut self, other: &Big) {
        let mut borrow = 0;
        for (at, word) in self.words.iter_mut().enumerate() {
            let less = i64::from(other.words.get(at).copied().unwrap_or(0)) + borrow;
            let difference = i64::from(*word) - less;
            borrow = i64::from(difference < 0);
            *word = difference as u32;
        }
        self.trim();
    }

    /// The quotient, and whether something remains.
    fn divide(&self, divisor: &Big) -> (Big, bool) {
        let mut remainder = Big::new(0);
        let mut quotient = Big { words: vec![0; self.words.len()] };
        for at in (0..self.bits()).rev() {
            remainder.shift_left(1);
            if self.bit(at) {
                remainder.multiply_add(1, 1);
            }
            if remainder.at_least(divisor) {
                remainder.subtract(divisor);
                quotient.words[at / 32] |= 1 << (at % 32);
            }
        }
        quotient.trim();
        (quotient, !remainder.is_zero())
    }

    fn to_decimal(&self) -> Vec<u8> {
        const BLOCK: u64 = 1_000_000_000;
        let (mut words, mut blocks) = (self.words.clone(), Vec::new());
        while !words.is_empty() {
            let mut rest = 0;
            for word in words.iter_mut().rev() {
                let value = rest << 32 | u64::from(*word);
                *word = (value / BLOCK) as u32;
                rest = value % BLOCK;
            }
            blocks.push(rest);
            while words.last() == Some(&0) {
                words.pop();
            }
        }
        let Some(first) = blocks.pop() else { return b"0".to_vec() };
        let mut text = first.to_string();
        blocks.iter().rev().for_each(|block| text.push_str(&format!("{block:09}")));
        text.into_bytes()
    }
}
