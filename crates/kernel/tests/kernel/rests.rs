//! What a session is at rest, byte for byte, however often and from whatever it was captured.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use wardian_kernel::{
    AtRest, Command, Finished, Input, Limits, Machine, Output, Program, ProgramSource, Session, Verdict,
};

use crate::support::{KERNEL, PROGRAMS};

const PAGE: usize = 4096;
const STACK: usize = 65536;
const ARGUMENT: usize = 131_072;
const FIRST: usize = 4 * 65536;
const MOST: usize = 24 << 20;

/// Takes pairs of an address and a word to write there, and answers its whole memory. Address -1 grows the memory, -2 never
/// ends, -3 traps.
const WRITER: &str = r#"
(module
  (memory (export "memory") 4)
  (global (export "__stack_pointer") (mut i32) (i32.const 65536))
  (data (i32.const 70000) "not all zeros")
  (func (export "_initialize"))
  (func (export "wardian_alloc") (param i32) (result i32) (i32.const 131072))
  (func (export "wardian_ask") (param $at i32) (param $length i32) (result i64) (local $end i32) (local $to i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (block $done (loop $pairs
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $to (i32.load (local.get $at)))
      (if (i32.eq (local.get $to) (i32.const -2)) (then (loop $ever (br $ever))))
      (if (i32.eq (local.get $to) (i32.const -3)) (then unreachable))
      (if (i32.eq (local.get $to) (i32.const -1))
        (then (drop (memory.grow (i32.load (i32.add (local.get $at) (i32.const 4))))))
        (else (i32.store (local.get $to) (i32.load (i32.add (local.get $at) (i32.const 4))))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br $pairs)))
    (i64.extend_i32_u (i32.shl (memory.size) (i32.const 16)))))
"#;

fn writer() -> Arc<Program> {
    let wasm = wat::parse_str(WRITER).expect("a module");
    let sha256 = Sha256::digest(&wasm).iter().map(|byte| format!("{byte:02x}")).collect();
    let source =
        ProgramSource { name: "writer".to_owned(), sha256, wasm: Box::new(move || Ok(wasm.clone())) };
    KERNEL.load(&source, &|_| ()).expect("it compiles")
}

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn fresh() -> Vec<u8> {
    let mut memory = vec![0; FIRST];
    memory[70_000..70_013].copy_from_slice(b"not all zeros");
    memory
}

fn machine() -> Arc<Machine> {
    let limits = Limits { memory_bytes: 256 << 20, ..Limits::default() };
    Machine::new(&KERNEL, PROGRAMS.tree(&KERNEL), limits)
}

/// A session, and what its memory must be.
struct Pair {
    machine: Arc<Machine>,
    session: Session,
    memory: Vec<u8>,
}

impl Pair {
    async fn start(program: &Arc<Program>) -> Pair {
        let machine = machine();
        let session = Session::start(&machine, program, Vec::new(), b"/").await.expect("it starts");
        Pair { machine, session, memory: fresh() }
    }

    /// Another one in a machine of its own.
    async fn fork(&self, program: &Arc<Program>) -> Pair {
        let rest = self.session.at_rest();
        let mut tree = self.machine.tree().await.clone();
        AtRest::take_along([&rest], &mut tree);
        let limits = Limits { memory_bytes: 256 << 20, ..Limits::default() };
        let machine = Machine::new(&KERNEL, tree, limits);
        let session = Session::restore(&machine, program, &rest).expect("it is restored");
        Pair { machine, session, memory: self.memory.clone() }
    }

    /// The same through an archive.
    async fn copy(&self, program: &Arc<Program>) -> Pair {
        let tree = self.machine.tree().await;
        let packed = self.session.at_rest().pack(&tree).expect("it is packed");
        drop(tree);
        let machine = machine();
        let mut tree = machine.tree().await;
        let rest = AtRest::unpack(packed, &mut tree).expect("it is unpacked");
        drop(tree);
        let session = Session::restore(&machine, program, &rest).expect("it is restored");
        Pair { machine, session, memory: self.memory.clone() }
    }

    async fn ask(&mut self, pairs: &[(u32, u32)], timeout: Option<Duration>) -> (Finished, Option<Vec<u8>>) {
        let script: Vec<u8> =
            pairs.iter().flat_map(|(to, word)| [to.to_le_bytes(), word.to_le_bytes()].concat()).collect();
        let command = Command {
            script,
            around: None,
            input: Input::empty(),
            output: Output::kept(0),
            terminal: None,
            timeout,
            background: None,
            cancel: Arc::new(Notify::new()),
            rolls_back: false,
            lets_go: false,
            contained: false,
        };
        self.session.ask(command, usize::MAX).await
    }

    /// Writes, and checks that the program sees all of its memory as it must be.
    async fn write(&mut self, pairs: &[(u32, u32)]) {
        let (finished, answer) = self.ask(pairs, None).await;
        assert_eq!(finished.verdict, Verdict::Exited(0));
        for (number, (to, word)) in pairs.iter().enumerate() {
            let mut put = |at: usize, word: u32| {
                self.memory[at..at + 4].copy_from_slice(&word.to_le_bytes());
            };
            put(ARGUMENT + number * 8, *to);
            put(ARGUMENT + number * 8 + 4, *word);
        }
        for (to, word) in pairs {
            match *to {
                u32::MAX => self.memory.resize(self.memory.len() + *word as usize * 65536, 0),
                to => self.memory[to as usize..to as usize + 4].copy_from_slice(&word.to_le_bytes()),
            }
        }
        let answer = answer.expect("its memory");
        assert!(answer[STACK..] == self.memory[STACK..], "the program sees something else");
    }

    /// Ends a command in the middle of its writes: the session is what it was.
    async fn kill(&mut self, dice: &mut Dice) {
        let mut pairs = self.writes(dice, 30);
        let traps = dice.below(2) == 0;
        pairs.push((if traps { u32::MAX - 2 } else { u32::MAX - 1 }, 0));
        let (finished, answer) = self.ask(&pairs, Some(Duration::from_millis(20))).await;
        assert_ne!(finished.verdict, Verdict::Exited(0));
        assert_eq!(answer, None);
    }

    /// So many writes, most of them in few pages, and some of what is there already.
    fn writes(&self, dice: &mut Dice, count: usize) -> Vec<(u32, u32)> {
        let places = self.memory.len() - 2 * 65536;
        let write = |_| {
            let at = match dice.below(4) {
                0 => dice.below(places),
                1 => dice.below(places.min(4 << 20)),
                _ => dice.below(8) * 40_000 + dice.below(64),
            };
            let at = at.min(places - 4) & !3;
            let at = at + if at >= STACK { 2 * 65536 } else { STACK };
            let same = u32::from_le_bytes(self.memory[at..at + 4].try_into().expect("four bytes"));
            (at as u32, if dice.below(5) == 0 { same } else { dice.below(1 << 30) as u32 })
        };
        (0..count).map(write).collect()
    }

    /// Compares the image with the memory.
    async fn check(&self) {
        let tree = self.machine.tree().await;
        let packed = self.session.at_rest().pack(&tree).expect("it is packed");
        drop(tree);
        assert_eq!(packed.memory_size as usize, self.memory.len());
        let mut image = fresh();
        image.resize(self.memory.len(), 0);
        for (number, page) in &packed.pages {
            let at = *number as usize * PAGE;
            image[at..at + PAGE].copy_from_slice(&page[..]);
        }
        let differ = (STACK / PAGE..image.len() / PAGE)
            .find(|page| image[page * PAGE..][..PAGE] != self.memory[page * PAGE..][..PAGE]);
        assert_eq!(differ, None, "a page of the image differs");
    }
}

async fn live(program: Arc<Program>, seed: u64) {
    let mut dice = Dice(seed);
    let mut pairs = vec![Pair::start(&program).await];
    for _ in 0..120 {
        let (which, many) = (dice.below(pairs.len()), pairs.len() > 3);
        let pair = &mut pairs[which];
        match dice.below(12) {
            0 if pair.memory.len() < MOST => pair.write(&[(u32::MAX, 1 + dice.below(40) as u32)]).await,
            1 => {
                // So many pages that they become a template.
                let writes = pair.writes(&mut dice, 3_000);
                pair.write(&writes).await;
            }
            2 => pair.session.cool(),
            3 => pair.kill(&mut dice).await,
            4 => {
                let other = pair.fork(&program).await;
                pairs.push(other);
            }
            5 => {
                let other = pair.copy(&program).await;
                pairs.push(other);
            }
            6 if many => drop(pairs.swap_remove(which)),
            _ => {
                let count = 1 + dice.below(60);
                let few = pair.writes(&mut dice, count);
                pair.write(&few).await;
            }
        }
        for pair in &pairs {
            pair.check().await;
        }
    }
    for pair in &mut pairs {
        pair.write(&[]).await;
        // Nothing is charged for what is neither running nor left.
        pair.session.cool();
        assert_eq!(pair.machine.census().memory_charged, 0);
    }
}

#[tokio::test]
async fn an_image_is_the_memory_after_any_sequence_of_commands() {
    let program = writer();
    for seed in 0..12 {
        // On the kernel's runtime, where sessions run.
        KERNEL.handle().spawn(live(program.clone(), seed)).await.expect("no difference");
    }
}

/// Many pages were written once and few are written in each command: the images have all of them, share those that did not
/// change, and are each what the memory was at their time.
#[tokio::test]
async fn images_of_one_process_share_what_did_not_change_between_them() {
    let program = writer();
    let task = KERNEL.handle().spawn(async move {
        let mut pair = Pair::start(&program).await;
        pair.write(&[(u32::MAX, 200)]).await;
        let page = |number: usize| (2 * 65536 + 65536 + number * PAGE) as u32;
        let once: Vec<(u32, u32)> = (0..200).map(|number| (page(number), 7)).collect();
        pair.write(&once).await;
        let mut kept = Vec::new();
        for round in 0..20 {
            pair.write(&[(page(300 + round % 3), round as u32), (page(round), 8)]).await;
            kept.push((pair.session.at_rest(), pair.memory.clone()));
        }
        for window in kept.windows(2) {
            let own = window[1].0.bytes_beyond(Some(&window[0].0));
            assert!(own < 40_000, "{own} bytes for a few pages");
            assert!(window[1].0.bytes_beyond(None) > 200 * PAGE as u64);
        }
        for (rest, memory) in kept {
            let machine = Machine::new(&KERNEL, PROGRAMS.tree(&KERNEL), Limits::default());
            let tree = pair.machine.tree().await;
            let packed = rest.pack(&tree).expect("it is packed");
            drop(tree);
            let mut tree = machine.tree().await;
            let rest = AtRest::unpack(packed, &mut tree).expect("it is unpacked");
            drop(tree);
            let session = Session::restore(&machine, &program, &rest).expect("it is restored");
            let mut then = Pair { machine, session, memory };
            then.write(&[]).await;
            then.check().await;
        }
    });
    task.await.expect("no difference");
}

/// An instance that one session left, mapped over what others start from, too, is as fresh for the next.
#[tokio::test]
async fn later_changes_of_a_session_are_invisible_to_its_forks() {
    const SECRET: u32 = 0x5ec2_e7a1;
    let program = writer();
    let task = KERNEL.handle().spawn(async move {
        let mut first = Pair::start(&program).await;
        first.write(&[(u32::MAX, 64)]).await;
        let page = |number: usize| (3 * 65536 + number * PAGE) as u32;
        // So many that they become a template.
        let many: Vec<(u32, u32)> = (0..600).map(|number| (page(number), 7)).collect();
        first.write(&many).await;
        for round in 0..20 {
            let mut second = first.fork(&program).await;
            let secrets: Vec<(u32, u32)> =
                (0..40).map(|number| (page(number * 11 + round) + 64, SECRET)).collect();
            // Below the stack pointer as well, which no image has.
            let below = [(1_000, SECRET), (60_000, SECRET)];
            let (finished, _) = first.ask(&[&secrets[..], &below].concat(), None).await;
            assert_eq!(finished.verdict, Verdict::Exited(0));
            first.session.cool();
            let (_, answer) = second.ask(&[], None).await;
            let answer = answer.expect("its memory");
            let found = answer.windows(4).position(|word| word == SECRET.to_le_bytes());
            assert_eq!(found, None, "round {round}");
            assert!(answer[STACK..] == second.memory[STACK..], "round {round}");
            first = second;
        }
    });
    task.await.expect("nothing is found");
}
