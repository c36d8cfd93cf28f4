//! The scheduler on its own, with time that the tests make up.

use std::collections::{BTreeMap, BinaryHeap, HashSet};

use super::*;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// What must hold after every call.
fn check<T>(scheduler: &Scheduler<T>) {
    let count = |place: fn(&Place) -> bool| scheduler.seats.values().filter(|s| place(&s.place)).count();
    let holding = count(|place| matches!(place, Place::Holding(_)));
    let waiting = count(|place| matches!(place, Place::Waiting(_)));
    assert!(holding <= scheduler.slots, "{holding} have a slot of {}", scheduler.slots);
    assert_eq!(holding, scheduler.holders.len());
    assert!(waiting == 0 || holding == scheduler.slots, "{waiting} wait though a slot is free");
    assert_eq!(scheduler.sandboxes.values().map(|s| s.holding).sum::<usize>(), holding);
    assert_eq!(scheduler.sandboxes.values().map(|s| s.queue.len()).sum::<usize>(), waiting);
    for (name, family) in &scheduler.families {
        let sandboxes = scheduler.sandboxes.iter().filter(|(_, s)| s.family == *name);
        assert_eq!(sandboxes.clone().count(), family.sandboxes);
        let queues = sandboxes.filter(|(_, s)| !s.queue.is_empty());
        assert_eq!(queues.map(|(id, s)| (s.time, *id)).collect::<BTreeSet<_>>(), family.waiting);
    }
    let queues = scheduler.families.iter().filter(|(_, f)| !f.waiting.is_empty());
    assert_eq!(queues.map(|(id, f)| (f.time, *id)).collect::<BTreeSet<_>>(), scheduler.waiting);
}

/// Processes that do anything at any time: each is in one place only, and the scheduler knows which.
#[test]
fn random_calls_lose_no_process_and_leak_no_slot() {
    for seed in 1..200 {
        let mut dice = Dice::new(seed);
        let mut scheduler = Scheduler::new(1 + dice.roll(4) as usize);
        let sandboxes: Vec<_> = (0..1 + dice.roll(5)).map(|n| scheduler.add_sandbox(n / 2, 1 + n)).collect();
        let (mut away, mut waiting, mut holding) = (Vec::new(), HashSet::new(), Vec::new());
        let mut next_name = 0u64;
        let mut names = BTreeMap::new();
        for _ in 0..2_000 {
            let spent = dice.roll(2_000_000);
            let granted = match dice.roll(10) {
                0 if names.len() < 40 => {
                    next_name += 1;
                    let sandbox = sandboxes[dice.roll(sandboxes.len() as u64) as usize];
                    let id = scheduler.add_seat(sandbox, next_name);
                    names.insert(next_name, id);
                    away.push(next_name);
                    None
                }
                1..=4 if !away.is_empty() => {
                    let name = away.swap_remove(dice.roll(away.len() as u64) as usize);
                    match scheduler.ask(names[&name]) {
                        Answer::Go => holding.push(name),
                        Answer::Wait { .. } => drop(waiting.insert(name)),
                        Answer::Ignored => panic!("{name} is known"),
                    }
                    assert_eq!(scheduler.ask(names[&name]), Answer::Ignored, "it asks once");
                    None
                }
                5..=6 if !holding.is_empty() => {
                    let name = holding.swap_remove(dice.roll(holding.len() as u64) as usize);
                    away.push(name);
                    scheduler.release(names[&name], spent)
                }
                7..=8 if !holding.is_empty() => {
                    let name = holding.swap_remove(dice.roll(holding.len() as u64) as usize);
                    waiting.insert(name);
                    let next = scheduler.again(names[&name], spent);
                    assert!(next.is_some(), "a slot is free and {name} wants it");
                    next
                }
                9 if !names.is_empty() => {
                    // Killed, wherever it is.
                    let nth = dice.roll(names.len() as u64) as usize;
                    let (&name, &id) = names.iter().nth(nth).expect("there are so many");
                    names.remove(&name);
                    away.retain(|other| *other != name);
                    holding.retain(|other| *other != name);
                    waiting.remove(&name);
                    let (removed, next) = scheduler.remove_seat(id, spent);
                    assert_eq!(removed, Some(name));
                    assert_eq!(scheduler.ask(id), Answer::Ignored, "one that is gone cannot take a slot");
                    next
                }
                _ => None,
            };
            if let Some(name) = granted {
                assert!(waiting.remove(&name), "{name} did not wait");
                holding.push(name);
            }
            check(&scheduler);
            assert_eq!(holding.len(), scheduler.holders.len());
        }
    }
}

/// A process of a simulated machine.
#[derive(Clone)]
struct Habit {
    sandbox: usize,
    /// How long its turns are.
    run: u64,
    /// How long it sleeps after each, if it does.
    sleep: Option<u64>,
}

/// Runs processes with these habits for `length` nanoseconds. Returns how long each ran, and the longest that each waited
/// for a turn, the first tenth of the time left out: there everybody waits for a first turn.
fn simulate(slots: usize, costs: &[u64], habits: &[Habit], length: u64) -> (Vec<u64>, Vec<u64>) {
    let strangers: Vec<(u64, u64)> = (0..).zip(costs.iter().copied()).collect();
    simulate_families(slots, &strangers, habits, length)
}

/// The same for sandboxes with a family and a cost each.
fn simulate_families(
    slots: usize,
    sandboxes: &[(FamilyId, u64)],
    habits: &[Habit],
    length: u64,
) -> (Vec<u64>, Vec<u64>) {
    let mut scheduler = Scheduler::new(slots);
    let sandboxes: Vec<_> =
        sandboxes.iter().map(|(family, cost)| scheduler.add_sandbox(*family, *cost)).collect();
    let seats: Vec<_> =
        habits.iter().enumerate().map(|(n, h)| scheduler.add_seat(sandboxes[h.sandbox], n)).collect();
    let (mut ran, mut waited) = (vec![0; habits.len()], vec![0; habits.len()]);
    let mut ready_since = vec![0; habits.len()];
    // What happens when: a turn ends, or a sleeper wakes.
    let mut events = BinaryHeap::new();
    let event = |at: u64, who: usize, wakes: bool| std::cmp::Reverse((at, who, wakes));
    (0..habits.len()).for_each(|who| events.push(event(who as u64, who, true)));
    while let Some(std::cmp::Reverse((at, who, wakes))) = events.pop().filter(|event| event.0.0 < length) {
        let mut granted = None;
        if wakes {
            ready_since[who] = at;
            if scheduler.ask(seats[who]) == Answer::Go {
                granted = Some(who);
            }
        } else {
            ran[who] += habits[who].run;
            granted = match habits[who].sleep {
                Some(sleep) => {
                    events.push(event(at + sleep, who, true));
                    scheduler.release(seats[who], habits[who].run)
                }
                None => {
                    ready_since[who] = at;
                    scheduler.again(seats[who], habits[who].run)
                }
            };
        }
        if let Some(next) = granted {
            if at > length / 10 {
                waited[next] = waited[next].max(at - ready_since[next]);
            }
            events.push(event(at + habits[next].run, next, false));
        }
        check(&scheduler);
    }
    (ran, waited)
}

const MS: u64 = 1_000_000;

fn by_sandbox(sandboxes: usize, habits: &[Habit], ran: &[u64]) -> Vec<u64> {
    let mut sums = vec![0; sandboxes];
    habits.iter().zip(ran).for_each(|(habit, time)| sums[habit.sandbox] += time);
    sums
}

fn spinner(sandbox: usize) -> Habit {
    Habit { sandbox, run: MS, sleep: None }
}

#[test]
fn sixty_processes_of_one_sandbox_count_as_one() {
    for slots in 1..4 {
        let mut habits = vec![spinner(0); 60];
        habits.extend(vec![spinner(1); slots]);
        let (ran, _) = simulate(slots, &[1, 1], &habits, 1_000 * MS);
        let shares = by_sandbox(2, &habits, &ran);
        assert!(shares[0].abs_diff(shares[1]) <= 20 * MS, "{slots} slots: {shares:?}");
        // Within the sandbox everyone has the same, too.
        assert!(ran[..60].iter().max().unwrap() - ran[..60].iter().min().unwrap() <= 2 * MS, "{ran:?}");
    }
}

/// One sandbox beside another and its 400 forks, all busy: the two families have the same, and so have the forks.
#[test]
fn forks_share_what_their_family_has() {
    let mut sandboxes = vec![(1, 1)];
    sandboxes.extend(vec![(2, 1); 400]);
    let mut habits = vec![spinner(0); 2];
    habits.extend((1..=400).map(spinner));
    let (ran, _) = simulate_families(2, &sandboxes, &habits, 4_000 * MS);
    let shares = by_sandbox(401, &habits, &ran);
    let forks = &shares[1..];
    assert!(shares[0].abs_diff(forks.iter().sum()) <= 20 * MS, "{} of {}", shares[0], 8_000 * MS);
    assert!(forks.iter().max().unwrap() - forks.iter().min().unwrap() <= 2 * MS, "{forks:?}");
}

/// A storm of new forks, each with a turn or two, keeps a neighbour waiting no longer than one busy sandbox does.
#[test]
fn new_forks_do_not_go_before_everybody_else() {
    let mut scheduler = Scheduler::new(2);
    let neighbour = scheduler.add_sandbox(1, 1);
    let root = scheduler.add_sandbox(2, 1);
    let spins = scheduler.add_seat(root, 0);
    assert_eq!(scheduler.ask(spins), Answer::Go);
    let waits = scheduler.add_seat(neighbour, 1);
    let mut running = vec![(spins, 0)];
    let mut seats = BTreeMap::new();
    for name in 2..402 {
        let fork = scheduler.add_sandbox(2, 1);
        let seat = scheduler.add_seat(fork, name);
        seats.insert(name, seat);
        if scheduler.ask(seat) == Answer::Go {
            running.push((seat, name));
        }
    }
    // The neighbour wants a short turn after each of the others' turns.
    let (mut turns, mut longest, mut waiting) = (0, 0, 0);
    for _ in 0..300 {
        if scheduler.ask(waits) == Answer::Ignored {
            waiting += 1;
            longest = longest.max(waiting);
        }
        let (seat, _) = running.remove(0);
        let mut next = scheduler.release(seat, 2 * MS);
        if next == Some(1) {
            (turns, waiting) = (turns + 1, 0);
            next = scheduler.release(waits, MS / 4);
        }
        running.extend(next.map(|name| (seats[&name], name)));
        check(&scheduler);
    }
    assert!(turns >= 100 && longest <= 3, "{turns} turns, {longest} of the others' at a time");
}

#[test]
fn a_nice_sandbox_has_its_fraction() {
    let mut habits = vec![spinner(0); 8];
    habits.extend(vec![spinner(1); 8]);
    let (ran, _) = simulate(2, &[1, 20], &habits, 4_000 * MS);
    let shares = by_sandbox(2, &habits, &ran);
    let ratio = shares[0] as f64 / shares[1] as f64;
    assert!((18.0..22.0).contains(&ratio), "{shares:?}");
}

#[test]
fn one_that_sleeps_often_is_served_when_it_wakes() {
    // A tenth of a millisecond every two, beside 60 that never rest and 20 sandboxes with one each.
    let mut habits = vec![Habit { sandbox: 0, run: MS / 10, sleep: Some(2 * MS) }];
    habits.extend(vec![spinner(1); 60]);
    habits.extend((2..22).map(spinner));
    let (_, waited) = simulate(2, &[1; 22], &habits, 1_000 * MS);
    assert!(waited[0] <= 3 * MS, "it waited for {} ns", waited[0]);
}

#[test]
fn idling_or_using_little_saves_nothing_up() {
    // For half of the time one process has one of four slots; then its sandbox wants all of them.
    let mut habits = vec![spinner(0)];
    habits.extend(vec![spinner(1); 60]);
    let late = Habit { sandbox: 0, run: MS, sleep: None };
    let first = habits.len();
    habits.extend(vec![late; 60]);
    let mut scheduler = Scheduler::new(4);
    let sandboxes = [scheduler.add_sandbox(1, 1), scheduler.add_sandbox(2, 1)];
    let seats: Vec<_> =
        habits.iter().enumerate().map(|(n, h)| scheduler.add_seat(sandboxes[h.sandbox], n)).collect();
    let mut running: Vec<usize> = (0..first).filter(|&n| scheduler.ask(seats[n]) == Answer::Go).collect();
    for round in 0..2_000 {
        if round == 1_000 {
            (first..habits.len()).for_each(|n| assert_ne!(scheduler.ask(seats[n]), Answer::Ignored));
        }
        let served = running.iter().filter(|&&n| habits[n].sandbox == 1).count();
        assert!(round < 1_030 || served > 0, "round {round}: the other sandbox is starved");
        running = running.iter().filter_map(|&n| scheduler.again(seats[n], MS)).collect();
        check(&scheduler);
    }
}

/// A sandbox whose process only wakes and sleeps costs the others no more than its share.
#[test]
fn one_that_keeps_making_others_yield_pays_for_it() {
    let mut scheduler = Scheduler::new(1);
    let sandboxes = [scheduler.add_sandbox(1, 1), scheduler.add_sandbox(2, 1)];
    let (spins, wakes) = (scheduler.add_seat(sandboxes[0], 0), scheduler.add_seat(sandboxes[1], 1));
    assert_eq!(scheduler.ask(spins), Answer::Go);
    let (mut spun, mut preempted) = (0u64, 0u64);
    // The spinner gets to do little between two interruptions; otherwise its turn is a millisecond.
    while spun < 200 * MS {
        let ran = match scheduler.ask(wakes) {
            Answer::Wait { preempt: true } => {
                preempted += 1;
                MS / 1000
            }
            _ => MS,
        };
        spun += ran;
        if scheduler.again(spins, ran) == Some(1) {
            assert_eq!(scheduler.release(wakes, 0), Some(0));
        }
        check(&scheduler);
    }
    assert!(preempted * PREEMPTION_COST <= 210 * MS, "{preempted} times in 200 ms");
}

/// Whatever its neighbours do, one that wants a slot has it after a bounded time.
#[test]
fn no_process_starves_under_random_load() {
    for seed in 1..60 {
        let mut dice = Dice::new(seed);
        let (slots, sandboxes) = (1 + dice.roll(4) as usize, 2 + dice.roll(6) as usize);
        let costs: Vec<u64> = (0..sandboxes).map(|_| 1 + dice.roll(4)).collect();
        let habits: Vec<Habit> = (0..30)
            .map(|_| Habit {
                sandbox: dice.roll(sandboxes as u64) as usize,
                run: 1 + dice.roll(2 * MS),
                sleep: (dice.roll(2) == 0).then(|| 1 + dice.roll(5 * MS)),
            })
            .collect();
        let (ran, waited) = simulate(slots, &costs, &habits, 3_000 * MS);
        assert!(ran.iter().all(|time| *time > 0), "seed {seed}: {ran:?}");
        assert!(waited.iter().all(|time| *time < 800 * MS), "seed {seed}: {waited:?}");
    }
}
