// SPDX-License-Identifier: MIT
// A pair of Rust programs: see pair.c.  One of three closures does more.
use std::hint::black_box;
use std::time::Instant;

const MS: u64 = 240_000;
const PICK: u64 = if cfg!(new) { 24 } else { 8 };

fn spin(turns: u64) -> u64 {
    let mut x = black_box(88172645463325252u64);
    for _ in 0..turns {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

#[inline(never)]
fn parse(turns: u64) -> u64 {
    (0..4).map(|i| spin(turns / 4) + i).sum()
}

#[inline(never)]
fn render(turns: u64) -> u64 {
    (0..4).map(|i| spin(turns / 4).rotate_left(3) ^ i).sum()
}

#[inline(never)]
fn store(turns: u64) -> u64 {
    (0..4).map(|i| spin(turns / 4).wrapping_mul(5) ^ i).fold(0, |a, b| a ^ b)
}

fn main() {
    black_box(parse(black_box(12 * MS)));
    let start = Instant::now();
    black_box(render(black_box(PICK * MS)));
    let took = start.elapsed();
    black_box(store(black_box(10 * MS)));
    if std::env::args().len() > 1 {
        println!("{:.3}", took.as_secs_f64() * 1e3);
    }
}
