//! What the userland's benchmarks read: the same bytes on every machine.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

const SIZE: u64 = 100_000_000;
const DIRECTORIES: u32 = 100;
const FILES_IN_EACH: u32 = 1_000;

/// Writes all of them into a directory.
pub(crate) fn make(directory: &Path) -> Result<()> {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    text(directory, "log", |out| log_line(out, &mut dice))?;
    text(directory, "words", |out| some_of_a_word(out, &mut dice))?;
    text(directory, "numbers", |out| Ok(writeln!(out, "{}", dice.signed())?))?;
    let mut id = 0;
    text(directory, "csv", |out| {
        id += 1;
        csv_line(out, id, &mut dice)
    })?;
    text(directory, "lines.json", |out| Ok(writeln!(out, "{}", dice.record())?))?;
    one_document(directory, &mut dice)?;
    tree(&directory.join("tree"), &mut dice)?;
    pack(directory, "gzip -k log")?;
    pack(directory, "tar -cf tree.tar tree")
}

fn pack(directory: &Path, line: &str) -> Result<()> {
    let status = Command::new("sh").args(["-c", line]).current_dir(directory).status()?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// Lines up to the size.
fn text(directory: &Path, name: &str, mut line: impl FnMut(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(File::create(directory.join(name))?);
    let (mut written, mut buffer) = (0, Vec::new());
    while written < SIZE {
        buffer.clear();
        line(&mut buffer)?;
        written += buffer.len() as u64;
        out.write_all(&buffer)?;
    }
    Ok(out.flush()?)
}

fn log_line(out: &mut Vec<u8>, dice: &mut Dice) -> Result<()> {
    let (hour, minute, second, millis) = (dice.below(24), dice.below(60), dice.below(60), dice.below(1_000));
    let level = ["INFO", "INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"][dice.below(7)];
    let method = ["GET", "GET", "GET", "POST", "PUT", "DELETE"][dice.below(6)];
    let status = [200, 200, 200, 200, 201, 204, 301, 304, 404, 500][dice.below(10)];
    let status = if dice.below(100) == 0 { 503 } else { status };
    let message = ["done", "cache miss", "retry after timeout", "connexion fermée", "queued"][dice.below(5)];
    writeln!(
        out,
        "2026-03-{:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z host-{:02} {level} user={} {method} \
         /api/v{}/items/{} status={status} {}ms {message}",
        dice.below(28) + 1,
        dice.below(40),
        dice.below(100_000),
        dice.below(3) + 1,
        dice.below(1_000_000),
        dice.below(2_000),
    )?;
    Ok(())
}

/// One word on one to four lines, so that `uniq` has something to do.
fn some_of_a_word(out: &mut Vec<u8>, dice: &mut Dice) -> Result<()> {
    let word = dice.word();
    for _ in 0..=dice.below(4) {
        writeln!(out, "{word}")?;
    }
    Ok(())
}

fn csv_line(out: &mut Vec<u8>, id: u32, dice: &mut Dice) -> Result<()> {
    let (name, city) = (dice.word(), dice.word());
    let (amount, cents) = (dice.below(10_000), dice.below(100));
    writeln!(out, "{id},{name},{city},{amount}.{cents:02},{}", ["yes", "no"][dice.below(2)])?;
    Ok(())
}

fn one_document(directory: &Path, dice: &mut Dice) -> Result<()> {
    let mut before = "[";
    text(directory, "one.json", |out| {
        write!(out, "{before}{}", dice.record())?;
        before = ",\n";
        Ok(())
    })?;
    let mut file = File::options().append(true).open(directory.join("one.json"))?;
    Ok(file.write_all(b"]\n")?)
}

fn tree(directory: &Path, dice: &mut Dice) -> Result<()> {
    for group in 0..DIRECTORIES {
        let group = directory.join(format!("group{group:02}"));
        fs::create_dir_all(&group)?;
        for file in 0..FILES_IN_EACH {
            let mut content = Vec::new();
            while content.len() < 930 {
                log_line(&mut content, dice)?;
            }
            fs::write(group.join(format!("file{file}.txt")), content)?;
        }
    }
    Ok(())
}

/// Numbers that look random and are the same every time (xorshift).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn signed(&mut self) -> i64 {
        self.below(2_000_000_000) as i64 - 1_000_000_000
    }

    /// One of twenty thousand.
    fn word(&mut self) -> String {
        let mut rest = self.below(20_000) * 7_919 + 11;
        let mut word = String::new();
        while rest > 0 {
            word.push_str(["ka", "ro", "min", "te", "sul", "va", "ber", "ni", "do", "lex", "pha"][rest % 11]);
            rest /= 11;
        }
        word
    }

    fn record(&mut self) -> String {
        let status = [200, 200, 200, 404, 500, 503][self.below(6)];
        format!(
            r#"{{"id":{},"user":{{"name":"{}","age":{}}},"tags":["{}","{}"],"status":{status},"bytes":{},"ok":{}}}"#,
            self.below(1_000_000),
            self.word(),
            self.below(90),
            self.word(),
            self.word(),
            self.below(1_000_000),
            self.below(2) == 0,
        )
    }
}
