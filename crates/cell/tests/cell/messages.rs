//! Frames and messages: whatever bytes come, they are a message in its turn, or an error.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use wardian_cell::frame::{Decoder, Encoder, FrameError, HEADER, LONGEST_ORDER, LONGEST_REPORT};
use wardian_cell::ledger::Ledger;
use wardian_cell::message::{
    Class, Order, Piece, Refusal, Report, RunEnd, RunSpec, SandboxSpec, Seal, Settings, Stream, VERSION,
};

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

fn run_end() -> impl Strategy<Value = RunEnd> {
    let class = prop::option::of(prop_oneof![Just(Class::Timeout), Just(Class::LimitExceeded)]);
    (any::<u8>(), class, prop::option::of(".{0,20}"), bytes(), any::<u64>()).prop_map(
        |(exit_code, class, limit, note, number)| RunEnd {
            exit_code,
            class,
            limit,
            note,
            duration: Duration::from_micros(number),
            bytes_read: number,
            ..RunEnd::default()
        },
    )
}

fn report() -> impl Strategy<Value = Report> {
    let piece =
        (stream(), bytes(), any::<bool>()).prop_map(|(stream, bytes, cut)| Piece { stream, bytes, cut });
    let refusal = || ".{0,40}".prop_map(Refusal);
    let seal = any::<[bool; 3]>().prop_map(|[namespaces, landlock, seccomp]| {
        Report::Ready(Seal { version: VERSION, namespaces, landlock, seccomp })
    });
    // Few numbers, so that some of them are open.
    let request = || 0..6_u64;
    prop_oneof![
        seal,
        request().prop_map(Report::Began),
        (request(), any::<u32>()).prop_map(|(request, most)| Report::WantInput(request, most)),
        (request(), piece).prop_map(|(request, piece)| Report::Output(request, piece)),
        (request(), prop::result::maybe_ok(Just(()), refusal()))
            .prop_map(|(request, outcome)| Report::Done(request, outcome)),
        (request(), prop::result::maybe_ok(run_end().prop_map(Box::new), refusal()))
            .prop_map(|(request, outcome)| Report::Ended(request, outcome)),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    let settings = (any::<u32>(), prop::option::of(".{0,20}")).prop_map(|(supervisor, cache)| {
        Order::Start(Settings { version: VERSION, supervisor, cache, threads: None, memory: 1 })
    });
    let run =
        (any::<u64>(), bytes(), prop::option::of(any::<u32>())).prop_map(|(request, command, timeout)| {
            let timeout = timeout.map(|ms| Duration::from_millis(ms.into()));
            Order::Run(request, 1, Box::new(RunSpec { command, timeout, ..RunSpec::default() }))
        });
    let create = prop::collection::vec((".{0,9}", ".{0,9}"), 0..5)
        .prop_map(|env| Order::Create(1, 1, Box::new(SandboxSpec { env, ..SandboxSpec::default() })));
    let input = (any::<u64>(), bytes()).prop_map(|(request, bytes)| Order::Input(request, bytes));
    prop_oneof![settings, run, create, input, any::<u64>().prop_map(Order::Cancel)]
}

/// Decodes bytes that come in pieces of these lengths.
fn decode<M: serde::de::DeserializeOwned>(
    longest: usize,
    bytes: &[u8],
    cuts: &[usize],
) -> (Vec<M>, Option<FrameError>) {
    let (mut decoder, mut messages, mut rest) = (Decoder::new(longest), Vec::new(), bytes);
    let mut cuts = cuts.iter().copied().chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let (now, later) = rest.split_at(cuts.next().unwrap_or(1).clamp(1, rest.len()));
        rest = later;
        decoder.push(now);
        loop {
            match decoder.decode() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

proptest! {
    #[test]
    fn reports_come_as_they_were_sent_however_they_are_cut(
        reports in prop::collection::vec(report(), 0..10),
        cuts in prop::collection::vec(1..40_usize, 0..40),
    ) {
        let mut encoder = Encoder::new(LONGEST_REPORT);
        let bytes: Vec<u8> =
            reports.iter().flat_map(|report| encoder.encode(report).expect("a frame")).collect();
        prop_assert_eq!(decode::<Report>(LONGEST_REPORT, &bytes, &cuts), (reports, None));
    }

    #[test]
    fn orders_come_as_they_were_sent_however_they_are_cut(
        orders in prop::collection::vec(order(), 0..10),
        cuts in prop::collection::vec(1..40_usize, 0..40),
    ) {
        let mut encoder = Encoder::new(LONGEST_ORDER);
        let bytes: Vec<u8> = orders.iter().flat_map(|order| encoder.encode(order).expect("a frame")).collect();
        prop_assert_eq!(decode::<Order>(LONGEST_ORDER, &bytes, &cuts), (orders, None));
    }

    #[test]
    fn random_bytes_are_no_message_or_one(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        // With a header that fits, so that the message itself is looked at.
        let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
        framed.extend([0; 8]);
        framed.extend(&bytes);
        for bytes in [&bytes, &framed] {
            let (reports, _) = decode::<Report>(LONGEST_REPORT, bytes, &[]);
            let (orders, _) = decode::<Order>(LONGEST_ORDER, bytes, &[]);
            prop_assert!(reports.len() <= 1 && orders.len() <= 1);
        }
    }

    #[test]
    fn a_frame_that_was_changed_is_an_error_or_another_message(
        reports in prop::collection::vec(report(), 1..4),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let mut encoder = Encoder::new(LONGEST_REPORT);
        let mut bytes: Vec<u8> =
            reports.iter().flat_map(|report| encoder.encode(report).expect("a frame")).collect();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let (decoded, error) = decode::<Report>(LONGEST_REPORT, &bytes, &[]);
        prop_assert!(decoded != reports || error.is_some());
    }

    #[test]
    fn a_ledger_believes_no_report_that_was_not_asked_for(
        reports in prop::collection::vec(report(), 0..40),
    ) {
        let now = Instant::now();
        let mut ledger = Ledger::<(), ()>::default();
        let (request, sandbox) = ledger.create((), &SandboxSpec::default(), now).expect("a request");
        let ready = Seal { version: VERSION, namespaces: true, landlock: true, seccomp: true };
        ledger.receive(Report::Ready(ready), now).expect("ready");
        ledger.receive(Report::Done(request, Ok(())), now).expect("done");
        let run = ledger.run((), sandbox, &RunSpec::default(), now).expect("a run");
        let mut answers = 0;
        for report in reports {
            let about = match &report {
                Report::Ready(_) | Report::NotStarted(_) | Report::Done(..) => None,
                Report::Began(about)
                | Report::WantInput(about, _)
                | Report::Output(about, _)
                | Report::Ended(about, _) => Some(*about),
            };
            let ends = matches!(report, Report::Ended(..));
            if ledger.receive(report, now).is_ok() {
                prop_assert_eq!((about, answers), (Some(run), 0));
                answers += usize::from(ends);
            }
        }
    }
}

#[test]
fn a_length_is_checked_before_anything_is_kept_for_it() {
    let mut decoder = Decoder::new(LONGEST_REPORT);
    let too_long = (LONGEST_REPORT as u32 + 1).to_le_bytes();
    decoder.push(&[&too_long[..], &[0; 8]].concat());
    assert_eq!(decoder.decode::<Report>(), Err(FrameError::TooLong));
    // One that says it is long has as much as has come.
    let mut decoder = Decoder::new(LONGEST_REPORT);
    decoder.push(&[&(LONGEST_REPORT as u32).to_le_bytes()[..], &[0; 8]].concat());
    assert_eq!(decoder.decode::<Report>(), Ok(None));
    assert_eq!(decoder.waiting(), HEADER);
    // A list in a message that says it is longer than the message is refused as well.
    let mut frame = 20_u32.to_le_bytes().to_vec();
    frame.extend([0; 8]);
    frame.extend([5, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    frame.extend([0; 12]);
    let (reports, error) = decode::<Report>(LONGEST_REPORT, &frame, &[]);
    assert_eq!((reports, error), (Vec::new(), Some(FrameError::Malformed)));
}

#[test]
fn frames_out_of_sequence_are_refused() {
    let mut encoder = Encoder::new(LONGEST_REPORT);
    let frames: Vec<Vec<u8>> = (0..3).map(|n| encoder.encode(&Report::Began(n)).expect("a frame")).collect();
    for order in [[0, 2], [1, 0], [0, 0]] {
        let bytes: Vec<u8> = order.iter().flat_map(|at| frames[*at].clone()).collect();
        assert_eq!(decode::<Report>(LONGEST_REPORT, &bytes, &[]).1, Some(FrameError::OutOfSequence));
    }
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    let mut encoder = Encoder::new(100);
    assert_eq!(encoder.encode(&Order::Input(1, vec![0; 200])), Err(FrameError::TooLong));
    let next = encoder.encode(&Order::Cancel(1)).expect("a frame");
    assert_eq!(next[4..HEADER], [0; 8], "it did not count");
}
