//! The fuzz target of the HTTP reader, a little of it in every run.

use crate::fuzzed::{net_http, request};
use crate::random::Random;

#[test]
fn what_is_accepted_means_the_same_to_another_parser() {
    let mut random = Random::new(18);
    for _ in 0..20_000 {
        net_http(&request(&mut random));
    }
}
