// SPDX-License-Identifier: MIT
// Rust with generics, closures and traits.  oxide ROUNDS (default 200).
use std::collections::HashMap;

trait Shape {
    fn area(&self, scale: f64) -> f64;
}

struct Square(f64);

impl Shape for Square {
    fn area(&self, scale: f64) -> f64 {
        self.0 * self.0 * scale
    }
}

mod words {
    #[inline(never)]
    pub fn hash<T: AsRef<str>>(words: &[T]) -> u64 {
        words.iter().flat_map(|w| w.as_ref().bytes()).fold(7, |sum, b| super::mix(sum ^ b as u64))
    }
}

#[inline(always)]
fn mix(value: u64) -> u64 {
    (value ^ (value >> 29)).wrapping_mul(0x9e3779b97f4a7c15)
}

#[inline(never)]
fn count(words: &[String]) -> usize {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in words {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts.len()
}

#[inline(never)]
fn sort(mut seed: u64) -> u64 {
    let mut numbers: Vec<u64> = (0..1000)
        .map(|_| {
            seed = mix(seed + 1);
            seed
        })
        .collect();
    numbers.sort_by(|a, b| b.cmp(a));
    numbers[500]
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(200);
    let words: Vec<String> = (0..500).map(|i| format!("word{}", i * 7919 % 101)).collect();
    let shape: Box<dyn Shape> = Box::new(Square(rounds as f64));
    let mut sum = 0u64;
    for i in 0..rounds {
        sum = sum.wrapping_add(words::hash(&words)).wrapping_add(count(&words) as u64);
        sum = sum.wrapping_add(sort(sum % 1000003)).wrapping_add(shape.area(i as f64) as u64);
    }
    println!("{}", sum);
}
