//! `factor`: the prime factors of numbers.

use num_bigint::BigUint;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use toolkit::{Arguments, complain, quote};

const TOOL: Tool = Tool {
    name: "factor",
    short: "",
    long: &[],
    help: "\
Usage: factor [NUMBER]...
Print the prime factors of each NUMBER. With no NUMBER, read them from standard
input.

      --help     display this help and exit
      --version  output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let numbers = TOOL.parse(arguments)?.operands;
    let (mut out, mut all) = (Out::new("factor"), true);
    if !numbers.is_empty() {
        numbers.iter().for_each(|number| all &= print(number, &mut out));
        return Ok(i32::from(!all));
    }
    let (mut lines, mut line, waits) = (Records::new(0, b'\n'), Vec::new(), wardian_abi::isatty(0));
    loop {
        line.clear();
        match lines.next_into(&mut line) {
            Ok(false) => return Ok(i32::from(!all)),
            Ok(true) => {
                let words = line.split(|byte| b" \t\n".contains(byte)).filter(|word| !word.is_empty());
                words.for_each(|number| all &= print(number, &mut out));
                // Someone may wait for the answer before asking for the next.
                if waits {
                    out.flush();
                }
            }
            Err(error) => {
                complain("factor", format_args!("error reading input: {error}"));
                return Ok(1);
            }
        }
    }
}

fn print(text: &[u8], out: &mut Out) -> bool {
    let digits = text.trim_ascii_start();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    let number = BigUint::parse_bytes(digits, 10).filter(|_| digits.iter().all(u8::is_ascii_digit));
    let Some(number) = number else {
        complain("factor", format_args!("{} is not a valid positive integer", quote::word(text)));
        return false;
    };
    let mut line = format!("{number}:");
    for factor in factors(number) {
        line += &format!(" {factor}");
    }
    out.put(line + "\n");
    true
}

/// The prime factors in order, each as often as it divides.
fn factors(mut number: BigUint) -> Vec<BigUint> {
    let mut found = Vec::new();
    if number == BigUint::ZERO {
        return found;
    }
    for prime in small_primes() {
        while (&number % prime) == BigUint::ZERO {
            number /= prime;
            found.push(BigUint::from(prime));
        }
    }
    let mut left = vec![number];
    while let Some(number) = left.pop() {
        if number == BigUint::from(1u32) {
            continue;
        }
        if is_prime(&number) {
            found.push(number);
            continue;
        }
        let divisor = divisor_of(&number);
        left.push(&number / &divisor);
        left.push(divisor);
    }
    found.sort();
    found
}

/// The primes below a bound that leaves little to the clever ways.
fn small_primes() -> impl Iterator<Item = u32> {
    const BOUND: usize = 4096;
    let mut sieve = [true; BOUND];
    for step in 2..64 {
        if sieve[step] {
            (step * step..BOUND).step_by(step).for_each(|multiple| sieve[multiple] = false);
        }
    }
    (2..BOUND as u32).filter(move |&number| sieve[number as usize])
}

/// Miller and Rabin's test. With these bases no number of up to 81 bits passes that is not prime, and none is known.
fn is_prime(number: &BigUint) -> bool {
    const BASES: [u32; 25] =
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97];
    let one = BigUint::from(1u32);
    let before = number - &one;
    let Some(twos) = before.trailing_zeros() else { return false };
    let odd = &before >> twos;
    BASES.iter().map(|base| BigUint::from(*base)).filter(|base| base % number != BigUint::ZERO).all(|base| {
        let mut power = base.modpow(&odd, number);
        if power == one || power == before {
            return true;
        }
        (1..twos).any(|_| {
            power = &power * &power % number;
            power == before
        })
    })
}

/// A divisor of a number that is not prime.
fn divisor_of(number: &BigUint) -> BigUint {
    let words: Vec<u64> = number.iter_u64_digits().collect();
    for constant in 1u32.. {
        let found = match words[..] {
            [small] => rho_in_word(small, u64::from(constant)).map(BigUint::from),
            _ => rho(number, constant),
        };
        if let Some(divisor) = found {
            return divisor;
        }
    }
    number.clone()
}

/// How many differences are multiplied before their common divisor is looked for.
const BATCH: u32 = 128;

/// Pollard's rho, as Brent has it: a divisor, or nothing if this constant leads to none.
fn rho(number: &BigUint, constant: u32) -> Option<BigUint> {
    let one = BigUint::from(1u32);
    let step = |at: &BigUint| (at * at + constant) % number;
    let distance = |a: &BigUint, b: &BigUint| if a > b { a - b } else { b - a };
    let (mut hare, mut length) = (BigUint::from(2u32), 1u64);
    loop {
        let tortoise = hare.clone();
        let mut walked = 0;
        while walked < length {
            let (start, mut product) = (hare.clone(), one.clone());
            let batch = u64::from(BATCH).min(length - walked);
            for _ in 0..batch {
                hare = step(&hare);
                product = product * distance(&tortoise, &hare) % number;
            }
            walked += batch;
            if common_divisor(product, number.clone()) == one {
                continue;
            }
            // One of this batch it is.
            let mut at = start;
            loop {
                at = step(&at);
                let divisor = common_divisor(distance(&tortoise, &at), number.clone());
                if divisor != one {
                    return (divisor != *number).then_some(divisor);
                }
            }
        }
        length *= 2;
    }
}

fn common_divisor(mut a: BigUint, mut b: BigUint) -> BigUint {
    while b != BigUint::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// The same for a number of one word.
fn rho_in_word(number: u64, constant: u64) -> Option<u64> {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(number)) as u64;
    let step =
        |at: u64| ((u128::from(at) * u128::from(at) + u128::from(constant)) % u128::from(number)) as u64;
    let common = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let (mut hare, mut length) = (2, 1u64);
    loop {
        let tortoise = hare;
        let mut walked = 0;
        while walked < length {
            let (mut at, mut product) = (hare, 1);
            let batch = u64::from(BATCH).min(length - walked);
            for _ in 0..batch {
                hare = step(hare);
                product = times(product, hare.abs_diff(tortoise));
            }
            walked += batch;
            if common(product, number) == 1 {
                continue;
            }
            loop {
                at = step(at);
                let divisor = common(at.abs_diff(tortoise), number);
                if divisor != 1 {
                    return (divisor != number).then_some(divisor);
                }
            }
        }
        length *= 2;
    }
}
