// SPDX-License-Identifier: MIT
//! Benchmarks in Rust, through the binary interface of assay.h; nothing from a registry is needed.
//!
//!   rustc -O --crate-type cdylib bench.rs -o bench.so && assay bench bench.so
use std::os::raw::c_char;

/// `struct assay_run`
#[repr(C)]
pub struct Run {
    next: extern "C" fn(*mut Run) -> u64,
    pause: extern "C" fn(*mut Run),
    resume: extern "C" fn(*mut Run),
    report: extern "C" fn(*mut Run, *const c_char, f64, *const c_char),
    grows: extern "C" fn(*mut Run, f64, *const c_char),
    fail: extern "C" fn(*mut Run, *const c_char),
    skip: extern "C" fn(*mut Run, *const c_char),
    values: *const i64,
    thread: u32,
    thread_count: u32,
}

/// `struct assay_parameter`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameter {
    name: *const c_char,
    kind: i32,
    count: u32,
    values: [i64; 32],
}

/// `struct assay_benchmark`
#[repr(C)]
pub struct Benchmark {
    name: *const c_char,
    file: *const c_char,
    run: extern "C" fn(*mut Run),
    line: u32,
    parameter_count: u32,
    parameters: [Parameter; 4],
}
unsafe impl Sync for Benchmark {}

/// `struct assay_registry`
#[repr(C)]
pub struct Registry {
    abi: u32,
    size: u32,
    first: *const &'static Benchmark,
    end: *const &'static Benchmark,
}
unsafe impl Sync for Registry {}

const NONE: Parameter = Parameter { name: std::ptr::null(), kind: 0, count: 0, values: [0; 32] };

const fn list(name: &'static [u8], given: &[i64]) -> Parameter {
    let mut values = [0; 32];
    let mut i = 0;
    while i < given.len() {
        values[i] = given[i];
        i += 1;
    }
    Parameter { name: name.as_ptr() as *const c_char, kind: 0, count: given.len() as u32, values }
}

/// The value counts as used; std::hint::black_box does the same from Rust 1.66 on.
fn black_box<T>(value: T) -> T {
    unsafe {
        let copy = std::ptr::read_volatile(&value);
        std::mem::forget(value);
        copy
    }
}

/// The loop: as many iterations as `next` asks for, until it asks for none.
fn measure(run: *mut Run, mut body: impl FnMut()) {
    loop {
        let count = unsafe { ((*run).next)(run) };
        if count == 0 {
            return;
        }
        for _ in 0..count {
            body();
        }
    }
}

extern "C" fn sum_of_squares(run: *mut Run) {
    let n = unsafe { *(*run).values };
    let data: Vec<u64> = (0..n as u64).collect();
    let mut sum = 0;
    measure(run, || sum = black_box(black_box(&data).iter().map(|x| x * x).sum()));
    unsafe { ((*run).report)(run, b"items\0".as_ptr() as *const c_char, n as f64, b"\0".as_ptr() as *const c_char) };
    let expected = (n as u64 - 1) * n as u64 * (2 * n as u64 - 1) / 6;
    if sum != expected {
        unsafe { ((*run).fail)(run, b"the sum is wrong\0".as_ptr() as *const c_char) };
    }
}

extern "C" fn push_a_string(run: *mut Run) {
    let mut text = String::new();
    measure(run, || {
        text.clear();
        text.push_str(black_box("a string of some length"));
        black_box(&text);
    });
}

static BENCHMARKS: [&Benchmark; 2] = [
    &Benchmark {
        name: b"sum_of_squares\0".as_ptr() as *const c_char,
        file: b"bench.rs\0".as_ptr() as *const c_char,
        run: sum_of_squares,
        line: 80,
        parameter_count: 1,
        parameters: [list(b"n\0", &[100, 10000]), NONE, NONE, NONE],
    },
    &Benchmark {
        name: b"push_a_string\0".as_ptr() as *const c_char,
        file: b"bench.rs\0".as_ptr() as *const c_char,
        run: push_a_string,
        line: 92,
        parameter_count: 0,
        parameters: [NONE; 4],
    },
];

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static assay_registry: Registry = Registry {
    abi: 1,
    size: std::mem::size_of::<Benchmark>() as u32,
    first: BENCHMARKS.as_ptr(),
    end: unsafe { BENCHMARKS.as_ptr().add(2) },
};
