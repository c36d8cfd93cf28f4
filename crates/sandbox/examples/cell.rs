//! Runs scripts in a sandbox that is in a process of its own, and says how long each step took:
//! `cargo run --release --example cell -- target/release/wardian-cell 'echo hello' 'echo again'`

use std::io::Write;
use std::time::Instant;

use wardian::Limits;
use wardian::cell::{Cell, CellError, CellOptions, CellStream, Collected, Event, RunSpec, SandboxSpec};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let program = words.next().ok_or("which program is the cell?")?;
    let options = CellOptions::new(vec![program.into()]);
    let begun = Instant::now();
    let cell = match Cell::start(options.clone()).await {
        Err(CellError::NotCompiled(_)) => {
            tokio::task::spawn_blocking(wardian::Engine::shared).await??;
            Cell::start(options).await?
        }
        started => started?,
    };
    eprintln!("cell: {:?}", begun.elapsed());
    let begun = Instant::now();
    let limits = wardian::cell::limits(&Limits::default());
    let sandbox = cell.create(SandboxSpec { limits, ..SandboxSpec::default() }).await?;
    eprintln!("sandbox: {:?}", begun.elapsed());
    for script in words {
        let begun = Instant::now();
        let mut run = cell.run(sandbox, RunSpec { command: script.into(), ..RunSpec::default() })?;
        let mut collected = Collected::new(false);
        let result = loop {
            match run.next().await {
                Event::Output(piece) => {
                    collected.add(&piece);
                    match piece.stream {
                        CellStream::Stdout => std::io::stdout().write_all(&piece.bytes)?,
                        CellStream::Stderr => std::io::stderr().write_all(&piece.bytes)?,
                    }
                }
                Event::WantInput(_) => run.input(Vec::new()),
                Event::Ended(end) => break collected.ended(*end),
                Event::Refused(why) => return Err(why.into()),
                Event::Gone(why) => break collected.crashed(&why),
            }
        };
        let class = result.error_class.map_or("", |class| class.name());
        eprintln!("exit {} {class}: {:?}", result.exit_code, begun.elapsed());
    }
    Ok(())
}
